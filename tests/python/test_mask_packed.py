"""Masked functions whose products run on all examples of a batch packed one after another."""

# SPDX-License-Identifier: Apache-2.0
import re

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

WIDTH, HEADS, BOUND = 16, 2, 40
LENGTHS = [
    [40, 5, 17, 33, 1, 8],
    [1] * 5,
    [40] * 3,
    [0, 12, 40, 0],
    [0, 0],
    [7],
]


@pytest.fixture(autouse=True)
def even_the_smallest(monkeypatch):
    monkeypatch.setenv("PLAIT_BY_SIZE", "always")


def padded(lengths, shape, seed, dtype=np.float64, padding=np.nan):
    """Arrays of shape, whose size "t" is that of the example, padded to BOUND."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(lengths), *(BOUND if s == "t" else s for s in shape)))
    axis = shape.index("t")
    for row, n in zip(x, lengths):
        np.moveaxis(row, axis, 0)[n:] = padding
    return x.astype(dtype)


def batch(f, spec, *shared):
    """f(*shared, x) for each example of (x, n)."""
    masked = plait.mask(f, in_shapes=(*(None for _ in shared), spec))
    return plait.jit(lambda x, n: plait.vmap(lambda x, n: masked(*shared, x, t=n))(x, n))


def packed_stages(function, *arguments):
    found = re.search(r"packed in (\d+) of (\d+) stages", function.explain(*arguments))
    return (int(found[1]), int(found[2])) if found else None


# --- A transformer block -----------------------------------------------------------------------------


def parameters(dtype=np.float64):
    rng = np.random.default_rng(0)
    shapes = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    weights = [rng.normal(0, shape[0] ** -0.5, shape) for shape in shapes]
    vectors = [rng.uniform(0.8, 1.2, WIDTH) for _ in range(2)]
    return [a.astype(dtype) for a in (*weights, *vectors)]


def block(params, x):
    qkv, out, up, down, first, second = params
    h = plait.nn.layer_norm(x, first) @ qkv
    q, k, v = (a.reshape(1, -1, HEADS, WIDTH // HEADS) for a in jnp.split(h, 3, axis=-1))
    x = x + plait.nn.dot_product_attention(q, k, v).reshape(x.shape) @ out
    return x + plait.nn.gelu(plait.nn.layer_norm(x, second) @ up, approximate=True) @ down


def block_of_numpy(params, x):
    qkv, out, up, down, first, second = (p.astype(np.float64) for p in params)

    def normal(x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale

    h = normal(x, first) @ qkv
    q, k, v = (a.reshape(-1, HEADS, WIDTH // HEADS) for a in np.split(h, 3, axis=-1))
    scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(WIDTH // HEADS)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    x = x + np.einsum("hts,shd->thd", e / e.sum(-1, keepdims=True), v).reshape(x.shape) @ out
    h = normal(x, second) @ up
    gelu = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    return x + gelu @ down


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize(
    "dtype, tolerance",
    [(np.float64, 1e-10), (np.float32, 2e-5), (ml_dtypes.bfloat16, 0.1)],
    ids=["f64", "f32", "bf16"],
)
def test_a_block_gives_what_each_example_gives_alone(lengths, dtype, tolerance):
    params, x = parameters(dtype), padded(lengths, ("t", WIDTH), 1, dtype)
    name = {np.float64: "f64", np.float32: "f32"}.get(dtype, "bf16")
    f = batch(block, f"{name}[t {WIDTH}]", [jnp.asarray(p) for p in params])
    n = np.array(lengths, np.int32)
    ys = np.asarray(f(x, n)).astype(np.float64)
    for row, y, length in zip(x, ys, lengths):
        if length:
            wanted = block_of_numpy(params, row[:length].astype(np.float64))
            np.testing.assert_allclose(y[:length], wanted, rtol=tolerance, atol=tolerance)
        assert np.all(y[length:] == 0)
    assert packed_stages(f, x, n) == (2, 3)


def block_gradients(params, x, n, cotangent):
    masked = plait.mask(block, in_shapes=(None, f"f64[t {WIDTH}]"))

    def loss(params, x):
        ys = plait.vmap(lambda x, n: masked(params, x, t=n))(x, n)
        return jnp.sum(ys * cotangent)

    return plait.value_and_grad(loss, argnums=(0, 1))(params, x)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_gradients_of_a_block_are_the_sums_over_examples(lengths):
    params, x = [jnp.asarray(p) for p in parameters()], padded(lengths, ("t", WIDTH), 1)
    cotangent = padded(lengths, ("t", WIDTH), 2, padding=0)
    n = np.array(lengths, np.int32)
    _, (by_params, by_x) = plait.jit(block_gradients)(params, x, n, cotangent)
    wanted = [np.zeros(p.shape) for p in params]
    for row, c, found, length in zip(x, cotangent, np.asarray(by_x), lengths):
        assert np.all(found[length:] == 0)
        if not length:
            continue
        one = plait.grad(lambda p, x, c: jnp.sum(block(p, x) * c), argnums=(0, 1))
        at = one(params, jnp.asarray(row[:length]), jnp.asarray(c[:length]))
        for total, part in zip(wanted, at[0]):
            total += np.asarray(part)
        np.testing.assert_allclose(found[:length], at[1], rtol=1e-9, atol=1e-11)
    for found, total in zip(by_params, wanted):
        np.testing.assert_allclose(found, total, rtol=1e-9, atol=1e-11)


# --- What is separate for each place, and what is not ------------------------------------------------

W = np.random.default_rng(5).normal(size=(WIDTH, WIDTH)) / 4
V = np.random.default_rng(6).normal(size=(WIDTH, WIDTH)) / 4

CASES = {
    "shifted": lambda xp, x: xp.concatenate([x[1:] @ W, x[:1]], axis=0) @ V,
    "running sums": lambda xp, x: xp.cumsum(x @ W, axis=0) @ V,
    "running sums of features": lambda xp, x: xp.cumsum(x @ W, axis=1) @ V,
    "turned": lambda xp, x: (x @ W)[::-1] @ V,
    "numbered": lambda xp, x: (x @ W + xp.arange(x.shape[0]).astype(x.dtype)[:, None]) @ V,
    "centred": lambda xp, x: (x @ W - xp.sum(x @ W, axis=0)) @ V,
    "its length": lambda xp, x: (x @ W * (xp.zeros(()) + x.shape[0])) @ V,
    "transposed": lambda xp, x: xp.transpose(xp.transpose(x @ W) * 2.0) @ V,
    "sums of features": lambda xp, x: xp.sum(xp.tanh(x @ W), axis=1),
    "total": lambda xp, x: xp.sum((x @ W) * x),
    "parts": lambda xp, x: xp.concatenate([(x @ W)[:, 3:9], x[:, :5]], axis=1),
    "parts padded": lambda xp, x: xp.pad((x @ W)[:, 2:7], ((0, 0), (1, 2))) @ V[:8],
    "parts of places": lambda xp, x: xp.pad((x @ W), ((1, 2), (0, 0))) @ V,
    "folded": lambda xp, x: xp.sum((x @ W).reshape(x.shape[0], 4, 4), axis=1) @ V[:4],
    "refolded": lambda xp, x: (x @ W).reshape(WIDTH, -1).T @ V,
    "row by row": lambda xp, x: xp.einsum("tij,tj->ti", (x @ W).reshape(-1, 4, 4), x[:, :4]),
    "gram": lambda xp, x: (x @ W).T @ (x @ V),
    "of all to all": lambda xp, x: (x @ W) @ (x @ V).T @ x,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lengths", LENGTHS[:4], ids=str)
def test_functions_give_what_they_give_alone(name, lengths):
    x, n = padded(lengths, ("t", WIDTH), 3), np.array(lengths, np.int32)
    ys = np.asarray(batch(lambda x: CASES[name](jnp, x), f"f64[t {WIDTH}]")(x, n))
    for row, y, length in zip(x, ys, lengths):
        if length == 0 and name in ("shifted", "refolded"):
            continue
        wanted = CASES[name](np, row[:length])
        real = y[tuple(slice(s) for s in wanted.shape)]
        np.testing.assert_allclose(real, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_functions_are_those_alone_with_the_bits_of_eager_evaluation(name):
    lengths = LENGTHS[0]
    x, n = padded(lengths, ("t", WIDTH), 3), np.array(lengths, np.int32)
    w = jnp.asarray(np.random.default_rng(7).normal(size=(WIDTH, WIDTH)) / 4)

    def one(w, x):
        return jnp.sum(jnp.sin(CASES[name](jnp, x @ w)))

    masked = plait.mask(one, in_shapes=(None, f"f64[t {WIDTH}]"))

    def total(w, x):
        return jnp.sum(plait.vmap(lambda x, n: masked(w, x, t=n))(x, n))

    by_w, by_x = plait.jit(plait.grad(total, argnums=(0, 1)))(w, x)
    eager = plait.grad(total, argnums=(0, 1))(w, x)
    assert np.array_equal(np.asarray(by_w), np.asarray(eager[0]))
    assert np.array_equal(np.asarray(by_x), np.asarray(eager[1]))
    sum_w = np.zeros(w.shape)
    for row, found, length in zip(x, np.asarray(by_x), lengths):
        of_w, of_x = plait.grad(one, argnums=(0, 1))(w, jnp.asarray(row[:length]))
        sum_w += np.asarray(of_w)
        np.testing.assert_allclose(found[:length], of_x, rtol=1e-9, atol=1e-11)
        assert np.all(found[length:] == 0)
    np.testing.assert_allclose(by_w, sum_w, rtol=1e-9, atol=1e-11)


def test_two_sizes_are_packed_each_by_itself():
    rng = np.random.default_rng(8)
    t, s = np.array([40, 3, 0, 17], np.int32), np.array([2, 40, 9, 21], np.int32)
    x, y = (rng.normal(size=(4, BOUND, WIDTH)) for _ in range(2))
    for row, other, n, m in zip(x, y, t, s):
        row[n:], other[m:] = np.nan, np.nan

    def cross(xp, x, y):
        scores = xp.tanh((x @ W) @ (y @ V).T)
        return xp.tanh(scores @ y @ W + x @ V), xp.sum(xp.tanh(y @ W) @ V, axis=1)

    masked = plait.mask(lambda x, y: cross(jnp, x, y), (f"f64[t {WIDTH}]", f"f64[s {WIDTH}]"))
    f = plait.jit(
        lambda x, y, t, s: plait.vmap(lambda *a: masked(*a[:2], t=a[2], s=a[3]))(x, y, t, s)
    )
    first, second = f(x, y, t, s)
    for i in range(4):
        a, b = cross(np, x[i, : t[i]], y[i, : s[i]])
        np.testing.assert_allclose(first[i, : t[i]], a, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(second[i, : s[i]], b, rtol=1e-10, atol=1e-12)
        assert np.all(np.asarray(first[i, t[i] :]) == 0)
        assert np.all(np.asarray(second[i, s[i] :]) == 0)
    assert packed_stages(f, x, y, t, s)[0] == 2


def test_operands_of_one_example_and_shared_ones_keep_their_meaning():
    lengths = [40, 3, 17, 0]
    rng = np.random.default_rng(9)
    n, x = np.array(lengths, np.int32), padded(lengths, ("t", WIDTH), 3)
    table, own = rng.normal(size=(BOUND, WIDTH)), rng.normal(size=(4, WIDTH, WIDTH))
    bias, scale = rng.normal(size=(4, WIDTH)), rng.normal(size=4)

    def f(xp, table, own, bias, scale, x):
        h = xp.tanh((x + table) @ W) @ own + bias
        return xp.tanh(h @ V) * scale, W * 2.0

    spec = (f"f64[t {WIDTH}]", None, None, None, f"f64[t {WIDTH}]")
    masked = plait.mask(lambda *a: f(jnp, *a), spec)
    run = plait.jit(plait.vmap(lambda o, b, s, x, n: masked(jnp.asarray(table), o, b, s, x, t=n)))
    ys, twice = run(own, bias, scale, x, n)
    for i, length in enumerate(lengths):
        wanted, _ = f(np, table[:length], own[i], bias[i], scale[i], x[i, :length])
        np.testing.assert_allclose(ys[i, :length], wanted, rtol=1e-10, atol=1e-12)
        assert np.all(np.asarray(ys[i, length:]) == 0)
        assert np.array_equal(twice[i], W * 2.0)


def test_examples_along_an_axis_that_is_not_the_first():
    lengths = LENGTHS[0]
    x, n = padded(lengths, (3, "t", WIDTH), 3), np.array(lengths, np.int32)
    f = batch(lambda x: jnp.transpose(jnp.tanh(x @ W), (2, 1, 0)), f"f64[3 t {WIDTH}]")
    ys = np.asarray(f(x, n))
    for row, y, length in zip(x, ys, lengths):
        wanted = np.transpose(np.tanh(row[:, :length] @ W), (2, 1, 0))
        np.testing.assert_allclose(y[:, :length], wanted, rtol=1e-12, atol=1e-12)
        assert np.all(y[:, length:] == 0)
    assert packed_stages(f, x, n) == (1, 1)


def test_many_vectors_of_lengths_share_the_packed_programs():
    """Whatever the lengths, one total is one program."""
    f = batch(lambda x: lax.tanh(x @ W), f"f64[t {WIDTH}]")
    rng = np.random.default_rng(1)
    for _ in range(5):
        lengths = rng.permutation([40, 1, 20, 3])
        x = padded(lengths, ("t", WIDTH), 3)
        ys = np.asarray(f(x, lengths.astype(np.int32)))
        for row, y, length in zip(x, ys, lengths):
            np.testing.assert_allclose(y[:length], np.tanh(row[:length] @ W), rtol=1e-12)
