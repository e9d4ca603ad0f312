"""plait.lax: JAX's names and ways of writing arguments, against NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

rng = np.random.default_rng(5)
X = rng.normal(size=(3, 4)).astype(np.float32)


def check(result, expected, tolerance=1e-6):
    result = np.asarray(result)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def test_arithmetic_takes_one_dtype_and_python_numbers():
    check(lax.add(X, X), X + X)
    check(lax.mul(X, 2.0), X * 2)
    check(lax.max(X, 0.0), np.maximum(X, 0))
    check(lax.sub(np.int32([5]), 2), [3])
    check(lax.div(np.int32([-7, 7, 3]), np.int32([2, -2, 0])), [-3, -3, 0])
    check(lax.rem(np.int32([-7, 7]), np.int32([3, -3])), [-1, 1])
    check(lax.lt(X, 0.0), X < 0)
    check(lax.atan2(X, X + 1), np.arctan2(X, X + 1))
    with pytest.raises(TypeError, match="dtypes"):
        lax.add(X, X.astype(np.float64))
    with pytest.raises(ValueError, match="shapes"):
        lax.add(X, X[0])


@pytest.mark.parametrize("name, reference", [
    ("neg", np.negative), ("square", np.square), ("reciprocal", np.reciprocal), ("sign", np.sign), ("is_finite", np.isfinite),
    ("exp2", np.exp2), ("cbrt", np.cbrt), ("tan", np.tan), ("atan", np.arctan), ("sinh", np.sinh), ("asinh", np.arcsinh),
    ("logistic", lambda x: 1 / (1 + np.exp(-x))), ("floor", np.floor), ("round", np.round),
])  # fmt: skip
def test_unary(name, reference):
    check(getattr(lax, name)(X), reference(X), 2e-6)


def test_rsqrt_clamp_select():
    check(lax.rsqrt(np.abs(X)), 1 / np.sqrt(np.abs(X)))
    check(lax.clamp(-0.5, X, 0.5), np.clip(X, -0.5, 0.5))
    check(lax.clamp(np.zeros_like(X), X, np.ones_like(X)), np.clip(X, 0, 1))
    check(lax.select(X > 0, X, -X), np.abs(X))
    check(lax.select_n(X > 0, -X, X), np.abs(X))
    check(
        lax.select_n(np.array([0, 1, 2], np.int32), np.zeros(3), np.ones(3), np.full(3, 2.0)),
        [0, 1, 2],
    )
    check(lax.integer_pow(X, -2), X**-2.0, 1e-5)
    check(lax.convert_element_type(X, "int32"), X.astype(np.int32))
    check(lax.bitcast_convert_type(X, "int32"), X.view(np.int32))
    check(lax.complex(X, X), X + 1j * X)


def test_shapes():
    check(lax.reshape(X, (4, 3)), X.reshape(4, 3))
    check(lax.reshape(X, (12,), (1, 0)), X.T.reshape(12))
    check(lax.transpose(X, (1, 0)), X.T)
    check(lax.broadcast(X, (2,)), np.broadcast_to(X, (2, 3, 4)))
    check(lax.broadcast_in_dim(X[0], (4, 5), (0,)), np.broadcast_to(X[0][:, None], (4, 5)))
    assert lax.broadcast_shapes((3, 1), (4,)) == (3, 4)
    check(lax.expand_dims(X, (0,)), X[None])
    check(lax.squeeze(X[None], (0,)), X)
    check(lax.collapse(np.zeros((2, 3, 4)), 1), np.zeros((2, 12)))
    check(lax.iota("int32", 3), [0, 1, 2])
    check(lax.broadcasted_iota("float32", (2, 3), 1), [[0, 1, 2]] * 2)
    check(lax.full((2,), 1.5), [1.5, 1.5])
    check(lax.full_like(X, 2), np.full_like(X, 2))
    check(lax.rev(X, (0,)), X[::-1])
    check(lax.concatenate([X, X], 1), np.concatenate([X, X], 1))
    for piece, expected in zip(lax.split(X, (1, 3), axis=1), (X[:, :1], X[:, 1:]), strict=True):
        check(piece, expected)


def test_slices():
    check(lax.slice(X, (0, 1), (3, 4), (2, 1)), X[0:3:2, 1:4])
    check(lax.slice(X, (0, 1), (3, 4)), X[:, 1:])
    check(lax.slice_in_dim(X, 1, None), X[1:])
    check(lax.slice_in_dim(X, 0, -1, axis=1), X[:, :-1])
    check(lax.index_in_dim(X, -1, keepdims=False), X[-1])
    check(lax.pad(X, 0.0, ((1, 0, 0), (0, 2, 0))), np.pad(X, ((1, 0), (0, 2))))
    check(lax.pad(X[0], 7.0, [(0, 0, 1)]), np.insert(X[0], [1, 2, 3], 7))
    check(lax.dynamic_slice(X, (1, 2), (2, 2)), X[1:, 2:])
    check(lax.dynamic_slice(X, np.array([1, 2]), (2, 2)), X[1:, 2:])
    check(lax.dynamic_slice_in_dim(X, 1, 2, axis=1), X[:, 1:3])
    check(lax.dynamic_index_in_dim(X, 2, keepdims=False), X[2])
    updated = X.copy()
    updated[1:, 2:] = 0
    check(lax.dynamic_update_slice(X, np.zeros((2, 2), np.float32), (1, 2)), updated)
    check(
        lax.dynamic_update_slice_in_dim(X, np.zeros((1, 4), np.float32), 1, 0),
        np.where(np.arange(3)[:, None] == 1, 0, X),
    )
    check(
        lax.dynamic_update_index_in_dim(X, np.zeros(4, np.float32), 1, 0),
        np.where(np.arange(3)[:, None] == 1, 0, X),
    )
    check(plait.jit(lambda i: lax.dynamic_index_in_dim(X, i, 0, False))(1), X[1])


def test_gather_and_scatter():
    rows = np.array([[2], [0]], np.int32)
    numbers = ((1,), (0,), (0,))
    check(lax.gather(X, rows, numbers, (1, 4)), X[[2, 0]])
    check(lax.gather(X, rows + 5, numbers, (1, 4), mode="clip"), X[[2, 2]])
    updates = np.ones((2, 4), np.float32)
    added = X.copy()
    added[[2, 0]] += 1
    check(lax.scatter_add(X, rows, updates, numbers), added)
    check(
        lax.scatter(X, rows, updates, numbers),
        np.where(np.isin(np.arange(3), [0, 2])[:, None], 1, X),
    )


def test_reductions_and_order():
    check(lax.reduce_sum(X, (0,)), X.sum(0), 1e-5)
    check(lax.reduce_max(X, (0, 1)), X.max())
    check(lax.reduce_and(X > 0, (1,)), (X > 0).all(1))
    check(lax.argmax(X, 1, "int64"), X.argmax(1))
    check(lax.cumsum(X, 1), X.cumsum(1), 1e-5)
    check(lax.cumsum(X, 1, reverse=True), X[:, ::-1].cumsum(1)[:, ::-1], 1e-5)
    check(lax.cummax(X, 0), np.maximum.accumulate(X, 0))
    for reverse in (False, True):
        x = X[:, ::-1] if reverse else X
        expected = np.logaddexp.accumulate(x, 1)
        check(lax.cumlogsumexp(X, 1, reverse), expected[:, ::-1] if reverse else expected, 1e-5)
    check(lax.cumlogsumexp(np.array([-1e4, 1e4, 0.0])), [-1e4, 1e4, 1e4])
    check(lax.cumlogsumexp(np.array([-np.inf, 1.0])), [-np.inf, 1])
    check(lax.sort(X, 0), np.sort(X, 0))
    keys, values = lax.sort((np.array([2, 1, 2]), np.array([5, 6, 7])))
    check(keys, [1, 2, 2])
    check(values, [6, 5, 7])
    check(lax.sort_key_val(np.array([2, 1]), np.array([5, 6]))[1], [6, 5])
    values, indices = lax.top_k(X, 2)
    check(values, -np.sort(-X, 1)[:, :2])
    check(indices, np.argsort(-X, 1)[:, :2])
    check(lax.linear_recurrence(np.full(3, 2.0), np.ones(3)), [1, 3, 7])


def test_contractions_and_windows():
    check(lax.dot(X, X.T), X @ X.T, 1e-5)
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 4, 5))
    check(lax.batch_matmul(a, b), a @ b, 1e-12)
    check(lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))), a @ b, 1e-12)
    check(lax.dot_general(a, b, (([2], [1]), ([], []))), np.einsum("ijk,lkm->ijlm", a, b), 1e-12)
    assert lax.dot(X, X.T, preferred_element_type="float64").dtype == np.float64
    image, kernel = rng.normal(size=(1, 5, 5, 2)), rng.normal(size=(3, 3, 2, 4))
    result = lax.conv_general_dilated(
        image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = sum(
        np.einsum("nhwi,io->nhwo", padded[:, i : i + 5, j : j + 5], kernel[i, j])
        for i in range(3)
        for j in range(3)
    )
    check(result, expected, 1e-12)
    nchw = lax.conv(
        image.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1), (1, 1), ((1, 1), (1, 1))
    )
    check(nchw, expected.transpose(0, 3, 1, 2), 1e-12)
    check(lax.reduce_window_max(X, (1, 2), (1, 2)), X.reshape(3, 2, 2).max(-1))
    check(lax.reduce_window_sum(X, (1, 2), None, "VALID"), X[:, 1:] + X[:, :-1])
    with pytest.raises(TypeError, match="dimension_numbers"):
        lax.dot_general(a, b, ((2,), (1,)))


def test_stop_gradient_takes_trees():
    tree = lax.stop_gradient({"a": X, "b": [X]})
    check(tree["b"][0], X)
    check(plait.grad(lambda x: pnp.sum(x * lax.stop_gradient(x)))(X), X)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("features", [1, 3, 5, 6])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_convolutions_read_nothing_beyond_their_windows(dtype, features, groups):
    """A NaN reaches the results whose windows hold it, of its own group, and no others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, groups * features, 21, 20))
    kernel = rng.normal(size=(groups * 8, features, 3, 3))
    x[1, 0, 5, 7] = np.nan
    result = lax.conv_general_dilated(
        pnp.asarray(x).astype(dtype),
        pnp.asarray(kernel).astype(dtype),
        (1, 1),
        "SAME",
        feature_group_count=groups,
    )
    wanted = np.zeros(result.shape, bool)
    wanted[1, :8, 4:7, 6:9] = True
    np.testing.assert_array_equal(np.isnan(np.asarray(result).astype(np.float32)), wanted)


