"""plait.script: functions within functions, and scripted functions under transforms.

SPDX-License-Identifier: Apache-2.0
"""

import doctest
import functools
import importlib.util
import inspect
import math
import statistics
import sys
import threading
import traceback

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import grad, jit, script, vmap
from scripted import calls, helper, same

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
    assert f"test_script_functions.py:{line} in f:  return x @ x" in str(caught.value)
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
    unscripted = doctest.testmod(importlib.import_module(name))  # one of fractions fails in 3.14
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
    assert failed == unscripted.failed <= 1 and attempted > 10


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


def test_numbers_of_python_keep_their_values_in_islands():
    """They decide about the shape of the result, which a call with made-up arrays finds out."""

    @script
    def f(x):
        windows = np.lib.stride_tricks.sliding_window_view(x, 3)
        low, _, high = statistics.quantiles(x, n=4, method="inclusive")
        return windows.sum(axis=1), high - low

    x = np.array([1.0, 2.0, 1.5, 9.0, 1.0, 2.5, -7.0])
    sums, spread = plait.jit(f)(x)
    np.testing.assert_allclose(sums, np.convolve(x, np.ones(3), "valid"))
    np.testing.assert_allclose(spread, np.subtract(*np.percentile(x, [75, 25])))
