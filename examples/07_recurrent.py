"""Lesson 7: a recurrent net over sequences of unequal length, by scan under mask, vmap, grad and jit.

The sequences are the UCI handwritten digits as columns of ink, from the first inked column to the last: 2 to 8 of
them. Prints the same as its twin, 07_recurrent.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import numpy as np
from digits import load_digits

import plait.numpy as jnp
from plait import jit, lax, mask, nn, optim, random, value_and_grad, vmap

EPOCHS, BATCH, WIDTH = 12, 128, 48


def load():
    """Columns of each digit, those without ink at both ends cut off, padded with NaN; lengths; labels."""
    images, labels = load_digits()
    n = len(labels)
    columns = np.full((n, 8, 8), np.nan, np.float32)
    lengths = np.zeros(n, np.int32)
    for i, image in enumerate(images.reshape(n, 8, 8)):
        inked = np.flatnonzero(image.any(axis=0))
        ink = image[:, inked[0] : inked[-1] + 1].T
        lengths[i] = len(ink)
        columns[i, : len(ink)] = ink
    return columns, lengths, labels


def init(key):
    keys = random.split(key, 3)
    return {
        "x": random.normal(keys[0], (8, WIDTH)) * 0.3,
        "h": random.normal(keys[1], (WIDTH, WIDTH)) * 0.1,
        "o": random.normal(keys[2], (WIDTH, 10)) * 0.2,
        "b": jnp.zeros(WIDTH),
    }


def classify(w, sequence):
    """Scores of ten digits for one sequence of n columns."""

    def step(h, column):
        return jnp.tanh(column @ w["x"] + h @ w["h"] + w["b"]), None

    last, _ = lax.scan(step, jnp.zeros(WIDTH), sequence)
    return last @ w["o"]


# One program for all lengths: n is 2 to 8, and differs between the examples of a batch.
batched = vmap(mask(classify, in_shapes=(None, "n 8")), in_axes=(None, 0))


def loss(w, columns, lengths, labels):
    scores = batched(w, columns, n=lengths)
    return -jnp.mean(jnp.sum(nn.log_softmax(scores) * nn.one_hot(labels, 10), axis=-1))


@jit
def step(w, state, columns, lengths, labels):
    value, gradients = value_and_grad(loss)(w, columns, lengths, labels)
    updates, state = optim.adam(gradients, state, learning_rate=5e-3)
    return optim.apply_updates(w, updates), state, value


@jit
def accuracy(w, columns, lengths, labels):
    return jnp.mean(jnp.argmax(batched(w, columns, n=lengths), axis=-1) == labels)


def main():
    columns, lengths, labels = load()
    print("lengths", *np.bincount(lengths))
    order = np.asarray(random.permutation(random.key(0), len(labels)))
    test, train = order[: len(order) // 5], order[len(order) // 5 :]
    w = init(random.key(1))
    state = optim.adam_init(w)
    for epoch in range(EPOCHS):
        shuffled = train[np.asarray(random.permutation(random.key(epoch), len(train)))]
        for i in range(len(train) // BATCH):
            rows = shuffled[i * BATCH : (i + 1) * BATCH]
            w, state, value = step(w, state, columns[rows], lengths[rows], labels[rows])
    print(f"loss {float(value):.4f}")
    print(f"accuracy {100 * float(accuracy(w, columns[test], lengths[test], labels[test])):.1f} %")
    # What the padding holds is never read, and one program serves all lengths.
    alone = [classify(w, columns[i, : lengths[i]]) for i in test[:5]]
    together = batched(w, columns[test[:5]], n=lengths[test[:5]])
    print("one by one as in the batch:", bool(jnp.allclose(jnp.stack(alone), together, atol=1e-5)))


if __name__ == "__main__":
    main()
