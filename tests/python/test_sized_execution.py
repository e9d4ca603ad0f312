"""How jit runs programs of named sizes: an executable for each, buckets, or padded to a bound.

SPDX-License-Identifier: Apache-2.0
"""

import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def model(x, w):
    return pnp.tanh(x @ w), (x * 2).sum(0), x.shape[0] + w[0, 0]


def numpy_model(x, w):
    return np.tanh(x @ w), (x * 2).sum(0), x.shape[0] + w[0, 0]


def rows(n, d=4):
    return np.random.default_rng(n).normal(size=(n, d)).astype(np.float32)


W = rows(4, 3)


def kept(jitted, x):
    return int(re.search(r"(\d+) of at most", jitted.explain(x, W))[1])


@pytest.mark.parametrize(
    "options, executables",
    [
        ({}, 7),
        ({"executables": 3}, 3),
        ({"buckets": True}, 4),  # 1, 4, 8, 16
        ({"buckets": [8, 32]}, 2),
        ({"buckets": {"b": [5, 16]}}, 2),
        ({"bound": {"b": 16}}, 1),
    ],
)
def test_every_choice_gives_the_same_numbers(options, executables):
    traces = []

    def traced(x, w):
        traces.append(1)
        return model(x, w)

    f = plait.jit(traced, sizes=("b 4", None), **options)
    for n in (1, 3, 5, 8, 13, 7, 4, 3):
        for got, want in zip(f(rows(n), W), numpy_model(rows(n), W)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert len(traces) == 1 and kept(f, rows(3)) == executables


def test_explain_says_what_padding_costs():
    f = plait.jit(lambda x, w: x @ w, sizes=("b 4", None), bound={"b": 16})
    first = f.explain(rows(4), W).splitlines()[0]
    assert first.startswith("sizes: b = 4; masked, padded to b = 16: 75.0 % of the work is padding")
    first = plait.jit(lambda x, w: x @ w, sizes=("b 4", None)).explain(rows(4), W).splitlines()[0]
    assert first == "sizes: b = 4; an executable for each; 1 of at most 64 executables kept"


@pytest.mark.parametrize("options", [{"buckets": True}, {"bound": {"b": 8}}])
def test_padded_calls_compose(options):
    f = plait.jit(lambda x, w: pnp.log(x * x).sum() * w, sizes=("b 4", None), **options)
    x = rows(5)
    np.testing.assert_allclose(plait.grad(lambda x: f(x, 3.0))(x), 6 / x, rtol=1e-5)
    batch = np.stack([rows(5), rows(6)[:5]])
    want = np.log(batch * batch).sum((1, 2)) * 2
    np.testing.assert_allclose(plait.vmap(lambda x: f(x, 2.0))(batch), want, rtol=1e-5)
    np.testing.assert_allclose(plait.jit(lambda x: f(x, 2.0) + 1)(x), np.log(x * x).sum() * 2 + 1,
                               rtol=1e-5)  # fmt: skip
    y = plait.variable(x)
    f(y, 3.0).backward()
    np.testing.assert_allclose(y.grad, 6 / x, rtol=1e-5)
    inner = plait.make_jaxpr(lambda x: f(x, 2.0))("k 4")  # nothing is padded yet
    np.testing.assert_allclose(inner(x), np.log(x * x).sum() * 2, rtol=1e-5)


def test_multiples_are_padded_to_multiples():
    f = plait.jit(lambda x: x.reshape(-1, 8).sum(1), sizes="t", constraints=["t % 8 == 0"],
                  buckets=[16, 64])  # fmt: skip
    for t in (8, 16, 40, 64):
        np.testing.assert_array_equal(f(np.ones(t, np.float32)), np.full(t // 8, 8))
    assert "t = 40; masked, padded to t = 64" in f.explain(np.ones(40, np.float32))


def test_donated_arguments_are_used_up():
    f = plait.jit(lambda x: x * 2, sizes="n", buckets=True, donate_argnums=0)
    x = pnp.ones(5) * 3.0
    assert float(f(x).sum()) == 30 and x.is_deleted()


def test_errors():
    f = plait.jit(lambda x: x, sizes="b", bound={"b": 4})
    with pytest.raises(
        plait.ShapeError, match=r"the size b of `<lambda:\d+>` is 5, and its bound is 4"
    ):
        f(np.ones(5, np.float32))
    g = plait.jit(lambda x: x, sizes="b", buckets=[2, 4])
    with pytest.raises(plait.ShapeError, match="is 5, and the largest bucket is 4"):
        g(np.ones(5, np.float32))
    for options, message in (
        ({"buckets": {"q": True}}, "buckets speaks of the size 'q'"),
        ({"bound": {"q": 3}}, "bound speaks of the size 'q'"),
        ({"bound": {"b": 0}}, "the bound of b is 0"),
        ({"buckets": [4, 2]}, "no ascending sizes"),
        ({"buckets": []}, "buckets holds no sizes"),
        ({"bound": 3}, "bound is 3"),
        ({"executables": 0}, "executables is 0"),
    ):
        with pytest.raises(Exception, match=message):
            plait.jit(lambda x: x, sizes="b", **options)(np.ones(2, np.float32))
    with pytest.raises(plait.ValueError, match="and no sizes"):
        plait.jit(lambda x: x, buckets=True)


def test_a_loaded_function_has_the_same_choice(tmp_path):
    path = tmp_path / "m.plait"
    plait.save(path, model, "b 4", W)
    entry = plait.load(path).model
    f = plait.jit(entry, buckets=True)
    for n in (2, 3, 6):
        for got, want in zip(f(rows(n), W), numpy_model(rows(n), W)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert "padded to b = 8" in f.explain(rows(6), W)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "bool", "complex64"])
def test_every_dtype_is_padded(dtype):
    f = plait.jit(lambda x: (pnp.flip(x, 0), x == x, pnp.sum(x, 0)), sizes=f"{dtype}[n 2]",
                  bound={"n": 8})  # fmt: skip
    x = (np.arange(10).reshape(5, 2) % 3).astype(dtype)
    flipped, same, total = f(x)
    np.testing.assert_array_equal(flipped, x[::-1])
    np.testing.assert_array_equal(same, x == x)
    np.testing.assert_array_equal(total, plait.jit(lambda x: pnp.sum(x, 0))(x))
    assert flipped.dtype == x.dtype


def test_two_sizes_one_padded_and_empty_arrays():
    f = plait.jit(lambda x, y: (x @ y.T, x.sum()), sizes=("n d", "m d"), buckets={"n": [4, 8]})
    for n, m, d in ((3, 2, 5), (0, 2, 5), (4, 0, 1), (8, 3, 2)):
        x, y = np.ones((n, d), np.float32), np.full((m, d), 2, np.float32)
        product, total = f(x, y)
        np.testing.assert_array_equal(product, x @ y.T)
        assert float(total) == n * d
    first = f.explain(x, y).splitlines()[0]
    assert "masked, padded to n = 8: " in first and "m = 3" in first
