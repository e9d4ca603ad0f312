"""Lesson 17: a transformer block whose weights are divided among places: heads of attention, and hidden units.

A place multiplies by its columns of the first matrix and its rows of the second, and one sum over places follows the
second product. Values and gradients are those of the whole block. As in lesson 16, on ranks or alone:

    plait run -n 4 examples/17_tensor_parallel.py

Prints the same numbers as its twin, 17_tensor_parallel.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import sys

import plait
import plait.numpy as jnp
from plait import P, jit, lax, nn, random, shard_map, value_and_grad

WIDTH, HEADS, EACH, HIDDEN = 80, 20, 4, 160  # 2, 4 and 5 places divide heads and hidden units
PLACES = plait.process_count()
if PLACES == 1:
    PLACES = int(sys.argv[1]) if len(sys.argv) > 1 else 4
mesh = plait.mesh((PLACES,), ("model",))

SHAPES = {
    "query": (WIDTH, HEADS, EACH),
    "key": (WIDTH, HEADS, EACH),
    "value": (WIDTH, HEADS, EACH),
    "out": (HEADS, EACH, WIDTH),
    "up": (WIDTH, HIDDEN),
    "down": (HIDDEN, WIDTH),
}
# Where each is divided: by heads, and by hidden units.
SPECS = {
    "query": P(None, "model"),
    "key": P(None, "model"),
    "value": P(None, "model"),
    "out": P("model"),
    "up": P(None, "model"),
    "down": P("model"),
}


def attention(weights, x):
    """Of the heads that weights has; the sum over heads is that over these heads alone."""
    q, k, v = (jnp.einsum("btw,whe->bhte", x, weights[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bhte,bhse->bhts", q, k) / EACH**0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    shares = nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bhts,bhse,hew->btw", shares, v, weights["out"])


def feed_forward(weights, x):
    return nn.gelu(x @ weights["up"]) @ weights["down"]


def normalized(x):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-5)


def block(weights, x, total=lambda part: part):
    """total: the sum of what places have, where weights are divided."""
    x = x + total(attention(weights, normalized(x)))
    return x + total(feed_forward(weights, normalized(x)))


def divided_block(weights, x):
    return block(weights, x, lambda part: lax.psum(part, "model"))


in_places = shard_map(divided_block, mesh, (SPECS, P()), P())


def loss_of(block):
    return jit(value_and_grad(lambda weights, x: jnp.mean(jnp.square(block(weights, x) - 1))))


keys = random.split(random.key(0), len(SHAPES) + 1)
weights = {
    name: random.normal(key, shape) * shape[0] ** -0.5 for key, (name, shape) in zip(keys, SHAPES.items())
}  # fmt: skip
x = random.normal(keys[-1], (2, 16, WIDTH))
value, gradients = loss_of(in_places)(weights, x)
whole, expected = loss_of(block)(weights, x)
if plait.process_index() == 0:
    print(f"loss {float(value):.4f} in places, {float(whole):.4f} undivided")
    for name, gradient in gradients.items():
        off = jnp.max(jnp.abs(gradient - expected[name])) / jnp.max(jnp.abs(expected[name]))
        print(f"gradient by {name}: {gradient.shape}, equal to rounding: {bool(off < 1e-4)}")
