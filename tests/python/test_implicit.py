"""custom_linear_solve, custom_root and linear algebra on the tape.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import grad, jit, jvp, lax, vmap
from test_linalg import SQUARE, check, check_gradient, definite, pl, random

pytestmark = pytest.mark.isa


# --- Implicit differentiation ---


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_custom_linear_solve(wrap):
    a, b = definite(random((3, 3))), random(3, seed=2)

    def by_inverse(transposed):
        return lambda matvec, b: pl.inv(lax.stop_gradient(transposed)) @ b

    def solved(a, b):
        return lax.custom_linear_solve(lambda x: a @ x, b, by_inverse(a), by_inverse(a.T))

    square = random((3, 3)) + 2 * np.eye(3)
    f = wrap(solved)
    check(f(square, b), np.linalg.solve(square, b))
    check_gradient(f, square, b)
    check_gradient(lambda a: grad(lambda a: pnp.sum(f(a, b) ** 2))(a), square)
    tangent = jvp(f, (square, b), (np.ones((3, 3)), np.zeros(3)))[1]
    check(tangent, -np.linalg.solve(square, np.ones((3, 3)) @ np.linalg.solve(square, b)))
    for axes in ((0, None), (None, 0), (0, 0)):
        batch = [
            np.stack([v, v + 0.1 * np.eye(3)[0]]) if axis == 0 else v
            for v, axis in zip((square, b), axes)
        ]
        got = np.asarray(vmap(f, axes)(*batch))
        for i in range(2):
            check(
                got[i], np.linalg.solve(*[v[i] if axis == 0 else v for v, axis in zip(batch, axes)])
            )
        slopes = vmap(grad(lambda a, b: pnp.sum(f(a, b) ** 2)), axes)(*batch)
        one = grad(lambda a, b: pnp.sum(f(a, b) ** 2))(
            *[v[1] if axis == 0 else v for v, axis in zip(batch, axes)]
        )
        check(slopes[1], one)
    symmetric = wrap(
        lambda a, b: lax.linear_solve(lambda x: a @ x, b, by_inverse(a), symmetric=True)
    )
    check(grad(lambda a: pnp.sum(symmetric(a, b)))(a), grad(lambda a: pnp.sum(pl.solve(a, b)))(a))


def test_custom_linear_solve_of_trees_and_bad_input():
    b = {"x": np.ones(2), "y": np.array(3.0)}
    got = lax.custom_linear_solve(
        lambda t: {"x": 2 * t["x"], "y": 4 * t["y"]},
        b,
        lambda f, t: {"x": t["x"] / 2, "y": t["y"] / 4},
    )
    check(got["y"], np.array(0.75))
    with pytest.raises(NotImplementedError, match="transpose_solve"):
        grad(
            lambda s: pnp.sum(
                lax.custom_linear_solve(lambda x: s * x, np.ones(2), lambda f, y: y / 2.0)
            )
        )(2.0)
    with pytest.raises(plait.TreeError):
        lax.custom_linear_solve(lambda x: x, np.ones(2), lambda f, y: (y, y))
    with pytest.raises(plait.ShapeError, match="square"):
        jit(lambda b: lax.custom_linear_solve(lambda x: x[:1], b, lambda f, y: y))(np.ones(2))


def newton(f, x):
    for _ in range(12):
        value, slope = jvp(f, (x,), (pnp.ones_like(x),))
        x = x - value / slope
    return x


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_custom_root(wrap):
    def cube_root(y):
        return lax.custom_root(
            lambda x: x**3 - y, pnp.ones_like(y) * 1.0, newton, lambda g, y: y / g(pnp.ones_like(y))
        )

    f = wrap(cube_root)
    check(f(np.array(5.0)), np.cbrt(5.0))
    check(grad(f)(np.array(5.0)), np.array(5.0 ** (-2 / 3) / 3))
    check(grad(grad(f))(np.array(5.0)), np.array(-2 / 9 * 5.0 ** (-5 / 3)))
    check(grad(grad(grad(f)))(np.array(5.0)), np.array(10 / 27 * 5.0 ** (-8 / 3)))
    check(jvp(f, (np.array(5.0),), (np.array(2.0),))[1], np.array(2 * 5.0 ** (-2 / 3) / 3))
    y = np.array([2.0, 5.0, 8.0])
    check(vmap(f)(y), np.cbrt(y))
    check(vmap(grad(f))(y), y ** (-2 / 3) / 3)
    check(grad(lambda y: pnp.sum(vmap(f)(y)))(y), y ** (-2 / 3) / 3)


def test_custom_root_of_systems_may_look_at_values():
    def solve(f, x):
        steps = 0
        while float(pnp.sum(f(x) ** 2)) > 1e-24 and steps < 50:
            x = x - pl.solve(plait.jacfwd(f)(x), f(x))
            steps += 1
        return x

    def tangent_solve(g, y):
        return pl.solve(plait.jacfwd(g)(pnp.zeros_like(y)), y)

    def intersection(radius, slope):  # of a circle and a line
        f = lambda p: pnp.stack([p[0] ** 2 + p[1] ** 2 - radius**2, p[1] - slope * p[0]])  # noqa: E731
        return lax.custom_root(f, np.array([1.0, 1.0]), solve, tangent_solve)

    for index, exact in enumerate(
        (lambda r, s: r / np.hypot(1, s), lambda r, s: r * s / np.hypot(1, s))
    ):
        check(intersection(2.0, 0.5)[index], np.array(exact(2.0, 0.5), np.float64))
        got = grad(lambda r, s: intersection(r, s)[index], argnums=(0, 1))(
            np.array(2.0), np.array(0.5)
        )
        step = 1e-6
        check(got[0], np.array((exact(2 + step, 0.5) - exact(2 - step, 0.5)) / (2 * step)), 1e-8)
        check(got[1], np.array((exact(2, 0.5 + step) - exact(2, 0.5 - step)) / (2 * step)), 1e-8)
    with pytest.raises(plait.ShapeError, match="equations"):
        lax.custom_root(lambda x: pnp.sum(x), np.ones(2), solve, tangent_solve)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_what_the_solvers_of_custom_root_capture_has_no_derivative(wrap):
    def cube_root(y):
        def solve(f, x):
            return pnp.cbrt(y)

        guess = pnp.ones_like(y)
        return lax.custom_root(lambda x: x**3 - y, guess, solve, lambda g, t: t / g(1.0) + 0 * y)

    f = wrap(cube_root)
    check(grad(f)(np.array(5.0)), np.array(5.0 ** (-2 / 3) / 3))
    check(grad(grad(f))(np.array(5.0)), np.array(-2 / 9 * 5.0 ** (-5 / 3)))
    check(vmap(grad(f))(np.array([2.0, 5.0])), np.array([2.0, 5.0]) ** (-2 / 3) / 3)
    y = plait.variable(np.array(5.0))
    f(y).backward()
    check(y.grad, np.array(5.0 ** (-2 / 3) / 3))
    check(grad(f)(np.array(5.0, np.float32)), np.array(5.0 ** (-2 / 3) / 3, np.float32), 1e-6)


# --- The tape ---


@pytest.mark.parametrize(
    "f", [pl.inv, pl.det, pl.pinv, pl.svdvals, lambda x: pl.solve(x, np.arange(4.0)), lambda x: pl.cholesky(x @ x.T)]
)  # fmt: skip
def test_gradients_by_tape_are_those_by_grad(f):
    x = plait.variable(SQUARE)
    pnp.sum(f(x) ** 2).backward()
    check(x.grad, grad(lambda x: pnp.sum(f(x) ** 2))(SQUARE), 1e-12)


def test_implicit_functions_are_differentiated_by_their_equations_on_the_tape():
    y = plait.variable(np.array(5.0))
    lax.custom_root(
        lambda x: x**3 - y, np.array(1.0), newton, lambda g, t: t / g(np.array(1.0))
    ).backward()
    check(y.grad, np.array(5.0 ** (-2 / 3) / 3))
    y = plait.variable(np.array(5.0))
    root = lax.custom_root(
        lambda x: x**3 - y, np.array(1.0), newton, lambda g, t: t / g(np.array(1.0))
    )
    root.backward(create_graph=True)
    slope, y.grad = y.grad, None
    slope.backward()
    check(y.grad, np.array(-2 / 9 * 5.0 ** (-5 / 3)))
    a = plait.variable(SQUARE)

    def by(inverse):
        return lambda matvec, b: pnp.asarray(inverse) @ b

    b, inverse = np.arange(4.0), np.linalg.inv(SQUARE)
    x = lax.custom_linear_solve(lambda x: a @ x, b, by(inverse), by(inverse.T))
    pnp.sum(x).backward()
    check(a.grad, grad(lambda a: pnp.sum(pl.solve(a, b)))(SQUARE))
