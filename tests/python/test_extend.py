"""New primitives and transforms from Python, composing with everything.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

cube = plait.Primitive("test_cube", "The third power.")


@cube.abstract
def _(x):
    return x


@cube.eval
def _(x):
    return x**3


@cube.jvp
def _(primals, tangents, outputs):
    return 3 * primals[0] * primals[0] * tangents[0]


@cube.batch
def _(size, arrays, axes):
    return cube(arrays[0]), axes[0]


@cube.mask
def _(padded, avals, outputs, size_value):
    return cube(padded[0])


half_sine = plait.Primitive("test_half_sine")


@half_sine.decompose
def _(x, times=1):
    return pnp.sin(x) * 0.5 * times


interval = plait.Transform("interval", lift=lambda c: (c, c))


@interval.rule("add")
def _(x, y):
    return x[0] + y[0], x[1] + y[1]


@interval.rule("neg")
def _(x):
    return -x[1], -x[0]


@interval.rule("mul")
def _(x, y):
    products = [a * b for a in x for b in y]
    low = high = products[0]
    for p in products[1:]:
        low, high = pnp.minimum(low, p), pnp.maximum(high, p)
    return low, high


def test_a_primitive_composes_with_every_transform():
    x = np.float64([1, 2])
    assert cube(x).tolist() == [1, 8]
    f = lambda x: cube(x).sum()  # noqa: E731
    assert plait.grad(f)(x).tolist() == [3, 12]
    assert plait.jit(plait.grad(f))(x).tolist() == [3, 12]
    assert plait.vmap(plait.grad(lambda x: cube(x)))(x).tolist() == [3, 12]
    assert float(plait.grad(plait.grad(lambda x: cube(x)))(2.0)) == 12
    assert "test_cube" in str(plait.make_jaxpr(cube)(x))
    masked = plait.mask(lambda x: cube(x).sum(), "n")
    assert float(masked(np.float32([1, 2, np.nan]), n=2)) == 9


def test_a_primitive_by_decomposition():
    x = np.float64([0.1, 0.2])
    np.testing.assert_allclose(np.asarray(half_sine(x, times=2)), np.sin(x))
    np.testing.assert_allclose(
        np.asarray(plait.grad(lambda x: half_sine(x).sum())(x)), np.cos(x) / 2
    )
    np.testing.assert_allclose(np.asarray(plait.jit(plait.vmap(half_sine))(x)), np.sin(x) / 2)


def test_a_transform():
    low, high = interval(lambda x: x * x + 1)((-1.0, 2.0))
    assert (float(low), float(high)) == (-1, 5)
    low, high = interval(plait.jit(lambda x: -x))((1.0, 2.0))
    assert (float(low), float(high)) == (-2, -1)


def test_a_transform_composes():
    width = lambda a: (lambda r: r[1] - r[0])(interval(lambda x: x * 3)((a, a * 2)))  # noqa: E731
    assert float(plait.grad(width)(1.0)) == 3
    assert float(plait.jit(width)(2.0)) == 6
    assert plait.vmap(width)(np.float64([1, 2])).tolist() == [3, 6]


def test_coverage():
    rows = {row[0]: row for row in plait.rules(interval)}
    assert rows["add"][1] == "rule" and rows["add"][2].endswith("test_extend.py")
    assert rows["call"][1] == "decompose" and rows["sin"][1] == "missing"
    assert "jvp" in plait.rules()["test_cube"]
    assert {row[0]: row[1] for row in plait.rules("jvp")}["test_cube"] == "rule"


def test_missing_rules():
    with pytest.raises(plait.MissingRuleError, match="no interval rule"):
        interval(lambda x: pnp.sin(x))((0.0, 1.0))
    with pytest.raises(plait.ValueError, match="is no primitive"):
        interval.rule("nonsense")


def test_errors_of_rules_propagate():
    bad = plait.Primitive("test_bad")

    @bad.abstract
    def _(x):
        return x

    @bad.eval
    def _(x):
        raise RuntimeError("mine")

    bad.mask(lambda padded, avals, outputs, size_value: bad(padded[0]))

    with pytest.raises(RuntimeError, match="mine"):
        bad(np.float32([1]))
    with pytest.raises(RuntimeError, match="mine"):
        plait.jit(bad)(np.float32([1]))


def test_a_wrong_result_is_reported():
    wrong = plait.Primitive("test_wrong")
    wrong.abstract(lambda x: x)
    wrong.mask(lambda padded, avals, outputs, size_value: wrong(padded[0]))
    wrong.eval(lambda x: x[:1])
    with pytest.raises(plait.ShapeError, match="abstract rule says"):
        wrong(np.float32([1, 2]))
