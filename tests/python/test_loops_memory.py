"""What loops keep for reverse mode, and how they are unrolled: against Python's own loops and finite differences.

Memory is read off programs: what one part of a derivative hands to the other.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import lax

pytestmark = pytest.mark.isa

XS = np.linspace(-1, 1, 10)
STEP = 1e-6


def numeric(f, *args):
    """The gradient of f by each of its arguments, scalars or vectors, by central differences."""
    gradients = []
    for i, arg in enumerate(args):
        gradient = np.zeros_like(np.asarray(arg, dtype=np.float64))
        for index in np.ndindex(gradient.shape):
            around = []
            for step in (STEP, -STEP):
                moved = np.array(arg, dtype=np.float64)
                moved[index] += step
                around.append(f(*args[:i], moved, *args[i + 1 :]))
            gradient[index] = (around[0] - around[1]) / (2 * STEP)
        gradients.append(gradient)
    return gradients


def recurrence(c, w, xs, **options):
    last, ys = lax.scan(lambda c, x: (pnp.sin(c * w) + x, c * x), c, xs, **options)
    return last + (ys * pnp.arange(1.0, len(XS) + 1)).sum()


def plain_recurrence(reverse):
    def f(c, w, xs):
        total = 0.0
        for i in range(len(xs))[:: -1 if reverse else 1]:
            total += c * xs[i] * (i + 1)
            c = np.sin(c * w) + xs[i]
        return c + total

    return f


def check_recurrence(reverse, **options):
    args = (np.float64(0.4), np.float64(1.3), XS)
    expected = plain_recurrence(reverse)

    def f(c, w, xs):
        return recurrence(c, w, xs, reverse=reverse, **options)

    for g in (f, plait.jit(f)):
        np.testing.assert_allclose(g(*args), expected(*args), rtol=1e-12)
        for mine, other in zip(plait.grad(g, (0, 1, 2))(*args), numeric(expected, *args)):
            np.testing.assert_allclose(mine, other, rtol=1e-6)
    many = np.array([0.4, -0.7, 1.1])
    mapped = plait.vmap(plait.grad(f), in_axes=(0, None, None))(many, 1.3, XS)
    np.testing.assert_allclose(mapped, [numeric(expected, c, 1.3, XS)[0] for c in many], rtol=1e-6)
    second = plait.grad(plait.grad(f))(*args)
    around = [plait.grad(f)(args[0] + step, *args[1:]) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(second, (around[0] - around[1]) / 2e-5, rtol=1e-5)


def equations(f, *args):
    return plait.make_jaxpr(f)(*args).eqns


def loops(f, *args, kind="scan"):
    return [equation for equation in equations(f, *args) if equation.primitive == kind]


def kept_sizes(loop):
    """How many elements the results of a loop have, each."""
    return [int(np.prod(aval.shape, dtype=int)) for aval in loop.out_avals]


# --- Unrolled loops ----------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 10, 17, 0, False, True])
def test_unrolled_scans_are_equal(unroll, reverse):
    check_recurrence(reverse, unroll=unroll)


def test_unroll_puts_steps_into_the_body():
    def f(unroll):
        return lambda c, xs: recurrence(c, 1.3, xs, unroll=unroll)

    def sines(jaxpr):
        return [equation.primitive for equation in jaxpr.eqns].count("sin")

    for unroll, inside, behind in ((1, 1, 0), (3, 3, 1), (5, 5, 0), (False, 1, 0)):
        jaxpr = plait.make_jaxpr(f(unroll))(0.4, XS)
        (loop,) = [e for e in jaxpr.eqns if e.primitive == "scan"]
        assert sines(loop.params["body"]) == inside and sines(jaxpr) == behind
        assert loop.params["length"] == 10 // inside
    for unroll in (True, 0, 10, 99):
        jaxpr = plait.make_jaxpr(f(unroll))(0.4, XS)
        assert sines(jaxpr) == 10 and not loops(f(unroll), 0.4, XS)


def test_unrolled_scans_keep_trees_and_dtypes():
    def step(carry, x):
        return {"n": carry["n"] + 1, "any": carry["any"] | (x > 0.5)}, {"positive": x > 0}

    start = {"n": np.int32(0), "any": np.bool_(False)}
    expected = lax.scan(step, start, XS)
    for unroll in (4, True):
        last, ys = lax.scan(step, start, XS, unroll=unroll)
        assert last["n"].dtype == np.int32 and int(last["n"]) == 10 and bool(last["any"])
        np.testing.assert_array_equal(ys["positive"], XS > 0)
        assert ys["positive"].dtype == expected[1]["positive"].dtype
    last, ys = lax.scan(lambda c, x: (c, 2), 0.0, XS, unroll=4)
    assert ys.dtype == lax.scan(lambda c, x: (c, 2), 0.0, XS)[1].dtype
    assert float(lax.scan(lambda c, x: (c + x, c), 1.0, np.zeros(0), unroll=3)[0]) == 1
    assert float(lax.scan(lambda c, _: (c * 2, None), 1.0, length=7, unroll=2)[0]) == 128


def test_a_length_with_a_name_is_not_unrolled():
    def total(x):
        return lax.scan(lambda c, v: (c + v, None), 0.0, x, unroll=4)[0]

    padded = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    f = plait.vmap(lambda x, n: plait.mask(total, "n")(x, n=n))
    np.testing.assert_allclose(f(padded, np.array([2, 3])), [3, 12])


def test_fori_loop_unrolls():
    def power(x, unroll=None):
        return lax.fori_loop(1, 6, lambda i, y: y * x + i, 1.0 + 0 * x, unroll=unroll)

    def plain(x):
        y = 1.0
        for i in range(1, 6):
            y = y * x + i
        return y

    for unroll in (None, 1, 2, 5, True, False):
        np.testing.assert_allclose(power(1.1, unroll), plain(1.1))
        np.testing.assert_allclose(
            plait.grad(power)(np.float64(1.1), unroll), numeric(plain, 1.1)[0], rtol=1e-7
        )
    assert not loops(lambda x: power(x, True), 1.1)


# --- Checkpoints of scan -----------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("checkpoints", [1, 2, 3, 4, 10, 99])
def test_checkpointed_scans_are_equal(checkpoints, reverse):
    check_recurrence(reverse, checkpoints=checkpoints)


def test_checkpoints_compose_with_unroll():
    check_recurrence(False, checkpoints=3, unroll=2)


def test_a_checkpointed_scan_keeps_so_many_carries():
    n, width, k = 60, 7, 6
    xs = np.linspace(0, 1, n)

    def f(**options):
        def g(c):
            step = lambda c, x: (pnp.sin(pnp.tanh(c) * x), None)  # noqa: E731
            return lax.scan(step, c, xs, **options)[0].sum()

        return plait.grad(g)

    everything, _ = loops(f(), np.ones(width))
    assert sum(kept_sizes(everything)) >= 2 * n * width
    forward, _ = loops(f(checkpoints=k), np.ones(width))
    assert sum(kept_sizes(forward)) == width + k * width  # the last carry, and k kept ones


def test_checkpoint_of_the_body_keeps_carries_alone():
    n, width = 20, 3
    w, xs = np.full((width, width), 0.3), np.ones((n, width))

    @plait.checkpoint
    def step(c, x, w):
        return pnp.tanh(pnp.sin(c @ w) + x), None

    def loss(w, xs):
        return lax.scan(lambda c, x: step(c, x, w), np.zeros(width), xs)[0].sum()

    forward, backward = loops(plait.grad(loss), w, xs)
    assert kept_sizes(forward) == [width, n * width]

    def plain(w):
        c = np.zeros(width)
        for x in xs:
            c = np.tanh(np.sin(c @ w) + x)
        return c.sum()

    np.testing.assert_allclose(plait.grad(loss)(w, xs), numeric(plain, w)[0], rtol=1e-6)


def test_what_all_steps_share_is_kept_once():
    n, width = 20, 3
    w, xs = np.full((width, width), 0.3), np.ones((n, width))

    def rnn(w, xs):
        step = lambda c, x: (pnp.tanh(c @ pnp.cos(w) + x), None)  # noqa: E731
        return lax.scan(step, np.zeros(width), xs)[0].sum()

    def counted(w, xs):
        def step(s):
            return s[0] + 1, pnp.tanh(s[1] @ pnp.cos(w) + xs[0])

        return lax.while_loop(lambda s: s[0] < n, step, (0, np.zeros(width)))[1].sum()

    forward, backward = loops(plait.grad(rnn), w, xs)
    assert kept_sizes(forward) == [width, n * width, n * width]  # c, and 1 - tanh^2
    (loop,) = loops(plait.grad(counted), w, xs, kind="while")
    stacks = [str(aval) for aval in loop.out_avals if "stack" in str(aval)]
    assert stacks == ["stack[bool[]]", "stack[f64[3]]", "stack[f64[3]]"]

    def plain(w):
        c = np.zeros(width)
        for x in xs:
            c = np.tanh(c @ np.cos(w) + x)
        return c.sum()

    for f in (rnn, counted, plait.jit(rnn)):
        np.testing.assert_allclose(plait.grad(f)(w, xs), numeric(plain, w)[0], rtol=1e-6)


def test_the_transpose_of_a_loop_with_an_index_keeps_the_index_alone():
    w = np.random.default_rng(0).normal(size=(3, 3))

    def f(x):
        step = lambda i, s: s @ pnp.cos(w) * pnp.exp(1.0 * i)  # noqa: E731
        return lax.fori_loop(0, 4, step, x)

    def transposed(ct):
        return plait.linear_transpose(f, np.ones(3))(ct)[0]

    ct = np.arange(3.0)
    matrix = np.linalg.matrix_power(np.cos(w), 4) * np.exp(0 + 1 + 2 + 3)
    np.testing.assert_allclose(transposed(ct), matrix @ ct, rtol=1e-6)
    np.testing.assert_allclose(plait.jit(transposed)(ct), matrix @ ct, rtol=1e-6)
    known, _ = loops(transposed, ct)
    assert kept_sizes(known) == [1, 4]  # the index after the loop, and what depends on it


# --- Checkpoints of while_loop -----------------------------------------------------------------


def iterated(x, w, n, **options):
    def step(s):
        return {"y": pnp.sin(s["y"] * w) + 0.3, "i": s["i"] + 1}

    start = {"y": x, "i": np.int32(0)}
    return lax.while_loop(lambda s: s["i"] < n, step, start, **options)["y"]


def plain_iterated(n):
    def f(x, w):
        for _ in range(n):
            x = np.sin(x * w) + 0.3
        return x

    return f


def newton(a, **options):
    return lax.while_loop(
        lambda x: pnp.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0 + 0.0 * a, **options
    )


@pytest.mark.parametrize("checkpoints", [1, 2, 3, 4, 7, 50])
def test_checkpointed_while_loops_are_equal(checkpoints):
    x, w = np.float64(0.9), np.float64(1.1)

    @plait.jit
    def both(x, w, n):
        f = lambda x, w: iterated(x, w, n, checkpoints=checkpoints)  # noqa: E731
        return f(x, w), plait.grad(f, (0, 1))(x, w), plait.jvp(f, (x, w), (1.0, 0.0))[1]

    for n in (0, 1, 2, 3, 4, 9, 16, 33):
        expected = plain_iterated(n)
        gradients = numeric(expected, x, w)
        value, mine, pushed = both(x, w, n)
        np.testing.assert_allclose(value, expected(x, w), rtol=1e-12)
        np.testing.assert_allclose(mine, gradients, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(pushed, gradients[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("checkpoints", [1, 4])
def test_checkpointed_while_loops_compose(checkpoints):
    def f(a):
        return newton(a, checkpoints=checkpoints)

    a = np.float64(2.7)
    for hessian in (
        plait.grad(plait.grad(f)),
        plait.jacfwd(plait.grad(f)),
        plait.jacrev(plait.jacfwd(f)),
        plait.jit(plait.grad(plait.checkpoint(plait.grad(f)))),
    ):
        np.testing.assert_allclose(hessian(a), -0.25 * a**-1.5, rtol=1e-6)
    many = np.array([0.5, 2.0, 1.5, 1e6, 9.0])
    for g in (
        plait.vmap(plait.grad(f)),
        plait.jit(plait.grad(lambda a: plait.vmap(f)(a).sum())),
    ):
        np.testing.assert_allclose(g(many), 0.5 / np.sqrt(many), rtol=1e-7)


def test_a_checkpointed_while_loop_keeps_so_many_carries_whatever_its_trip_count():
    width = 5

    def f(k):
        return lambda x, n: plait.grad(lambda x: iterated(x, 1.1, n, checkpoints=k).sum())(x)

    for k in (2, 8, 64):
        (forward,) = loops(f(k), np.ones(width), 1000, kind="while")
        assert not any("stack" in str(aval) for aval in forward.out_avals)
        # The last carry of y and i, the number of steps, lengths; k of each y, i and length.
        assert sum(kept_sizes(forward)) <= width + 1 + 2 + k * (width + 1 + 1)
        (backward,) = loops(f(k), np.ones(width), 1000)
        assert backward.params["length"] == k
    expected = numeric(plain_iterated(1000), 0.9, 1.1)[0]
    gradient = plait.jit(f(8))(np.full(width, 0.9), 1000)
    np.testing.assert_allclose(gradient, np.full(width, expected), rtol=1e-5, atol=1e-12)


def test_max_steps_of_a_checkpointed_while_loop():
    def gradient(n, max_steps):
        f = lambda x: iterated(x, 1.1, n, checkpoints=4, max_steps=max_steps)  # noqa: E731
        return plait.grad(f)(np.float64(0.9))

    expected = numeric(plain_iterated(9), 0.9, 1.1)[0]
    np.testing.assert_allclose(gradient(9, 9), expected, rtol=1e-6, atol=1e-9)
    with pytest.raises(plait.ValueError, match="still holds after max_steps = 8 steps"):
        gradient(9, 8)


# --- Effects -----------------------------------------------------------------------------------


def scanned(step, x):
    return lax.scan(lambda c, _: (step(c), None), x, length=3)[0]


def repeated(step, x, **options):
    return lax.while_loop(lambda s: s[1] < 3, lambda s: (step(s[0]), s[1] + 1), (x, 0), **options)[
        0
    ]


def chosen(step, x):
    for _ in range(3):
        x = lax.cond(x < 100, step, lambda x: x, x)
    return x


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    "loop",
    [
        lambda step, x: plait.checkpoint(lambda x: scanned(step, x))(x),
        lambda step, x: plait.checkpoint(lambda x: repeated(step, x))(x),
        lambda step, x: plait.checkpoint(lambda x: chosen(step, x))(x),
        lambda step, x: scanned(plait.checkpoint(step), x),
        lambda step, x: repeated(step, x, checkpoints=2),
        lambda step, x: lax.scan(lambda c, _: (step(c), None), x, length=3, checkpoints=2)[0],
    ],
)
def test_effects_fire_once_where_steps_are_computed_again(loop, jit):
    seen = []

    def step(x):
        plait.debug.callback(lambda x: seen.append(round(float(x), 6)), x)
        return x * 2 + pnp.sin(x)

    def plain(x):
        for _ in range(3):
            x = x * 2 + np.sin(x)
        return x

    f = plait.grad(lambda x: loop(step, x))
    x = np.float64(0.5)
    gradient = (plait.jit(f) if jit else f)(x)
    np.testing.assert_allclose(gradient, numeric(plain, x)[0], rtol=1e-7)
    values = [x]
    for _ in range(2):
        values.append(values[-1] * 2 + np.sin(values[-1]))
    assert seen == [round(float(v), 6) for v in values]


# --- What nobody needs -------------------------------------------------------------------------


def unused_y(step, look, x):
    return lax.scan(lambda c, _: (step(c), look(c)), x, length=3)[0]


def unused_carry(step, look, x):
    carry = lax.scan(lambda c, _: ((step(c[0]), c[1] + look(c[0])), None), (x, x), length=3)[0]
    return carry[0]


def unused_carry_of_while(step, look, x):
    body = lambda s: (s[0] + 1, step(s[1]), s[2] + look(s[1]))  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, body, (0, x, x))[1]


def unused_result_of_branches(step, look, x):
    for _ in range(3):
        x, _ = lax.cond(x < 100, lambda x: (step(x), look(x)), lambda x: (x, look(2 * x)), x)
    return x


def unused_in_nested_loops(step, look, x):
    def outer(c, _):
        inner = plait.jit(lambda c: lax.cond(c < 100, both, both, c))
        return inner(c)[0], None

    def both(c):
        return lax.scan(lambda c, _: (step(c), look(c)), c, length=1)

    return lax.scan(outer, x, length=3)[0]


@pytest.mark.parametrize(
    "loop",
    [
        unused_y,
        unused_carry,
        unused_carry_of_while,
        unused_result_of_branches,
        unused_in_nested_loops,
    ],
)
def test_compiled_loops_compute_nothing_unused(loop):
    calls = []

    def look(x):
        def fn(x):
            calls.append(1)
            return x

        return plait.host_call(fn, x, lax.stop_gradient(x))

    def f(x):
        return loop(lambda x: pnp.sin(x) * 2, look, x)

    def plain(x):
        for _ in range(3):
            x = np.sin(x) * 2
        return x

    x = np.float64(0.7)
    expected = numeric(plain, x)[0]
    np.testing.assert_allclose(plait.jit(f)(x), plain(x))
    np.testing.assert_allclose(plait.jit(plait.grad(f))(x), expected, rtol=1e-7)
    np.testing.assert_allclose(plait.grad(plait.jit(f))(x), expected, rtol=1e-7)
    np.testing.assert_allclose(plait.jit(plait.vmap(plait.grad(f)))(np.array([x, x])), expected)
    assert not calls


def test_residuals_of_unused_tangents_are_not_kept():
    """An auxiliary y that is no function of the carry for derivatives keeps nothing."""

    def f(x):
        def step(c, _):
            return pnp.sin(c), pnp.exp(pnp.tanh(c))

        def inner(c, _):
            last, ys = lax.scan(step, c, length=4)
            return last, lax.stop_gradient(ys)

        last, ys = lax.scan(inner, x, length=3)
        return last + ys.sum()

    forward, _ = loops(plait.grad(f), np.float64(0.3))
    assert kept_sizes(forward) == [1, 12, 12]  # the carry, the ys, cos of each step


@pytest.mark.parametrize("axes", [0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(4, 3, 5), (3, 1, 9), (2, 4, 1), (9, 2, 3)])
def test_reductions_in_loops_add_up_in_the_order_of_others(axes, shape):
    rng = np.random.default_rng(sum(shape))
    x, many = pnp.asarray(rng.normal(size=shape)), pnp.asarray(rng.normal(size=(6, *shape)))

    def f(x):
        def body(_, x):
            return pnp.sin(x) + pnp.sum(x, axes, keepdims=True)

        return lax.fori_loop(0, 3, body, x)

    for g, argument in ((f, x), (plait.vmap(f), many)):
        given, wanted = plait.jit(g, wait=True)(argument), g(argument)
        assert np.asarray(given).tobytes() == np.asarray(wanted).tobytes()


# --- Arrays that are updated in place ------------------------------------------------------------


def arena_of(f, *args):
    """The bytes that a compiled program needs beside its results."""
    text = str(plait.explain(f, *args))
    return int(text.split("arena: ")[1].split(" bytes")[0])


def test_fields_that_update_each_other_need_no_second_copies():
    """Each update is read several times, and written over the array that it updates."""

    def step(m, ex, ey, hz):
        ey = put(m, ey, np.s_[1:], ey[1:] - 0.5 * (hz[1:] - hz[:-1]))
        ex = put(m, ex, np.s_[:, 1:], ex[:, 1:] - 0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, put(m, hz, np.s_[:-1, :-1], hz[:-1, :-1] - 0.7 * curl)

    def put(m, x, index, values):
        if m is pnp:
            return x.at[index].set(values)
        x = x.copy()
        x[index] = values
        return x

    fields = [np.random.default_rng(i).standard_normal((20, 24)) for i in range(3)]

    def run(ex, ey, hz):
        return lax.fori_loop(0, 7, lambda _, s: step(pnp, *s), (ex, ey, hz))

    expected = fields
    for _ in range(7):
        expected = step(np, *expected)
    if "llvm" in str(plait.explain(run, *fields)):
        assert arena_of(run, *fields) < fields[0].nbytes
    for found, wanted in zip(plait.jit(run)(*fields), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_an_update_that_reads_its_neighbours_is_not_made_in_place():
    def step(m, x):
        new = 0.5 * (x[2:] + x[:-2]) + x[1:-1] * x[2:]
        if m is pnp:
            y = x.at[1:-1].set(new)
        else:
            y = x.copy()
            y[1:-1] = new
        return m.tanh(y + y[::-1] * 0.25)  # several reads, one of them reversed

    x = np.random.default_rng(4).standard_normal(50)
    expected = x
    for _ in range(5):
        expected = step(np, expected)
    found = plait.jit(lambda x: lax.fori_loop(0, 5, lambda _, x: step(pnp, x), x))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_repeated_number_that_a_kernel_reads_takes_no_memory():
    rows = np.random.default_rng(5).integers(0, 300, 50_000).astype(np.int32)

    def count(x, rows):
        return x.at[rows].add(1.0, mode="promise_in_bounds")

    x = np.linspace(-1, 1, 300)
    found = plait.jit(count)(x, rows)
    np.testing.assert_allclose(found, x + np.bincount(rows, minlength=300), rtol=1e-12)
    assert arena_of(count, x, rows) < 8 * rows.size
