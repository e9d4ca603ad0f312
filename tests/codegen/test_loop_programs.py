"""Loops over single numbers and elements of arrays, as one loop program: interpreted, and as generated code.

Each program stands beside the loop that NumPy and Python would run. What the cases are about is where values lie: what is
read after it was written over, what two names share, what a branch leaves as it is.
"""

import json
import os

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

fori, where = lax.fori_loop, jnp.where


def random(*shape):
    return np.random.default_rng(7).standard_normal(shape)


def integers(high, *shape):
    return np.random.default_rng(3).integers(0, high, shape).astype(np.int32)


CASES = {}


def case(*inputs):
    """Registers a pair: the program, and the same in NumPy, which may write to its arguments."""

    def register(pair):
        CASES[pair.__name__] = (pair(plait, jnp, lax), inputs)
        return pair

    return register


@case(random(17, 13), random(17, 13))
def neighbours(plait, jnp, lax):
    def program(u, f):
        n, m = u.shape

        def cell(j, s):
            i, u = s
            return i, u.at[i, j].set(
                0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
            )

        def row(i, u):
            return fori(1, m - 1, cell, (i, u))[1]

        return fori(0, 3, lambda t, u: fori(1, n - 1, row, u), u)

    def by_hand(u, f):
        for t in range(3):
            for i in range(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    u[i, j] = 0.25 * (
                        u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j]
                    )
        return u

    return program, by_hand


@case(integers(4, 19), integers(4, 23))
def alignment(plait, jnp, lax):
    def program(s, t):
        n, m = s.size, t.size

        def cell(k, h):
            i, j = k // m + 1, k % m + 1
            best = jnp.maximum(
                h[i - 1, j - 1] + where(s[i - 1] == t[j - 1], 2, -1),
                jnp.maximum(h[i - 1, j], h[i, j - 1]) - 1,
            )
            return h.at[i, j].set(jnp.maximum(best, 0))

        return fori(0, n * m, cell, jnp.zeros((n + 1, m + 1), jnp.int32))

    def by_hand(s, t):
        h = np.zeros((s.size + 1, t.size + 1), np.int32)
        for i in range(1, s.size + 1):
            for j in range(1, t.size + 1):
                best = h[i - 1, j - 1] + (2 if s[i - 1] == t[j - 1] else -1)
                h[i, j] = max(best, max(h[i - 1, j], h[i, j - 1]) - 1, 0)
        return h

    return program, by_hand


@case(
    np.array([0, 2, 2, 5, 9, 14, 14, 14, 20, 30], np.int32),
    integers(40, 30),
    random(30),
    random(40),
)
def sparse_rows(plait, jnp, lax):
    def program(row, col, val, x):
        def line(i, y):
            def add(k, s):
                return s + val[k] * x[col[k]]

            return y.at[i].set(fori(row[i], row[i + 1], add, jnp.zeros_like(val[0])))

        return fori(0, row.size - 1, line, jnp.zeros(row.size - 1, val.dtype))

    def by_hand(row, col, val, x):
        y = np.zeros(row.size - 1)
        for i in range(row.size - 1):
            for k in range(row[i], row[i + 1]):
                y[i] += val[k] * x[col[k]]
        return y

    return program, by_hand


@case(random(20))
def old_value_read_after_the_write(plait, jnp, lax):
    def program(x):
        def step(i, s):
            x, last = s
            old = x[i]
            x = x.at[i].set(old * 2 + last)
            return x, old + x[(i + 3) % 20]

        return fori(0, 20, step, (x, jnp.zeros_like(x[0])))

    def by_hand(x):
        last = 0.0
        for i in range(20):
            old = x[i]
            x[i] = old * 2 + last
            last = old + x[(i + 3) % 20]
        return x, last

    return program, by_hand


@case(random(12))
def constant_and_first_carry_at_once(plait, jnp, lax):
    def program(x):
        return fori(0, 12, lambda i, y: y.at[i].set(x[11 - i] + y[i]), x)

    def by_hand(x):
        return np.array([x[11 - i] + x[i] for i in range(12)])

    return program, by_hand


