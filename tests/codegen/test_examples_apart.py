"""vmap of loops and branches that end, or go, differently for each example: one after the other.

What is right is a loop over single calls, and in NumPy; the work is counted as debug.lane_work says.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import debug, lax

random = np.random.default_rng(5)


def numbers(*shape):
    return random.standard_normal(shape)


def lengths(*shape):
    return random.integers(0, 12, shape)


def doubled(x, n):
    """An array carried, changed in place."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + s[0]), (0, x))


def swept(x, n):
    """An array made anew at every step, in memories that change places."""

    def step(s):
        i, x = s
        return i + 1, jnp.concatenate([x[1:] + x[:-1], x[:1]]) * 0.5

    return lax.while_loop(lambda s: s[0] < n, step, (0, x))[1]


def traded(x, y, n):
    """Two arrays that change places, beside a small one."""

    def step(s):
        i, x, y, z = s
        return i + 1, y, x, z + x[:3]

    return lax.while_loop(lambda s: s[0] < n, step, (0, x, y, x[:3]))


def from_one(shared, n):
    """All begin with what they share, and read it at every step."""

    def step(s):
        i, x = s
        return i + 1, x.at[i % x.size].add(shared[(i + 1) % x.size])

    return lax.while_loop(lambda s: s[0] < n, step, (0, shared))[1]


def sorted_by_insertion(x):
    """A loop of loops: how far each goes is its own."""

    def place(i, x):
        def go(s):
            j, x = s
            return (j > 0) & (x[jnp.maximum(j - 1, 0)] > x[j])

        def swap(s):
            j, x = s
            return j - 1, x.at[j - 1].set(x[j]).at[j].set(x[j - 1])

        return lax.while_loop(go, swap, (i, x))[1]

    return lax.fori_loop(1, x.size, place, x)


def solved(a, b):
    """Products and sums, until they are small: conjugate gradients."""

    def step(s):
        x, r, p, rr, n = s
        ap = a @ p
        alpha = rr / (p @ ap)
        r = r - alpha * ap
        new = r @ r
        return x + alpha * p, r, r + new / rr * p, new, n + 1

    go = lambda s: (s[3] > 1e-12) & (s[4] < 50)  # noqa: E731
    return lax.while_loop(go, step, (jnp.zeros_like(b), b, b, b @ b, 0))[0]


def nested(x, n):
    """Loops and branches within a loop."""

    def step(s):
        i, x = s
        x = lax.cond(x[0] > 0, lambda x: swept(x, i), lambda x: jnp.cumsum(x) * 0.1 + 1, x)
        return i + 1, lax.while_loop(lambda x: jnp.max(x) > 2, lambda x: x / 3, x)

    return lax.while_loop(lambda s: s[0] < n, step, (0, x))[1]


def branched(x, k):
    """A branch with arrays, within a loop."""
    ways = [lambda x: jnp.sort(x), lambda x: x[::-1] * 2, lambda x: jnp.cumsum(x)]
    return lax.fori_loop(0, 5, lambda i, x: lax.switch((k + i) % 3, ways, x) * 0.7, x)


def turned(z, n):
    """Complex numbers."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * s[1] + 0.1j), (0, z))[1]


def divided(a, b):
    """Numbers alone, which lanes hold: the greatest common divisor."""
    return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]


def searched(shared, x):
    """Reads an array that all share where each one's numbers say; `x` and what it adds are few."""

    def step(s):
        low, high = s
        middle = (low + high) // 2
        below = lax.dynamic_slice(shared, (middle,), (1,))[0] < x[0]
        return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

    return lax.while_loop(lambda s: s[0] < s[1], step, (0, shared.size))[0] + x


def left(shared, n):
    """Those that have left the loop would read behind the array, and never leave the inner loop."""

    def step(s):
        n, x = s
        x = lax.while_loop(lambda x: x < 40, lambda x: x + n, x + shared[n - 1])
        return n - 1, x - 37

    return lax.while_loop(lambda s: s[0] > 0, step, (n, shared[0]))[1]


def folded(x):
    """Loops of numbers in a loop of numbers, of which some take no step."""

    def step(s):
        i, x = s
        x = lax.while_loop(lambda x: abs(x) > 1, lambda x: x * 0.6 - 0.1, x * 3)
        return i + 1, lax.fori_loop(0, 3, lambda j, x: x + jnp.sin(x) / (1 + i + j), x)

    return lax.while_loop(lambda s: s[0] < abs(x) * 5, step, (0, x))[1]


def folded_in_steps(x):
    return lax.scan(lambda c, i: (folded(c + i), c), x, jnp.arange(4.0))


