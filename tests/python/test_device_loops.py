"""Loops on a GPU: one kernel each, which stops when whoever waits for it is interrupted.

The GPU is the stand-in of tests/cuda, in processes of their own.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).resolve()
STAND_INS = BUILD / "tests" / "cuda"

pytestmark = pytest.mark.skipif(
    not (STAND_INS / "libcuda.so.1").exists(), reason="the stand-ins of CUDA are not built"
)

LOOPS = """
import os, signal, subprocess, time
import numpy as np, plait, plait.numpy as pnp
from plait import lax

def heat(u):
    return lax.fori_loop(
        0, 7, lambda i, u: u + 0.1 * (pnp.roll(u, 1) + pnp.roll(u, -1) - 2 * u), u
    )

def halvings(x, least, max_steps=None):
    return lax.while_loop(
        lambda s: pnp.sum(s[0]) > least, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0), max_steps=max_steps
    )

signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupted(wait):
    sender = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -2 {os.getpid()}"])
    began = time.perf_counter()
    try:
        wait()
    except KeyboardInterrupt:
        print("stopped" if time.perf_counter() - began < 5 else "stopped late")
    sender.wait()

x = np.random.default_rng(0).uniform(size=9000).astype("f4")
there = plait.device_put(x, "cuda:0")
print(plait.explain(plait.jit(heat, device="cuda:0"), there))
"""

RUNS = """
f = plait.jit(heat)
for _ in range(4):  # the third one is captured, and replayed then
    assert np.asarray(f(there)).tobytes() == np.asarray(f(x)).tobytes()
g = plait.jit(lambda x: halvings(x, 200.0))
assert [np.asarray(a).tobytes() for a in g(there)] == [np.asarray(a).tobytes() for a in g(x)]
try:
    plait.jit(lambda x: halvings(x, -1.0, max_steps=2))(there)[0].block_until_ready()
except plait.ValueError as error:
    print(str(error).splitlines()[0])
"""

STOPS = """
endless = plait.jit(lambda x: halvings(x, -1.0))
few = there[:50]
for wait in (np.asarray, lambda array: array.block_until_ready(), lambda array: array.tolist()):
    y = endless(few)[0]
    interrupted(lambda: wait(y))
try:
    np.asarray(y)
except plait.Error as error:
    print(error)
assert (np.asarray(few * 0 + 1) == 1).all()
"""


def said(program):
    environment = {**os.environ, "PLAIT_CUDA_LIBRARIES": str(STAND_INS), "PLAIT_WAIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOOPS + program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_steps_of_many_elements_are_one_kernel():
    text = said(RUNS)
    assert "scan  [2 kernels, whose blocks meet: up to 8998 elements at once]" in text
    assert "while_loop: the condition still holds after max_steps = 2 steps" in text


def test_a_loop_stops_when_the_wait_for_it_is_interrupted():
    text = said(STOPS)
    assert text.count("stopped\n") == 3
    assert text.count("the call that was to compute this was interrupted") == 1
