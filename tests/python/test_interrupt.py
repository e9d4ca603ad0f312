"""Ctrl-C, and other signals with handlers, during calls that take long.

SPDX-License-Identifier: Apache-2.0
"""

import os
import signal
import subprocess
import threading
import time

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax


class Alarm(Exception):
    pass


@pytest.fixture(autouse=True)
def listening():
    """As in a terminal: what a shell starts in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def seconds_until_stopped(call, number=signal.SIGINT, kind=KeyboardInterrupt, after=0.3):
    """How long the call goes on after a signal, which must end it. Another process sends it, as a terminal does."""
    sender = subprocess.Popen(["sh", "-c", f"sleep {after}; kill -{int(number)} {os.getpid()}"])
    began = time.perf_counter()
    with pytest.raises(kind):
        call()
    stopped = time.perf_counter()
    sender.wait()
    return stopped - began - after


# 100 ms are promised; a machine that is shared may take its time to wake a thread.
SOON = 0.4


def endless(x):
    return lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0.5 + 1, c[1] + 1), (x, 0))[0]


def endless_for_each(x):
    return plait.vmap(
        lambda a: lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0.5 + a, c[1] + 1), (a, 0))[
            0
        ]
    )(x)


def long_scan(x):
    return lax.fori_loop(0, 10**12, lambda i, c: c * 0.5 + 1, x)


def long_scan_of_matrices(x):
    return lax.fori_loop(0, 10**9, lambda i, c: c @ c * 0.001, x)


def long_nested(x):
    def outer(i, c):
        return lax.fori_loop(0, 1000, lambda j, d: d * 0.5 + 1, c)

    return lax.fori_loop(0, 10**9, outer, x)


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize(
    "loop, x",
    [
        (endless, np.float32(1)),
        (endless_for_each, np.arange(1, 9, dtype=np.float32)),
        (long_scan, np.float32(1)),
        (long_scan, np.ones(1000, np.float32)),
        (long_nested, np.float32(1)),
        (long_scan_of_matrices, np.eye(40, dtype=np.float32)),
    ],
)
def test_ctrl_c_ends_a_loop_and_the_next_call_runs(loop, x, wait):
    f = plait.jit(loop, wait=wait)
    x = jnp.asarray(x)
    f.explain(x)  # so that the signal comes when it runs
    assert seconds_until_stopped(lambda: f(x)) < SOON
    assert seconds_until_stopped(lambda: f(x)) < SOON
    assert np.asarray(plait.jit(lambda v: v + 1)(x)) == pytest.approx(np.asarray(x) + 1)


def test_ctrl_c_is_heard_in_a_loop_outside_jit():
    assert seconds_until_stopped(lambda: endless(jnp.asarray(np.float32(1)))) < SOON


def test_ctrl_c_is_heard_between_kernels():
    x = jnp.asarray(np.ones(200_000, np.float32))

    def many(x):
        for _ in range(3000):
            x = jnp.sort(jnp.sin(x))
        return x

    f = plait.jit(many)
    f.explain(x)
    assert seconds_until_stopped(lambda: f(x)) < SOON


def test_a_handler_of_the_user_may_raise_and_may_return():
    heard = []

    def handler(number, frame):
        heard.append(number)
        if len(heard) > 1:
            raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        f = plait.jit(endless)
        with pytest.raises(Alarm):
            f(jnp.asarray(np.float32(1)))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(heard) == 2


def test_calls_of_other_threads_go_on():
    f = plait.jit(lambda x: lax.fori_loop(0, 300_000_000, lambda i, c: c * 0.5 + 1, x), wait=True)
    x = jnp.asarray(np.float32(1))
    f.compile_for(x)
    results = []
    other = threading.Thread(target=lambda: results.append(float(f(x))))
    other.start()
    g = plait.jit(endless)
    assert seconds_until_stopped(lambda: g(x)) < SOON
    other.join()
    assert results == [2.0]


def test_interrupted_loops_with_residuals_leak_nothing():
    def loss(x):
        return lax.while_loop(
            lambda c: c[1] < 10**9, lambda c: (jnp.sin(c[0]) + x, c[1] + 1), (x, 0)
        )[0].sum()

    f = plait.jit(plait.grad(loss))
    x = jnp.asarray(np.ones(1000, np.float32))
    seconds_until_stopped(lambda: f(x), after=0.2)
    plait.clear_memory()
    before = resident()
    for _ in range(5):
        assert seconds_until_stopped(lambda: f(x), after=0.2) < 2 * SOON
    plait.clear_memory()
    assert resident() - before < 100e6


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
