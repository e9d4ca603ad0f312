"""plait.numpy: reductions, running sums, order and statistics against NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
TOLERANCE = {
    "float16": 3e-3,
    "float32": 2e-6,
    "float64": 1e-12,
    "complex64": 4e-6,
    "complex128": 1e-12,
}
AXES = [None, 0, 1, -1, (0, 1), (0, -1), ()]
rng = np.random.default_rng(1)


def sample(dtype, shape=(3, 4, 2)):
    values = rng.normal(size=shape) * 2
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    if dtype == "bool":
        return values > 0
    return np.abs(values).astype(dtype) if dtype.startswith("uint") else values.astype(dtype)


def check(result, expected, scale=1.0):
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    tolerance = scale * TOLERANCE.get(result.dtype.name, 0)
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    np.testing.assert_allclose(
        result.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "amax", "amin", "any", "all", "mean", "var", "std", "ptp",
                                  "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "median"])  # fmt: skip
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_over_axes(name, keepdims):
    for dtype in DTYPES:
        x = sample(dtype)
        for axis in AXES:
            if axis == () and name in ("median", "ptp"):
                continue
            if dtype == "bool" and name in (
                "ptp",
                "nansum",
                "nanprod",
                "median",
                "nanmax",
                "nanmin",
                "nanvar",
                "nanstd",
            ):
                continue
            wide = (
                x
                if name in ("any", "all", "max", "min", "amax", "amin") or x.dtype.kind in "iub"
                else x.astype(np.float64)
            )
            check(
                getattr(pnp, name)(x, axis=axis, keepdims=keepdims),
                getattr(np, name)(wide, axis=axis, keepdims=keepdims),
                scale=4,
            )


def test_dtypes_of_sums_and_means():
    for dtype, of_sum in [("bool", "int32"), ("int8", "int32"), ("uint16", "uint32"), ("int32", "int32"), ("int64", "int64"),
                          ("uint64", "uint64"), ("float16", "float16"), ("complex64", "complex64")]:  # fmt: skip
        x = np.ones(4, dtype)
        assert pnp.sum(x).dtype == pnp.prod(x).dtype == pnp.cumsum(x).dtype == np.dtype(of_sum)
        assert pnp.mean(x).dtype == (
            np.dtype(dtype) if np.dtype(dtype).kind in "fc" else np.float32
        )
    assert pnp.sum(np.ones(3, np.int8), dtype="float64").dtype == np.float64
    assert pnp.var(np.ones(3, np.complex64)).dtype == np.float32
    with pytest.raises(TypeError, match="holds no fractions"):
        pnp.mean(np.ones(3), dtype="int32")


def test_means_are_accurate():
    check(pnp.mean(np.full(10000, 0.1, np.float16)), np.float16(0.1))
    check(pnp.mean(np.full(70000, 60000, np.float16)), np.float16(60000))
    check(pnp.mean(np.arange(2**24, 2**24 + 10)), 2**24 + 4.5)
    x = np.float32(1e4) + rng.normal(size=1000).astype(np.float32)
    check(pnp.var(x), np.var(x.astype(np.float64)), scale=100)


def test_complex_reductions():
    for dtype in ("complex64", "complex128"):
        x = sample(dtype)
        for name in ("sum", "prod", "mean", "var", "std"):
            check(
                getattr(pnp, name)(x, axis=1),
                getattr(np, name)(x.astype(np.complex128), axis=1),
                scale=4,
            )


def test_ddof_where_initial():
    x = sample("float64", (5, 4))
    mask = x > -0.5
    check(pnp.var(x, 0, ddof=1), np.var(x, 0, ddof=1))
    check(pnp.std(x, ddof=2), np.std(x, ddof=2))
    check(pnp.sum(x, 1, where=mask), np.sum(x, 1, where=mask))
    check(pnp.prod(x, 1, where=mask, initial=2.0), np.prod(x, 1, where=mask, initial=2.0))
    check(pnp.max(x, 1, where=mask, initial=-9.0), np.max(x, 1, where=mask, initial=-9.0))
    check(pnp.min(x, initial=-100.0), -100)
    check(pnp.mean(x, 0, where=mask), np.mean(x, 0, where=mask))
    check(pnp.var(x, 0, where=mask), np.var(x, 0, where=mask))
    check(pnp.any(x > 1, 0, where=mask), np.any(x > 1, 0, where=mask))
    check(pnp.all(x > 1, 0, where=mask), np.all(x > 1, 0, where=mask))
    with pytest.raises(ValueError, match="initial"):
        pnp.max(x, where=mask)


def test_nan_wins_and_is_left_out_where_asked():
    x = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    check(pnp.max(x, 1), [np.nan, np.nan])
    check(pnp.argmax(x, 1), np.argmax(x, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for name in (
            "nansum",
            "nanprod",
            "nanmean",
            "nanmax",
            "nanmin",
            "nanvar",
            "nanstd",
            "nanmedian",
        ):
            check(getattr(pnp, name)(x, axis=1), getattr(np, name)(x, axis=1))
        check(pnp.nanquantile(x, [0.25, 0.5], axis=1), np.nanquantile(x, [0.25, 0.5], axis=1))
        check(pnp.nanpercentile(x, 30, axis=0), np.nanpercentile(x, 30, axis=0))
    check(pnp.nanargmax(x[:1], 1), np.nanargmax(x[:1], 1))
    check(pnp.nanargmin(x[:1], 1), np.nanargmin(x[:1], 1))
    check(pnp.nancumsum(x, 1), np.nancumsum(x, 1))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_indices_of_extremes(name):
    for dtype in DTYPES:
        x = sample(dtype)
        for axis in (None, 0, 1, -1):
            for keepdims in (False, True):
                result = getattr(pnp, name)(x, axis=axis, keepdims=keepdims)
                assert result.dtype == np.int32
                check(result, getattr(np, name)(x, axis=axis, keepdims=keepdims))


def test_empty_axes():
    empty = np.zeros((0, 3), np.float32)
    check(pnp.sum(empty, 0), [0, 0, 0])
    check(pnp.prod(empty, 0), [1, 1, 1])
    check(pnp.all(empty, 0), [True] * 3)
    assert np.isnan(np.asarray(pnp.mean(empty, 0))).all()
    for name in ("max", "min", "argmax", "argmin"):
        assert getattr(pnp, name)(empty, axis=1).shape == (0,)
        with pytest.raises(ValueError, match="no elements"):
            getattr(pnp, name)(empty, axis=0)


def test_wrong_axes():
    with pytest.raises(IndexError, match="sum"):
        pnp.sum(np.ones(3), axis=1)
    with pytest.raises(ValueError, match="twice"):
        pnp.sum(np.ones((2, 3)), axis=(0, -2))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_running_sums(name):
    for dtype in DTYPES:
        x = sample(dtype)
        for axis in (None, 0, 1, -1):
            wide = x if x.dtype.kind in "iub" else x.astype(np.float64)
            result = np.asarray(getattr(pnp, name)(x, axis=axis))
            expected = getattr(np, name)(wide, axis=axis)
            check(
                result,
                expected.astype(result.dtype) if x.dtype.kind in "iub" else expected,
                scale=8,
            )


def test_cumulative_sum_of_the_standard():
    x = sample("float64", (4,))
    check(pnp.cumulative_sum(x), np.cumsum(x))
    check(pnp.cumulative_sum(x, include_initial=True), np.concatenate([[0], np.cumsum(x)]))
    check(pnp.cumulative_prod(x, include_initial=True), np.concatenate([[1], np.cumprod(x)]))
    with pytest.raises(ValueError, match="axis"):
        pnp.cumulative_sum(np.ones((2, 2)))


def test_average_count_nonzero_diff():
    x, w = sample("float64", (3, 4)), np.abs(sample("float64", (4,)))
    check(pnp.average(x, 1, weights=w), np.average(x, 1, weights=w))
    check(pnp.average(x), np.average(x))
    check(pnp.count_nonzero(x > 0, 1), np.count_nonzero(x > 0, 1))
    for n in range(4):
        for axis in (0, -1):
            check(pnp.diff(x, n, axis), np.diff(x, n, axis))
    check(pnp.diff(x > 0), np.diff(x > 0))
    check(pnp.cov(x), np.cov(x), scale=4)
    check(pnp.corrcoef(x), np.corrcoef(x), scale=4)
    check(pnp.trapezoid(x), np.trapezoid(x) if hasattr(np, "trapezoid") else np.trapz(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_argsort(dtype):
    x = sample(dtype, (4, 5))
    for axis in (None, 0, -1):
        check(pnp.sort(x, axis), np.sort(x, axis))
        check(pnp.argsort(x, axis), np.argsort(x, axis, kind="stable"))
    check(pnp.sort(x, descending=True), -np.sort(-x.astype(np.float64)))


def test_nan_sorts_last_and_lexsort():
    x = np.array([3, np.nan, -np.inf, 1, np.inf, np.nan])
    check(pnp.sort(x), np.sort(x))
    check(pnp.argsort(x), np.argsort(x, kind="stable"))
    a, b = rng.integers(0, 3, 20), rng.integers(0, 3, 20)
    check(pnp.lexsort((a, b)), np.lexsort((a, b)))


@pytest.mark.parametrize("size", [0, 1, 2, 7, 16, 33])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(size, side):
    a = np.sort(rng.integers(0, 10, size)).astype(np.float32)
    v = (
        np.concatenate([np.arange(-1, 12), [0.5, np.nan, np.inf, -np.inf]])
        .astype(np.float32)
        .reshape(1, -1)
    )
    check(pnp.searchsorted(a, v, side=side), np.searchsorted(a, v, side=side))
    with_nan = np.concatenate([a, [np.nan, np.nan]]).astype(np.float32)
    check(pnp.searchsorted(with_nan, v, side=side), np.searchsorted(with_nan, v, side=side))
    bins = np.unique(a)
    check(pnp.digitize(v[0, :5], bins), np.digitize(v[0, :5], bins))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "nearest", "midpoint"])
def test_quantiles(method):
    x = sample("float64", (5, 4, 3))
    for axis in (None, 0, -1, (0, 2)):
        for keepdims in (False, True):
            check(
                pnp.quantile(x, 0.3, axis, method=method, keepdims=keepdims),
                np.quantile(x, 0.3, axis, method=method, keepdims=keepdims),
            )
            q = np.array([[0, 0.25], [0.5, 1]])
            check(
                pnp.quantile(x, q, axis, method=method, keepdims=keepdims),
                np.quantile(x, q, axis, method=method, keepdims=keepdims),
            )
    check(pnp.percentile(x, 70, 1, method=method), np.percentile(x, 70, 1, method=method))


def test_quantiles_of_nan_and_infinity():
    x = np.array([[1, np.nan, 2], [1, 2, np.inf], [-np.inf, -np.inf, 0]])
    check(pnp.median(x, 1), [np.nan, 2, -np.inf])
    check(pnp.quantile(x[1:], 0.0, axis=1), [1, -np.inf])
    check(pnp.median(np.array([1, 2, 3, 4], np.int32)), 2.5)
    with pytest.raises(ValueError, match="no elements"):
        pnp.median(np.zeros(0))


def test_bincount_and_histogram():
    x = rng.integers(0, 7, 50)
    check(pnp.bincount(x), np.bincount(x))
    check(pnp.bincount(x, minlength=12), np.bincount(x, minlength=12))
    w = rng.normal(size=50)
    check(pnp.bincount(x, weights=w), np.bincount(x, weights=w))
    check(pnp.bincount(x, length=4), np.bincount(x)[:4])
    data = np.concatenate([rng.normal(size=200), [0.0, 5.0]])
    for bins in (5, 10, np.array([-2, -1, 0.5, 5])):
        counts, edges = pnp.histogram(data, bins)
        expected, expected_edges = np.histogram(data, bins)
        check(counts, expected)
        check(edges, expected_edges)
    check(pnp.histogram(data, 4, range=(-1, 1))[0], np.histogram(data, 4, range=(-1, 1))[0])
    check(pnp.histogram(data, 4, density=True)[0], np.histogram(data, 4, density=True)[0])
    check(pnp.histogram(np.zeros(3), 2)[1], np.histogram(np.zeros(3), 2)[1])


def test_interp():
    xp, fp = np.array([0.0, 1, 2.5, 4]), np.array([1.0, -1, 3, 2])
    x = np.array([[-1, 0, 0.3, 1], [2, 2.5, 3.9, 7]])
    check(pnp.interp(x, xp, fp), np.interp(x, xp, fp))
    check(pnp.interp(x, xp, fp, left=-5, right=5), np.interp(x, xp, fp, left=-5, right=5))
    check(pnp.interp(0.5, xp[:1], fp[:1]), np.interp(0.5, xp[:1], fp[:1]))


def test_reductions_of_large_arrays_are_accurate():
    x = rng.normal(size=1_000_000).astype(np.float32)
    check(pnp.sum(x), np.sum(x.astype(np.float64)), scale=500)
    check(pnp.mean(x), np.mean(x.astype(np.float64)))


def test_gradients_of_statistics():
    x = sample("float64", (4,))
    np.testing.assert_allclose(
        np.asarray(plait.grad(lambda a: pnp.var(a))(pnp.asarray(x))),
        2 * (x - x.mean()) / 4,
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        np.asarray(plait.grad(lambda a: pnp.median(a))(pnp.asarray(np.array([3.0, 1, 2])))),
        [0, 0, 1],
    )


def ordered_sum(x):
    """The sum of a row of up to 1024 numbers: eight sums, then by halves."""
    sums = np.zeros(8, x.dtype)
    for i in range(0, x.size, 8):
        part = x[i : i + 8]
        sums[: part.size] += part
    for half in (4, 2, 1):
        sums = sums[:half] + sums[half : 2 * half]
    return sums[0]


@pytest.mark.parametrize("count", [1, 4, 7, 18])
@pytest.mark.parametrize("length", [256, 300, 1023, 1024])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_summed_side_by_side_are_summed_in_order(count, length, dtype):
    random = np.random.default_rng(length)
    x = random.standard_normal((count, length)).astype(dtype)
    scale = random.standard_normal(count).astype(dtype)

    def f(x, scale):
        y = x * scale[:, None]
        return y.sum(-1) * scale, pnp.max(y, axis=-1)

    total, largest = plait.jit(f, wait=True)(x, scale)
    y = x * scale[:, None]
    wanted = np.array([ordered_sum(row) for row in y]) * scale
    assert np.asarray(total).tobytes() == wanted.tobytes()
    np.testing.assert_array_equal(largest, y.max(-1))


# What JAX's own tests found.


def test_what_is_left_out_has_no_gradient_whatever_it_is():
    x = np.array([np.nan, 1.0, 2.0, 4.0, np.inf])
    keep = np.isfinite(x)
    f = lambda x: pnp.var(x, where=keep)  # noqa: E731
    wanted = plait.grad(pnp.var)(x[keep])
    np.testing.assert_allclose(np.asarray(plait.grad(f)(x))[keep], wanted)
    assert np.all(np.asarray(plait.grad(f)(x))[~keep] == 0)
    for function in (pnp.nanvar, pnp.nanstd):
        gradient = np.asarray(plait.grad(function)(x[:4]))
        assert gradient[0] == 0 and np.all(np.isfinite(gradient))


@pytest.mark.parametrize("axis", [(1, 2), (2, 0), (0, 1, 2), (2, 1, 0), 1, (1,)])
def test_average_takes_weights_along_several_axes_in_their_order(axis):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(2, 3, 4))
    weights = rng.uniform(size=[x.shape[each] for each in np.atleast_1d(axis)])
    got, sums = pnp.average(x, axis, weights, returned=True)
    wanted, wanted_sums = np.average(x, axis, weights, returned=True)
    np.testing.assert_allclose(got, wanted)
    np.testing.assert_allclose(sums, wanted_sums)
    with pytest.raises(plait.ShapeError, match="sizes along the axes"):
        pnp.average(x, 0, weights.ravel()[:1])


def test_a_mean_that_is_known():
    x = np.random.default_rng(6).normal(size=(3, 4))
    mean = x.mean(1, keepdims=True)
    for name in ("var", "std", "nanvar", "nanstd"):
        ours, numpys = getattr(pnp, name), getattr(np, name)
        np.testing.assert_allclose(ours(x, 1, ddof=1, mean=mean), numpys(x, 1, ddof=1, mean=mean))
        np.testing.assert_allclose(ours(x, 1, mean=mean + 1), numpys(x, 1, mean=mean + 1))
    keep = x > -0.5
    np.testing.assert_allclose(
        pnp.var(x, 1, where=keep, mean=mean), np.var(x, 1, where=keep, mean=mean)
    )


def test_sums_of_small_integers_in_their_own_dtype():
    x = np.array([100, 100], np.int8)
    assert pnp.sum(x, promote_integers=False).dtype == np.int8
    assert pnp.sum(x, promote_integers=False).tolist() == -56
    assert pnp.prod(x, promote_integers=False).dtype == np.int8
    assert pnp.sum(x).tolist() == 200
    assert pnp.sum(x > 0, promote_integers=False).tolist() == 2
