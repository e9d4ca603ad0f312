"""jit: signatures, statics, captured arrays and scalars, threads, garbage.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import gc
import threading
import weakref

import numpy as np
import pytest

import plait
import plait.numpy as pnp

scale = pnp.asarray(np.float32(2))
rate = 3.0


def counted(function):
    """function, and a list that grows at every trace."""
    traces = []

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        traces.append(None)
        return function(*args, **kwargs)

    return wrapper, traces


def test_one_trace_per_signature():
    f, traces = counted(lambda x: x + 1)
    jitted = plait.jit(f)
    x = pnp.asarray(np.float32([1, 2]))
    assert jitted(x).tolist() == [2, 3] and jitted(x).tolist() == [2, 3]
    assert len(traces) == 1
    jitted(pnp.asarray(np.float32([1])))
    jitted(np.float32([1]))
    jitted(1.0)
    jitted(2.0)
    jitted(1)
    assert len(traces) == 4
    assert jitted.cache.misses == 4 and len(jitted.cache) == 4
    assert "f32[1]" in repr(jitted.cache)


def test_trees_and_keywords():
    f, traces = counted(lambda p, *, y, z=1: {"o": (p["a"] + y) * z, "n": None})
    jitted = plait.jit(f)
    a = pnp.asarray(np.float32([1]))
    assert jitted({"a": a}, y=a, z=2.0)["o"].tolist() == [4]
    assert jitted({"a": a}, z=2.0, y=a)["n"] is None
    assert len(traces) == 1
    jitted({"a": a}, y=a)
    assert len(traces) == 2
    jitted({"a": a, "b": a}, y=a)
    assert len(traces) == 3


def test_static_arguments():
    f, traces = counted(lambda x, n, mode="sum": (x**n).sum() if mode == "sum" else x)
    jitted = plait.jit(f, static_argnums=1, static_argnames="mode")
    x = np.float32([1, 2])
    assert float(jitted(x, 3)) == 9 and float(jitted(x, 3)) == 9 and float(jitted(x, n=2)) == 5
    assert jitted(x, 2, "none").tolist() == [1, 2] and jitted(x, 2, mode="none").tolist() == [1, 2]
    with pytest.raises(plait.DtypeError, match="no hash"):
        jitted(x, [1])


def test_leaves_that_are_no_arrays_are_static():
    f, traces = counted(lambda x, how: x * 2 if how == "double" else x)
    jitted = plait.jit(f)
    x = np.float32([1])
    assert (
        jitted(x, "double").tolist() == [2]
        and jitted(x, "same").tolist() == [1]
        and jitted(x, "double").tolist() == [2]
    )
    assert len(traces) == 2
    with pytest.raises(plait.TreeError):
        jitted(x, {"set": {1}})


def test_floats_that_differ_by_sign_are_different_statics():
    jitted = plait.jit(lambda x, s: x * s, static_argnums=1)
    x = np.float32([1])
    assert (
        np.signbit(np.asarray(jitted(x, -0.0)))[0] and not np.signbit(np.asarray(jitted(x, 0.0)))[0]
    )


def test_captured_arrays_are_read_again():
    global scale
    f, traces = counted(lambda x: x * scale)
    jitted = plait.jit(lambda x: x * scale)
    try:
        assert float(jitted(1.0)) == 2
        scale = pnp.asarray(np.float32(5))
        assert float(jitted(1.0)) == 5
        assert jitted.cache.misses == 1
        scale = pnp.asarray(np.float32([1, 2]))
        assert jitted(1.0).tolist() == [1, 2]
        assert jitted.cache.misses == 2
    finally:
        scale = pnp.asarray(np.float32(2))


def test_captured_numpy_arrays_are_read_again():
    w = np.float32([1, 2])
    jitted = plait.jit(lambda x: x * w)
    assert jitted(1.0).tolist() == [1, 2]
    w[0] = 10
    assert jitted(1.0).tolist() == [10, 2]
    assert jitted.cache.misses == 1


def test_captured_scalars_are_guarded():
    global rate

    class Config:
        lr = 0.5

    config = Config()
    config.lr = 0.5
    jitted = plait.jit(lambda x: x * rate * config.lr)
    try:
        assert float(jitted(1.0)) == 1.5
        rate = 4.0
        assert float(jitted(1.0)) == 2
        config.lr = 1.0
        assert float(jitted(1.0)) == 4
        assert "config.lr is 1.0 where it was 0.5" in jitted.cache.last_miss
    finally:
        rate = 3.0


def test_captured_through_objects_and_closures():
    class Model:
        def __init__(self):
            self.layers = [{"w": pnp.asarray(np.float32([1, 2]))}]

        @plait.jit
        def __call__(self, x):
            return x * self.layers[0]["w"]

    class Plain:
        def __init__(self):
            self.w = pnp.asarray(np.float32([1, 2]))

        def apply(self, x):
            return x * self.w

    plain = Plain()
    jitted = plait.jit(plain.apply)
    assert jitted(2.0).tolist() == [2, 4]
    plain.w = pnp.asarray(np.float32([3, 4]))
    assert jitted(2.0).tolist() == [6, 8]
    assert jitted.cache.misses == 1 and not jitted.cache.frozen
    gradient = plait.jit(plait.grad(lambda x: (plain.apply(x)).sum()))
    assert float(gradient(1.0)) == 7
    plain.w = pnp.asarray(np.float32([1, 1]))
    assert float(gradient(1.0)) == 2


def test_arrays_with_no_path_are_frozen_and_listed():
    def hidden():
        return iter([pnp.asarray(np.float32([1, 2]))])

    source = hidden()
    jitted = plait.jit(lambda x: x * next(source))
    assert jitted(1.0).tolist() == [1, 2]
    assert jitted.cache.frozen == ["f32[2]"]


def test_outer_tracers_are_operands():
    def f(x):
        return plait.jit(lambda y: y * x)(x)

    assert float(plait.grad(f)(3.0)) == 6
    assert plait.vmap(f)(np.float32([1, 2])).tolist() == [1, 4]


def test_jit_in_jit_and_recursion():
    @plait.jit
    def f(x, n):
        return x if n == 0 else f(x * 2, n - 1)

    f = plait.jit(f.__wrapped__, static_argnums=1)
    assert float(f(1.0, 3)) == 8
    assert "call" in str(plait.make_jaxpr(plait.jit(lambda x: x + 1))(1.0))


def test_methods_and_decorators():
    class Model:
        @plait.jit
        def double(self, x):
            return x * 2

        __hash__ = object.__hash__

    assert float(Model().double(2.0)) == 4

    @plait.jit
    def f(x):
        """Documentation."""
        return x

    assert f.__name__ == "f" and f.__doc__ == "Documentation." and f.__wrapped__ is not f

    @plait.jit(static_argnums=0)
    def g(n, x):
        return x * n

    assert float(g(3, 2.0)) == 6
    assert float(plait.jit(functools.partial(lambda a, b: a + b, 1))(2.0)) == 3


def test_threads():
    jitted = plait.jit(lambda x: (x * x + 1).sum())
    errors = []

    def work(seed):
        try:
            for i in range(200):
                x = np.full(10 + (i + seed) % 5, 2.0, np.float32)
                assert float(jitted(x)) == 5 * len(x)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(jitted.cache) <= 5


def test_big_work_lets_go_of_the_gil_and_is_right():
    x = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
    jitted = plait.jit(lambda x: x @ x)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(np.asarray(jitted(x)))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_allclose(result, x @ x, rtol=1e-3, atol=1e-3)


def test_garbage_is_collected():
    class Holder:
        pass

    def make():
        holder = Holder()
        holder.jitted = plait.jit(lambda x: x + (1 if holder else 2))
        holder.jitted(1.0)
        return weakref.ref(holder)

    reference = make()
    gc.collect()
    assert reference() is None


def test_errors_do_not_spoil_the_cache():
    def f(x, fail=False):
        if fail:
            raise RuntimeError("mine")
        return x + 1

    jitted = plait.jit(f, static_argnames="fail")
    assert float(jitted(1.0)) == 2
    with pytest.raises(RuntimeError, match="mine"):
        jitted(1.0, fail=True)
    assert float(jitted(1.0)) == 2


def test_jit_equals_eager_to_the_bit():
    x = np.random.default_rng(0).normal(size=(50, 20)).astype(np.float32)

    def f(x):
        return pnp.tanh(x * 2 + 1).sum(axis=0) / 3

    np.testing.assert_array_equal(np.asarray(plait.jit(f)(x)), np.asarray(f(pnp.asarray(x))))


def test_explain_and_jaxpr():
    jitted = plait.jit(lambda x: x + 1)
    jitted(1.0)
    assert "add" in str(jitted.jaxpr)
    assert "add" in plait.explain(lambda x: x + 1, 1.0)
    jitted.clear_cache()
    assert len(jitted.cache) == 0


def test_outputs_that_are_inputs_or_constants():
    jitted = plait.jit(lambda x: (x, 1.0, {"a": x}))
    x, one, tree = jitted(pnp.asarray(np.float32([1])))
    assert x.tolist() == [1] and float(one) == 1 and tree["a"].tolist() == [1]


def test_argnums_and_argnames_that_no_parameter_has():
    def f(x, n=1, *, mode="sum"):
        return x * n

    for options in (
        {"static_argnames": "mod"},
        {"static_argnums": 2},
        {"donate_argnums": -3},
        {"donate_argnames": ("x", "y")},
    ):
        with pytest.raises(plait.ValueError, match="the function's parameters are x, n, mode"):
            plait.jit(f, **options)
    assert float(plait.jit(f, static_argnames="mode", donate_argnums=None)(2.0, mode="max")) == 2
    plait.jit(lambda *args, **kwargs: args[0], static_argnames="any", static_argnums=7)(1.0)


def test_explain_shows_bodies_and_the_islands_inside():
    def island(x):
        return x

    def f(w, x):
        def step(c, x):
            c = plait.lax.cond(
                c[0] > 0,
                lambda c: plait.host_call(island, c, c),
                lambda c: plait.lax.while_loop(lambda c: c[0] < 0, pnp.exp, c),
                pnp.tanh(c @ w + x),
            )
            return c, c.sum()

        return plait.lax.scan(step, pnp.zeros(4), x)

    text = str(plait.explain(f, pnp.ones((4, 4)), pnp.ones((5, 4))))
    lines = [line for line in text.splitlines() if line.startswith(" ")]
    inside = {}  # the equations of each body, and how far it is indented
    path = []
    for line in lines:
        words = line.split()
        indent = len(line) - len(line.lstrip())
        if words[0] in ("body", "cond", "branch"):
            path = [each for each in path if each[0] < indent] + [(indent, line.strip())]
        else:
            path = [each for each in path if each[0] <= indent]
            inside.setdefault("/".join(name for _, name in path), []).append(line)
    assert set(inside) == {
        "", "body", "body/branch 0", "body/branch 0/body", "body/branch 0/cond", "body/branch 1"
    }  # fmt: skip
    assert "  scan" in inside[""][-1] and any("dot_general" in line for line in inside["body"])
    assert "while" in inside["body/branch 0"][0] and "exp" in inside["body/branch 0/body"][0]
    assert "cmp" in inside["body/branch 0/cond"][-1]
    assert any("host_call" in line for line in inside["body/branch 1"])
    assert all(
        line.split()[1] in ("reference", "control", "onednn", "llvm", "host")
        for line in sum(inside.values(), [])
    )
    assert "host call: `island`, test_jit.py" in text


def test_small_outputs_are_written_again_only_when_nobody_holds_them():
    f = plait.jit(lambda x: {"sum": x + 1, "twice": x * 2})
    held = []
    for i in range(6):
        result = f(pnp.full(4, i, dtype="float32"))
        twice = result["twice"]
        views = (
            np.asarray(twice),
            memoryview(twice),
            twice[1:],
            twice.reshape(2, 2),
            [twice][i % 2 :],
        )
        held.append((i, result.pop("sum") if i % 3 else None, views))
    for i, total, (array, buffer, tail, square, kept) in held:
        for view in (array, buffer, tail, square, *kept):
            np.testing.assert_array_equal(np.asarray(view), 2 * i)
        if total is not None:
            np.testing.assert_array_equal(np.asarray(total), i + 1)


def test_small_state_is_read_while_the_next_is_written():
    def advance(state):
        return state[1:] + [state[0] + state[1]]  # outputs that are inputs

    for donates in ((), 0):
        step = plait.jit(advance, donate_argnums=donates)
        state, expected = [pnp.ones(2) * i for i in range(3)], [np.ones(2) * i for i in range(3)]
        for _ in range(10):
            state, expected = step(state), advance(expected)
        np.testing.assert_array_equal(np.asarray(state), np.asarray(expected))
    assert not any(x.is_deleted() for x in state)


def test_small_outputs_of_calls_within_calls():
    def inner(x):
        return f(x - 1) if float(x) > 0 else np.asarray(x)

    f = plait.jit(
        lambda x: 10 * x + plait.host_call(inner, plait.ShapeDtypeStruct((), np.float32), x)
    )
    for _ in range(3):
        assert float(f(pnp.float32(3))) == 60
