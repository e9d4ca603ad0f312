"""vmap of control flow: each example goes its own way, and the work is that of those that need it.

What is right is a loop over examples in NumPy, or without vmap. Work is counted by debug.lane_work.
"""

import contextlib
import math
import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import debug, lax

RUNS = [lambda f: f, plait.jit]
RUN_NAMES = ["eager", "jit"]
both_runs = pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)


@contextlib.contextmanager
def counted():
    """A function that says what has been done since."""
    before = debug.lane_work()
    yield lambda: debug.LaneWork(*(a - b for a, b in zip(debug.lane_work(), before)))


def newton(a):
    """The square root, and how many steps it took."""

    def step(carry):
        x, n = carry
        return 0.5 * (x + a / x), n + 1

    return lax.while_loop(lambda c: abs(c[0] * c[0] - a) > 1e-10 * a, step, (a, 0))


def newton_in_python(a):
    x, n = a, 0
    while abs(x * x - a) > 1e-10 * a:
        x, n = 0.5 * (x + a / x), n + 1
    return x, n


VALUES = np.array([2.0, 1.0, 1e8, 3e-7, 9.0, 5e12, 1.0, 7.0, 4e3, 1e-12, 2e5])


@both_runs
def test_finished_examples_leave(run):
    roots, steps = run(plait.vmap(newton))(pnp.asarray(VALUES))
    expected = [newton_in_python(float(v)) for v in VALUES]
    np.testing.assert_array_equal(np.asarray(roots), [root for root, _ in expected])
    assert steps.tolist() == [n for _, n in expected]


def test_the_work_of_a_loop_is_that_of_the_live_examples():
    def count(n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + c[0]), (0, 0))[1]

    lengths = np.zeros(1000, np.int32)
    lengths[137] = 5000  # one goes on for long
    lengths[500:510] = 100
    f = plait.jit(plait.vmap(count))
    with counted() as work:
        assert f(pnp.asarray(lengths)).tolist() == [n * (n - 1) // 2 for n in lengths.tolist()]
    assert work().live == lengths.sum()
    assert work().all <= 2 * lengths.sum()  # all together would be 1000 * 5000


def test_the_work_of_the_derivative_is_that_of_the_live_examples():
    def f(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, pnp.sin(c[1])), (0, x))[1]

    lengths = np.zeros(256, np.int32)
    lengths[[3, 200]] = [400, 150]
    xs = np.linspace(0.1, 1, 256)
    derivative = plait.jit(plait.vmap(plait.grad(f)))
    with counted() as work:
        found = np.asarray(derivative(pnp.asarray(xs), pnp.asarray(lengths)))
    assert work().live == 2 * lengths.sum()  # forwards and backwards
    assert work().all <= 2 * work().live
    expected = np.ones(256)
    for i, n in enumerate(lengths):
        x = xs[i]
        for _ in range(n):
            expected[i] *= math.cos(x)
            x = math.sin(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@both_runs
def test_branches_run_on_those_that_take_them(run):
    weights = pnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 4)))

    def f(i, x):
        return lax.switch(i, [lambda x, w=w: pnp.tanh(w @ x) for w in weights], x)

    index = np.array([0, 2, 2, 1, 0, 2, 2, 2, 2, -5, 7])
    xs = np.random.default_rng(1).normal(size=(11, 4))
    with counted() as work:
        found = run(plait.vmap(f))(pnp.asarray(index), pnp.asarray(xs))
    expected = [np.tanh(np.asarray(weights[min(max(i, 0), 2)]) @ x) for i, x in zip(index, xs)]
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    assert work().live == 11 and work().all <= 22

    def loss(weights, x):
        f = plait.vmap(
            lambda i, x: lax.switch(i, [lambda x, w=w: pnp.tanh(w @ x) for w in weights], x)
        )
        return pnp.sum(f(pnp.asarray(index), x) ** 2)

    with counted() as work:
        plait.grad_check(loss, (weights, pnp.asarray(xs)))
    assert 0 < work().all <= 2 * work().live


