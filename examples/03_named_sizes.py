"""Lesson 3: programs whose sizes have names: traced once, for every size.

Prints the same as its twin, 03_named_sizes.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait.numpy as jnp
from plait import instantiate, lax, make_jaxpr, mask


def center(x):
    """Rows less their mean row, the later the heavier."""
    n = x.shape[0]
    places = (jnp.arange(n) + 1) / n
    return (x - jnp.mean(x, axis=0)) * jnp.reshape(places, (n, 1))


# A spec stands for an argument: "n 2" is a float32 array of n rows. The jaxpr binds n, so it is a program
# for every n; x.shape[0] is a size that does arithmetic and stands wherever a size may.
program = make_jaxpr(center)("n 2")
print(program)

# With a number in its place it is the program that tracing at that number gives.
print("the same at n = 4:", str(instantiate(program, n=4)) == str(make_jaxpr(center)("4 2")))


# Sizes may be expressions, and a spec may say the dtype.
def halves(x, i):
    half = x.shape[0] // 2
    return lax.slice_in_dim(x, 0, half) * lax.slice_in_dim(x, half, 2 * half) + i


print("halves of 2*n:", make_jaxpr(halves)("2*n", "i32[n]").out_avals[0])


# What a program needs of sizes that tracing cannot decide is part of it, and checked when it is used.
def first(x, y):
    return lax.slice(x, (0,), y.shape)


beginning = make_jaxpr(first)("n", "m")
try:
    instantiate(beginning, n=2, m=3)
except ValueError as error:
    print("error:", str(error).splitlines()[0])

# mask runs the program for every n on arrays of one shape: n rows are real, the rest is padding, which is
# never read and comes out as zero. Sizes that the call does not name are those of the arrays.
x = jnp.reshape(jnp.arange(10), (5, 2)) * 1.0
masked = mask(center, "n d")
for n in (1, 3, 5):
    print(f"n = {n}:", " ".join(f"{v:.3f}" for v in masked(x, n=n)[:, 0].tolist()))
try:
    masked(x, n=6)
except ValueError as error:
    print("error:", str(error).splitlines()[0])
