"""autocast against the same casts written by hand in NumPy, and loss scaling.

SPDX-License-Identifier: Apache-2.0
"""

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn, optim

rng = np.random.default_rng(0)
LOW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def values(*shape):
    return rng.normal(size=shape).astype(np.float32)


def rounded(x, dtype="bfloat16"):
    return np.asarray(x, np.float32).astype(LOW[dtype]).astype(np.float32)


def dots(jaxpr):
    """Dtypes of operands of every dot_general and conv, nested ones too."""
    return [
        line.split("dtype=")[1].split(",")[0].split("]")[0]
        for line in str(jaxpr).splitlines()
        if "= dot_general" in line or "= conv[" in line
    ]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_products_are_computed_in_16_bits(dtype):
    x, w = values(4, 8), values(8, 3)
    f = plait.autocast(lambda x, w: x @ w, dtype)
    expected = rounded(rounded(x, dtype) @ rounded(w, dtype), dtype)
    for run in (f, plait.jit(f), plait.autocast(plait.jit(lambda x, w: x @ w), dtype)):
        result = run(x, w)
        assert result.dtype == np.float32
        assert np.allclose(result, expected, rtol=1e-2, atol=1e-3)
        # They are 16-bit numbers.
        assert np.array_equal(result, rounded(result, dtype))
    assert not np.array_equal(f(x, w), x @ w)


def test_casts_are_equations_and_are_made_once():
    def f(x, w):
        return pnp.sum((x @ w) + (x @ (w + 1)))

    jaxpr = plait.make_jaxpr(plait.autocast(f))(values(4, 8), values(8, 3))
    text = str(jaxpr)
    assert dots(jaxpr) == ["bf16", "bf16"]
    assert text.count("cast[dtype=bf16") == 3  # x once, w, w + 1
    assert text.count("cast[dtype=f32") == 1  # before the sum
    assert "add" in text and "bf16[4,3] = add" in text
    assert "f32[] = reduce" in text


def test_delicate_functions_are_computed_in_float32():
    x, w = values(4, 8), values(8, 5)
    y = rounded(rounded(x) @ rounded(w))
    for f, expected in (
        (nn.softmax, np.exp(y) / np.exp(y).sum(-1, keepdims=True)),
        (nn.logsumexp, np.log(np.exp(y).sum())),
        (pnp.sum, y.sum()),
        (pnp.exp, np.exp(y)),
        (pnp.var, y.var()),
    ):
        result = plait.autocast(lambda x, w: f(x @ w))(x, w)
        assert result.dtype == np.float32
        assert np.allclose(result, expected, rtol=2e-2, atol=1e-3), f
        text = str(plait.make_jaxpr(plait.autocast(lambda x, w: f(x @ w)))(x, w))
        assert text.count("bf16[4,5]") == 1, text  # the product


def test_other_dtypes_are_left_alone():
    for dtype in (np.float64, np.int32, np.complex64):
        x = values(3, 3).astype(dtype)
        assert np.array_equal(plait.autocast(lambda x: x @ x)(x), plait.jit(lambda x: x @ x)(x))
    x = values(3, 3)
    same = plait.autocast(
        lambda x: lax.dot_general(x, x, (((1,), (0,)), ((), ())), preferred_element_type=np.float64)
    )
    assert same(x).dtype == np.float64 and dots(plait.make_jaxpr(same)(x)) == ["f64"]


