"""Lesson 1: a function, its jaxpr, and what grad, vmap and jit make of it.

Prints the same numbers as its twin, 01_transforms.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp
from plait import grad, hessian, jit, jvp, value_and_grad, vjp, vmap


def f(x):
    return jnp.sum(jnp.tanh(x) * x)


x = jnp.arange(4) * 0.5 - 0.75

# A function is traced once to a jaxpr: typed vars, one equation a line.
print(plait.make_jaxpr(f)(x))
print("value", f"{float(f(x)):.6f}")

# Derivatives compose: forward, backward, twice.
print("grad", " ".join(f"{v:.6f}" for v in grad(f)(x).tolist()))
print("hessian diagonal", " ".join(f"{hessian(f)(x)[i, i].item():.6f}" for i in range(4)))
_, pushed = jvp(f, (x,), (jnp.ones(4),))
_, pull = vjp(f, x)
print("jvp and vjp agree", f"{float(pushed):.6f}", f"{float(jnp.sum(pull(jnp.ones(()))[0])):.6f}")


# vmap turns a function of one example into one of a batch; jit compiles, and every transform sees through.
def loss(w, b, x, y):
    return jnp.sum((jnp.tanh(x @ w) + b - y) ** 2)


w = jnp.reshape(jnp.arange(6) * 0.1, (3, 2))
b = jnp.zeros(2)
batch = jnp.reshape(jnp.arange(12) * 0.05, (4, 3))
target = jnp.ones((4, 2))
per_example = jit(vmap(grad(loss), in_axes=(None, None, 0, 0)))(w, b, batch, target)
print(
    "per-example gradients",
    per_example.shape,
    " ".join(f"{v:.6f}" for v in jnp.sum(per_example, axis=(1, 2)).tolist()),
)
value, gradient = jit(value_and_grad(loss, argnums=(0, 1)))(w, b, batch, target)
print(
    "batch",
    f"{float(value):.6f}",
    f"{float(jnp.sum(gradient[0])):.6f}",
    f"{float(jnp.sum(gradient[1])):.6f}",
)
