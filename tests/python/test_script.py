"""plait.script against Python itself: the same functions on numbers, and on arrays that are traced.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import math

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import jit, script, vmap
from scripted import calls, same

# --- Statements ---


def test_early_returns():
    def f(x):
        if x > 0:
            if x > 2:
                return x * 10
            y = x + 1
        else:
            y = -x
        return y

    calls(f, [(v,) for v in (3.0, 1.0, -2.0)])


def test_variables_of_a_branch_that_returns_need_no_value():
    def f(x):
        y = None
        if x > 4:
            return 0.0
        with np.errstate():
            if x < 0:
                return -x
            y = x * 2
            z = y + 1
        return y + z

    calls(f, [(v,) for v in (5.0, -1.0, 2.0)])


def test_loops_jumps_and_else():
    def f(n, m):
        found, steps = -1, 0
        for i in range(1, n):
            for j in range(m):
                steps += 1
                if i * j == 6:
                    found = i * 100 + j
                    break
                if j > i:
                    continue
                steps += 10
            else:
                steps += 1000
            if found > 0:
                break
        else:
            found = -2
        while steps > 40:
            steps -= 7
            if steps % 5 == 0:
                return found, steps
        else:
            steps = -steps
        return found, steps

    cases = [(n, m) for n in (0, 2, 4, 7) for m in (0, 1, 4, 7)]
    calls(f, cases)
    calls(f, cases, static_argnums=0)
    calls(f, cases, static_argnums=1)


def test_what_a_search_finds():
    def first(n, x):
        for i in range(n):
            y = i * x
            if y > 3:
                where, value = i, y
                break
        else:
            where = -1
            value = 0.0
        while True:
            x = x + 1
            if x > 9:
                best = x
                break
        return where, value, best

    cases = [(n, x) for n in (0, 2, 5) for x in (1.0, 2.0, 4.0)]
    calls(first, cases)
    calls(first, cases, static_argnums=0)


def test_ranges():
    @script
    def f(start, stop):
        total = 0
        for i in range(start, stop, -2):
            total = 10 * total + i
        return total

    def expected(start, stop):
        return functools.reduce(lambda t, i: 10 * t + i, range(start, stop, -2), 0)

    for start in range(-1, 6):
        for stop in (-3, 0, 4):
            assert jit(f)(start, stop) == expected(start, stop)
            assert jit(f, static_argnums=0)(start, stop) == expected(start, stop)


def test_loops_over_arrays():
    @script
    def f(xs, ys):
        total, last = 0.0, 0
        for i, (x, y) in enumerate(zip(xs, ys)):
            if x < 0:
                continue
            total, last = total + x * y, i
            if total > 10:
                break
        else:
            total = -total
        best = xs[0]
        for x in xs:
            best = max(best, x)
        return total, last, best

    def expected(xs, ys):
        return f.__wrapped__(xs.tolist(), ys.tolist())

    for xs in ([1.0, -2.0, 3.0], [1.0, 2.0, 30.0], [-1.0, -1.0, -1.0]):
        xs, ys = np.array(xs), np.array([1.0, 2.0, 3.0])
        same(jit(f)(xs, ys), expected(xs, ys))
        same(f(xs, ys), expected(xs, ys))


def test_a_traced_array_is_one_loop_and_a_list_is_unrolled():
    @script
    def total(rows):
        result = 0.0
        for row in rows:
            result = result + row * row
        return result

    loop = plait.make_jaxpr(total)(np.ones(50))
    assert len(loop.eqns) < 10 and total(np.ones(50)) == 50
    unrolled = plait.make_jaxpr(lambda *rows: total(list(rows)))(*np.ones(5))
    assert [equation.primitive for equation in unrolled.eqns].count("mul") == 5


def test_known_values_keep_pythons_meaning():
    log = []

    @jit
    @script
    def f(x, mode="double"):
        if mode == "double":
            x = x * 2
            log.append("branch")
        for name in ["a", "b"]:
            log.append(name)
        for i in range(3):
            assert type(i) is int
            x = x + [0.5, 0.25, 0.125][i]
        items = [v for v in (1, 2, 3) if v != 2 and v > 0]
        count = 0
        while count < 3:
            count += 1
        return x * count + sum(items), {"known": count}

    value, rest = f(1.0)
    assert float(value) == (2 + 0.875) * 3 + 4 and rest["known"] == 3
    assert log == ["branch", "a", "b"]


def test_a_known_range_that_a_traced_condition_leaves():
    def f(x):
        for i in range(100):
            step = x * i
            if step > 5:
                break
        return i, step

    calls(f, [(1.0,), (0.5,), (-1.0,)])
    program = plait.make_jaxpr(script(f))(1.0)
    assert len(program.eqns) < 20  # a loop, not a hundred branches


def test_a_list_that_a_traced_condition_leaves():
    def f(x):
        for name, factor in {"a": 2.0, "b": 3.0, "c": 5.0}.items():
            x = x * factor
            if x > 20:
                return x + len(name)
        return -x

    calls(f, [(v,) for v in (1.0, 5.0, 0.1, 11.0)])


def test_boolean_operators():
    def f(x, y):
        a = x > 0 and y > 0
        b = x > 1 or y > 1 or x < -5
        c = not x > y
        d = -1 < x < y <= 3
        e = 1.0 if a else (2.0 if b and not c else 3.0)
        return a, b, c, d, e

    calls(f, [(x, y) for x in (-6.0, 0.5, 2.0) for y in (-1.0, 1.0, 3.0)])


def test_builtins_of_traced_values():
    def f(x, y):
        return (
            max(x, y, 0.5),
            min([x, y]),
            any(v > 1 for v in (x, y)),
            all([x > 0, y > 0, True]),
            any([]),
            sum([x, y]),
            abs(x),
            max([1, 3, 2], key=lambda v: -v),
        )

    calls(f, [(x, y) for x in (-1.0, 2.0) for y in (-3.0, 0.75)])


def test_the_right_operand_runs_where_python_would_run_it():
    @jit
    @script
    def first_equal(xs, x):
        i = 0
        while i < len(xs) and xs[i] != x:
            i += 1
        return i

    xs = np.array([3.0, 1.0, 2.0])
    assert [int(first_equal(xs, x)) for x in (3.0, 2.0, 7.0)] == [0, 2, 3]


def test_chained_comparisons_evaluate_the_middle_once():
    seen = []

    def middle(x):
        seen.append(1)
        return x

    @script
    def f(x):
        return 0 < middle(x) < 3

    assert f(1.0) is True and len(seen) == 1
    jitted = jit(f)
    assert jitted(1.0) and not jitted(5.0) and len(seen) == 2


def test_walrus():
    def f(x):
        while (y := x * 0.5) > 1:
            x = y
        if (z := x + 1) > 2:
            return z
        return y - z

    calls(f, [(v,) for v in (8.0, 1.5, -3.0)])

    @script
    def g(x):
        if x > 0 and (y := x + 1) > 2:
            return y
        return 0.0

    assert g(3.0) == 4 and g(-1.0) == 0
    with pytest.raises(plait.ValueError, match="`y` may have no value here"):
        jit(g)(3.0)


def test_assert():
    @script
    def f(x):
        assert x > 0, f"{x} is no number of {{things}}"
        return x

    assert f(1.0) == 1 and jit(f)(1.0) == 1 and vmap(f)(np.ones(3)).shape == (3,)
    for call in (f, jit(f), lambda x: vmap(f)(np.array([1.0, x]))):
        with pytest.raises(Exception) as caught:
            call(-1.0)
        assert "-1.0 is no number of {things}" in str(caught.value)


def test_containers_of_the_function():
    def f(x):
        pair, table = [], {"a": 1.0}
        if x > 0:
            pair.append(x)
            pair += [1.0]
        else:
            pair.extend([-x, 2.0])
        for i in range(3):
            table["a"] = table["a"] + x * i
            if table["a"] > 5:
                break
        return pair, table

    calls(f, [(v,) for v in (4.0, 0.5, -1.0)])


def test_writing_in_place_shows_wherever_the_array_is_held():
    def f(xp, x, n):
        total = xp.zeros(2)
        alias, table = total, {"a": x * 0.0 + 1.0}
        names = [total, 1.0]
        for i in range(n):
            total[...] += x
            if x[0] > i:
                total[1] += 10.0
                table["a"] = table["a"] + x
            x[0] -= 0.5
        if n > 2:
            names[1] = 5.0
        return total, alias, table, x, names

    scripted = script(f)
    for n in (0, 1, 4):
        expected = f(np, np.array([2.0, 3.0]), n)
        same(scripted(pnp, pnp.array(np.array([2.0, 3.0])), n), expected)
        with pytest.warns(UserWarning, match="writes to an argument"):
            jitted = jit(scripted, static_argnums=0)(pnp, np.array([2.0, 3.0]), n)
        same(jitted, expected)


def test_operators_bind_the_name_of_an_array_anew_and_change_lists():
    def f(x, n):
        total = alias = x * 0.0
        kept, pair = [], [x]
        for i in range(n):
            total += x
            if x[0] > i:
                before = total
                total *= 2.0
                kept = [before]
            else:
                kept = [alias]
        many = pair
        pair += [total]
        return total, alias, kept, many

    def by_hand(x, n):
        total = x * 0.0
        kept = []
        for i in range(n):
            total = total + x
            kept = [total] if x[0] > i else [x * 0.0]
            total = total * 2.0 if x[0] > i else total
        return total, x * 0.0, kept, [x, total]

    scripted = script(f)
    x = np.array([2.0, 3.0])
    for n in (1, 4):
        same(scripted(pnp.array(x), n), by_hand(x, n))
        same(jit(scripted, static_argnums=1)(x, n), by_hand(x, n))


def test_views_are_not_written_to_in_traced_statements():
    @jit
    @script
    def f(x):
        row = x[0]
        if x.sum() > 0:
            row[...] += 1.0
        return x

    with pytest.raises(plait.TracerError, match="`row` is written to .* it is a view"):
        f(np.ones((2, 2)))


def test_lists_that_grow_in_one_branch_are_refused():
    @script
    def f(x):
        out = []
        if x > 0:
            out.append(x)
        return out

    with pytest.raises(plait.TreeError, match="`out` of the traced `if` is"):
        jit(f)(1.0)


# --- Islands ---


def test_numpy_becomes_an_island():
    @script
    def f(x):
        size = np.linalg.norm(x) + math.sin(x[0])
        if size > 2:
            size = np.sort(x)[0]
        return size

    rows = np.array([[3.0, 1.0, 2.0], [0.1, 0.2, 0.3]])
    for row in rows:
        same(jit(f)(row), f(row))
        same(f(row), f.__wrapped__(row))
    np.testing.assert_allclose(np.asarray(vmap(f)(rows)), [float(f(row)) for row in rows])
    assert "host_call" in str(plait.make_jaxpr(f)(rows[0]))


def test_islands_that_say_nothing_of_their_result():
    def describe(x):
        return str(np.asarray(x))

    def fails(x):
        raise KeyError(float(x))

    for function in (describe, fails):
        function.__globals__  # noqa: B018
        far = type(function)(
            function.__code__, {"np": np, "__name__": "elsewhere", **vars(np).get("x", {})}
        )
        with pytest.raises(plait.Error):
            jit(script(lambda x: far(x)))(1.0)  # noqa: B023


# --- What is refused ---