@pytest.mark.parametrize("mode", [None, "partition", "select"])
@both_runs
def test_modes_agree(run, mode):
    def f(x, n):
        def step(c):
            i, x = c

            def shrink(x):
                return lax.while_loop(lambda x: x > 1, lambda x: x / 3, x, mode=mode)

            return i + 1, lax.cond(x > 1, shrink, lambda x: 2 * x + 0.1, x, mode=mode)

        return lax.while_loop(lambda c: c[0] < n, step, (0, x), max_steps=100, mode=mode)[1]

    def in_python(x, n):
        for _ in range(n):
            if x > 1:
                while x > 1:
                    x = x / 3
            else:
                x = 2 * x + 0.1
        return x

    xs, ns = np.linspace(0.05, 4, 24), np.arange(24) * 7 % 11
    each = plait.vmap(f)
    found = run(each)(pnp.asarray(xs), pnp.asarray(ns))
    np.testing.assert_allclose(
        np.asarray(found), [in_python(x, n) for x, n in zip(xs, ns)], rtol=1e-13
    )
    derivative = run(plait.vmap(plait.grad(f)))(pnp.asarray(xs), pnp.asarray(ns))
    alone = [float(plait.grad(f)(float(x), int(n))) for x, n in zip(xs, ns)]
    np.testing.assert_allclose(np.asarray(derivative), alone, rtol=1e-12)
    second = run(plait.vmap(plait.grad(plait.grad(lambda x, n: f(x, n) ** 3))))(
        pnp.asarray(xs), pnp.asarray(ns)
    )
    alone = [
        float(plait.grad(plait.grad(lambda x: f(x, int(n)) ** 3))(float(x))) for x, n in zip(xs, ns)
    ]
    np.testing.assert_allclose(np.asarray(second), alone, rtol=1e-11)


def test_select_is_not_counted_and_visible():
    f = plait.vmap(
        lambda x: lax.cond(x > 0, pnp.linalg.inv, lambda x: x, x[None, None], mode="select")
    )
    x = pnp.asarray([1.0, -2.0])
    assert "select=true" in str(plait.make_jaxpr(f)(x))
    with counted() as work:
        assert f(x).ravel().tolist() == [1, -2]
    assert work() == (0, 0)


def test_other_modes_are_errors():
    with pytest.raises(plait.ValueError, match="cond: mode is 'fast'"):
        lax.cond(True, pnp.sin, pnp.cos, 1.0, mode="fast")
    with pytest.raises(plait.ValueError, match="while_loop: mode is 3"):
        lax.while_loop(lambda x: x < 3, lambda x: x + 1, 1, mode=3)


@both_runs
@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (1, 0)])
def test_two_batches(run, axes):
    def f(x, n):
        """sum over i < n of x.sin() ** i"""
        c = lax.while_loop(
            lambda c: c[0] < n,
            lambda c: (c[0] + 1, c[1] + c[2], c[2] * pnp.sin(x)),
            (0, 0 * x, x**0),
        )
        return c[1]

    rng = np.random.default_rng(2)
    outer = plait.vmap(plait.vmap(f, in_axes=(None, 0)), in_axes=axes)
    x = rng.normal(size=(3, 5)) if axes[0] is not None else rng.normal(size=5)
    n = rng.integers(0, 9, (3, 4)) if axes[1] is not None else rng.integers(0, 9, 4)
    if axes[0] == 1:
        x = x.T

    def alone(x, n):
        return np.sum([np.sin(x) ** i for i in range(n)], axis=0) if n else 0 * x

    rows = []
    for i in range(3):
        xi = x if axes[0] is None else np.take(x, i, axes[0])
        ni = n if axes[1] is None else n[i]
        rows.append([alone(xi, int(k)) for k in ni])
    found = run(outer)(pnp.asarray(x), pnp.asarray(n))
    np.testing.assert_allclose(np.asarray(found), rows, rtol=1e-12)

    def total(x):
        return pnp.sum(outer(x, pnp.asarray(n)) ** 2)

    step, v = 1e-6, rng.normal(size=x.shape)
    numeric = (total(pnp.asarray(x + step * v)) - total(pnp.asarray(x - step * v))) / (2 * step)
    slope = np.sum(np.asarray(run(plait.grad(total))(pnp.asarray(x))) * v)
    np.testing.assert_allclose(slope, float(numeric), rtol=1e-6)