def positive(size):
    a = numbers(size, size)
    return a @ a.T + size * np.eye(size)


CASES = {
    "doubled": (doubled, lambda: (numbers(20), lengths()), 0),
    "doubled-few": (doubled, lambda: (numbers(3), lengths()), 0),
    "doubled-long": (doubled, lambda: (numbers(3000), lengths()), 0),
    "doubled-in-one": (doubled, lambda: (numbers(20), np.int64(7)), (0, None)),
    "swept": (swept, lambda: (numbers(70), lengths()), 0),
    "swept-short": (swept, lambda: (numbers(11), lengths()), 0),
    "swept-matrix": (swept, lambda: (numbers(9, 10), lengths()), 0),
    "traded": (traded, lambda: (numbers(80), numbers(80), lengths()), 0),
    "traded-shared": (traded, lambda: (numbers(80), numbers(80), lengths()), (None, 0, 0)),
    "from-one": (from_one, lambda: (numbers(30), lengths()), (None, 0)),
    "sorted": (sorted_by_insertion, lambda: (numbers(30),), 0),
    "solved": (solved, lambda: (positive(24), numbers(24)), 0),
    "solved-shared": (solved, lambda: (positive(24), numbers(24)), (None, 0)),
    "solved-small": (solved, lambda: (positive(3), numbers(3)), 0),
    "nested": (nested, lambda: (numbers(12), lengths()), 0),
    "branched": (branched, lambda: (numbers(15), random.integers(0, 3)), 0),
    "divided": (divided, lambda: tuple(random.integers(1, 900, (2, 1))[:, 0]), 0),
    "searched": (searched, lambda: (np.sort(numbers(90)), numbers(2)), (None, 0)),
    "left": (left, lambda: (9 * numbers(12), lengths()), (None, 0)),
    "folded": (folded, lambda: (numbers(),), 0),
    "folded-in-steps": (folded_in_steps, lambda: (numbers(),), 0),
    "turned": (turned, lambda: (0.1 * numbers(13) + 0.1j * numbers(13), lengths()), 0),
}


def one_of(columns, axes, example):
    return [np.asarray(c[example]) if axis == 0 else c for c, axis in zip(columns, axes)]


@pytest.mark.parametrize("examples", [1, 5, 40])
@pytest.mark.parametrize("case", CASES)
def test_examples_are_as_they_are_alone(case, examples):
    program, inputs, axes = CASES[case]
    axes = axes if isinstance(axes, tuple) else (axes,) * len(inputs())
    first = inputs()
    columns = [
        np.stack([inputs()[k] for _ in range(examples)]) if axis == 0 else first[k]
        for k, axis in enumerate(axes)
    ]
    alone = plait.jit(program, wait=True)
    expected = [plait.tree.leaves(alone(*one_of(columns, axes, e))) for e in range(examples)]
    mapped = plait.vmap(program, in_axes=axes)
    with plait.disable_jit():
        together = plait.tree.leaves(mapped(*map(jnp.asarray, columns)))
    for wait in (False, True):
        f = plait.jit(mapped, wait=wait)
        for _ in range(2):
            for k, leaf in enumerate(plait.tree.leaves(f(*map(jnp.asarray, columns)))):
                np.testing.assert_array_equal(np.asarray(leaf), np.asarray(together[k]))
                each = np.stack([np.asarray(one[k]) for one in expected])
                np.testing.assert_allclose(np.asarray(leaf), each, rtol=1e-9, atol=1e-12)


def test_operands_stay_as_they_are():
    f = plait.jit(plait.vmap(doubled), wait=True)
    x, n = jnp.asarray(numbers(9, 20)), jnp.asarray(lengths(9))
    before = np.array(x)
    first = np.array(f(x, n)[1])
    np.testing.assert_array_equal(np.asarray(x), before)
    np.testing.assert_array_equal(np.asarray(f(x, n)[1]), first)


def work_of(f, *operands):
    before = debug.lane_work()
    f(*operands)
    after = debug.lane_work()
    return after.live - before.live, after.all - before.all


@pytest.mark.parametrize("examples", [9, 700])
def test_the_work_is_that_of_the_examples(examples):
    x, n = jnp.asarray(numbers(examples, 20)), lengths(examples)
    f = plait.jit(plait.vmap(swept), wait=True)
    for _ in range(3):
        live, everything = work_of(f, x, jnp.asarray(n))
        assert live == n.sum() and live <= everything <= 2 * live


