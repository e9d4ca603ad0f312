"""jit(sizes=): one trace for every value of the named sizes.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def rows(n, d, dtype=np.float32):
    return np.random.default_rng(n * 100 + d).normal(size=(n, d)).astype(dtype)


def test_one_trace_for_every_size():
    traces = []

    @plait.jit(sizes=("b 4", None))
    def mean(x, w):
        traces.append(x.shape)
        return (x * w).sum(axis=0) / x.shape[0]

    for n in (1, 2, 5, 17, 2):
        x, w = rows(n, 4), rows(1, 4)
        np.testing.assert_allclose(mean(x, w), (x * w).mean(0), rtol=1e-5)
    assert len(traces) == 1 and len(mean.cache) == 1 and mean.cache.misses == 1
    assert "lambda b ;" in str(mean.jaxpr)
    mean(rows(3, 4), rows(1, 1))  # None takes all from the call
    assert len(traces) == 2


def test_sizes_with_arithmetic_and_trees():
    @plait.jit(sizes=({"x": "n", "y": "2*n+1"}, "m n"))
    def f(p, z):
        return pnp.concatenate([p["x"], p["y"]]), z @ p["x"]

    for n, m in ((1, 2), (4, 3)):
        x, y, z = np.ones(n, np.float32), np.ones(2 * n + 1, np.float32), rows(m, n)
        long, product = f({"x": x, "y": y}, z)
        assert long.shape == (3 * n + 1,)
        np.testing.assert_allclose(product, z.sum(1), rtol=1e-5)
    assert len(f.cache) == 1


def test_keywords_dtypes_and_underscores():
    f = plait.jit(lambda x, y: x * y, sizes=("n _", "i32[n _]"))
    i = np.ones((3, 2), np.int32)
    assert f(rows(3, 2), y=i).shape == (3, 2) and f(y=i[:2], x=rows(2, 2)).shape == (2, 2)
    assert len(f.cache) == 2  # by position and by keyword
    f(y=np.ones((2, 5), np.int32), x=rows(2, 5))
    assert len(f.cache) == 3  # `_` is a size of the call
    assert f.cache.last_miss == "x is f32[2,5] where the last call had f32[n,2]"
    with pytest.raises(plait.DtypeError, match=r'argument y: the spec "i32\[n _\]" says int32'):
        f(rows(3, 2), rows(3, 2))


def test_it_composes():
    f = plait.jit(lambda x, w: (x * w).sum(), sizes=("n", "n"))
    x = np.float32([1, 2, 3])
    np.testing.assert_allclose(plait.grad(f)(x, x), x)
    np.testing.assert_allclose(
        plait.vmap(f)(rows(2, 3), rows(2, 3)), (rows(2, 3) ** 2).sum(1), rtol=1e-5
    )
    np.testing.assert_allclose(plait.jit(lambda x: f(x, x) * 2)(x), 28)
    jaxpr = plait.make_jaxpr(lambda x: f(x, x * 2))("k")
    assert "lambda k" in str(jaxpr)
    np.testing.assert_allclose(jaxpr(x), 28)
    assert len(plait.jit(plait.grad(f), sizes=("n", "n")).cache) == 0


def test_training_with_donation():
    step = plait.jit(plait.value_and_grad(lambda w, x: ((x @ w) ** 2).mean()), sizes=("d", "b d"))
    w = pnp.asarray(np.ones(3, np.float32))
    for b in (4, 9):
        x = rows(b, 3)
        value, gradient = step(w, x)
        y = x @ np.ones(3, np.float32)
        np.testing.assert_allclose(value, (y**2).mean(), rtol=1e-5)
        np.testing.assert_allclose(gradient, 2 * (y[:, None] * x).mean(0), rtol=1e-4)
    assert len(step.cache) == 1
    update = plait.jit(lambda w: w * 2, sizes="n", donate_argnums=0)
    w = pnp.ones(10) * 3.0
    assert float(update(w).sum()) == 60 and w.is_deleted()


def test_many_sizes_keep_the_cache_bounded():
    f = plait.jit(lambda x: x.sum(), sizes="n")
    for n in range(150):
        assert float(f(np.ones(n, np.float32))) == n
    assert len(f.cache) == 1


def test_errors_name_argument_and_axis():
    f = plait.jit(lambda p, y: p["a"] + y, sizes=({"a": "n 4"}, "n 4"))
    good = {"a": rows(3, 4)}
    f(good, rows(3, 4))
    for arguments, message in (
        (
            (good, rows(2, 4)),
            r"argument y, axis 0 has size 2, where n = 3 is needed: n is 3 in argument p\['a'\], axis 0",
        ),
        ((good, rows(3, 5)), "argument y, axis 1 has size 5, where 4 is needed"),
        ((good, np.ones(3, np.float32)), 'argument y: the spec "n 4" has 2 dimensions'),
    ):
        for _ in range(2):
            with pytest.raises(plait.ShapeError, match=message):
                f(*arguments)
    with pytest.raises(
        plait.ValueError, match=r"sizes has 1 spec, and `<lambda:\d+>` was called with 2"
    ):
        plait.jit(lambda x, y: x, sizes="n")(good["a"], 1.0)
    with pytest.raises(plait.ValueError, match="the spec"):
        plait.jit(lambda x: x, sizes="n +")(good["a"])
