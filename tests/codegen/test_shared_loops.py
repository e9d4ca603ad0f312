"""Loops of loop programs that threads share: the bits of one thread, errors between them, and Ctrl-C within them.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

PROGRAMS = os.path.join(os.path.dirname(__file__), "shared_programs.py")


def digests(threads):
    run = subprocess.run(
        [sys.executable, PROGRAMS],
        env={**os.environ, "PLAIT_THREADS": str(threads)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_bits_do_not_depend_on_the_number_of_threads():
    one = digests(1)
    for threads in (2, 4):
        assert digests(threads) == one


@pytest.mark.parametrize("wait", [False, True])
def test_a_check_between_shared_loops_fails_as_it_does_eagerly(wait):
    x = jnp.ones(30000)
    rows = jnp.arange(30000)

    def program(x, rows):
        return lax.fori_loop(0, 4, lambda i, x: jnp.sin(x[rows + i]) + x[::-1], x)

    with pytest.raises(IndexError) as eager, plait.disable_jit():
        program(x, rows)
    with pytest.raises(IndexError) as compiled:
        plait.jit(program, wait=wait)(x, rows)
    assert str(compiled.value).split("\n")[0] == str(eager.value).split("\n")[0]


def stop(*_):
    raise TimeoutError


@pytest.mark.parametrize("wait", [False, True])
def test_a_signal_ends_what_threads_share(wait):
    def step(i, x):
        shifted = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        return shifted[::-1] / jnp.sum(shifted, axis=1, keepdims=True)

    forever = plait.jit(lambda x: lax.fori_loop(0, 10**9, step, x), wait=wait)
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1)
        began = time.perf_counter()
        with pytest.raises(TimeoutError):
            forever(jnp.asarray(np.random.default_rng(3).standard_normal((2000, 1500))))
        assert time.perf_counter() - began < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