@both_runs
def test_loops_in_branches_in_loops_differentiate(run):
    def f(x, n, flip):
        def grow(x):
            return lax.while_loop(
                lambda c: c[1] < 4, lambda c: (c[0] * 1.3 + 0.1 * x, c[1] + c[0] ** 2), (x, 0.3)
            )[0]

        def step(i, x):
            return lax.cond((x > 1) ^ flip, lambda x: pnp.sin(x) / 2, grow, x)

        return lax.fori_loop(0, n, step, x)

    rng = np.random.default_rng(3)
    xs, ns, flips = rng.uniform(0.2, 2, 13), rng.integers(0, 6, 13), rng.integers(0, 2, 13) == 1
    each = run(plait.vmap(plait.value_and_grad(f)))(*map(pnp.asarray, (xs, ns, flips)))
    hessians = run(plait.vmap(plait.hessian(f)))(*map(pnp.asarray, (xs, ns, flips)))
    for i in range(13):
        args = pnp.asarray(xs[i]), int(ns[i]), bool(flips[i])
        value, slope = plait.value_and_grad(f)(*args)
        np.testing.assert_allclose(float(each[0][i]), float(value), rtol=1e-13)
        np.testing.assert_allclose(float(each[1][i]), float(slope), rtol=1e-12)
        np.testing.assert_allclose(float(hessians[i]), float(plait.hessian(f)(*args)), rtol=1e-10)


@both_runs
def test_no_example_and_one_example(run):
    f = run(plait.vmap(newton))
    roots, steps = f(pnp.zeros(0))
    assert roots.shape == (0,) and steps.shape == (0,)
    assert f(pnp.asarray(np.array([4.0])))[0].tolist() == [newton_in_python(4.0)[0]]
    g = run(plait.vmap(plait.grad(lambda x: newton(x)[0])))
    assert g(pnp.zeros(0)).shape == (0,)


@both_runs
def test_a_loop_that_does_not_end_for_one_is_an_error(run):
    def f(n):
        return lax.while_loop(lambda i: i != n, lambda i: i + 1, 0, max_steps=50)

    each = run(plait.vmap(f))
    assert each(pnp.asarray([3, 50, 0])).tolist() == [3, 50, 0]
    with pytest.raises(plait.ValueError, match="still holds after max_steps = 50 steps"):
        each(pnp.asarray([3, 51, 0]))
    assert each(pnp.asarray([7, 1])).tolist() == [7, 1]


@both_runs
def test_a_failed_check_names_the_example(run):
    def f(x, n):
        def step(c):
            plait.check(c[1] < 4, "too large: {}", c[1])
            return c[0] + 1, 2 * c[1]

        return lax.while_loop(lambda c: c[0] < n, step, (0, x))[1]

    xs, ns = pnp.asarray([1.0, 3.0, 0.1, 1.0, 0.2]), pnp.asarray([0, 0, 2, 4, 3])
    with pytest.raises(plait.ValueError, match="too large: 4.0; in example 3"):
        run(plait.vmap(f))(xs, ns)
    both = run(plait.vmap(plait.vmap(f), in_axes=(None, 0)))
    with pytest.raises(plait.ValueError, match=r"too large: 4.0; in example \(1, 3\)"):
        both(xs, pnp.stack([pnp.minimum(ns, 2), ns]))


def test_threads_run_one_program():
    f = plait.jit(plait.vmap(plait.grad(lambda x: newton(x)[0])))
    x = pnp.asarray(VALUES)
    expected, wrong = np.asarray(f(x)), []

    def work():
        for _ in range(50):
            if not np.array_equal(np.asarray(f(x)), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    slopes = np.where(VALUES == 1, 1, 0.5 / np.sqrt(VALUES))  # of 1 no step is taken
    np.testing.assert_allclose(expected, slopes, rtol=1e-4)
