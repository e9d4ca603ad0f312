"""Lesson 2: named sizes, and a batch of sequences of unequal length without a loop or a recompilation.

Prints the same numbers as its twin, 02_ragged.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp
from plait import grad, jit, mask, vmap


def pooled(w, x):
    """A score of one sequence x of n vectors: attention-like weights over its n positions."""
    scores = jnp.tanh(x @ w)
    weights = jnp.exp(scores - jnp.max(scores))
    return jnp.sum(weights * scores) / jnp.sum(weights) + jnp.mean(x)


# A size may be a name. The program below is for every n.
print(plait.make_jaxpr(pooled)("3", "n 3"))

# Three sequences of lengths 2, 5 and 3, padded to 5. What the padding holds is never read: here it is NaN.
lengths = [2, 5, 3]
sequences = [jnp.reshape(jnp.arange(3 * n) * 0.1, (n, 3)) + i for i, n in enumerate(lengths)]
padded = jnp.stack(
    [jnp.pad(s, ((0, 5 - s.shape[0]), (0, 0)), constant_values=jnp.nan) for s in sequences]
)
w = jnp.arange(3) * 0.2 - 0.1

batched = jit(vmap(mask(pooled, in_shapes=(None, "n 3")), in_axes=(None, 0)))
together = batched(w, padded, n=jnp.asarray(lengths))
alone = [pooled(w, s) for s in sequences]
print("together", " ".join(f"{v:.6f}" for v in together.tolist()))
print("one by one", " ".join(f"{float(v):.6f}" for v in alone))


def total(w, x):
    return jnp.sum(batched(w, x, n=jnp.asarray(lengths)))


# The gradient of padding is exactly zero.
print("gradient by w", " ".join(f"{v:.6f}" for v in grad(total)(w, padded).tolist()))
by_x = grad(total, argnums=1)(w, padded)
print("gradient in the padding", float(jnp.sum(jnp.abs(by_x[0, 2:]))))
