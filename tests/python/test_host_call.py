"""Functions of the host in programs, against NumPy and against loops over examples.

SPDX-License-Identifier: Apache-2.0
"""

import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import debug

rng = np.random.default_rng(0)


def f32(*shape):
    return plait.ShapeDtypeStruct(shape, np.float32)


def values(*shape):
    return rng.normal(size=shape).astype(np.float32)


def test_it_runs_eagerly_and_in_programs():
    x = values(3, 4)

    def f(x):
        return plait.host_call(lambda x: np.sort(x, axis=0), f32(3, 4), x) * 2

    expected = np.sort(x, axis=0) * 2
    assert np.array_equal(f(x), expected)
    assert np.array_equal(plait.jit(f)(x), expected)
    assert np.array_equal(plait.jit(lambda x: plait.jit(f)(x))(x), expected)


def test_arguments_and_results_are_trees():
    def fn(tree, text, k=None):
        assert text == "text" and k is None
        return {"sum": tree["a"] + tree["b"], "pair": (tree["a"], None)}

    types = {"sum": f32(2), "pair": (f32(2), None)}
    a, b = values(2), values(2)
    result = plait.jit(lambda a, b: plait.host_call(fn, types, {"a": a, "b": b}, "text"))(a, b)
    assert np.array_equal(result["sum"], a + b)
    assert np.array_equal(result["pair"][0], a) and result["pair"][1] is None


def test_arrays_are_read_only_and_may_be_kept():
    kept = []

    def fn(x):
        assert isinstance(x, np.ndarray)
        with pytest.raises(ValueError):
            x[0] = 1
        kept.append(x)
        return x

    f = plait.jit(lambda x: plait.host_call(fn, f32(3), x + 1) * 2)
    first, second = values(3), values(3)
    f(first), f(second)
    assert np.array_equal(kept[0], first + 1) and np.array_equal(kept[1], second + 1)


def test_pure_ones_are_dropped_and_ordered_ones_are_not():
    calls = []

    def fn(x):
        calls.append(1)
        return x

    def f(x, ordered):
        plait.host_call(fn, x, x, ordered=ordered)
        return x

    x = pnp.arange(3.0)
    plait.jit(lambda x: f(x, False))(x)
    assert calls == []
    plait.jit(lambda x: f(x, True))(x)
    assert calls == [1]


def test_effects_keep_the_order_of_the_program():
    seen = []

    @plait.jit
    def f(x):
        for name in range(5):
            debug.callback(lambda value, name=name: seen.append(name), x + name)
            plait.host_call(lambda x, name=name: (seen.append(10 + name), x)[1], x, x, ordered=True)
        return x

    f(pnp.asarray(1.0))
    assert seen == [0, 10, 1, 11, 2, 12, 3, 13, 4, 14]
    # The same call twice is made twice.
    twice = plait.jit(lambda x: [debug.callback(seen.append, x) for _ in range(2)])
    seen.clear()
    twice(pnp.asarray(1.0))
    assert len(seen) == 2


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("jit", [False, True])
def test_vmap_is_a_loop_over_examples(batched, jit):
    def fn(x, w):
        return (x * w).sum(-1), np.cumsum(x, -1)

    def f(x, w):
        return plait.host_call(fn, (f32(), f32(4)), x, w, batched=batched)

    x, w = values(5, 3, 4), values(5, 4)
    mapped = plait.vmap(plait.vmap(f, in_axes=(0, None)), in_axes=(1, 0), out_axes=1)
    mapped = plait.jit(mapped) if jit else mapped
    sums, sorted_ = mapped(x.transpose(1, 0, 2), w)
    for i in range(5):
        for j in range(3):
            expected = fn(x[i, j], w[i])
            assert np.allclose(sums[j, i], expected[0])
            assert np.allclose(sorted_[j, i], expected[1])


def test_batched_is_called_once():
    shapes = []

    def fn(x):
        shapes.append(x.shape)
        return x

    f = plait.vmap(plait.vmap(lambda x: plait.host_call(fn, x, x, batched=True)))
    f(values(4, 3, 2))
    assert shapes == [(4, 3, 2)]


def test_mask_gives_real_elements():
    shapes = []

    def fn(x):
        shapes.append(x.shape)
        return np.cumsum(x, dtype=np.float32)

    m = plait.mask(lambda x: plait.host_call(fn, x, x) + 1, "n")
    x = values(3, 6)
    padded = np.where(np.arange(6) < np.array([[2], [0], [6]]), x, np.nan)
    result = plait.vmap(m)(padded, n=pnp.asarray([2, 0, 6]))
    assert shapes == [(2,), (0,), (6,)]
    for row, length in enumerate((2, 0, 6)):
        assert np.allclose(result[row, :length], np.cumsum(x[row, :length]) + 1)
        assert np.all(result[row, length:] == 0)


