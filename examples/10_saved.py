"""Lesson 10: a training step in a file: saved, loaded, continued, differentiated again.

Prints the same numbers as its twin, 10_saved.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import os
import tempfile

import plait
import plait.numpy as jnp
from plait import grad, jit, value_and_grad, vmap


def predict(weights, x):
    return jnp.tanh(x @ weights["w"]) + weights["b"]


x = jnp.reshape(jnp.arange(24) * 0.1 - 1.2, (8, 3))
y = jnp.sin(jnp.sum(x, axis=1))
rates = jnp.asarray([0.2, 0.1])  # captured by train_step: a constant of the program


def train_step(weights, x, y):
    def loss(weights):
        return jnp.mean((predict(weights, x) - y) ** 2)

    value, slope = value_and_grad(loss)(weights)
    w, b = weights["w"] - rates[0] * slope["w"], weights["b"] - rates[1] * slope["b"]
    return {"w": w, "b": b}, value


weights = {"w": jnp.zeros(3), "b": jnp.zeros(())}
for _ in range(5):
    weights, loss = train_step(weights, x, y)
print(f"before saving {float(loss):.6f}")

# Functions are traced on arguments, and written with what they capture. The batch of predict is a
# size with a name: the loaded function takes any.
path = os.path.join(tempfile.mkdtemp(), "model.plait")
plait.save(
    path,
    {
        "train_step": (train_step, weights, x, y),
        "predict": (predict, {"w": "3", "b": ""}, "n 3"),
    },
    meta={"task": "a sine of a sum"},
    licence="Apache-2.0",
)

# verify runs the step once more on the arguments in the file, and compares.
program = plait.load(path, verify=True)
print(", ".join(program), "|", program.meta["task"])

# What is loaded is a function: it is jitted, and training goes on.
step = jit(program.train_step)
for _ in range(20):
    weights, loss = step(weights, x, y)
print(f"after loading {float(loss):.6f}")

# It is differentiated and mapped like any other.
slopes = vmap(grad(lambda row: program.predict(weights, row[None])[0]))(x[:2])
for row in slopes:
    print(" ".join(f"{float(v):.6f}" for v in row))

# Its constants have names, and can be others.
((name, old),) = program.train_step.constants.items()
careful = program.train_step.with_constants({name: old / 10})
moved = careful(weights, x, y)[0]["w"] - weights["w"]
print(f"rate {float(old[0]):.2f}, moved {float(jnp.sum(jnp.abs(moved))):.6f}")
