"""Lesson 16: the handwritten digits, learned in several places at once, each of which has a part of every batch.

Alone this process is all places, here four or as many as the first argument says. Started on ranks, each is one place,
with the same bits:

    plait run -n 4 examples/16_data_parallel.py

Prints the same numbers as its twin, 16_data_parallel.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import sys

import numpy as np
from digits import load_digits

import plait
import plait.numpy as jnp
from plait import P, jit, lax, nn, optim, random, shard_map, value_and_grad

EPOCHS, BATCH = 10, 60  # 2, 4 and 5 places divide it
PLACES = plait.process_count()
if PLACES == 1:
    PLACES = int(sys.argv[1]) if len(sys.argv) > 1 else 4
mesh = plait.mesh((PLACES,), ("data",))


def init(key):
    layers = []
    for fan_in, fan_out in ((64, 32), (32, 10)):
        key, own = random.split(key)
        scale = (2 / fan_in) ** 0.5
        layers.append({"b": jnp.zeros(fan_out), "w": random.normal(own, (fan_in, fan_out)) * scale})
    return layers


def predict(layers, x):
    hidden = nn.relu(x @ layers[0]["w"] + layers[0]["b"])
    return hidden @ layers[1]["w"] + layers[1]["b"]


def loss(layers, x, y):
    return -jnp.mean(jnp.sum(nn.log_softmax(predict(layers, x)) * nn.one_hot(y, 10), axis=-1))


# A place sees its part of the batch, and all weights. The mean over places is the same everywhere, so the result has
# the spec P(). Its gradient by the weights, which places share, is summed over places by itself.
def loss_of_part(layers, x, y):
    return lax.pmean(loss(layers, x, y), "data")


loss_of_batch = shard_map(loss_of_part, mesh, (P(), P("data"), P("data")), P())


def step_of(loss):
    @jit
    def step(layers, state, x, y):
        value, gradients = value_and_grad(loss)(layers, x, y)
        updates, state = optim.adam(gradients, state, learning_rate=3e-3)
        return optim.apply_updates(layers, updates), state, value

    return step


def train(step, images, labels):
    layers = init(random.key(1))
    state = optim.adam_init(layers)
    for epoch in range(EPOCHS):
        order = np.asarray(random.permutation(random.fold_in(random.key(2), epoch), len(labels)))
        total, steps = 0.0, len(labels) // BATCH
        for i in range(steps):
            rows = order[i * BATCH : (i + 1) * BATCH]
            layers, state, value = step(layers, state, images[rows], labels[rows])
            total += float(value)
    return layers, total / steps


images, labels = load_digits()
is_test = np.arange(len(labels)) % 5 == 0
for what, function in (("in places", loss_of_batch), ("undivided", loss)):
    layers, value = train(step_of(function), images[~is_test], labels[~is_test])
    right = jnp.argmax(predict(layers, images[is_test]), axis=-1) == labels[is_test]
    if plait.process_index() == 0:
        print(f"{what}: loss {value:.3f}, accuracy {100 * float(jnp.mean(right)):.1f} %")