@case(random(12))
def one_first_value_for_two_carries(plait, jnp, lax):
    def program(x):
        return fori(
            0, 12, lambda i, s: (s[0].at[i].set(s[1][11 - i]), s[1].at[i].set(-s[0][i])), (x, x)
        )

    def by_hand(x):
        a, b = x.copy(), x.copy()
        for i in range(12):
            a[i], b[i] = b[11 - i], -a[i]
        return a, b

    return program, by_hand


@case(random(12), random(12))
def swapped_carries(plait, jnp, lax):
    def program(a, b):
        return fori(0, 7, lambda i, s: (s[1].at[i].set(s[0][i + 1]), s[0]), (a, b))

    def by_hand(a, b):
        for i in range(7):
            c = b.copy()
            c[i] = a[i + 1]
            a, b = c, a
        return a, b

    return program, by_hand


@case(random(10), random(10, 10))
def carry_that_no_step_changes(plait, jnp, lax):
    def program(x, w):
        def step(i, s):
            x, w = s
            inner = fori(
                0, 10, lambda j, t: (t[0] + t[1][i, j] * t[2][j], t[1], t[2]), (0.0 * x[0], w, x)
            )
            return x.at[i].set(inner[0]), w

        return fori(0, 10, step, (x, w))

    def by_hand(x, w):
        for i in range(10):
            total = 0.0 * x[0]
            for j in range(10):
                total = total + w[i, j] * x[j]
            x[i] = total
        return x, w

    return program, by_hand


@case(random(30))
def branch_that_returns_its_input(plait, jnp, lax):
    def program(x):
        def step(i, x):
            return lax.cond(
                x[i] > 0, lambda x: x.at[i].set(-x[i]).at[(i * 7) % 30].add(1.0), lambda x: x, x
            )

        return fori(0, 30, step, x)

    def by_hand(x):
        for i in range(30):
            if x[i] > 0:
                x[i] = -x[i]
                x[(i * 7) % 30] += 1.0
        return x

    return program, by_hand


@case(random(30), integers(3, 12))
def branches_with_other_memory(plait, jnp, lax):
    def program(x, which):
        def step(i, s):
            x, y = s
            z = lax.switch(
                which[i], [lambda x, y: x, lambda x, y: y, lambda x, y: x.at[i].set(y[i])], x, y
            )
            return z, y.at[2 * i].multiply(3.0)

        return fori(0, 12, step, (x, x[::-1]))

    def by_hand(x, which):
        y = x[::-1].copy()
        for i in range(12):
            z = x.copy() if which[i] == 0 else y.copy() if which[i] == 1 else x.copy()
            if which[i] == 2:
                z[i] = y[i]
            y[2 * i] *= 3.0
            x = z
        return x, y

    return program, by_hand


@case(random(40))
def windows_that_overlap(plait, jnp, lax):
    def program(x):
        def step(i, x):
            return lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i,), (15,)), (i + 1,))

        return fori(0, 30, step, x)

    def by_hand(x):
        for i in range(30):
            start = min(i, 25)
            x[min(i + 1, 25) :][:15] = x[start : start + 15].copy()
        return x

    return program, by_hand


@case(random(9, 11))
def window_read_after_the_write(plait, jnp, lax):
    def program(x):
        def step(i, s):
            x, rows = s
            row = lax.dynamic_slice(x, (i, 0), (1, 11))
            x = x.at[i, i].set(0.0)
            return x, lax.dynamic_update_slice(rows, row, (8 - i, 0))

        return fori(0, 9, step, (x, jnp.zeros_like(x)))

    def by_hand(x):
        rows = np.zeros_like(x)
        for i in range(9):
            rows[8 - i] = x[i]
            x[i, i] = 0.0
        return x, rows

    return program, by_hand


@case(random(9), random(25))
def carry_stacked_as_y(plait, jnp, lax):
    def program(x, steps):
        def step(s, v):
            x, i = s
            x = x.at[i % 9].add(v)
            return (x, i + 2), (x, x[i % 9])

        return lax.scan(step, (x, jnp.asarray(0, dtype=jnp.int32)), steps, reverse=True)

    def by_hand(x, steps):
        ys, zs, i = np.zeros((25, 9)), np.zeros(25), 0
        for k in reversed(range(25)):
            x[i % 9] += steps[k]
            ys[k], zs[k] = x, x[i % 9]
            i += 2
        return (x, np.int32(i)), (ys, zs)

    return program, by_hand