def test_the_work_of_loops_in_loops_is_counted():
    """In NumPy: how often bodies run."""

    def inner(x):
        return lax.while_loop(lambda x: jnp.max(x) > 1, lambda x: x / 3, x)

    def program(x, n):
        step = lambda s: (s[0] + 1, inner(s[1] + s[0]))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < n, step, (0, x))[1]

    x, n = numbers(12, 20), lengths(12)
    taken, results = 0, []
    for one, count in zip(x, n):
        for i in range(count):
            taken, one = taken + 1, one + i
            while one.max() > 1:
                taken, one = taken + 1, one / 3
        results.append(one)
    f = plait.jit(plait.vmap(program), wait=True)
    for _ in range(3):
        live, everything = work_of(f, jnp.asarray(x), jnp.asarray(n))
        assert live == taken and live <= everything <= 2 * live
    np.testing.assert_array_equal(np.asarray(f(x, n)), results)


@pytest.mark.parametrize("run", [plait.vmap, lambda f: plait.jit(plait.vmap(f), wait=True)])
def test_the_first_step_that_fails_raises_whichever_example_it_is(run):
    def program(x, n, by):
        step = lambda s: (s[0] + 1, s[1].at[by * s[0]].add(1.0))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < n, step, (0, x))[1]

    f = run(program)
    x, n, by = numbers(30, 20), np.full(30, 5), np.ones(30, int)
    expected = x + (np.arange(20) < 5)
    np.testing.assert_array_equal(np.asarray(f(x, n, by)), expected)
    by[[3, 11, 12]] = 6, 11, 13  # 24 in the fifth step, 22 and 26 in the third
    for _ in range(4):
        with pytest.raises(plait.IndexError, match="index 22 is out of bounds for axis 1"):
            f(x, n, by)
    np.testing.assert_array_equal(np.asarray(f(x, n, np.ones(30, int))), expected)


@pytest.mark.parametrize("run", [plait.vmap, lambda f: plait.jit(plait.vmap(f), wait=True)])
def test_what_fails_in_lanes_is_the_first_step(run):
    shared = jnp.asarray(numbers(20))

    def program(n, by):
        step = lambda s: (s[0] + 1, s[1] + shared[by * s[0]])  # noqa: E731
        return lax.while_loop(lambda s: s[0] < n, step, (0, 0.0))[1]

    f = run(program)
    n, by = random.integers(1, 6, 30), np.ones(30, int)
    expected = [np.asarray(shared)[:k].sum() for k in n]
    np.testing.assert_allclose(np.asarray(f(n, by)), expected, rtol=1e-12)
    n[:] = 5
    by[[3, 11, 12]] = 6, 11, 13  # 24 in the fifth step, 22 and 26 in the third
    for _ in range(4):
        with pytest.raises(plait.IndexError, match="index 22 is out of bounds for axis 0"):
            f(n, by)


def test_a_loop_changes_to_generated_code_within_a_call():
    """Of examples that end at different steps; with a bound, which holds for all of its steps."""

    def program(n, most):
        def step(s):
            i, x = s
            return i + 1, jnp.sin(x) + jnp.sum(x) * 0.01

        end = lax.while_loop(lambda s: s[0] < n, step, (0, jnp.ones(20)), max_steps=most)
        return end[1].sum(), end[0]

    n = np.array([7, 3000, 2999, 0, 40])
    alone = [plait.jit(program, static_argnums=1, wait=True)(k, None) for k in n]
    for most in (None, 3000):
        f = plait.jit(plait.vmap(lambda n, most=most: program(n, most)))
        sums, steps = f(n)
        np.testing.assert_array_equal(np.asarray(sums), [np.asarray(s) for s, _ in alone])
        np.testing.assert_array_equal(np.asarray(steps), n)
    f = plait.jit(plait.vmap(lambda n: program(n, 2999)))
    for _ in range(2):
        with pytest.raises(plait.ValueError, match="still holds after max_steps = 2999 steps"):
            f(n)


@pytest.mark.parametrize("run", [plait.vmap, lambda f: plait.jit(plait.vmap(f), wait=True)])
def test_a_loop_without_an_end_is_an_error(run):
    def program(x, n):
        step = lambda s: (s[0] + 1, s[1] * 0.5)  # noqa: E731
        return lax.while_loop(lambda s: s[0] != n, step, (0, x), max_steps=9)[1]

    f, x = run(program), numbers(10, 20)
    n = np.arange(10) % 9 + 1
    np.testing.assert_array_equal(np.asarray(f(x, n)), x * 0.5 ** n[:, None])
    for _ in range(3):
        with pytest.raises(plait.ValueError, match="still holds after max_steps = 9 steps"):
            f(x, n + 3)