def mlp(params, x, y):
    hidden = nn.silu(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"]
    return -pnp.mean(pnp.sum(nn.log_softmax(logits) * y, -1))


PARAMS = {"w1": values(8, 16) / 3, "b1": values(16), "w2": values(16, 4) / 4}
X, Y = values(32, 8), np.eye(4, dtype=np.float32)[rng.integers(0, 4, 32)]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: plait.grad(plait.autocast(f)),
        lambda f: plait.autocast(plait.grad(f)),
        lambda f: plait.jit(plait.grad(plait.autocast(f))),
        lambda f: plait.grad(plait.jit(plait.autocast(f))),
        lambda f: plait.jit(plait.autocast(plait.grad(f))),
        lambda f: plait.autocast(plait.grad(plait.jit(f))),
        lambda f: plait.autocast(plait.jit(plait.grad(f))),
        lambda f: plait.grad(plait.checkpoint(plait.autocast(f))),
        lambda f: plait.autocast(plait.grad(plait.checkpoint(f))),
    ],
)
def test_gradients_have_the_dtypes_of_parameters(transform):
    exact = plait.grad(mlp)(PARAMS, X, Y)
    found = transform(mlp)(PARAMS, X, Y)
    jaxpr = plait.make_jaxpr(transform(mlp))(PARAMS, X, Y)
    assert set(dots(jaxpr)) == {"bf16"} and len(dots(jaxpr)) >= 5
    for name in PARAMS:
        assert found[name].dtype == np.float32
        error = np.linalg.norm(found[name] - exact[name]) / np.linalg.norm(exact[name])
        assert 0 < error < 0.02, (name, error)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: plait.vmap(plait.autocast(f), in_axes=(None, 0, 0)),
        lambda f: plait.autocast(plait.vmap(f, in_axes=(None, 0, 0))),
        lambda f: plait.jit(plait.vmap(plait.jit(plait.autocast(f)), in_axes=(None, 0, 0))),
        lambda f: plait.vmap(plait.grad(plait.autocast(f)), in_axes=(None, 0, 0)),
        lambda f: plait.autocast(plait.vmap(plait.grad(f), in_axes=(None, 0, 0))),
    ],
)
def test_it_composes_with_vmap(transform):
    found = transform(mlp)(PARAMS, X, Y)
    plain = plait.grad(mlp) if isinstance(found, dict) else mlp
    rows = [plain(PARAMS, x, y) for x, y in zip(X, Y)]
    expected = plait.tree.map(lambda *rows: np.stack(rows), *rows)
    for a, b in zip(plait.tree.leaves(found), plait.tree.leaves(expected)):
        assert a.dtype == np.float32
        assert np.linalg.norm(a - b) / np.linalg.norm(b) < 0.02
    assert set(dots(plait.make_jaxpr(transform(mlp))(PARAMS, X, Y))) == {"bf16"}


def test_custom_rules_are_rewritten():
    @plait.custom_vjp
    def product(x, w):
        return x @ w

    product.defvjp(lambda x, w: (x @ w, (x, w)), lambda r, ct: (2 * ct @ r[1].T, r[0].T @ ct))

    def f(x, w):
        return pnp.sum(product(x, w) ** 2)

    x, w = values(4, 8), values(8, 3)
    exact = plait.grad(f)(x, w)
    for g in (
        plait.autocast(plait.jit(plait.grad(f))),
        plait.grad(plait.autocast(plait.jit(f))),
        plait.autocast(plait.grad(plait.jit(f))),
    ):
        found = g(x, w)
        assert np.linalg.norm(found - exact) / np.linalg.norm(exact) < 0.02
        assert set(dots(plait.make_jaxpr(g)(x, w))) == {"bf16"}


def test_attention_and_convolution():
    q, k, v = values(2, 5, 8), values(2, 5, 8), values(2, 5, 8)
    f = plait.autocast(nn.attention)
    jaxpr = str(plait.make_jaxpr(f)(q, k, v))
    assert "symbol='attention'" in jaxpr and "bf16[2,5,8] = composite" in jaxpr
    exact = nn.attention(q, k, v)
    assert 0 < np.linalg.norm(f(q, k, v) - exact) / np.linalg.norm(exact) < 0.02
    g = plait.autocast(plait.grad(lambda q: pnp.sum(nn.attention(q, k, v) ** 2)))
    exact = plait.grad(lambda q: pnp.sum(nn.attention(q, k, v) ** 2))(q)
    assert np.linalg.norm(g(q) - exact) / np.linalg.norm(exact) < 0.05
    x, kernel = values(1, 3, 8, 8), values(4, 3, 3, 3)
    c = plait.autocast(lambda x, w: lax.conv(x, w, (1, 1), "SAME"))
    exact = lax.conv(x, kernel, (1, 1), "SAME")
    assert c(x, kernel).dtype == np.float32
    assert 0 < np.linalg.norm(c(x, kernel) - exact) / np.linalg.norm(exact) < 0.02