def test_lanes_that_are_padding_do_not_run():
    seen = []

    def one(x):
        debug.callback(lambda x: seen.append(float(x)), x)
        return x

    m = plait.mask(plait.vmap(one), "n")
    m(pnp.arange(5.0), n=3)
    assert seen == [0, 1, 2]
    seen.clear()
    plait.vmap(m)(pnp.ones((2, 4)) * pnp.asarray([[1.0], [2.0]]), n=pnp.asarray([3, 1]))
    assert seen == [1, 1, 1, 2]


def test_it_has_no_derivative_of_its_own():
    def f(x):
        return pnp.sum(plait.host_call(np.sin, x, x))

    x = pnp.arange(3.0)
    with pytest.raises(plait.MissingRuleError, match="`sin` is a function of the host"):
        plait.grad(f)(x)
    # What needs none is no error.
    assert np.array_equal(plait.grad(lambda x: f(plait.stop_gradient(x)) + pnp.sum(x))(x), [1] * 3)

    def counted(x):
        count = plait.host_call(
            lambda x: np.int32((x > 0).sum()), plait.ShapeDtypeStruct((), np.int32), x
        )
        return pnp.sum(x) * count

    assert np.array_equal(plait.grad(counted)(x), [2, 2, 2])


def sine(x, **rules):
    return plait.host_call(np.sin, x, x, **rules)


def test_rules_give_derivatives():
    def jvp(primals, tangents):
        return sine(*primals, jvp=jvp), pnp.cos(primals[0]) * tangents[0]

    def fwd(x):
        return sine(x), x

    def bwd(x, ct):
        return (pnp.cos(x) * ct,)

    x = values(4)
    for rules in ({"jvp": jvp}, {"vjp": (fwd, bwd)}):

        def f(x):
            return pnp.sum(sine(x, **rules) ** 2)

        expected = 2 * np.sin(x) * np.cos(x)
        assert np.allclose(plait.grad(f)(x), expected, atol=1e-6)
        assert np.allclose(plait.jit(plait.grad(f))(x), expected, atol=1e-6)
        rows = plait.vmap(plait.grad(f))(np.stack([x, 2 * x]))
        assert np.allclose(rows[1], np.sin(4 * x), atol=1e-6)
    tangent = plait.jvp(lambda x: sine(x, jvp=jvp), (x,), (np.ones_like(x),))[1]
    assert np.allclose(tangent, np.cos(x), atol=1e-6)


@pytest.mark.parametrize("batched", [False, True])
def test_functions_made_of_plait_are_differentiated_on_the_host(batched):
    def fn(tree, n):
        return pnp.sum(pnp.sin(tree["x"]) * tree["x"] * n[..., None], -1)

    def f(x):
        n = pnp.asarray(3)
        return plait.host_call(fn, f32(), {"x": x}, n, vjp="plait", batched=batched)

    x = values(4)
    expected = 3 * (np.sin(x) + x * np.cos(x))
    assert np.allclose(plait.grad(f)(x), expected, atol=1e-5)
    assert np.allclose(plait.jit(plait.grad(f))(x), expected, atol=1e-5)
    rows = np.stack([x, -x, 2 * x])
    expected = 3 * (np.sin(rows) + rows * np.cos(rows))
    assert np.allclose(plait.vmap(plait.grad(f))(rows), expected, atol=1e-5)
    second = plait.jacrev(plait.grad(f))(x)
    assert np.allclose(second, np.diag(3 * (2 * np.cos(x) - x * np.sin(x))), atol=1e-5)


@pytest.mark.parametrize("policy", [None, plait.checkpoint_policies.everything_saveable])
def test_effects_fire_once_where_results_are_computed_again(policy):
    seen = []

    @plait.jit
    def inner(x):
        debug.callback(lambda x: seen.append("inner"), x)
        return pnp.sin(x)

    @plait.checkpoint(policy=policy)
    def f(x):
        y = inner(x) * x
        debug.callback(lambda y: seen.append("f"), y)
        plait.check(y < 10, "too large")
        sign = plait.host_call(
            lambda y: (seen.append("sign"), np.int32(np.sign(y)))[1],
            plait.ShapeDtypeStruct((), np.int32), y, ordered=True,
        )  # fmt: skip
        return pnp.sum(pnp.cos(y) * sign)

    x = np.float32(0.5)
    expected = -np.sin(np.sin(x) * x) * (np.cos(x) * x + np.sin(x))
    for gradient in (plait.grad(f), plait.jit(plait.grad(f))):
        seen.clear()
        assert np.isclose(gradient(x), expected)
        assert seen == ["inner", "f", "sign"]


