"""plait.script against Python itself: the same functions on numbers, and on arrays that are traced.

SPDX-License-Identifier: Apache-2.0
"""

import doctest
import functools
import importlib.util
import inspect
import math
import sys
import threading
import traceback

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import grad, jit, script, tree, vmap


def helper(value):
    if value > 1.0:
        return value - 1.0
    return -value


def numbers(result):
    leaves = [np.asarray(leaf, float) for leaf in tree.leaves(result)]
    return np.concatenate([leaf.ravel() for leaf in leaves]) if leaves else []


def same(actual, expected):
    """Equal trees of numbers; NumPy's, Python's and plait's count alike."""
    np.testing.assert_allclose(numbers(actual), numbers(expected), rtol=1e-12, atol=1e-12)


def calls(function, cases, **options):
    """A function is the same scripted, on known values, and jitted, with every argument traced."""
    scripted = script(function)
    for case in cases:
        expected = function(*case)
        same(scripted(*case), expected)
        same(jit(scripted, **options)(*case), expected)
    return scripted


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
        seen.append(x)
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
        alias, table = total, {"a": xp.ones(2)}
        names = [total, 1.0]
        for i in range(n):
            total += x
            if x[0] > i:
                total[1] += 10.0
                table["a"] += x
            x[0] -= 0.5
        if n > 2:
            names[1] = 5.0
        return total, alias, table, x, names

    scripted = script(f)
    for n in (0, 1, 4):
        expected = f(np, np.array([2.0, 3.0]), n)
        for function in (scripted, functools.partial(jit(scripted, static_argnums=0))):
            same(function(pnp, pnp.array(np.array([2.0, 3.0])), n), expected)


def test_views_are_not_written_to_in_traced_statements():
    @jit
    @script
    def f(x):
        row = x[0]
        if x.sum() > 0:
            row += 1.0
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


# --- Functions ---


def outside(x):
    if x > 1:
        return helper(x)
    return 2 * x


class Model:
    def __init__(self):
        self.scale, self.__hidden, self.calls = 2.0, 3.0, 0

    @script
    def __call__(self, x):
        "Documented."
        if x > 0:
            return x * self.scale * self.__hidden
        return self.other(x)

    def other(self, x):
        return -x if x < -1 else x

    @script
    def counts(self, x):
        if x > 0:
            self.calls += 1
        return x

    @staticmethod
    @script
    def static(x):
        return x if x > 0 else 0.0


class Child(Model):
    @script
    def other(self, x):
        if x < -2:
            return super().other(x) * 100
        return super().other(x)


def test_calls_are_scripted_in_the_same_package():
    def f(x):
        return outside(x) + (lambda v: v if v > 0 else -v)(x)

    calls(f, [(v,) for v in (3.0, 0.5, -2.0)])

    @plait.unscripted
    def plain(x):
        return x if x > 0 else -x

    with pytest.raises(plait.TracerError):
        jit(script(lambda x: plain(x)))(1.0)
    assert script(lambda x: plain(x))(-1.0) == 1


def test_methods():
    for model in (Model(), Child()):
        for x in (2.0, -0.5, -1.5, -3.0):
            expected = model(x)
            assert float(jit(model)(x)) == float(jit(model.__call__)(x)) == expected
    assert Model.__call__.__doc__ == "Documented." and Model.static(2.0) == 2
    assert float(jit(Model.static)(-2.0)) == 0
    assert float(jit(script(Model().other))(-2.0)) == 2


def test_scalars_that_scripted_methods_read_are_guarded():
    model = Model()
    jitted = jit(model.__call__)
    assert jitted(1.0) == 6
    model.scale = 5.0
    assert jitted(1.0) == 15


def test_closures_defaults_and_globals():
    offset = 1.0

    def f(x, scale=2.0, *rest, power=1, **options):
        def inner(y):
            if y > offset:
                return y - offset
            return x

        if x > 0:
            x = x * scale
        return inner(x) * power + len(rest) + len(options)

    scripted = calls(f, [(1.0,), (-1.0,), (0.25, 3.0, 9.0)])
    same(jit(lambda x: scripted(x, power=3, other=1))(2.0), f(2.0, power=3, other=1))
    assert inspect.signature(scripted) == inspect.signature(f)
    offset = 100.0
    assert scripted(5.0) == f(5.0)


def test_variables_shared_with_functions_inside():
    def f(x):
        count = 0

        def bump():
            nonlocal count
            count = count + 1

        if x > 0:
            bump()
            bump()
        show = lambda: count * 10  # noqa: E731
        if x > 1:
            count = count + 5
        return show()

    calls(f, [(v,) for v in (0.5, 2.0, -1.0)])


def test_lambdas_on_one_line():
    pair = [script(lambda x: x if x > 0 else -x), script(lambda x: x if x > 0 else 0.0)]
    assert [float(jit(f)(-2.0)) for f in pair] == [2, 0]
    assert pair[0].source == "lambda x: script.if_exp(x > 0, lambda: x, lambda: -x)"


def test_source_is_python():
    @script
    def f(x):
        if x > 0:
            y = x
        else:
            y = -x
        return y

    compile(f.source, "f", "exec")
    assert "script.if_(x > 0, then_1, else_1, 'y')" in f.source
    assert script(f) is f and f.__name__ == "f"


