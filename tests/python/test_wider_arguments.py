"""Arguments of several forms, and what functions do with them: NumPy's or SciPy's results, or sums written down.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.lax as lax
import plait.nn as nn
import plait.numpy as pnp

rng = np.random.default_rng(0)


def normal(*shape, dtype="float32"):
    return rng.normal(size=shape).astype(dtype)


def complex_numbers(*shape):
    return (normal(*shape) + 1j * normal(*shape)).astype("complex64")


def test_operands_of_lax_repeat_sizes_of_one():
    x, y = normal(3, 1), normal(1, 4)
    np.testing.assert_array_equal(lax.add(x, y), x + y)
    np.testing.assert_array_equal(lax.lt(x, y), x < y)
    grads = plait.grad(lambda x, y: pnp.sum(lax.mul(x, y)), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(grads[0], np.full((3, 1), y.sum()), rtol=1e-5)
    with pytest.raises(plait.ShapeError):
        lax.add(x, normal(2, 4))
    with pytest.raises(plait.ShapeError):
        lax.add(x, normal(4))


def test_bits_of_parts_of_elements():
    x = normal(2, 3)
    parts = lax.bitcast_convert_type(x, "int16")
    np.testing.assert_array_equal(parts, x.view("int16").reshape(2, 3, 2))
    np.testing.assert_array_equal(lax.bitcast_convert_type(parts, "float32"), x)
    with pytest.raises(plait.ShapeError, match="last axis of 2"):
        lax.bitcast_convert_type(pnp.zeros((3, 4), "int16"), "float32")


def test_complex_numbers_in_order():
    x, y = np.array([1 + 2j, 3, np.nan]), np.array([1 + 3j, 2, 1])
    x, y = x.astype("complex64"), y.astype("complex64")
    np.testing.assert_array_equal(pnp.maximum(x, y), np.maximum(x, y))
    np.testing.assert_array_equal(lax.min(x, y), np.minimum(x, y))
    table = np.round(complex_numbers(4, 5) * 2)
    for axis in (None, 0, 1):
        np.testing.assert_array_equal(pnp.max(table, axis), np.max(table, axis))
        np.testing.assert_array_equal(pnp.min(table, axis), np.min(table, axis))
    where = np.abs(table) > 2
    got = pnp.max(table, 1, where=where, initial=-9j)
    np.testing.assert_array_equal(got, np.max(table, 1, where=where, initial=-9j))


def test_complex_logarithms_of_sums():
    x, y = complex_numbers(6), complex_numbers(6) * 3
    z = x.astype("complex128"), y.astype("complex128")
    np.testing.assert_allclose(pnp.logaddexp(x, y), np.log(np.exp(z[0]) + np.exp(z[1])), rtol=1e-5)
    expected = np.log2(2 ** z[0] + 2 ** z[1])
    np.testing.assert_allclose(pnp.logaddexp2(x, y), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(lax.logistic(x), 1 / (1 + np.exp(-x)), rtol=1e-5)
    np.testing.assert_allclose(lax.log1p(x), np.log1p(x), rtol=1e-5)


def test_diagonals_that_are_known_at_run_time():
    for k in (-1, 0, 2):
        np.testing.assert_array_equal(plait.jit(lambda k: pnp.eye(3, 4, k))(k), np.eye(3, 4, k))
        np.testing.assert_array_equal(plait.jit(lambda k: pnp.tri(3, k=k))(k), np.tri(3, k=k))


def test_numpy_takes_more_forms():
    y, dx = normal(3, 4, 5), normal(3, 3, 5)
    np.testing.assert_allclose(
        pnp.trapezoid(y, dx=dx, axis=1), np.trapezoid(y, dx=dx, axis=1), rtol=1e-5
    )
    assert pnp.size(y, axis=(0, 2)) == 15
    start, stop = np.abs(normal(2, 2)) + 1, np.abs(normal(2, 2)) + 2
    got = pnp.geomspace(start, stop, 4, axis=1)
    np.testing.assert_allclose(got, np.geomspace(start, stop, 4, axis=1), rtol=1e-5)
    got = pnp.geomspace(np.complex64(1j), np.complex64(-8), 4)
    np.testing.assert_allclose(got, np.geomspace(1j, -8, 4), atol=1e-5)
    p, x = normal(3, 2), normal(2)
    np.testing.assert_allclose(pnp.polyval(p, x), np.polyval(p, x), rtol=1e-5)
    np.testing.assert_array_equal(pnp.diff(x, 0, prepend=1), np.diff(x, 0, prepend=1))
    widths = np.array([[1, 0], [2, 1]])
    np.testing.assert_array_equal(pnp.pad(start, widths), np.pad(start, widths))
    sample, ends = normal(20, 2), [None, (-1, 1)]
    got, wanted = pnp.histogramdd(sample, 3, ends), np.histogramdd(sample, 3, ends)
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_allclose(got[1][0], wanted[1][0], rtol=1e-5)
    assert pnp.convolve(x, x, preferred_element_type="float64").dtype == np.float64
    transposed = plait.jit(lambda x: pnp.transpose(x, np.array([2, 0, 1])))(y)
    np.testing.assert_array_equal(transposed, y.transpose(2, 0, 1))
    np.testing.assert_array_equal(pnp.put(x, [0], np.zeros(0, "float32"), inplace=False), x)


def test_a_transposed_convolution_with_the_padding_of_the_convolution():
    kernel, pads = normal(2, 3, 1, 1), ((1, 0), (0, 2))
    small = normal(1, 3, 4, 1)
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}

    def convolution(x):
        return lax.conv_general_dilated(x, kernel, (2, 1), pads, **options)

    got = lax.conv_transpose(
        small, kernel[::-1, ::-1], (2, 1), pads, use_consistent_padding=True, **options
    )
    pullback = plait.vjp(convolution, pnp.zeros(got.shape))[1]
    np.testing.assert_allclose(got, pullback(pnp.asarray(small))[0], rtol=1e-5)


def attention(q, k, v, keep):
    scores = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(keep, scores, -np.inf)
    largest = scores.max(-1, keepdims=True)
    e = np.exp(scores - largest)
    total = e.sum(-1, keepdims=True)
    residual = (np.log(total) + largest)[..., 0].transpose(0, 2, 1)
    return np.einsum("bnts,bsnh->btnh", e / total, v), residual


def test_attention_within_lengths_and_windows():
    q, k, v = normal(2, 5, 3, 4), normal(2, 6, 3, 4), normal(2, 6, 3, 4)
    row, column = np.arange(5)[:, None], np.arange(6)
    lengths = np.array([4, 6])
    keep = (column <= row + 2) & (column >= row - 1) & (column < lengths[:, None, None, None])
    expected, residual = attention(q, k, v, keep)
    options = {"key_value_seq_lengths": lengths, "local_window_size": (1, 2)}
    np.testing.assert_allclose(
        nn.dot_product_attention(q, k, v, **options), expected, rtol=1e-4, atol=1e-5
    )
    got = nn.dot_product_attention(q, k, v, return_residual=True, **options)
    np.testing.assert_allclose(got[0], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], residual, rtol=1e-4)
    got = nn.dot_product_attention(q, k, v, query_seq_lengths=np.array([2, 5]))
    assert not np.any(got[0, 2:]) and np.all(np.abs(got[1]).sum((1, 2)) > 0)


def test_initial_values_in_the_plane():
    key = plait.random.key(0)
    for name in ("lecun_uniform", "lecun_normal"):
        x = np.asarray(getattr(nn.initializers, name)()(key, (50, 400), "complex64"))
        assert x.dtype == np.complex64 and abs(np.mean(x)) < 0.01
        np.testing.assert_allclose(np.mean(np.abs(x) ** 2), 1 / 50, rtol=0.03)
    mean = nn.initializers.variance_scaling(1, "fan_geo_avg", "normal")(key, (20, 500))
    np.testing.assert_allclose(np.var(mean), 1 / 100, rtol=0.05)
    kernel = np.asarray(nn.initializers.delta_orthogonal(scale=2.0)(key, (3, 4, 5, 7)))
    np.testing.assert_allclose(kernel[1, 1] @ kernel[1, 1].T, 4 * np.eye(5), atol=1e-5)
    assert np.count_nonzero(kernel) == 35
    with pytest.raises(plait.ShapeError, match="three spatial"):
        nn.initializers.delta_orthogonal()(key, (5, 7))
