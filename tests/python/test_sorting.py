"""Sorting and selection: the bits of a stable sort for every dtype, length and order, with NaN, both zeros and infinities.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import lax

pytestmark = pytest.mark.isa

DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]  # fmt: skip
# Around what is inserted, sorted in registers, partitioned, and shared by threads.
SIZES = [1, 2, 7, 8, 9, 31, 63, 64, 65, 127, 128, 129, 256, 257, 1000, 5000, 40000]
rng = np.random.default_rng(3)


def sample(name, n):
    """All bits, or few values so that many are equal; of floats some that are equal and differ in their bits."""
    dtype = np.dtype(name)
    if dtype.kind == "f":
        values = rng.standard_normal(n).astype(dtype)
        for special in (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf):
            values[rng.integers(0, n, 1 + n // 12 if n > 3 else 0)] = special
        return values
    if rng.integers(2):
        return rng.integers(0, 5, n).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, n, dtype=dtype, endpoint=True)


def order_of(values, descending):
    """Where a stable sort takes each element from; NaN is greatest."""
    distinct, ranks = np.unique(values, return_inverse=True)  # NaNs are one, and so are the zeros
    return np.argsort(len(distinct) - ranks if descending else ranks, kind="stable")


def assert_same(result, expected, label):
    assert np.asarray(result).tobytes() == np.ascontiguousarray(expected).tobytes(), label


@pytest.mark.parametrize("dtype", DTYPES)
def test_sorts_are_stable_to_the_bit(dtype):
    for n in SIZES:
        values = sample(dtype, n)
        array, payload = pnp.asarray(values), rng.standard_normal(n)
        for descending in (False, True):
            order, label = order_of(values, descending), (dtype, n, descending)
            assert_same(pnp.sort(array, descending=descending), values[order], label)
            found = pnp.argsort(array, descending=descending)
            np.testing.assert_array_equal(np.asarray(found), order, str(label))
        moved = lax.sort((array, pnp.asarray(payload)), num_keys=1)
        assert_same(moved[0], values[order_of(values, False)], (dtype, n))
        assert_same(moved[1], payload[order_of(values, False)], (dtype, n))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_and_columns(dtype):
    values = sample(dtype, 40 * 70).reshape(40, 70)
    for axis in (0, 1):
        order = np.apply_along_axis(order_of, axis, values, False)
        expected = np.take_along_axis(values, order, axis)
        assert_same(pnp.sort(pnp.asarray(values), axis), expected, axis)


@pytest.mark.parametrize("first", [0, 1 << 40, -(1 << 40)])
def test_keys_whose_first_different_bits_many_share(first):
    """Of wide keys a part is sorted with the places, and what it leaves equal again."""
    values = first + np.concatenate([rng.integers(0, 9, 3000), [1 << 62, -(1 << 61)]])
    rng.shuffle(values)
    found = pnp.argsort(pnp.asarray(values))
    np.testing.assert_array_equal(np.asarray(found), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_selected_quantiles_are_those_of_sorted_rows(dtype):
    places = [0.0, 0.25, 0.5, 0.9375, 1.0]
    for n in (1, 2, 9, 300, 1025, 40001):
        values = rng.standard_normal(n).astype(dtype)
        for method in ("linear", "lower", "higher", "midpoint"):
            expected = np.quantile(values.astype(np.float64), places, method=method)
            for f in (pnp.quantile, plait.jit(pnp.quantile, static_argnames=("method",))):
                result = np.asarray(f(pnp.asarray(values), pnp.asarray(places), method=method))
                tolerance = 2e-3 if dtype == "float16" else 1e-6
                np.testing.assert_allclose(
                    result.astype(np.float64), expected, tolerance, tolerance
                )
        values[n // 2] = np.nan
        assert np.isnan(np.asarray(pnp.median(pnp.asarray(values))))
    signs = np.float32([0.0, -1.0, -0.0, 1.0, 0.0])  # a median is an element, with its sign
    assert np.signbit(np.asarray(pnp.median(pnp.asarray(signs)))) == np.signbit(np.sort(signs, kind="stable")[2])  # fmt: skip


def test_a_product_with_a_zero_is_zero():
    """Parts of a product are multiplied before others: one that overflows must not meet the zero as infinity."""
    values = np.exp(np.random.default_rng(0).standard_normal(720) * 20).astype(np.float32)
    values[700] = 0
    for prod in (pnp.prod, plait.jit(pnp.prod)):
        assert float(prod(pnp.asarray(values))) == 0
        assert np.isnan(np.asarray(prod(pnp.asarray([np.inf, 0.0]))))
        assert np.isnan(np.asarray(prod(pnp.asarray([np.nan, 0.0]))))
        assert np.isinf(np.asarray(prod(pnp.asarray(np.float32([1e30, 1e30])))))
    rows = np.ones((100, 3), np.float32)
    rows[:3, 0], rows[-1, :2] = 1e30, 0
    np.testing.assert_array_equal(np.asarray(pnp.prod(pnp.asarray(rows), axis=0)), [0, 0, 1])
    np.testing.assert_array_equal(np.asarray(plait.grad(pnp.prod)(pnp.asarray([2.0, 3.0, 0.0]))), [0, 0, 6])  # fmt: skip


def test_quantiles_that_a_jitted_function_captured_are_read_again():
    q = pnp.asarray(np.float32(0.25))
    values = pnp.asarray([4.0, 1.0, 3.0, 2.0, 0.0])
    quantile = plait.jit(lambda values: pnp.quantile(values, q))
    assert float(quantile(values)) == 1
    q[...] = 0.75
    assert float(quantile(values)) == 3