@pytest.mark.parametrize("axes", [(None, 0, None), (0, None, None), (None, 0, 0), (0, 0, 0)])
def test_attention_over_some_batched_operands_is_a_loop(axes):
    rng = np.random.default_rng(0)
    shapes = [(2, 3, 7, 9), (2, 3, 11, 9), (2, 3, 11, 9)]
    operands = [
        rng.normal(size=shape if axis is None else (3, *shape)).astype(np.float32)
        for shape, axis in zip(shapes, axes)
    ]

    def attend(q, k, v):
        scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / 3
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    result = plait.vmap(plait.nn.attention, in_axes=axes)(*operands)
    for i in range(3):
        one = [x if axis is None else x[i] for x, axis in zip(operands, axes)]
        np.testing.assert_allclose(result[i], attend(*one), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("depth, value_depth", [(8, 8), (8, 16), (16, 8), (8, 12), (4, 1), (1, 4)])
def test_attention_over_values_of_any_depth(depth, value_depth):
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(2, 3, n, depth)).astype(np.float32) for n in (7, 11))
    v = rng.normal(size=(2, 3, 11, value_depth)).astype(np.float32)
    scores = q.astype(np.float64) @ np.swapaxes(k, -1, -2) / np.sqrt(depth)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(plait.nn.attention(q, k, v), wanted, rtol=1e-4, atol=1e-5)
