"""Lesson 8: Python as it is written: if, while, for, break, return and NumPy on values that are traced.

It has no twin: C++ is compiled, and writes lax::cond and lax::while_loop itself.
"""

# SPDX-License-Identifier: Apache-2.0
import statistics

import numpy as np

import plait
import plait.numpy as jnp
from plait import grad, jit, script, vmap


# A ball falls, and each bounce keeps a part of its height. How far does it travel until it lies?
@script
def travel(height, keep):
    way = height
    bounces = 0
    while True:
        height = height * keep
        if height < 0.01:
            break
        way = way + 2 * height
        bounces += 1
        if bounces == 1000:
            return -1.0, bounces
    return way, bounces


# On numbers, script keeps Python's meaning; under jit the loop is one of the program, of unknown length.
for keep in (0.3, 0.5, 0.8, 0.9999):
    way, bounces = jit(travel)(1.0, keep)
    assert (float(way), int(bounces)) == travel(1.0, keep)
    print(f"keep {keep}: {float(way):.4f} in {int(bounces)} bounces")

# What it became, as Python: branches and loops are functions over the variables of the function.
print(travel.source)

# Every transform goes through: derivatives, and lanes that leave the loop when they are done.
ways = vmap(lambda keep: travel(1.0, keep)[0])(jnp.array([0.3, 0.5, 0.8]))
slopes = vmap(grad(lambda keep: travel(1.0, keep)[0]))(jnp.array([0.3, 0.5, 0.8]))
print("ways  ", " ".join(f"{v:.4f}" for v in ways.tolist()))
print("slopes", " ".join(f"{v:.4f}" for v in slopes.tolist()))


# NumPy's functions are plait's on traced values. A call that cannot be traced, here the standard library's, becomes an
# island: it runs in Python each time the program runs.
@script
def first_outlier(samples):
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    for index, sample in enumerate(samples):
        if not low - 2 * (high - low) <= sample <= high + 2 * (high - low):
            return index
    return -1


samples = np.array([1.0, 2.0, 1.5, 9.0, 1.0, 2.5, -7.0])
print("outlier at", int(jit(first_outlier)(samples)), "and", int(jit(first_outlier)(samples[:3])))
islands = [
    line for line in plait.explain(first_outlier, samples).splitlines() if "quantiles" in line
]
print("explain names the island:", bool(islands))
