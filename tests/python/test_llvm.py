"""The llvm backend where it is asked for, in processes of their own: PLAIT_LLVM is read once."""

import os
import subprocess
import sys

PROGRAM = """
import time
import numpy
import plait
import plait.numpy as jnp

x = jnp.asarray(numpy.linspace(-4, 4, 1003, dtype=numpy.float32))
f = lambda x: jnp.tanh(x * x) - jnp.sin(x) / (1 + jnp.exp(-x))
g = plait.jit(f)
assert numpy.asarray(g(x)).tobytes() == numpy.asarray(f(x)).tobytes()
print(g.explain(x))
"""


SWITCH = """
for _ in range(2000):
    assert numpy.asarray(g(x)).tobytes() == numpy.asarray(f(x)).tobytes()
    if "tier: last" in g.explain(x) or "backend llvm" in g.explain(x):
        break
    time.sleep(0.005)
print(g.explain(x))
"""


def explained(asked, program=PROGRAM, wait="1"):
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PLAIT_LLVM": asked, "PLAIT_WAIT": wait},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_it_is_not_used_by_default():
    assert "llvm" not in explained("0")


def test_jit_keeps_its_bits_with_it_or_says_why_it_is_missing():
    text = explained("1")
    assert "lanes" in text or "backend llvm is not used: libLLVM" in text


def test_calls_run_at_once_and_get_faster():
    text = explained("1", PROGRAM + SWITCH, wait="0")
    assert "tier: first" in text and "tier: last" in text or "backend llvm is not used" in text


def test_without_the_library_programs_run_and_say_why():
    text = explained("/nowhere/libLLVM.so")
    assert "backend llvm is not used: /nowhere/libLLVM.so cannot be read" in text
