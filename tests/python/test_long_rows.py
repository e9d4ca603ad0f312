"""Kernels that share one long row among threads: order, running sums, updates, random numbers.

Compared with NumPy, and with themselves on other numbers of threads, to the bit.
SPDX-License-Identifier: Apache-2.0
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

N = 150_001  # more than one thread sorts alone, and no multiple of anything


def keys(dtype, n=N, seed=0):
    random = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.floating):
        x = random.standard_normal(n).astype(dtype)
        x[::97] = x[5]
        x[::1009] = np.nan
        x[1::1013] = -0.0
        x[2::1013] = 0.0
        x[3::5003] = np.inf
        x[4::5003] = -np.inf
        return x
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


DTYPES = [np.float32, np.float64, np.float16, np.int32, np.int64, np.uint32, np.uint64, np.int8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_long_row_sorts_as_numpys(dtype):
    x = keys(dtype)
    np.testing.assert_array_equal(pnp.sort(pnp.asarray(x)), np.sort(x, kind="stable"))
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(pnp.argsort(pnp.asarray(x)), order)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_descending_order_is_stable(dtype):
    x = keys(dtype) if dtype != np.uint8 else np.arange(N).astype(dtype)
    order = np.asarray(pnp.argsort(pnp.asarray(x), descending=True))
    ranks = np.unique(x, return_inverse=True)[1]  # equal NaNs, equal zeros
    np.testing.assert_array_equal(order, np.argsort(-ranks, kind="stable"))
    np.testing.assert_array_equal(pnp.sort(pnp.asarray(x), descending=True), x[order])


def test_zeros_of_both_signs_keep_their_order():
    x = np.where(np.arange(N) % 3 == 0, -0.0, 0.0)
    np.testing.assert_array_equal(np.signbit(np.asarray(pnp.sort(pnp.asarray(x)))), np.signbit(x))


@pytest.mark.parametrize("shape, axis", [((3, 70_000), 1), ((70_000, 2), 0), ((300, 500), 1)])
def test_rows_of_a_matrix_sort_along_any_axis(shape, axis):
    x = keys(np.float32, int(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(pnp.sort(pnp.asarray(x), axis=axis), np.sort(x, axis=axis))
    order = np.argsort(x, axis=axis, kind="stable")
    np.testing.assert_array_equal(pnp.argsort(pnp.asarray(x), axis=axis), order)


@pytest.mark.parametrize("values", [np.int32, np.float64, np.int8])
def test_values_follow_their_keys(values):
    x, y = keys(np.float32), np.arange(N).astype(values)
    _, followed = lax.sort([pnp.asarray(x), pnp.asarray(y)], num_keys=1)
    np.testing.assert_array_equal(followed, y[np.argsort(x, kind="stable")])


def test_two_keys_order_as_lexsort():
    major, minor = keys(np.int32) % 50, keys(np.float32, seed=1)
    order = pnp.lexsort([pnp.asarray(minor), pnp.asarray(major)])
    np.testing.assert_array_equal(order, np.lexsort([minor, major]))


@pytest.mark.parametrize("n", [1007, 1008, 1009, 2016, 8064, 8065, 100_003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_running_sums_are_near_those_in_float64(n, dtype):
    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    exact = np.cumsum(x.astype(np.float64))
    size = np.cumsum(np.abs(x.astype(np.float64)))
    error = np.abs(np.asarray(pnp.cumsum(pnp.asarray(x))).astype(np.float64) - exact)
    precise = np.float64 if dtype == np.float64 else np.float32
    bound = 1200 * np.finfo(precise).eps * size + np.finfo(dtype).eps * np.abs(exact)
    assert np.all(error <= bound)


@pytest.mark.parametrize("n", [1008, 1009, 9000, 30_001])
def test_running_results_depend_neither_on_layout_nor_on_what_follows(n):
    x = np.random.default_rng(n).standard_normal((n, 5)).astype(np.float32)
    for run in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin):
        for reverse in (False, True):
            columns = np.asarray(run(pnp.asarray(x), axis=0, reverse=reverse))
            rows = np.asarray(run(pnp.asarray(x.T), axis=1, reverse=reverse))
            np.testing.assert_array_equal(columns, rows.T)
            one = np.asarray(run(pnp.asarray(x[:, 2]), axis=0, reverse=reverse))
            np.testing.assert_array_equal(one, columns[:, 2])
        part = np.asarray(run(pnp.asarray(x[: n // 2, 0]), axis=0))
        whole = np.asarray(run(pnp.asarray(x[:, 0]), axis=0))
        np.testing.assert_array_equal(part, whole[: n // 2])


def test_running_extremes_and_integers_are_exact():
    x = keys(np.float64)
    x[: N // 2] = np.nan_to_num(x[: N // 2])
    np.testing.assert_array_equal(lax.cummax(pnp.asarray(x), axis=0), np.maximum.accumulate(x))
    np.testing.assert_array_equal(lax.cummin(pnp.asarray(x), axis=0), np.minimum.accumulate(x))
    i = keys(np.int32)
    np.testing.assert_array_equal(
        pnp.cumsum(pnp.asarray(i), dtype=np.int32), np.cumsum(i, dtype=np.int32)
    )


def test_jitted_running_sums_have_the_same_bits():
    x = pnp.asarray(np.random.default_rng(2).standard_normal((3, 5000)).astype(np.float32))
    for axis in (0, 1):
        np.testing.assert_array_equal(
            plait.jit(lambda x: pnp.cumsum(x, axis))(x), pnp.cumsum(x, axis)
        )  # noqa: B023


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_many_updates_meet_in_the_order_of_their_parts(mode):
    random = np.random.default_rng(3)
    places = random.integers(0, 1000, 100_000)
    if mode != "promise_in_bounds":
        places[::7] = 5000
    values = random.standard_normal(100_000).astype(np.float32)
    # In eight parts, each of them in order, which are then added in the order of the parts.
    expected = np.zeros(1000, np.float32)
    for part in np.split(np.arange(100_000), 8):
        mine, inside = np.zeros(1000, np.float32), part[places[part] < 1000]
        if mode == "clip":
            np.add.at(mine, np.minimum(places[part], 999), values[part])
        else:
            np.add.at(mine, places[inside], values[inside])
        expected += mine
    at = pnp.zeros(1000, np.float32).at[pnp.asarray(places)]
    np.testing.assert_array_equal(at.add(pnp.asarray(values), mode=mode), expected)


def test_large_searches_find_the_places_of_numpy():
    edges, x = np.sort(keys(np.float32)[:5000]), keys(np.float32, seed=4)
    for side in ("left", "right"):
        found = pnp.searchsorted(pnp.asarray(edges), pnp.asarray(x), side=side)
        np.testing.assert_array_equal(found, np.searchsorted(edges, x, side=side))


@pytest.mark.parametrize("make", [plait.random.uniform, plait.random.normal])
def test_many_random_numbers_begin_as_few_do(make):
    key = plait.random.key(5)
    many, few = np.asarray(make(key, (40_000,))), np.asarray(make(key, (300,)))
    np.testing.assert_array_equal(many[:300], few)
    np.testing.assert_array_equal(plait.jit(lambda key: make(key, (40_000,)))(key), many)
    assert abs(many.mean() - (0.5 if make is plait.random.uniform else 0)) < 0.02


DIGEST = """
import hashlib, numpy as np, plait, plait.numpy as pnp
random = np.random.default_rng(6)
x = random.standard_normal(200_000).astype(np.float32)
i = random.integers(0, 300, 200_000)
a = pnp.asarray(x)
parts = [pnp.sort(a), pnp.argsort(a), pnp.cumsum(a), pnp.zeros(300).at[pnp.asarray(i)].add(a)]
parts += [plait.random.normal(plait.random.key(0), (70_000,))]
print(hashlib.sha256(b"".join(np.asarray(p).tobytes() for p in parts)).hexdigest())
"""


def test_bits_do_not_depend_on_the_number_of_threads():
    found = set()
    for threads in ("1", "2", "3", "7"):
        environment = {**os.environ, "PLAIT_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


# --- Rows that are reduced and read again ----------------------------------------------------------


def log_loss(logits, labels):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    picked = pnp.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
    return (pnp.log(pnp.exp(shifted).sum(axis=-1)) - picked).mean()


@pytest.mark.parametrize("length", [31, 1024, 2048, 3000, 4097, 7168, 32768])
def test_a_compiled_loss_has_the_bits_and_the_value(length):
    random = np.random.default_rng(length)
    logits = random.standard_normal((9, length)).astype(np.float32)
    labels = random.integers(0, length, 9).astype(np.int32)
    labels[:2] = 0, length - 1
    function = plait.value_and_grad(log_loss)
    value, gradient = function(pnp.array(logits), pnp.array(labels))
    compiled = plait.jit(function, wait=True)(pnp.array(logits), pnp.array(labels))
    assert np.asarray(compiled[0]).tobytes() == np.asarray(value).tobytes()
    assert np.asarray(compiled[1]).tobytes() == np.asarray(gradient).tobytes()
    e = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    index = np.arange(9), labels
    np.testing.assert_allclose(compiled[0], -np.log(p[index]).mean(), rtol=1e-6)
    p[index] -= 1
    np.testing.assert_allclose(compiled[1], p / 9, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["max", "min", "sum"])
@pytest.mark.parametrize("length", [2048, 5000, 9216])
def test_blocks_side_by_side_keep_the_order(kind, length):
    random = np.random.default_rng(0)
    x = random.standard_normal((8, length)).astype(np.float32)
    x[1] = np.where(random.random(length) < 0.5, 0.0, -0.0)
    x[2, 1500] = x[3, length - 1] = np.nan
    function = lambda x: getattr(x, kind)(axis=-1)  # noqa: E731
    result = np.asarray(plait.jit(function, wait=True)(pnp.array(x)))
    assert result.tobytes() == np.asarray(function(pnp.array(x))).tobytes()
    expected = getattr(np, kind)(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


EXTREME = [0.0, -0.0, np.inf, -np.inf, np.nan, -103.9, -103.5, -87.4, 88.7, 88.8, 1e-45, -746, 710]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [pnp.exp, pnp.exp2, pnp.cosh])
def test_scaling_by_powers_of_two_rounds_once(function, dtype):
    spread = np.linspace(-760, 720, 9001) if dtype == np.float64 else np.linspace(-110, 92, 9001)
    x = np.concatenate([EXTREME, spread]).astype(dtype)
    result = np.asarray(plait.jit(function, wait=True)(pnp.array(x)))
    assert result.tobytes() == np.asarray(function(pnp.array(x))).tobytes()
