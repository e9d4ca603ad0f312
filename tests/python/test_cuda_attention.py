"""Training of a transformer block in 16 bits on a CUDA device, where cuDNN computes attention and
its gradient.

The device is the stand-in of tests/cuda, in processes of its own; tests/cuda/attention_test.cpp has
the rest.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).resolve()
STAND_INS = BUILD / "tests" / "cuda"

if not (STAND_INS / "libcudnn.so.9").exists():
    pytest.skip("the stand-ins of CUDA are not built", allow_module_level=True)

BLOCK = """
import functools, sys
import numpy as np, plait, plait.numpy as pnp
from plait import nn

HEADS, WIDTH, TIME = 2, 32, 64
random = np.random.default_rng(3)

def normal(*shape):
    return random.normal(size=shape) / np.sqrt(shape[0])

WEIGHTS = {
    "qkv": normal(WIDTH, 3 * WIDTH), "out": normal(WIDTH, WIDTH),
    "up": normal(WIDTH, 4 * WIDTH), "up_bias": normal(4 * WIDTH) * 0.1,
    "down": normal(4 * WIDTH, WIDTH), "down_bias": normal(WIDTH) * 0.1,
}
X, Y = random.normal(size=(3, TIME, WIDTH)), random.normal(size=(3, TIME, WIDTH))

def block(w, x, mask=None):
    h = nn.layer_norm(x)
    q, k, v = (
        z.reshape(*z.shape[:-1], HEADS, WIDTH // HEADS) for z in pnp.split(h @ w["qkv"], 3, axis=-1)
    )
    a = nn.dot_product_attention(q, k, v, mask=mask, is_causal=mask is None)
    x = x + a.reshape(x.shape) @ w["out"]
    h = nn.gelu(nn.layer_norm(x) @ w["up"] + w["up_bias"])
    return x + h @ w["down"] + w["down_bias"]

def loss(w, x, y, mask=None):
    error = (block(w, x, mask) - y).astype("float32" if x.dtype != "float64" else "float64")
    return pnp.mean(error * error)

def cast(tree, dtype):
    return plait.tree.map(lambda a: pnp.asarray(a).astype(dtype), tree)

def near(given, expected, bound):
    given, expected = np.asarray(given.astype("float32")), np.asarray(expected)
    distance = np.max(np.abs(given - expected)) / np.max(np.abs(expected))
    assert distance < bound, distance

EXACT = plait.grad(loss)(cast(WEIGHTS, "float64"), *cast((X, Y), "float64"))
# A block rounds a dozen times between the loss and a weight, in bfloat16.
BOUND = 12 * 2.0**-8
there = plait.device_put(cast((WEIGHTS, X, Y), "bfloat16"), "cuda:0")
"""


def run(program, **environment):
    """What a program prints that begins with a block of a transformer and its exact gradients."""
    variables = {
        **os.environ,
        "PLAIT_CUDA_LIBRARIES": str(STAND_INS),
        "PLAIT_WAIT": "1",
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + program],
        env=variables,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_a_training_step_calls_cudnn_twice():
    text = run("""
step = plait.jit(plait.grad(loss), device="cuda:0")
for name, gradient in step(*there).items():
    near(gradient, EXACT[name], BOUND)
print(plait.explain(step, *there))
""")
    assert text.count("causal]") == 2 and "copies" not in text
    assert "[attention with statistics, engine" in text and "[gradient of attention, engine" in text


def test_steps_repeat_to_the_bit():
    run("""
step = plait.jit(plait.grad(loss), device="cuda:0")
first, second = step(*there), step(*there)
for name in first:
    a, b = (np.asarray(z[name].astype("float32")) for z in (first, second))
    assert np.array_equal(a, b), name
""")


def test_eager_steps_give_the_same():
    run("""
for name, gradient in plait.grad(loss)(*there).items():
    near(gradient, EXACT[name], BOUND)
""")


def test_steps_of_examples_under_vmap():
    text = run("""
each = plait.jit(plait.vmap(plait.grad(loss), in_axes=(None, 0, 0)), device="cuda:0")
for name, gradient in each(*there).items():
    near(gradient.astype("float32").mean(0), EXACT[name], BOUND)
print(plait.explain(each, *there))
""")
    assert "[attention with statistics, engine" in text and "[gradient of attention, engine" in text


def test_steps_with_a_mask():
    run("""
mask = plait.device_put(np.tril(np.ones((TIME, TIME), bool)), "cuda:0")
step = plait.jit(plait.grad(loss), device="cuda:0")
for name, gradient in step(*there, mask).items():
    near(gradient, EXACT[name], BOUND)
""")


def test_steps_that_were_saved(tmp_path):
    path = str(tmp_path / "step.plait")
    run(f"""
here = cast((WEIGHTS, X, Y), "bfloat16")
plait.save({path!r}, {{"step": (plait.grad(loss), *here)}}, test_vectors=False)
""")
    text = run(f"""
step = plait.jit(plait.load({path!r}).step, device="cuda:0")
for name, gradient in step(*there).items():
    near(gradient, EXACT[name], BOUND)
print(plait.explain(step, *there))
""")
    assert "[attention with statistics, engine" in text and "[gradient of attention, engine" in text
