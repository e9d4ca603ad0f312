"""Krylov solvers of linear systems over trees: cg, bicgstab, gmres.

The loops are C++; derivatives follow from the system, as those of lax.custom_linear_solve.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _names, _plait
from plait import numpy as _numpy
from plait._functions import refuse as _refuse
from plait._functions import text_of as _text_of
from plait._implicit import Unknowns as _Unknowns
from plait.tree import leaves as _leaves

__all__ = ["bicgstab", "cg", "gmres"]


def _operator(name, argument, given):
    """A matrix as an array or what has @, or a function."""
    if callable(given):
        return given
    matrix = _numpy.asarray(given) if isinstance(given, (list, tuple, _np.ndarray)) else given
    if not hasattr(type(matrix), "__matmul__"):
        _refuse(name, argument, given, "give a matrix or a function")
    shape = getattr(matrix, "shape", None)
    if shape is not None and (len(shape) != 2 or shape[0] != shape[1]):
        _plait.fail(
            "ShapeError",
            f"{name}: {argument} of shape {tuple(shape)}",
            "give a square matrix, or a function",
        )
    return matrix


def _solve(name, A, b, x0, tol, atol, maxiter, M, restart=20):
    A = _operator(name, "A", A)
    if not callable(
        A
    ):  # a list of numbers is a vector beside a matrix, and a tree beside a function
        b, x0 = (_numpy.asarray(x) if isinstance(x, (list, tuple)) else x for x in (b, x0))
    unknowns = _Unknowns(name, "b", b)
    if not callable(A) and hasattr(A, "dtype"):
        unknowns.arrays = [x.astype(_numpy.result_type(x, A.dtype)) for x in unknowns.arrays]
    start = [] if x0 is None else unknowns.leaves_of(x0, "x0")
    functions = []
    for argument, given in (("A", A), ("M", None if M is None else _operator(name, "M", M))):
        function = given if given is None or callable(given) else given.__matmul__
        functions.append(function and unknowns.flat(function, argument))
    solution = _plait.flat_krylov(
        name, functions[0], unknowns.arrays, start, tol, atol, maxiter, restart, functions[1]
    )
    return unknowns.tree(solution)


def cg(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None) with A(x) = b, by conjugate gradients: for A that is Hermitian and positive definite.

    A and M are matrices, or linear functions of trees like b; M is close to the inverse of A. Steps start from x0, by
    default zeros, and end where the norm of b - A(x) is at most max(tol |b|, atol), or after maxiter of them, by default
    10 for each unknown. x has derivatives with respect to b and what A uses, in both modes; none to x0 and M.

    TreeError for an x0, or a result of A or M, that is not like b; ShapeError for other shapes.
    """
    return _solve("cg", A, b, x0, tol, atol, maxiter, M), None


def bicgstab(A, b, x0=None, *, tol=1e-5, atol=0.0, maxiter=None, M=None):
    """(x, None) with A(x) = b, by stabilised biconjugate gradients: for any A that is not singular.

    A step applies A twice. Arguments, derivatives and errors are those of cg.
    """
    return _solve("bicgstab", A, b, x0, tol, atol, maxiter, M), None


def gmres(
    A,
    b,
    x0=None,
    *,
    tol=1e-5,
    atol=0.0,
    restart=20,
    maxiter=None,
    M=None,
    solve_method="batched",
):
    """(x, info) with A(x) = b, by generalised minimal residuals: for any A that is not singular.

    A cycle builds an orthonormal basis of at most restart vectors, and ends as soon as the residual is small enough;
    maxiter counts cycles. info is -1 where x is not finite, else 0. M stands at the right of A, so that the residual is
    that of b. solve_method: 'batched' or 'incremental', which are the same here. Other arguments, derivatives and errors
    are those of cg; ValueError for a restart below 1, or another method.
    """
    if solve_method not in ("batched", "incremental"):
        _plait.fail(
            "ValueError",
            f"gmres: solve_method is {_text_of(solve_method)}",
            "choose 'batched' or 'incremental'",
        )
    x = _solve("gmres", A, b, x0, tol, atol, maxiter, M, restart)
    is_finite = [_numpy.all(_numpy.isfinite(leaf)) for leaf in _leaves(x)]
    fails = _numpy.logical_not(_numpy.all(_numpy.stack(is_finite))) if is_finite else False
    return x, -_numpy.asarray(fails, "int32")


__getattr__ = _names.missing(__name__, globals())