def test_effects_on_tangents_are_no_part_of_reverse_mode():
    seen = []

    @plait.custom_jvp
    def f(x):
        return pnp.sin(x)

    def rule(primals, tangents):
        debug.callback(seen.append, tangents[0])
        return pnp.sin(primals[0]), pnp.cos(primals[0]) * tangents[0]

    f.defjvp(rule)
    x = pnp.asarray(1.0)
    plait.jvp(f, (x,), (x,))
    assert len(seen) == 1
    for gradient in (plait.grad(f), plait.jit(plait.grad(f)), plait.grad(plait.jit(f))):
        with pytest.raises(plait.MissingRuleError, match="acts on tangents"):
            gradient(x)


def test_what_it_raises_is_the_cause():
    def fails(x):
        raise ZeroDivisionError("from the island")

    for run in (lambda f: f, plait.jit, plait.vmap):
        with pytest.raises(plait.HostError, match="`fails` raised ZeroDivisionError") as caught:
            run(lambda x: plait.host_call(fails, x, x) + 1)(pnp.arange(3.0))
        cause = caught.value.__cause__
        assert isinstance(cause, ZeroDivisionError)
        frames = []
        trace = cause.__traceback__
        while trace:
            frames.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        assert frames[-1] == "fails"
    # Programs run as before afterwards.
    assert plait.jit(lambda x: x + 1)(1.0) == 2


def test_the_message_names_the_line_of_the_call():
    def fails(x):
        raise KeyError("k")

    @plait.jit
    def f(x):
        y = plait.host_call(fails, x, x)  # the line
        return y + 1

    with pytest.raises(plait.HostError, match="# the line"):
        f(pnp.arange(2.0))


def test_interrupts_pass_unchanged():
    def stops(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plait.jit(lambda x: plait.host_call(stops, x, x))(pnp.arange(2.0))


def test_results_must_be_those_promised():
    x = pnp.arange(3.0)
    with pytest.raises(plait.ShapeError, match=r"f32\[2\], and f32\[3\] is promised"):
        plait.host_call(lambda x: x[:2], x, x)
    with pytest.raises(plait.DtypeError, match=r"f64\[3\], and f32\[3\] is promised"):
        plait.host_call(lambda x: x.astype(np.float64), x, x)
    with pytest.raises(plait.TreeError, match="out_types is"):
        plait.host_call(lambda x: (x, x), x, x)
    with pytest.raises(plait.DtypeError):
        plait.host_call(lambda x: "text", x, x)
    with pytest.raises(plait.DtypeError):
        plait.host_call("no function", x, x)
    with pytest.raises(plait.ValueError):
        plait.host_call(lambda x: x, x, x, vjp="fast")
    with pytest.raises(plait.ValueError):
        plait.host_call(lambda x: x, x, x, vjp="plait", jvp=lambda p, t: (p, t))
    # Python's numbers take the promised dtype.
    assert plait.host_call(lambda x: 2.5, f32(), x).dtype == np.float32


def test_plait_may_be_called_inside_from_any_thread():
    inner = plait.jit(lambda x: pnp.sum(x @ x))
    big = values(300, 300)

    def fn(x):
        results = []
        threads = [
            threading.Thread(target=lambda: results.append(float(inner(x)))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(results)) == 1
        return np.float32(plait.grad(lambda x: pnp.sum(x * x))(x)[0, 0])

    f = plait.jit(lambda x: plait.host_call(fn, f32(), x @ x) + 1)
    expected = float((big @ big)[0, 0]) * 2 + 1
    results = []

    def run():
        for _ in range(3):
            results.append(float(f(big)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 9
    assert np.allclose(results, expected, rtol=1e-3)


def test_explain_lists_islands():
    def island(x):
        return x

    @plait.jit
    def f(x):
        return plait.host_call(island, x, x) + 1

    text = str(plait.explain(f, pnp.arange(3.0)))
    assert "host call: `island`, test_host_call.py" in text


def test_a_context_may_forbid_them():
    x = pnp.arange(3.0)
    f = plait.jit(lambda x: plait.host_call(np.sort, x, x))
    f(x)
    with plait.no_host_calls("a strict save"):
        with pytest.raises(plait.ValueError, match="`sort`.* a strict save allows none"):
            plait.make_jaxpr(lambda x: plait.host_call(np.sort, x, x))(x)
        with pytest.raises(plait.ValueError, match="a strict save allows none"):
            f(x)
    assert np.array_equal(f(x), np.arange(3.0))


def test_a_program_that_was_dropped_frees_the_function():
    import gc
    import weakref

    class Function:
        def __call__(self, x):
            return x

    function = Function()
    reference = weakref.ref(function)
    f = plait.jit(lambda x, fn=function: plait.host_call(fn, x, x))
    f(pnp.arange(2.0))
    del f, function
    gc.collect()
    assert reference() is None
