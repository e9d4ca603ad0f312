"""jax.scipy.sparse.linalg: iterative solvers of linear systems over trees, by functions of jax.lax.

Hestenes and Stiefel 1952, Methods of conjugate gradients for solving linear systems; van der Vorst 1992, Bi-CGSTAB.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import plait.lax as lax
import plait.numpy as pnp
from plait._plait import flatten

from jax._doors import lacking, refused
from jax.tree_util import tree_leaves, tree_map


def _dot(x, y):
    """The real part of the inner product of two trees."""
    return sum(pnp.vdot(a, b).real for a, b in zip(tree_leaves(x), tree_leaves(y)))


def _along(x, step, direction):
    """x + step * direction."""
    return tree_map(lambda a, d: a + pnp.astype(step, a.dtype) * d, x, direction)


def _solve(name, iterate, A, b, x0, tol, atol, maxiter, M, symmetric):
    matvec = A if callable(A) else lambda v: A @ v
    M = (lambda r: r) if M is None else M if callable(M) else lambda r, matrix=M: matrix @ r
    b = tree_map(pnp.asarray, b)
    x0 = tree_map(pnp.zeros_like, b) if x0 is None else tree_map(pnp.asarray, x0)
    if flatten(x0)[1] != flatten(b)[1]:
        raise ValueError(f"jax.scipy.sparse.linalg.{name}: x0 and b have different tree structures")
    maxiter = (
        10 * sum(int(np.prod(leaf.shape)) for leaf in tree_leaves(b))
        if maxiter is None
        else maxiter
    )

    def solve(matvec, b):
        bound = pnp.maximum(tol**2 * _dot(b, b), atol**2)
        return iterate(matvec, b, x0, bound, maxiter, M)

    return lax.custom_linear_solve(matvec, b, solve, solve, symmetric=symmetric), None


def _conjugate_gradients(matvec, b, x0, bound, maxiter, M):
    residual = tree_map(lambda v, w: v - w, b, matvec(x0))
    direction = M(residual)

    def is_far(state):
        _, residual, _, _, count = state
        return (_dot(residual, residual) > bound) & (count < maxiter)

    def step(state):
        x, residual, gamma, direction, count = state
        image = matvec(direction)
        alpha = gamma / _dot(direction, image)
        residual = _along(residual, -alpha, image)
        preconditioned = M(residual)
        following = _dot(residual, preconditioned)
        direction_next = _along(preconditioned, following / gamma, direction)
        return _along(x, alpha, direction), residual, following, direction_next, count + 1

    start = (x0, residual, _dot(residual, direction), direction, pnp.zeros((), "int32"))
    return lax.while_loop(is_far, step, start)[0]


def _stabilised(matvec, b, x0, bound, maxiter, M):
    residual = tree_map(lambda v, w: v - w, b, matvec(x0))
    shadow = residual
    one = pnp.ones_like(_dot(b, b))

    def is_far(state):
        _, residual, *_, count = state
        return (_dot(residual, residual) > bound) & (count < maxiter)

    def step(state):
        x, residual, direction, image, alpha, omega, rho, count = state
        following = _dot(shadow, residual)
        beta = following / rho * alpha / omega
        direction = _along(residual, beta, _along(direction, -omega, image))
        toward = M(direction)
        image = matvec(toward)
        alpha = following / _dot(shadow, image)
        half = _along(residual, -alpha, image)
        onward = M(half)
        second = matvec(onward)
        square = _dot(second, second)
        omega = pnp.where(
            square > 0, _dot(second, half) / pnp.where(square > 0, square, one), one * 0
        )
        x = _along(_along(x, alpha, toward), omega, onward)
        return x, _along(half, -omega, second), direction, image, alpha, omega, following, count + 1

    zeros = tree_map(pnp.zeros_like, residual)
    start = (x0, residual, zeros, zeros, one, one, one, pnp.zeros((), "int32"))
    return lax.while_loop(is_far, step, start)[0]


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None), where A(x) = b for a function or matrix A that is Hermitian and positive definite."""
    return _solve("cg", _conjugate_gradients, A, b, x0, tol, atol, maxiter, M, True)


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None), where A(x) = b for a function or matrix A."""
    return _solve("bicgstab", _stabilised, A, b, x0, tol, atol, maxiter, M, False)


gmres = refused("jax.scipy.sparse.linalg.gmres", "GMRES; bicgstab solves such systems")
__getattr__ = lacking(__name__)
__all__ = ["bicgstab", "cg"]
