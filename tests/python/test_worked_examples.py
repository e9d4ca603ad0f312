"""The interpreters under examples/ against results that are found in another way.

SPDX-License-Identifier: Apache-2.0
"""

import importlib.util
import math
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as pnp

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"


def example(stem):
    spec = importlib.util.spec_from_file_location(stem, EXAMPLES / f"{stem}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


new_transform, jet, laplacian, sparse = map(
    example, ("new_transform", "jet", "forward_laplacian", "sparse_jacobian")
)
X = np.float64([[0.3, 0.7, 1.1], [0.5, 1.3, 0.2]])
W = np.sin(np.arange(12.0)).reshape(3, 4)


def test_an_interval_holds_all_that_its_points_give():
    rng = np.random.default_rng(0)
    f = lambda x, y: pnp.tanh(x * y + -x) * (x + 0.5)  # noqa: E731
    centres = rng.normal(size=(2, 50))
    radii = rng.uniform(0, 0.5, size=(2, 50))
    low, high = new_transform.interval(f)(*zip(centres - radii, centres + radii))
    for _ in range(20):
        x, y = centres + radii * rng.uniform(-1, 1, size=(2, 50))
        value = np.tanh(x * y - x) * (x + 0.5)
        assert (np.asarray(low) - 1e-12 <= value).all() and (
            value <= np.asarray(high) + 1e-12
        ).all()


def nested_derivatives(f, x, direction, order):
    """Derivatives of f along a line, by jvp of jvp of ..."""
    along = lambda t: f(x + t * direction)  # noqa: E731
    results = []
    for _ in range(order + 1):
        results.append(np.asarray(along(np.float64(0))))
        along = (lambda g: lambda t: plait.jvp(g, (t,), (np.float64(1),))[1])(along)
    return results


FUNCTIONS = {
    "arithmetic": lambda x: x * x / (1 + x) - 2 * x + 1 / x,
    "exp": lambda x: pnp.exp(-x * x) + pnp.expm1(x),
    "log": lambda x: pnp.log(x) * pnp.log1p(x * x),
    "sin": lambda x: pnp.sin(x * x) * pnp.cos(x),
    "tanh": lambda x: pnp.tanh(3 * x),
    "sqrt": lambda x: pnp.sqrt(1 + x * x),
    "erf": lambda x: plait.scipy.special.erf(x * x),
    "integer powers": lambda x: x**3 + x**-2 + (x - X) ** 4,
    "powers": lambda x: x**2.5 + 2.0**x + x**x,
    "matmul": lambda x: pnp.tanh(x @ W) @ W.T,
    "product of two": lambda x: x @ x.T,
    "reductions": lambda x: pnp.sum(x * x, axis=1) / pnp.max(x) + pnp.mean(x, 1),
    "products": lambda x: pnp.prod(pnp.sin(x), axis=1) * pnp.prod(x),
    "movement": lambda x: pnp.concatenate([x[:, ::-1], pnp.pad(x.T, 1)[1:3, 1:4] * x[0, 1]]),
    "indexing": lambda x: pnp.square(x).at[0].add(x[1] ** 3)[:, [0, 2, 2]],
    "sorting": lambda x: pnp.sort(x * x, axis=1) * pnp.cumsum(x, axis=1),
    "composites": lambda x: plait.nn.softmax(x) + plait.nn.gelu(x) + plait.nn.sigmoid(x),
    "branches": lambda x: pnp.where(x > 0.6, x * x, pnp.sin(x)),
    "calls": plait.jit(lambda x: plait.checkpoint(pnp.sin)(x) * x),
    "norms": lambda x: pnp.var(x, axis=1) * pnp.linalg.norm(x),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_jet_is_nested_jvp(f):
    direction = np.cos(np.arange(6.0)).reshape(2, 3)
    zero = np.zeros_like(X)
    value, series = jet.jet(f, (X,), ([direction, zero, zero, zero],))
    for mine, nested in zip([value, *series], nested_derivatives(f, X, direction, 4)):
        np.testing.assert_allclose(np.asarray(mine), nested, rtol=1e-9, atol=1e-9)


def test_jet_of_a_curve_that_bends():
    # sin of t + t^2 at 0.4 + t + t^2, by the chain rule of Faa di Bruno.
    x = np.float64(0.4)
    value, (first, second, third) = jet.jet(
        pnp.sin, (x,), ([np.float64(1), np.float64(2), np.float64(0)],)
    )
    s, c = math.sin(0.4), math.cos(0.4)
    assert np.allclose([value, first, second, third], [s, c, 2 * c - s, -6 * s - c])


def test_jet_composes():
    def third(x):
        return jet.derivatives(lambda x: pnp.exp(2 * x), x, 3)[3]

    xs = np.float64([0.1, 0.2])
    np.testing.assert_allclose(np.asarray(plait.vmap(third)(xs)), 8 * np.exp(2 * xs))
    np.testing.assert_allclose(
        np.asarray(plait.jit(plait.vmap(plait.grad(third)))(xs)), 16 * np.exp(2 * xs)
    )


def test_jet_says_what_it_has_no_rule_for():
    with pytest.raises(plait.MissingRuleError, match="`lgamma` has no jet rule for these"):
        jet.jet(plait.lax.lgamma, (np.float64(1),), ([np.float64(1)],))


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_forward_laplacian_is_the_trace_of_the_hessian(f):
    value, slope, laplace = laplacian.forward_laplacian(f)(pnp.asarray(X))
    np.testing.assert_allclose(np.asarray(value), np.asarray(f(X)), rtol=1e-12)
    np.testing.assert_allclose(
        np.asarray(slope), np.asarray(plait.jacfwd(f)(X)), rtol=1e-9, atol=1e-12
    )
    hessian = np.asarray(plait.hessian(f)(X)).reshape(*np.shape(value), 6, 6)
    np.testing.assert_allclose(
        np.asarray(laplace), np.trace(hessian, axis1=-2, axis2=-1), rtol=1e-9, atol=1e-9
    )


def test_forward_laplacian_of_a_harmonic_function():
    # The potential of a charge is harmonic away from it.
    potential = lambda x: 1 / pnp.linalg.norm(x)  # noqa: E731
    points = np.random.default_rng(1).normal(size=(5, 3))
    _, _, laplace = plait.jit(plait.vmap(laplacian.forward_laplacian(potential)))(points)
    np.testing.assert_allclose(np.asarray(laplace), np.zeros(5), atol=1e-9)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_sparse_jacobian_is_the_dense_one(f):
    x = pnp.asarray(X)
    dense = np.asarray(plait.jacfwd(f)(x)).reshape(-1, 6)
    where = sparse.pattern(f, x)
    assert not dense[~where].any()
    np.testing.assert_allclose(np.asarray(sparse.sparse_jacobian(f, x)(x)), dense, rtol=1e-12)


TRIDIAGONAL = np.eye(9) + np.eye(9, k=1) - np.eye(9, k=-1)
SHAPES = {
    "elementwise": (lambda x: pnp.sin(x) * x, 1),
    "neighbours": (sparse.burgers, 3),
    "a ring": (lambda x: x * pnp.roll(x, 1), 3),  # of an odd number of columns
    "a banded matrix": (lambda x: TRIDIAGONAL @ x, 3),
    "blocks": (lambda x: pnp.sum(x.reshape(3, 3) ** 2, axis=1), 3),
    "reversed": (lambda x: x[::-1] ** 2, 1),
    "every third": (lambda x: x[::3], 1),
    "known places": (lambda x: x[np.array([4, 4, 0])], 1),
    "places that values decide": (lambda x: x[pnp.argmax(x)], 9),
    "a running sum": (pnp.cumsum, 9),
    "a constant": (lambda x: pnp.ones(3), 1),
    "a stopped gradient": (lambda x: plait.stop_gradient(x) * 2, 1),
}


@pytest.mark.parametrize("f, passes", SHAPES.values(), ids=SHAPES)
def test_passes_of_sparse_jacobians(f, passes):
    x = pnp.asarray(np.sin(np.arange(9.0)) + 2)
    jacobian = sparse.sparse_jacobian(f, x)
    np.testing.assert_allclose(
        np.asarray(jacobian(x)), np.asarray(plait.jacfwd(f)(x)).reshape(-1, 9)
    )
    assert jacobian.passes == passes


def test_colours_keep_columns_apart_that_meet():
    where = np.random.default_rng(2).random((30, 40)) < 0.05
    colour = sparse.colours(where)
    for number in range(colour.max() + 1):
        assert where[:, colour == number].sum(axis=1).max() <= 1
    assert colour.max() + 1 <= 12


def printed(stem):
    command = [sys.executable, EXAMPLES / f"{stem}.py"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_sparse_jacobian_prints():
    lines = printed("sparse_jacobian")
    band = ["".join(".#"[abs(i - j) <= 1] for j in range(12)) for i in range(12)]
    assert lines[:12] == band and lines[12] == "colours 0 1 2 0 1 2 0 1 2 0 1 2"
    assert float(lines[13].split()[-1]) < 1e-6
    assert lines[14:] == ["100 columns in 3 passes", "300 columns in 3 passes"]