def test_tracebacks_show_the_lines_of_the_file():
    @script
    def f(x):
        if x > 0:
            return x @ x
        return x

    line = f.__wrapped__.__code__.co_firstlineno + 3
    with pytest.raises(plait.Error) as caught:
        jit(f)(1.0)
    assert f"test_script.py:{line} in f:  return x @ x" in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert any(frame.lineno == line and frame.name == "f" for frame in frames)


def test_decorated_functions():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) + function(*args)

        return wrapper

    @script
    @twice
    def f(x):
        return x if x > 0 else 0 * x

    assert float(jit(f)(-3.0)) == 0 and float(jit(f)(3.0)) == 6


def test_python_statements_stay():
    def f(x, mode):
        match mode:
            case "a":
                if x > 0:
                    return x
            case [k]:
                return k
        try:
            x = x + {"b": 1.0}[mode]
        except (KeyError, TypeError):
            x = x - 1.0
        else:
            x = x * 3
        finally:
            x = x + 0.5
        return x

    scripted = script(f)
    for x in (1.0, -1.0):
        for mode in ("a", "b"):
            same(scripted(x, mode), f(x, mode))
            same(jit(scripted, static_argnums=1)(x, mode), f(x, mode))
        assert scripted(x, [7.0]) == 7


@pytest.mark.parametrize("name", ["difflib", "fractions", "statistics"])
def test_modules_of_pythons_library_pass_their_own_tests(name, monkeypatch):
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)

    def scripted(function):
        try:
            return script(function)
        except plait.ValueError:  # a generator, or made by exec
            return function

    for owner in (module, *(kind for kind in vars(module).values() if isinstance(kind, type))):
        if getattr(owner, "__module__", name) == name:
            for key, value in list(vars(owner).items()):
                if inspect.isfunction(value) and value.__globals__ is vars(module):
                    setattr(owner, key, scripted(value))
    failed, attempted = doctest.testmod(module)
    assert failed == 0 and attempted > 10


# --- Transforms ---


@script
def newton(x, tolerance):
    """The square root of x, in as many steps as it takes."""
    root = x
    while abs(root * root - x) > tolerance:
        root = 0.5 * (root + x / root)
    return root


def test_a_loop_of_unknown_length_under_every_transform():
    xs = np.array([2.0, 9.0, 1e-2])
    for function in (newton, jit(newton)):
        assert abs(float(function(np.float64(2.0), 1e-12)) - math.sqrt(2)) < 1e-12
        roots = vmap(function, (0, None))(xs, 1e-12)
        np.testing.assert_allclose(np.asarray(roots), np.sqrt(xs), rtol=1e-10)
        slopes = vmap(grad(function), (0, None))(xs, 1e-14)
        np.testing.assert_allclose(np.asarray(slopes), 0.5 / np.sqrt(xs), rtol=1e-6)
        np.testing.assert_allclose(
            float(plait.jvp(lambda x: function(x, 1e-14), (2.0,), (1.0,))[1]), 0.5 / math.sqrt(2)
        )


def test_the_branch_not_taken_has_no_gradient():
    @script
    def f(x):
        if x > 0:
            return pnp.log(x)
        return x * 3

    for function in (grad(f), jit(grad(f))):
        assert float(function(-1.0)) == 3 and float(function(2.0)) == 0.5
    np.testing.assert_allclose(np.asarray(vmap(grad(f))(np.array([-1.0, 2.0, 0.0]))), [3, 0.5, 3])


def test_trees_are_carried():
    @script
    def descend(parameters, steps):
        for _ in range(steps):
            loss = (parameters["w"] - 3.0) ** 2 + parameters["b"] ** 2
            if loss < 1e-3:
                break
            parameters = {
                "w": parameters["w"] - 0.2 * (parameters["w"] - 3.0),
                "b": 0.5 * parameters["b"],
            }
        return parameters

    start = {"w": 0.0, "b": 1.0}
    for steps in (0, 3, 100):
        same(jit(descend)(start, steps), descend.__wrapped__(start, steps))


def test_numbers_of_python_yield_to_the_arrays_of_the_body():
    @jit
    @script
    def f(xs):
        total, count = 0, 0
        for x in xs:
            total += x
            count += 1
        return total, count

    total, count = f(np.ones(3, np.float32))
    assert total.dtype == np.float32 and total == 3 and count == 3


def test_threads():
    results = []
    scripted = jit(newton)
    threads = [
        threading.Thread(target=lambda v=v: results.append((v, float(scripted(v, 1e-12)))))
        for v in (2.0, 3.0, 5.0, 7.0)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(abs(root * root - value) < 1e-10 for value, root in results) and len(results) == 4


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


def test_what_cannot_be_scripted():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    for wrong, error in (
        (generator, plait.ValueError),
        (coroutine, plait.ValueError),
        (3, plait.DtypeError),
        (len, plait.DtypeError),
        (jit(newton), plait.DtypeError),
        (Model, plait.DtypeError),
        (eval("lambda x: x"), plait.ValueError),
    ):
        with pytest.raises(error):
            script(wrong)


def test_nothing_is_left_behind_by_an_error():
    model = Model()
    with pytest.raises(plait.TracerError, match="self.calls"):
        jit(model.counts)(1.0)
    assert model.calls == 0 and model.counts(1.0) == 1 and model.calls == 1
    assert not plait._plait.is_tracing()
    same(jit(newton)(4.0, 1e-12), 2.0)
