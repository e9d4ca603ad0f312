"""where with functions: the element-wise form of cond, and what the function not taken must not do.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import grad, hessian, jit, jvp, mask, vmap

X = np.array([1.0, -1.0, 0.0, 2.0, -0.0, 0.25])


def safe_log(x):
    return pnp.where(x > 0, pnp.log, lambda x: 0 * x, x)


def expected_log(order):
    """log and its derivatives where X > 0, else exactly 0."""
    values = np.zeros_like(X)
    inside = X > 0
    derivatives = [np.log, lambda x: 1 / x, lambda x: -1 / x**2, lambda x: 2 / x**3]
    values[inside] = derivatives[order](X[inside])
    return values


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_the_function_not_taken_contributes_nothing(run):
    x = pnp.asarray(X)
    total = lambda x: pnp.sum(safe_log(x))  # noqa: E731
    cases = [safe_log, grad(total), lambda x: pnp.sum(hessian(total)(x), 0)]
    cases.append(vmap(grad(grad(grad(safe_log)))))
    for order, function in enumerate(cases):
        found = np.asarray(run(function)(x))
        np.testing.assert_allclose(found, expected_log(order), rtol=1e-12)
        assert np.all(found[X <= 0] == 0), order
    pushed = run(lambda x: jvp(safe_log, (x,), (pnp.ones_like(x),))[1])(x)
    np.testing.assert_allclose(pushed, expected_log(1), rtol=1e-12)
    off_diagonal = np.asarray(run(hessian(total))(x))
    assert np.count_nonzero(off_diagonal) == np.count_nonzero(np.diag(off_diagonal)) == 3


def test_overflow_and_division_on_the_other_side():
    def f(x):  # exp(x^2) / x overflows, and 1 / x divides by zero, where they are not taken
        return pnp.where(abs(x) < 1, lambda x: 2 * x, lambda x: pnp.exp(x * x) / (abs(x) - 0.5), x)

    xs = np.array([0.5, -0.5, 0.0, 2.0, -1.5])
    got = vmap(grad(f))(pnp.asarray(xs))

    def slope(x):
        if abs(x) < 1:
            return 2.0
        a = abs(x)
        return np.sign(x) * np.exp(a * a) * (2 * a / (a - 0.5) - 1 / (a - 0.5) ** 2)

    np.testing.assert_allclose(got, [slope(x) for x in xs], rtol=1e-10)
    huge = pnp.asarray(np.array([1e3, 1.0]))
    big = lambda x: pnp.where(x > 100, lambda x: x, pnp.exp, x)  # noqa: E731
    np.testing.assert_allclose(vmap(grad(big))(huge), [1, np.exp(1.0)], rtol=1e-14)


def test_by_tape():
    x = plait.variable(pnp.asarray(X))
    pnp.sum(safe_log(x)).backward()
    np.testing.assert_allclose(x.grad, expected_log(1), rtol=1e-12)


def test_arguments_broadcast_and_are_trees():
    x, y = np.random.default_rng(0).normal(size=(3, 1)), np.random.default_rng(1).normal(size=4)
    condition = x > y
    got = pnp.where(condition, lambda p: {"sum": p["x"] + p["y"]}, lambda p: {"sum": p["x"] * p["y"]},
                    {"x": pnp.asarray(x), "y": pnp.asarray(y)})  # fmt: skip
    np.testing.assert_allclose(got["sum"], np.where(condition, x + y, x * y))
    assert pnp.where(True, pnp.log, pnp.exp, 1.0) == 0
    assert pnp.where(2.0, pnp.log, pnp.exp, 1.0) == 0  # a number is true unless it is 0
    assert pnp.where(pnp.ones((0, 3)) > 0, pnp.log, pnp.exp, 1.0).shape == (0, 3)


def test_one_side_may_be_an_array():
    x = pnp.asarray(X)
    np.testing.assert_allclose(pnp.where(x > 0, pnp.log, 0.0, x), expected_log(0))
    np.testing.assert_allclose(pnp.where(x > 0, pnp.log, 0, x), expected_log(0))
    np.testing.assert_allclose(
        pnp.where(x <= 0, x, pnp.log, x), np.where(X > 0, expected_log(0), X)
    )
    other = np.arange(6.0)
    np.testing.assert_allclose(
        grad(lambda y: pnp.sum(pnp.where(x > 0, pnp.log, y, x)))(pnp.asarray(other)), X <= 0
    )


def test_under_mask_and_vmap():
    f = mask(lambda x: pnp.sum(safe_log(x)), "n")
    padded = pnp.asarray([[1.0, -2.0, 4.0], [2.0, np.nan, -np.inf]])
    lengths = pnp.asarray([3, 1])
    got = jit(vmap(lambda x, n: f(x, n=n)))(padded, lengths)
    np.testing.assert_allclose(got, [np.log(4), np.log(2)])
    gradient = grad(lambda x: pnp.sum(vmap(lambda x, n: f(x, n=n))(x, lengths)))(padded)
    assert gradient.tolist() == [[1, 0, 0.25], [0.5, 0, 0]]


def test_errors_and_effects_of_those_who_take_it():
    table, seen = pnp.asarray([1.0, 2.0]), []

    def read(i):
        plait.check(i < 2, "i is {}", i)
        plait.debug.callback(lambda i: seen.append(int(i)), i)
        return table[i]

    f = lambda i: pnp.where(i < 2, read, lambda i: -1.0, i)  # noqa: E731
    assert f(pnp.asarray([0, 7, 1])).tolist() == [1, -1, 2] and seen == [0, 1]
    assert f(pnp.asarray(7)) == -1


def test_what_it_refuses():
    x = pnp.asarray(X)
    for error, wrong in (
        (plait.ShapeError, lambda: pnp.where(x > 0, lambda e: e * x, 0.0, x)),
        (plait.ShapeError, lambda: pnp.where(x > 0, pnp.log, 0.0, x, pnp.ones(5))),
        (plait.TreeError, lambda: pnp.where(x > 0, lambda e: (e, e), lambda e: e, x)),
        (plait.TreeError, lambda: pnp.where(x > 0, lambda e: "a", lambda e: e, x)),
        (plait.DtypeError, lambda: pnp.where(x > 0, lambda e: e.astype("int32"), lambda e: e, x)),
    ):
        with pytest.raises(error, match="where"):
            wrong()