def test_policies_choose():
    x, w = values(4, 8), values(8, 3)

    def f(x, w):
        return pnp.exp(x @ w)

    low = plait.autocast(f, plait.AutocastPolicy("bfloat16", low=[lax.exp]))
    assert "bf16[4,3] = exp" in str(plait.make_jaxpr(low)(x, w))
    full = plait.autocast(f, plait.AutocastPolicy("float16", full=["dot_general"]))
    assert np.array_equal(full(x, w), f(x, w))
    with pytest.raises(plait.ValueError, match="names 'nothing'"):
        plait.autocast(f, plait.AutocastPolicy(low=["nothing"]))(x, w)
    with pytest.raises(plait.ValueError, match="float32"):
        plait.autocast(f, np.float32)(x, w)
    with pytest.raises(plait.DtypeError):
        plait.autocast("f")


def test_numbers_that_16_bits_cannot_say_stay_in_float32():
    x = values(4, 4)
    f = plait.autocast(lambda x: (x @ x) * 1e-9 * 1e9, "float16")
    assert np.allclose(f(x), x @ x, rtol=1e-2, atol=1e-2)
    f = plait.autocast(lambda x: (x @ x) * 1e6, "float16")
    assert np.isfinite(np.asarray(f(x))).all()


def test_values_are_known_outside_jit():
    def f(x):
        y = x @ x
        return y if float(y[0, 0]) > 0 else -y

    x = values(3, 3)
    expected = rounded(x) @ rounded(x)
    expected = expected if expected[0, 0] > 0 else -expected
    assert np.allclose(plait.autocast(f)(x), expected, rtol=2e-2, atol=2e-2)


def test_named_sizes_and_masks():
    x, w = values(6, 4), values(4, 4)

    def f(x):
        return pnp.sum(nn.softmax(x @ w), 0)

    exact = f(x[:3])
    for m in (plait.mask(plait.autocast(f), "n 4"), plait.autocast(plait.mask(f, "n 4"))):
        found = m(x, n=3)
        assert np.linalg.norm(found - exact) / np.linalg.norm(exact) < 0.02


# --- Loss scaling ---


def test_loss_scale_follows_overflows():
    state = optim.loss_scale_init(4.0)
    grads = {"w": np.array([8.0, 4.0], np.float32), "n": np.int32(3)}
    step = plait.jit(lambda grads, state: optim.unscale(grads, state, growth_interval=2))
    unscaled, finite, state = step(grads, state)
    assert unscaled["w"].tolist() == [2, 1] and unscaled["n"] == 3
    assert bool(finite) and float(state[0]) == 4 and int(state[1]) == 1
    _, _, state = step(grads, state)
    assert float(state[0]) == 8 and int(state[1]) == 0
    _, finite, state = step({"w": np.array([np.inf, 0.0], np.float32), "n": np.int32(3)}, state)
    assert not bool(finite) and float(state[0]) == 4 and int(state[1]) == 0
    for _ in range(5):
        _, finite, state = step({"w": np.array([np.nan, 0.0], np.float32), "n": np.int32(3)}, state)
    assert float(state[0]) == 1
    with pytest.raises(plait.TreeError):
        optim.unscale(grads, (1.0, 2.0, 3.0))


def test_loss_scale_saves_small_gradients():
    w, x = np.float32(1e-4), np.float32(1e-4)

    def f(w):
        product = plait.autocast(lambda w, x: pnp.dot(w[None], x[None]), "float16")
        return product(w, x) * 1e-4

    state = optim.loss_scale_init(2.0**14)
    scaled = plait.grad(lambda w: optim.scale_loss(f(w), state))(w)
    unscaled, finite, _ = optim.unscale(scaled, state)
    assert bool(finite) and np.isclose(unscaled, 1e-8, rtol=1e-2)
