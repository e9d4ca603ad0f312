"""Reductions and movement fused by the llvm backend, in a process of its own: the bits of eager
evaluation, the numbers of NumPy, and no step left to the reference."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
import plait
import plait.numpy as jnp

rng = np.random.default_rng(3)
is_there = "backend llvm is not used" not in plait.jit(lambda x: x + 1).explain(np.float32(1))


def normal(*shape, dtype=np.float32):
    return (rng.standard_normal(shape) * 2).astype(dtype)


def check(name, function, expected, *arguments, fused=True):
    jitted = plait.jit(function)
    arrays = [plait.numpy.asarray(x) for x in arguments]
    ours = [np.asarray(x) for x in plait.tree.leaves(jitted(*arrays))]
    eager = [np.asarray(x) for x in plait.tree.leaves(function(*arrays))]
    wanted = plait.tree.leaves(expected(*arguments))
    assert len(ours) == len(eager) == len(wanted), name
    for x, y, z in zip(ours, eager, wanted):
        assert x.tobytes() == y.tobytes(), (name, x, y)
        tolerance = 2e-2 if x.dtype.itemsize < 4 else 2e-3
        np.testing.assert_allclose(
            x.astype(np.float64), np.asarray(z, np.float64), tolerance, tolerance, err_msg=name
        )
    text = jitted.explain(*arrays)
    assert not (fused and is_there and " reference " in text), (name, text)


def wide(x):
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def test_reductions():
    shapes = [((16, 40, 70), 0), ((16, 40, 70), 1), ((7, 33, 65), (0, 2)), ((300, 400), (0, 1)),
              ((30000,), 0), ((700, 3), 0), ((3, 700), 0), ((2, 1500, 3), 1), ((130, 70), 0),
              ((9, 20001), (0, 1)), ((4, 90, 90, 3), (1, 2)), ((50, 1), 0), ((6, 5, 40), 0)]
    for shape, axes in shapes:
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int8, np.uint16):
            x = normal(*shape, dtype=dtype)
            for kind in ("sum", "max", "min"):
                if kind == "sum" and x.dtype.itemsize < 4:
                    continue
                check(f"{kind} {shape} {axes} {dtype}", lambda x: getattr(x, kind)(axes),
                      lambda x: getattr(wide(x), kind)(axes), x)
        y = normal(*shape) > 0
        check(f"any {shape} {axes}", lambda x: (x.any(axes), x.all(axes)),
              lambda x: (x.any(axes), x.all(axes)), y)


def test_producers():
    x, y, m, v = normal(300, 500), normal(300, 500), normal(300, 1), normal(500)
    def several(np):
        return lambda x, y, m, v: (
            ((x - y) ** 2).sum(), ((x - m) ** 2).sum(), (x.T * y.T + 1).sum(0),
            (x * v[None, :]).sum(1), (x * m).sum(0), x.mean(0), x.var(0), x.max(), x.min(0),
            np.abs(x - y).max(1), np.where(x > 0, y, 0).sum((0, 1)))
    check("producers", several(jnp), several(np), x, y, m, v)
    def stored(np):
        def f(x, y):
            z = x * y + 1
            return z, z.sum(0), z.max(0)
        return f
    check("stored", stored(jnp), stored(np), x, y)
    def pairs(np):
        def f(p, m):
            d = p[None, :, :] - p[:, None, :]
            w = m[None, :] * ((d * d).sum(-1) + 0.5) ** -1.5
            return (d * w[:, :, None]).sum(1)
        return f
    check("pairs", pairs(jnp), pairs(np), normal(200, 3), abs(normal(200)))


def test_movement():
    x, y = normal(64, 101), normal(7, 101)
    def moved(np):
        return lambda x, y: (
            np.concatenate([x, y * 2, x], 0) + 1, np.pad(x * 2, ((3, 5), (2, 17))) + 1,
            (x * 2)[::-1, ::-2] + 1, (x * 2)[::3, 1::2] + 1, np.roll(x, 3, 0) + np.roll(x, -7, 1),
            np.tril(x) + np.triu(x, 3), (x * 2).T + 1, np.flip(x * 2, 1) * x,
            np.where(np.arange(101)[None, :] < np.arange(64)[:, None], x, 0).sum(0),
            np.arange(101) * 2 + x)
    check("moved", moved(jnp), moved(np), x, y)


def test_gathers():
    e, i, b = normal(100, 64), rng.integers(-100, 100, 50), normal(64)
    check("rows", lambda e, i, b: e[i] * 2 + b, lambda e, i, b: e[i] * 2 + b, e, i, b)
    check("elements", lambda x, i, w: x[i] * w, lambda x, i, w: x[i] * w, normal(1000),
          rng.integers(0, 1000, 300), normal(300))
    check("columns", lambda x, i: x[:, i] * 2, lambda x, i: x[:, i] * 2, e,
          rng.integers(0, 64, 30))
    far = rng.integers(-300, 300, 50)
    check("clip", lambda e, i: jnp.take(e, i, 0, mode="clip") + 1,
          lambda e, i: np.take(e, i, 0, mode="clip") + 1, e, far)
    check("bags", lambda e, i: e[i].sum(1), lambda e, i: e[i].sum(1), e,
          rng.integers(0, 100, (50, 20)))
    check("along", lambda x, i: jnp.take_along_axis(x * 2, i, 1) + 1,
          lambda x, i: np.take_along_axis(x * 2, i, 1) + 1, e, rng.integers(0, 64, (100, 3)))
    check("slice", lambda x, i: plait.lax.dynamic_slice(x * 2, (i, 3), (10, 50)) + 1,
          lambda x, i: x[90:100, 3:53] * 2 + 1, e, np.int32(99))
    f = plait.jit(lambda e, i: e[i] * 2)
    for bad in (100, -101):
        try:
            f(e, np.array([3, bad]))
        except plait.IndexError:
            continue
        raise AssertionError(bad)


def test_cross_entropy():
    def loss(x, labels):
        return -jnp.take_along_axis(plait.nn.log_softmax(x), labels[:, None], 1).mean()

    def expected(x, labels):
        e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        p = e / e.sum(1, keepdims=True)
        rows = np.arange(len(x))
        gradient = p.copy()
        gradient[rows, labels] -= 1
        return -np.log(p[rows, labels]).mean(), gradient / len(x)

    labels = rng.integers(0, 1000, 300).astype(np.int32)
    check("cross entropy", plait.value_and_grad(loss), expected, normal(300, 1000), labels)


def test_layer_norm():
    def norm(x, g, b):
        d = x - x.mean(-1, keepdims=True)
        return d / jnp.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b

    def gradients(x, g, b, ct):
        return plait.vjp(norm, x, g, b)[1](ct)

    def expected(x, g, b, ct):
        x, ct = x.astype(np.float64), ct.astype(np.float64)
        d = x - x.mean(-1, keepdims=True)
        s = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
        h, u = d * s, ct * g
        dx = s * (u - u.mean(-1, keepdims=True) - h * (u * h).mean(-1, keepdims=True))
        return dx, (ct * h).sum(0), ct.sum(0)

    for rows in (40, 300):
        check("layer norm", gradients, expected, normal(rows, 256), normal(256), normal(256),
              normal(rows, 256))


def test_random_bits():
    for width in (8, 16, 32, 64):
        check(f"bits {width}",
              lambda k: plait.random.bits(k, (7, 33), dtype=f"uint{width}") ^ 1,
              lambda k: np.asarray(plait.random.bits(k, (7, 33), dtype=f"uint{width}")) ^ 1,
              plait.random.key(5))
    check("normal", lambda k: plait.random.normal(k, (1003,)) * 2,
          lambda k: np.asarray(plait.random.normal(k, (1003,))) * 2, plait.random.key(5))


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
"""


def test_fused_kernels_have_the_bits_of_eager_evaluation():
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PLAIT_LLVM": "1", "PLAIT_WAIT": "1"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-3000:]
