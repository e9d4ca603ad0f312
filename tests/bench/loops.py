"""The rows of loops: what a step costs beside its work, and recurrent nets through scan."""

# SPDX-License-Identifier: Apache-2.0

import time

import numpy as np
import training
from machine import Work

# --- The cost of a step ----------------------------------------------------------------------------

STEPS = 100_000


def seconds_of_step(calls):
    """The least process time of a step: such loops run in one thread."""
    times = {}
    for name, call in calls.items():
        call()
        times[name] = float("inf")
        for _ in range(9):
            start = time.process_time()
            call()
            times[name] = min(times[name], (time.process_time() - start) / STEPS)
    return times


def scan_step(found):
    """A carry of one number, a slice of one, a result of one."""
    calls = {}
    for name, library, array, wait in training.libraries(found):

        def loop(xs, library=library):
            return library.lax.scan(lambda c, x: (c * 0.5 + x, c), xs[0], xs)

        f, xs = library.jit(loop), array(np.ones(STEPS, np.float32))
        assert np.allclose(f(xs)[0], 2)
        calls[name] = lambda f=f, xs=xs, wait=wait: wait(f(xs))
    return seconds_of_step(calls)


def while_step(found):
    """A counter, its comparison, and a carry of one number."""
    calls = {}
    for name, library, array, wait in training.libraries(found):

        def loop(n, library=library):
            return library.lax.while_loop(
                lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (n * 0, n * 0.0)
            )

        f, n = library.jit(loop), array(np.int32(STEPS))
        assert int(f(n)[0]) == STEPS
        calls[name] = lambda f=f, n=n, wait=wait: wait(f(n))
    return seconds_of_step(calls)


# --- Recurrent nets --------------------------------------------------------------------------------

GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def cell(numpy, kind):
    """(weights, carry, slice) -> (carry, result), written as a user would."""

    def sigmoid(x):
        return 1 / (1 + numpy.exp(-x))

    def lstm(w, carry, x):
        h, c = carry
        i, f, g, o = numpy.split(x @ w["x"] + h @ w["h"] + w["b"], 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
        h = sigmoid(o) * numpy.tanh(c)
        return (h, c), h

    def gru(w, h, x):
        xr, xu, xn = numpy.split(x @ w["x"] + w["b"], 3, axis=-1)
        hr, hu, hn = numpy.split(h @ w["h"], 3, axis=-1)
        u = sigmoid(xu + hu)
        h = (1 - u) * numpy.tanh(xn + sigmoid(xr + hr) * hn) + u * h
        return h, h

    def rnn(w, h, x):
        h = numpy.tanh(x @ w["x"] + h @ w["h"] + w["b"])
        return h, h

    return {"lstm": lstm, "gru": gru, "rnn": rnn}[kind]


def reference_loss(kind, w, xs):
    """The mean square of the results, by NumPy in float64."""
    step, zero = cell(np, kind), np.zeros((xs.shape[1], w["h"].shape[0]))
    carry, total = (zero, zero) if kind == "lstm" else zero, 0
    for x in xs:
        carry, h = step(w, carry, x)
        total += (h * h).sum()
    return total / xs.size


def check(name, kind, w, xs, value, gradients):
    """The value, and the gradients along a direction, against the reference in float64."""
    rng, size = np.random.default_rng(1), 1e-4
    along = {key: rng.normal(size=array.shape) for key, array in w.items()}

    def moved(by):
        return {key: array.astype(np.float64) + by * along[key] for key, array in w.items()}

    wide = xs.astype(np.float64)
    ahead, here, behind = (reference_loss(kind, moved(by), wide) for by in (size, 0, -size))
    slope = sum((np.asarray(gradients[key], np.float64) * along[key]).sum() for key in w)
    if not np.isclose(float(value), here, rtol=1e-5):
        raise AssertionError(f"{name}: {kind} is {value}, not {here}")
    if not np.isclose(slope, (ahead - behind) / (2 * size), rtol=1e-3):
        raise AssertionError(f"{name}: the slope of {kind} is {slope}")


def recurrent(kind, batch=32, steps=128, width=256):
    """Value, and gradients by weights and by inputs, of a net of one layer through scan."""

    def contestants(found):
        rng, gates = np.random.default_rng(0), GATES[kind] * width
        w = {key: rng.normal(0, 0.06, (width, gates)).astype(np.float32) for key in ("x", "h")}
        w["b"] = np.zeros(gates, np.float32)
        xs = rng.normal(size=(steps, batch, width)).astype(np.float32)
        calls = {}
        for name, library, array, wait in training.libraries(found):

            def loss(w, xs, library=library):
                zero = library.numpy.zeros((batch, width), dtype="float32")
                init = (zero, zero) if kind == "lstm" else zero
                step = cell(library.numpy, kind)
                _, hs = library.lax.scan(lambda carry, x: step(w, carry, x), init, xs)
                return (hs * hs).mean()

            f = library.jit(library.value_and_grad(loss, argnums=(0, 1)))
            arguments = library.tree.map(array, w), array(xs)
            value, (gradients, _) = f(*arguments)
            check(name, kind, w, xs, value, gradients)
            calls[name] = lambda f=f, a=arguments, wait=wait: wait(f(*a))
        return calls

    return contestants


def recurrent_work(kind, batch=32, steps=128, width=256):
    # Forward, by weights, and by inputs, of two products.
    return Work(flops=3 * 2 * 2 * steps * batch * width**2 * GATES[kind])
