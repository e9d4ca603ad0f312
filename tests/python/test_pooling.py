"""Extremes over windows and their gradients, against loops over windows."""

# SPDX-License-Identifier: Apache-2.0

import itertools

import numpy as np
import pytest

import plait
from plait import numpy as pnp


def loop(x, window, strides, padding, take):
    """The extremes of each window, and the gradient of their sum: one for the first of equals."""
    n, *sides, features = x.shape
    if padding == "SAME":
        counts = [-(-s // t) for s, t in zip(sides, strides)]
        low = [
            max((c - 1) * t + w - s, 0) // 2 for c, t, w, s in zip(counts, strides, window, sides)
        ]
    else:
        counts = [(s - w) // t + 1 for s, w, t in zip(sides, window, strides)]
        low = [0, 0]
    out = np.zeros((n, *counts, features), x.dtype)
    gradient = np.zeros_like(x)
    for b, i, j, c in np.ndindex(out.shape):
        reads = [
            (i * strides[0] - low[0] + k, j * strides[1] - low[1] + m)
            for k, m in itertools.product(range(window[0]), range(window[1]))
        ]
        reads = [(p, q) for p, q in reads if 0 <= p < sides[0] and 0 <= q < sides[1]]
        place = reads[int(take([x[b, p, q, c] for p, q in reads]))]
        out[b, i, j, c] = x[b, *place, c]
        gradient[b, *place, c] += 1
    return out, gradient


@pytest.mark.parametrize(
    ("features", "dtype"), [(1, "float32"), (3, "float64"), (4, "float64"), (17, "float32")]
)
@pytest.mark.parametrize(
    ("window", "strides", "padding"),
    [
        ((2, 2), (2, 2), "VALID"),
        ((2, 3), (2, 3), "VALID"),
        ((3, 3), (2, 2), "SAME"),
        ((2, 2), (1, 1), "VALID"),
        ((5, 4), (5, 4), "VALID"),
        ((1, 2), (1, 2), "SAME"),
    ],
)
def test_extremes_and_their_gradients(features, window, strides, padding, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, (2, 9, 11, features)).astype(dtype)  # many equals
    x[0, 4, 5, 0] = np.nan
    x[1, 2, 3, -1] = np.inf
    x[1, 0, 0, 0] = -np.inf
    for pool, take in ((plait.nn.max_pool, np.argmax), (plait.nn.min_pool, np.argmin)):

        def total(x, pool=pool):
            y = pool(x, window, strides, padding)
            return pnp.where(y == y, y, 0).sum(), y

        def gradient_of_all(x, pool=pool):
            y, pull = plait.vjp(lambda x: pool(x, window, strides, padding), x)
            return y, pull(pnp.ones_like(y))[0]

        expected, gradient = loop(x, window, strides, padding, take)
        values, found = gradient_of_all(pnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(values), expected)
        np.testing.assert_array_equal(np.asarray(found), gradient)
        jitted = plait.jit(gradient_of_all)(pnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(jitted[0]), expected)
        np.testing.assert_array_equal(np.asarray(jitted[1]), gradient)


def test_gradients_of_tiles_under_transforms():
    rng = np.random.default_rng(1)
    x = rng.permutation(3 * 7 * 6 * 5).reshape(3, 7, 6, 5).astype(np.float64)

    def loss(x):
        y = plait.nn.max_pool(x[None], (2, 2), (2, 2))
        return (y * y).sum()

    each = np.asarray(plait.vmap(plait.grad(loss))(pnp.asarray(x)))
    for i in range(3):
        np.testing.assert_array_equal(each[i], np.asarray(plait.grad(loss)(pnp.asarray(x[i]))))
        _, ones = loop(x[i][None], (2, 2), (2, 2), "VALID", np.argmax)
        np.testing.assert_array_equal(each[i], (2 * x[i] * ones[0]))
    direction = pnp.asarray(rng.normal(size=x.shape))
    _, tangent = plait.jvp(lambda x: plait.vmap(loss)(x).sum(), (pnp.asarray(x),), (direction,))
    np.testing.assert_allclose(float(tangent), float((each * np.asarray(direction)).sum()))
    # Twice: the place of an extreme does not move, so the Hessian is that of the squares.
    _, second = plait.jvp(plait.grad(loss), (pnp.asarray(x[0]),), (direction[0],))
    _, ones = loop(x[0][None], (2, 2), (2, 2), "VALID", np.argmax)
    np.testing.assert_allclose(np.asarray(second), 2 * ones[0] * np.asarray(direction[0]))


def test_windows_of_nothing():
    x = pnp.zeros((0, 4, 4, 8))
    assert plait.nn.max_pool(x, (2, 2), (2, 2)).shape == (0, 2, 2, 8)
    assert plait.grad(lambda x: plait.nn.max_pool(x, (2, 2), (2, 2)).sum())(x).shape == x.shape
    padded = plait.lax.reduce_window(
        pnp.ones((1, 2, 2, 4)),
        -np.inf,
        plait.lax.max,
        (1, 2, 2, 1),
        (1, 2, 2, 1),
        ((0, 0), (2, 0), (0, 0), (0, 0)),
    )
    np.testing.assert_array_equal(np.asarray(padded)[0, 0], -np.inf)
    np.testing.assert_array_equal(np.asarray(padded)[0, 1], 1)
