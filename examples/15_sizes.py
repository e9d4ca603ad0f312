"""Lesson 15: what is known of sizes, and how a program runs at those of a call.

Prints the same as its twin, 15_sizes.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import pathlib
import tempfile

import plait
import plait.numpy as jnp


def pooled(x, w):
    """Sums of 8 steps each, and a layer on them."""
    steps = x.shape[0]
    return jnp.tanh(jnp.sum(x.reshape(steps // 8, 8, x.shape[1]), axis=1) @ w)


# That steps // 8 groups of 8 hold them all, t % 8 == 0, is what tracing finds that it needs. Other things are declared.
declared = ["0 < t <= 512"]
print(plait.make_jaxpr(pooled, constraints=declared)("t 2", "2 3"))


# An order decides a Python `if` on sizes, and what slices and gathers need.
def tail(x):
    return x[-4:] if x.shape[0] >= 4 else x


print(plait.make_jaxpr(tail, constraints=["n >= 8"])("n"))


def problem(error):
    """What is wrong; C++ knows arguments by number."""
    return str(error).splitlines()[0].replace("argument x", "argument 0")


# Each call is checked.
w = jnp.ones((2, 3)) * 0.25
f = plait.jit(pooled, sizes=("t 2", None), constraints=declared)
for t in (16, 12, 1024):
    try:
        print(f"t = {t}: {f(jnp.ones((t, 2)) * 0.1, w).shape[0]} groups")
    except ValueError as error:
        print("error:", problem(error))

# Without more, each size has an executable. Buckets pad to a few sizes, a bound pads to one; the padding is
# masked: never read, and cut off again. explain says what it costs.
x = jnp.ones((40, 2)) * 0.1
for options in ({}, {"buckets": True}, {"buckets": [48, 96]}, {"bound": {"t": 160}}):
    run = plait.jit(pooled, sizes=("t 2", None), constraints=declared, **options)
    print(f"{float(jnp.sum(run(x, w))):.4f}", run.explain(x, w).splitlines()[0])

# A file holds the program for every size with what it needs of them; a loaded function has the same choice.
path = pathlib.Path(tempfile.gettempdir()) / "lesson_15.plait"
plait.save(path, pooled, "t 2", w, constraints=declared)
loaded = plait.load(path).pooled
print(f"{float(jnp.sum(loaded(x, w))):.4f}")
try:
    loaded(jnp.ones((20, 2)), w)
except ValueError as error:
    print("error:", problem(error))
bounded = plait.jit(loaded, bound={"t": 64})
print(f"{float(jnp.sum(bounded(x, w))):.4f}")
path.unlink()
