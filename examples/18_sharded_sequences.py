"""Lesson 18: sequences of unequal length, of which each place has some: lengths travel with their sequences.

A mean over all steps of all sequences is a sum over a count, and both are summed over places: a mean of the places'
means would weigh steps unequally. As in lesson 16, on ranks or alone:

    plait run -n 4 examples/18_sharded_sequences.py

Prints the same numbers as its twin, 18_sharded_sequences.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import sys

import plait
import plait.numpy as jnp
from plait import P, jit, lax, mask, random, shard_map, value_and_grad, vmap

COUNT, LONGEST, WIDTH = 40, 12, 3  # 2, 4 and 5 places divide the count
PLACES = plait.process_count()
if PLACES == 1:
    PLACES = int(sys.argv[1]) if len(sys.argv) > 1 else 4
mesh = plait.mesh((PLACES,), ("data",))


def errors(weights, x, y):
    """The sum of squared errors of one sequence of n steps: a recurrent net that predicts y from x."""

    def step(state, now):
        state = jnp.tanh(now @ weights["in"] + state @ weights["state"])
        return state, state @ weights["out"]

    _, guesses = lax.scan(step, jnp.zeros(WIDTH), x)
    return jnp.sum(jnp.square(guesses - y))


# Of a batch that is padded to LONGEST: what the padding holds is never read.
of_batch = vmap(mask(errors, in_shapes=(None, f"n {WIDTH}", "n")), in_axes=(None, 0, 0))


def loss_of_part(weights, x, y, lengths):
    total = jnp.sum(of_batch(weights, x, y, n=lengths))
    count = jnp.sum(lengths)
    return lax.psum(total, "data") / lax.psum(count, "data")


part = P("data")
loss = shard_map(loss_of_part, mesh, (P(), part, part, part), P())

keys = random.split(random.key(0), 6)
lengths = random.randint(keys[5], (COUNT,), 1, LONGEST + 1)
weights = {
    "in": random.normal(keys[0], (WIDTH, WIDTH)),
    "state": random.normal(keys[1], (WIDTH, WIDTH)) * 0.5,
    "out": random.normal(keys[2], (WIDTH,)),
}
is_step = jnp.arange(LONGEST) < lengths[:, None]
x = jnp.where(is_step[..., None], random.normal(keys[3], (COUNT, LONGEST, WIDTH)), jnp.nan)
y = jnp.where(is_step, random.normal(keys[4], (COUNT, LONGEST)), jnp.nan)

value, gradients = jit(value_and_grad(loss))(weights, x, y, lengths)


sizes = lengths.tolist()


def one_by_one(weights):
    return sum(errors(weights, x[i, :n], y[i, :n]) for i, n in enumerate(sizes)) / sum(sizes)


expected, by_weights = value_and_grad(one_by_one)(weights)
if plait.process_index() == 0:
    padding = LONGEST * COUNT - sum(sizes)
    print(f"{COUNT} sequences of {sum(sizes)} steps: {padding} of padding")
    print(f"mean error {float(value):.5f} in places, {float(expected):.5f} one by one")
    for name, gradient in gradients.items():
        off = float(jnp.max(jnp.abs(gradient - by_weights[name])))
        print(f"gradient by {name} equal to rounding: {off < 1e-5}")