@case(integers(100, 50))
def loops_of_unknown_length(plait, jnp, lax):
    def program(x):
        def sift(i, x):  # insertion sort
            def goes_on(s):
                j, x = s
                return (j > 0) & (x[jnp.maximum(j - 1, 0)] > x[j])

            def swap(s):
                j, x = s
                a, b = x[j - 1], x[j]
                return j - 1, x.at[j].set(a).at[j - 1].set(b)

            return lax.while_loop(goes_on, swap, (i, x))[1]

        return fori(1, 50, sift, x)

    return program, np.sort


@case(random(6, 5))
def negative_and_clipped_indices(plait, jnp, lax):
    def program(x):
        def step(i, x):
            return x.at[-1 - i, i - 5].set(x.at[i * 3, 2].get(mode="clip") + 1)

        return fori(0, 5, step, x)

    def by_hand(x):
        for i in range(5):
            x[-1 - i, i - 5] = x[min(i * 3, 5), 2] + 1
        return x

    return program, by_hand


@case(np.arange(40) % 3 == 0, integers(40, 12))
def bools(plait, jnp, lax):
    def program(flags, at):
        return fori(0, 12, lambda i, f: f.at[at[i]].set(f[(at[i] + 1) % 40] ^ f[i]), flags)

    def by_hand(flags, at):
        for i in range(12):
            flags[at[i]] = flags[(at[i] + 1) % 40] ^ flags[i]
        return flags

    return program, by_hand


@case(random(30).astype(np.float16), integers(30, 40))
def half_floats(plait, jnp, lax):
    def program(x, at):
        return fori(0, 40, lambda i, x: x.at[at[i]].set(x[at[i]] * 1.5 + x[(at[i] + 1) % 30]), x)

    def by_hand(x, at):
        for i in at:
            x[i] = np.float16(np.float16(x[i] * np.float16(1.5)) + x[(i + 1) % 30])
        return x

    return program, by_hand


@case(random(20) + 1j * random(20))
def complex_numbers(plait, jnp, lax):
    def program(x):
        return fori(1, 20, lambda i, x: x.at[i].set(x[i] * x[i - 1].conj()), x)

    def by_hand(x):
        for i in range(1, 20):
            x[i] = x[i] * x[i - 1].conj()
        return x

    return program, by_hand


@case(random(12))
def loops_without_steps(plait, jnp, lax):
    def program(x):
        def step(i, x):
            return fori(i, 3, lambda j, x: x.at[j].add(x[i]), x)

        return fori(0, 6, step, x)

    def by_hand(x):
        for i in range(6):
            for j in range(i, 3):
                x[j] += x[i]
        return x

    return program, by_hand


def flat(tree):
    return [np.asarray(leaf) for leaf in plait.tree.leaves(tree)]


@pytest.mark.parametrize("wait", [False, True], ids=["interpreted", "generated"])
@pytest.mark.parametrize("name", CASES)
def test_is_what_numpy_gives(name, wait):
    (program, by_hand), inputs = CASES[name]
    expected = by_hand(*[x.copy() for x in inputs])
    expected = [np.asarray(x) for x in (plait.tree.leaves(expected))]
    function = plait.jit(program, wait=wait)
    arguments = [jnp.asarray(x) for x in inputs]
    for _ in range(2):
        for got, wanted in zip(flat(function(*arguments)), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12 if got.dtype.itemsize > 4 else 0)
    for argument, given in zip(arguments, inputs):  # no argument was written to
        np.testing.assert_array_equal(np.asarray(argument), given)


@pytest.mark.parametrize("wait", [False, True], ids=["interpreted", "generated"])
@pytest.mark.parametrize("name", sorted(set(CASES) - {"complex_numbers"}))
def test_is_one_loop_program(name, wait):
    (program, _), inputs = CASES[name]
    text = str(plait.jit(program, wait=wait).explain(*[jnp.asarray(x) for x in inputs]))
    if wait and " llvm " not in text:
        pytest.skip("llvm is not installed")
    assert "one loop program" in text, text
    if not wait and os.environ.get("PLAIT_WAIT", "0") == "0":
        assert "one loop program, interpreted" in text, text


