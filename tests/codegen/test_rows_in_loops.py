"""Groups of rows: reductions of the last axes, and what is computed from them, as loops over rows.

What is right are the numbers of NumPy in float64, computed row by row.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import nn

random = np.random.default_rng(31)

# Rows of a few elements, of one block and of several, few and many, in blocks of columns and others.
SHAPES = [(3, 10), (70, 9), (64, 100), (300, 96), (257, 768), (12, 3000), (130, 1030), (9, 9300)]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def normal(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def normal_vjp(x, w, t):
    n, t = normal(x), t * w
    scale = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return scale * (t - t.mean(-1, keepdims=True) - n * (t * n).mean(-1, keepdims=True))


def weighted(x, w, b):
    return nn.layer_norm(x) * w + b


def entropy(x, labels):
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(x), labels[:, None], axis=-1))


def close(got, wanted, dtype):
    tolerance = {"float64": 1e-10, "float32": 2e-4, "bfloat16": 5e-2}[dtype]
    wanted = np.asarray(wanted)
    got = np.asarray(got.astype("float64"))
    scale = np.abs(wanted).max() + 1e-30
    assert np.abs(got - wanted).max() <= tolerance * scale


def of(shape, dtype):
    return jnp.asarray(random.standard_normal(shape)).astype(dtype)


def numbers(x):
    return np.asarray(x.astype("float64"))


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows(shape, dtype):
    x, t = of(shape, dtype), of(shape, dtype)
    a, b = numbers(x), numbers(t)
    close(plait.jit(nn.softmax, wait=True)(x), softmax(a), dtype)
    close(plait.jit(nn.layer_norm, wait=True)(x), normal(a), dtype)
    close(plait.jit(lambda x, t: (x * t).sum(-1), wait=True)(x, t), (a * b).sum(-1), dtype)
    back = plait.jit(lambda x, t: plait.vjp(nn.softmax, x)[1](t)[0], wait=True)(x, t)
    y = softmax(a)
    close(back, y * (b - (y * b).sum(-1, keepdims=True)), dtype)
    turned = plait.jit(lambda x: nn.softmax(x.T), wait=True)(x)
    close(turned, softmax(a.T), dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_columns_beside_rows(shape, dtype):
    x, t, w, c = of(shape, dtype), of(shape, dtype), of(shape[1:], dtype), of(shape[1:], dtype)
    back = plait.jit(lambda x, w, c, t: plait.vjp(weighted, x, w, c)[1](t), wait=True)(x, w, c, t)
    a, b = numbers(x), numbers(t)
    wanted = normal_vjp(a, numbers(w), b), (b * normal(a)).sum(0), b.sum(0)
    for got, right in zip(back, wanted, strict=True):
        close(got, right, dtype)
    both = plait.jit(lambda x, t: (x * t * 0.5, (x * t).sum(0), (x * t).sum(1)), wait=True)(x, t)
    for got, right in zip(both, (a * b / 2, (a * b).sum(0), (a * b).sum(1)), strict=True):
        close(got, right, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_labels_of_rows(shape, dtype):
    rows, classes = shape
    x, labels = of(shape, dtype), random.integers(0, classes, rows)
    for indices in ("int32", "int64"):
        value, gradient = plait.jit(plait.value_and_grad(entropy), wait=True)(
            x, jnp.asarray(labels.astype(indices))
        )
        p = softmax(numbers(x))
        close(value, -np.log(p[np.arange(rows), labels]).mean(), dtype)
        p[np.arange(rows), labels] -= 1
        close(gradient, p / rows, dtype)


def test_a_label_outside_is_an_error_before_anything_is_computed():
    x = of((64, 100), "float32")
    labels = np.zeros(64, "int64")
    labels[40] = 100
    for step in (plait.value_and_grad(entropy), entropy):
        with pytest.raises(plait.IndexError, match="100"):
            plait.jit(step, wait=True)(x, jnp.asarray(labels))


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_one_element_of_each_row_changes(mode):
    places = np.array([0, 7, 99, 250, -1] * 13)

    def changed(x, places, kind):
        zeros = jnp.zeros((65, 100), x.dtype)
        at = getattr(zeros.at[jnp.arange(65), places], kind)
        return (at(x[:, 0], mode=mode) * x).sum(-1)

    x = of((65, 100), "float64")
    a = numbers(x)
    for kind in ("set", "add", "max"):
        wanted = np.zeros(65)
        for row, place in enumerate(places):
            where = place + 100 if place < 0 else place
            if mode == "clip":
                where = min(max(where, 0), 99)
            if 0 <= where < 100:
                update = a[row, 0] if kind != "max" else max(a[row, 0], 0)
                wanted[row] = update * a[row, where]
        got = plait.jit(lambda x, p, kind=kind: changed(x, p, kind), wait=True)(
            x, jnp.asarray(places)
        )
        close(got, wanted, "float64")
