"""Arguments of NumPy's functions besides the common ones, ufuncs and vectorize.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from test_modules import X, check, rng

# --- Arguments that NumPy's functions take besides the common ones ---


def test_digitize_between_falling_edges():
    x, edges = rng.normal(size=20), np.array([-1.0, 0.0, 0.0, 1.5])
    for right in (False, True):
        for bins in (edges, edges[::-1], edges[:1], np.array([])):
            expected = np.digitize(x, bins, right)
            assert pnp.digitize(x, bins, right).tolist() == expected.tolist()
            assert (
                plait.jit(lambda x, bins: pnp.digitize(x, bins, right))(x, bins).tolist()
                == expected.tolist()
            )


def test_arguments_of_numpy():
    x = X[0]
    check(pnp.diff(x, prepend=0.0, append=x[:, :1]), np.diff(x, prepend=0.0, append=x[:, :1]))
    weights = np.array([1.0, 0.0, 2.0])
    for ours, numpys in zip(
        pnp.average(x, 0, weights, returned=True), np.average(x, 0, weights, returned=True)
    ):
        check(ours, numpys)
    check(pnp.average(x, returned=True)[1], 12.0)
    for ours, numpys in zip(
        pnp.linspace(x[0], 5.0, 7, retstep=True), np.linspace(x[0], 5.0, 7, retstep=True)
    ):
        check(ours, numpys)
    check(pnp.var(x, correction=1), np.var(x, ddof=1))
    check(pnp.std(x, axis=1, correction=0.5), np.std(x, axis=1, ddof=0.5))
    with pytest.raises(plait.ValueError):
        pnp.var(x, ddof=1, correction=1)
    nans = np.where(x > 1, np.nan, x)
    for name, options in {"nansum": {"initial": 3.0}, "nanprod": {"initial": 2.0}, "nanmax": {"initial": -9.0},
                          "nanmin": {"initial": 9.0}, "nanmean": {}, "nanstd": {"ddof": 1}}.items():  # fmt: skip
        expected = getattr(np, name)(nans, axis=1, where=x < 0.5, **options)
        check(getattr(pnp, name)(nans, axis=1, where=x < 0.5, **options), expected)
    check(pnp.nancumprod(nans, 1), np.nancumprod(nans, 1))
    values = np.array([np.nan, 1.0, np.nan, 1.0])
    assert pnp.unique(values, equal_nan=False).shape == (3,) and pnp.unique(values).shape == (2,)
    assert pnp.unique_values(values).shape == (3,)  # the array-API standard keeps NaN apart
    assert [part.tolist() for part in pnp.split(np.arange(4), np.array([1, 3]))] == [
        [0],
        [1, 2],
        [3],
    ]
    assert pnp.zeros(np.array([2, 3])).shape == (2, 3) and pnp.broadcast_shapes((2, 3)) == (2, 3)
    assert pnp.atleast_1d([1, 2]).tolist() == [1, 2]


def test_repeat_by_counts():
    x, counts = X[0], np.array([2, 0, 1])
    check(pnp.repeat(x, counts, 0), np.repeat(x, counts, 0))
    check(pnp.repeat(x, [1, 2, 0, 3], axis=1), np.repeat(x, [1, 2, 0, 3], axis=1))
    check(pnp.repeat(x, np.array([2]), 1), np.repeat(x, np.array([2]), 1))
    # JAX's figures: what is more is cut, what lacks repeats the last element.
    y = np.array([1.0, 2.0, 3.0])
    for given, total, wanted in (
        ([1, 2, 0], 6, [1, 2, 2, 3, 3, 3]),
        ([3, 0, 4], 4, [1, 1, 1, 3]),
        ([0, 0, 0], 3, [3, 3, 3]),
        (2, 4, [1, 1, 2, 2]),
        (2, 6, [1, 1, 2, 2, 3, 3]),
        (2, 8, [1, 1, 2, 2, 3, 3, 3, 3]),
    ):
        repeat = functools.partial(pnp.repeat, y, total_repeat_length=total)
        check(repeat(np.int32(given)), wanted)
        check(repeat(given), wanted)
        check(plait.jit(repeat)(np.int32(given)), wanted)
        check(plait.vmap(repeat)(np.int32([given, given]))[1], wanted)
        gradient = plait.grad(
            lambda y, total=total, given=given: (
                pnp.repeat(y, given, total_repeat_length=total) * np.arange(total)
            ).sum()
        )(y)
        check(gradient, [np.arange(total)[np.array(wanted) == value].sum() * 1.0 for value in y])
    jitted = plait.jit(lambda x, n: pnp.repeat(x, n, 0, total_repeat_length=4))
    check(jitted(x, counts), x[[0, 0, 2, 2]])
    check(
        plait.grad(lambda x: pnp.repeat(x, counts, 0).sum())(x),
        np.repeat(counts, 4).reshape(3, 4).astype(float),
    )
    with pytest.raises(plait.TracerError):
        plait.jit(lambda x, n: pnp.repeat(x, n, 0))(x, counts)
    for wrong in ([1, 2], [1.5, 2, 3], [-1, 2, 3], -1):
        with pytest.raises((TypeError, ValueError)):
            pnp.repeat(x, wrong, 0)


def test_what_arguments_for_numpy_may_say():
    for call in (
        lambda: pnp.sum(X, out=X),
        lambda: pnp.sort(X, order="name"),
        lambda: pnp.reshape(X, -1, "Z"),
    ):
        with pytest.raises(plait.ValueError):
            call()
    assert (
        pnp.matmul(X[0].T, X[0], precision="highest").shape == (4, 4)
        and pnp.sort(X, kind="stable").shape == X.shape
    )
    assert pnp.take(X, [0], 0, mode="raise").shape == (1, 3, 4)
    with pytest.raises(IndexError):
        pnp.take(X, [2], 0, mode="raise")


# --- ufuncs and vectorize ---


@pytest.mark.parametrize(
    "name",
    ["add", "multiply", "maximum", "minimum", "subtract", "power", "arctan2", "less", "logaddexp"],
)
def test_outer(name):
    a, b = np.abs(X[0]), np.abs(X[1, 0])
    check(getattr(pnp, name).outer(a, b), getattr(np, name).outer(a, b))
    check(getattr(pnp, name).outer(2.0, b), getattr(np, name).outer(2.0, b))


@pytest.mark.parametrize(
    "name", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logaddexp"]
)
def test_reduce_and_accumulate(name):
    ours, numpys = getattr(pnp, name), getattr(np, name)
    check(ours.reduce(X), numpys.reduce(X))
    for axis in (1, None, -1):
        check(ours.reduce(X, axis, keepdims=True), numpys.reduce(X, axis, keepdims=True))
    if name in ("add", "multiply", "maximum", "minimum"):
        check(ours.accumulate(X, 1), numpys.accumulate(X, 1))
        check(ours.reduce(X, 0, initial=2.0), numpys.reduce(X, 0, initial=2.0))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_at(name):
    x, index, values = X[0, 0].copy(), np.array([0, 2, 0]), np.array([1.0, 2.0, 3.0])
    result = getattr(pnp, name).at(x, index, values)
    expected = x.copy()
    getattr(np, name).at(expected, index, values)
    check(result, expected)
    with pytest.raises(plait.ValueError):
        getattr(pnp, name).at(x, index, values, inplace=True)


def test_vectorize():
    @pnp.vectorize
    def f(a, b):
        assert a.shape == b.shape == ()
        return a * 2 + b, a

    a, b = X[0][:, None], X[1, 0]
    first, second = f(a, b)
    check(first, a * 2 + b)
    check(
        second,
        np.broadcast_to(a, (3, 1, 4))
        if np.shape(second) == (3, 1, 4)
        else np.broadcast_to(a, second.shape),
    )
    assert f(1.0, 2.0)[0].shape == () and f(a, 1.0)[0].shape == a.shape

    product = pnp.vectorize(lambda m, v: pnp.dot(m, v), signature="(m,n),(n)->(m)")
    m, v = rng.normal(size=(5, 1, 2, 3)), rng.normal(size=(4, 3))
    check(product(m, v), np.vectorize(np.dot, signature="(m,n),(n)->(m)")(m, v))
    check(product(m[0, 0], v[0]), m[0, 0] @ v[0])
    check(plait.jit(product)(m, v), np.einsum("abmn,bn->abm", np.broadcast_to(m, (5, 4, 2, 3)), v))
    several = pnp.vectorize(lambda v: (v.sum(), v * 2), signature="(n)->(),(n)")
    check(several(v)[0], v.sum(1))
    check(several(v)[1], v * 2)
    excluded = pnp.vectorize(
        lambda a, name, power=1: a**power if name == "power" else a, excluded=(1, "power")
    )
    check(excluded(X, "power", power=2), X**2)
    for wrong in (
        lambda: product(m, v[:, :2]),
        lambda: product(v[0], v[0]),
        lambda: pnp.vectorize(lambda x: pnp.ones(2))(X),
    ):
        with pytest.raises(plait.ShapeError):
            wrong()
    with pytest.raises(plait.ValueError):
        pnp.vectorize(lambda x: x, signature="(n->n")
    with pytest.raises(plait.DtypeError):
        excluded(X, name="power")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: pnp.add.reduce(x, out=out),
        lambda x, out: pnp.add.accumulate(x, out=out),
        lambda x, out: pnp.maximum.reduce(x, 0, None, out),
        lambda x, out: pnp.sum(x, out=out),
    ],
)
def test_a_result_is_written_nowhere_else(call):
    with pytest.raises(plait.ValueError, match="argument 'out' is given"):
        call(pnp.ones(3), np.zeros(()))


@pytest.mark.parametrize("make", [pnp.asarray, lambda x, device: pnp.zeros(3, device=device)])
def test_a_device_that_is_not_there_is_an_error(make):
    with pytest.raises(plait.BackendError, match="there is no device gpu"):
        make(1.0, device="gpu")
    assert make(1.0, device="cpu").device == make(1.0, device=None).device
    with pytest.raises(plait.BackendError, match="no device gpu"):
        pnp.ones(3).astype(np.int32, device="gpu")
    with pytest.raises(plait.ValueError, match="argument 'order' is 'F'"):
        pnp.asarray([1.0], order="F")


def test_empty_lists_of_axes_and_of_draws():
    x = pnp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(pnp.roll(x, 1, axis=()), x)
    np.testing.assert_array_equal(pnp.roll(x, (), axis=0), x)
    key = plait.random.key(0)
    assert plait.random.choice(key, pnp.zeros((5, 3)), (0,)).shape == (0, 3)
    assert plait.random.choice(key, pnp.zeros((5, 3)), (2, 0), axis=1).shape == (5, 2, 0)


def test_var_of_complex_numbers_is_real_with_where_too():
    x = np.array([1 + 2j, 3 - 1j, 5j], np.complex64)
    mask = np.array([True, True, False])
    found = pnp.var(pnp.asarray(x), dtype="complex64", where=mask)
    assert found.dtype == np.float32
    assert float(found) == pytest.approx(np.var(x, where=mask), rel=1e-6)


def test_unsigned_integers_beside_traced_numbers_below_zero():
    x = pnp.asarray(np.array([0, 3, 2**63 + 1], np.uint64))
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        ours, theirs = getattr(pnp, name), getattr(np, name)
        for number in (-1, 0, 3):
            wanted = theirs(np.asarray(x), number)
            np.testing.assert_array_equal(plait.jit(ours)(x, number), wanted)
            wanted = theirs(number, np.asarray(x))
            np.testing.assert_array_equal(plait.jit(ours)(number, x), wanted)