@pytest.mark.parametrize("wait", [False, True], ids=["interpreted", "generated"])
def test_an_index_outside_is_the_error_of_eager_evaluation(wait):
    x = jnp.asarray(random(20))

    def program(x, n):
        return fori(0, 30, lambda i, x: x.at[i + n].set(x[i] + 1), x)

    with pytest.raises(IndexError) as eager:
        program(x, 0)
    with pytest.raises(IndexError) as compiled:
        plait.jit(program, wait=wait)(x, 0)
    assert str(compiled.value).split("\n")[0] == str(eager.value).split("\n")[0]
    assert "test_loop_programs.py" in str(compiled.value)


def one_of_two(which, index, x, y):
    """Reads or adds at an index, in one array or in the other, or does neither."""

    def step(i, carry):
        total, x, y = carry
        chosen = [
            lambda: (x[index], x, y),
            lambda: (y[index], x, y),
            lambda: (total * 0, x.at[index].add(1.0), y),
            lambda: (total * 0, x, y.at[index].add(1.0)),
            lambda: (total * 0 + 1, x, y),
        ]
        read, x, y = lax.switch(which[i], chosen)
        return total + read, x, y

    return lax.fori_loop(0, which.shape[0], step, (jnp.zeros((), x.dtype), x, y))


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_an_alternative_that_is_not_taken_checks_no_index(which, wait):
    x, y = random(1, 20), random(1, 20)
    program = plait.vmap(one_of_two, in_axes=(None, 0, 0, 0))
    compiled = plait.jit(program, wait=wait)
    outside = np.array([1000], np.uint32)
    # Nothing is read by the index.
    total, x_last, y_last = compiled(np.full(3, 4, np.int32), outside, x, y)
    np.testing.assert_array_equal(np.asarray(total), [3.0])
    np.testing.assert_array_equal(np.asarray(x_last), x)
    np.testing.assert_array_equal(np.asarray(y_last), y)
    # Something is, in the last step.
    with pytest.raises(IndexError, match="index 1000 is out of bounds for axis 1 with size 20"):
        compiled(np.array([4, 4, which], np.int32), outside, x, y)
    # It is inside.
    total, x_last, y_last = compiled(
        np.array([4, which, 4], np.int32), np.array([7], np.uint32), x, y
    )
    np.testing.assert_array_equal(
        np.asarray(total), [2 + (x, y, [[0]], [[0]])[which][0][7 if which < 2 else 0]]
    )
    np.testing.assert_array_equal(np.asarray(x_last), x + (which == 2) * (np.arange(20) == 7))
    np.testing.assert_array_equal(np.asarray(y_last), y + (which == 3) * (np.arange(20) == 7))


@pytest.mark.parametrize("wait", [False, True])
def test_a_loop_without_steps_reads_nothing_by_an_index_outside(wait):
    def program(steps, index, x):
        def more(carry):
            return carry[0] < steps

        def step(carry):
            return carry[0] + 1, carry[1] + x[index]

        return lax.while_loop(more, step, (np.int32(0), jnp.zeros((), x.dtype)))[1]

    x = random(1, 20)
    compiled = plait.jit(plait.vmap(program, in_axes=(None, 0, 0)), wait=wait)
    outside = np.array([1000], np.uint32)
    np.testing.assert_array_equal(np.asarray(compiled(np.int32(0), outside, x)), [0.0])
    with pytest.raises(IndexError, match="index 1000 is out of bounds for axis 1 with size 20"):
        compiled(np.int32(1), outside, x)


def test_explain_and_profile_say_what_is_predicted():
    def sums(x):
        return lax.scan(lambda total, x: (total + x, total), jnp.zeros((), x.dtype), x)[1]

    x = jnp.asarray(random(2000))
    text = plait.jit(sums, wait=True).explain(x)
    if " llvm " not in text:
        pytest.skip("llvm is not installed")
    assert "[one loop program]  predicted " in text and ": 2000 steps x" in text
    profile = plait.profile(sums, x, runs=1)
    assert "predicted" in str(profile)
    assert json.loads(profile.json())["steps"][0]["predicted_seconds"] > 0
