"""Known values under grad and on the tape: what leaves plait, and rules that look at values.

SPDX-License-Identifier: Apache-2.0
"""

import math
import os
import signal
import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import grad, jvp, stop_gradient, value_and_grad, variable, vmap


@pytest.mark.parametrize(
    "leave",
    [
        np.asarray, lambda x: np.add(x, 1.0, out=np.zeros(2)), np.from_dlpack, np.array2string,
        memoryview, lambda x: np.float64(1.0) + np.array(x),
    ],
)  # fmt: skip
def test_numpy_does_not_lose_a_derivative(leave):
    def f(x):
        return pnp.sum(pnp.asarray(leave(x * 1.0)) * x)

    x = pnp.asarray([1.0, 2.0])
    for run in (grad(f), lambda x: jvp(f, (x,), (x,)), grad(lambda x: pnp.sum(grad(f)(x)))):
        with pytest.raises(
            (plait.TracerError, TypeError), match="lose the derivative|differentiated|tracer"
        ):
            run(x)
    # A value alone may leave, and so may what has no derivative.
    free = grad(lambda x: pnp.sum(pnp.asarray(np.sin(stop_gradient(x))) * x))
    np.testing.assert_allclose(free(x), np.sin([1.0, 2.0]))
    np.testing.assert_allclose(grad(lambda x, y: np.sin(y) * x)(1.0, pnp.asarray(2.0)), np.sin(2.0))
    assert grad(lambda x: x * float(np.asarray(x > 1)))(3.0) == 1
    # Functions of NumPy are plait's where arrays are.
    np.testing.assert_allclose(
        grad(lambda x: np.sum(np.sin(x) * x))(x),
        np.sin([1, 2]) + [1, 2] * np.cos([1, 2]),
        rtol=1e-6,
    )


def test_values_may_be_looked_at():
    def f(x):
        assert repr(x) and str(x) and f"{float(x):.2f}" == "2.00" and x.tolist() == 2
        return x * x if x > 1 and math.floor(x) == 2 else -x

    assert grad(f)(2.0) == 4
    assert vmap(grad(lambda x: x * x))(np.array([2.0])).tolist() == [4]


def test_numpy_under_script_is_an_island_without_a_derivative():
    @plait.script
    def f(x):
        return np.asarray(x) * x

    assert plait.jit(f)(2.0) == 4
    for run in (grad(f), plait.jit(grad(f))):
        with pytest.raises(plait.MissingRuleError, match="`asarray` is a function of the host"):
            run(2.0)


# --- Rules that look at values ---


def test_a_rule_of_a_primitive_may_look_at_values_on_the_tape():
    steep = plait.Primitive("steep_values", "2 x where x > 0, else x")
    steep.abstract(lambda x: x)
    steep.eval(lambda x: np.where(x > 0, 2 * x, x))

    @steep.jvp
    def _(primals, tangents, outputs):
        if primals[0] > 0:
            return 2 * tangents[0]
        return tangents[0] * 1.0

    for value in (3.0, -3.0, 2.0):  # recorded anew for each value
        x = variable(value)
        y = steep(x) * x
        y.backward(create_graph=True)
        assert (
            x.grad == grad(lambda x: steep(x) * x)(value) == (4 * value if value > 0 else 2 * value)
        )
        second = x.grad
        x.grad = None
        second.backward()
        assert x.grad == grad(grad(lambda x: steep(x) * x))(value) == (4 if value > 0 else 2)


def test_custom_rules_may_look_at_values_on_the_tape():
    @plait.custom_jvp
    def f(x):
        return x * x

    @f.defjvp
    def _(primals, tangents):
        (x,), (dx,) = primals, tangents
        return x * x, (3 if x > 1 else 2) * x * dx

    @plait.custom_vjp
    def g(x):
        return x * x

    g.defvjp(lambda x: (x * x, x), lambda x, ct: ((3 if x > 1 else 2) * x * ct,))
    for function in (f, g):
        for value, slope in ((2.0, 6.0), (0.5, 1.0)):
            x = variable(value)
            function(x).backward()
            assert x.grad == slope == grad(function)(value)


def test_a_rule_that_fails_says_why():
    broken = plait.Primitive("broken_values", "a rule that raises")
    broken.abstract(lambda x: x)
    broken.eval(lambda x: x)

    @broken.jvp
    def _(primals, tangents, outputs):
        raise RuntimeError("the rule is broken")

    for _ in range(2):
        with pytest.raises(RuntimeError, match="the rule is broken"):
            broken(variable(1.0))


# --- Captured variables ---


def test_a_backward_rule_that_captures_a_variable():
    w = variable(3.0)

    @plait.custom_vjp
    def f(x):
        return 2 * x

    f.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * w * ct,))
    x = variable(5.0)
    y = f(x) * x
    y.backward(create_graph=True)  # 2 x + x 2 w
    assert x.grad == 2 * 5 + 5 * 2 * 3
    slope, x.grad, w.grad = x.grad, None, None
    slope.backward()
    # d(2 x + 2 w x) / dx, where f' is 2 w by its rule; / dw
    assert w.grad == 2 * 5
    assert x.grad == 2 * 3 + 2 * 3


# --- fork ---


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_fork_may_go_back_while_others_do():
    stop = threading.Event()

    def work():
        x = variable(pnp.ones(8))
        while not stop.is_set():
            y = x
            for _ in range(50):
                y = pnp.sin(y)
            pnp.sum(y).backward()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                x = variable(2.0)
                (x * x).backward()
                os._exit(0 if x.grad == 4 else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_value_and_grad_still_gives_numbers():
    value, slope = value_and_grad(lambda x: pnp.sum(x * x))(np.array([1.0, 2.0]))
    assert np.asarray(value) == 5 and np.asarray(slope).tolist() == [2, 4]
