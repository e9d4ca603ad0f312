"""Trains a classifier on handwritten digits, shows how it was compiled, and takes per-example gradients.

The C++ twin, demo.cpp, does the same from the same seed and reaches the same accuracy.
"""

# SPDX-License-Identifier: Apache-2.0
import pathlib
import time

import numpy as np
from digits import load_digits
from rich.progress import Progress

import plait
import plait.numpy as jnp
from plait import grad, jit, nn, optim, random, value_and_grad, vmap

ROOT = pathlib.Path(__file__).parent
EPOCHS, BATCH, RATE = 40, 64, 3e-3


def load():
    """The digits, split into training and test sets by permutation(key(0)): 80 % and 20 %."""
    images, labels = load_digits()
    n = len(labels)
    order = np.asarray(random.permutation(random.key(0), n))
    test, train = order[: n // 5], order[n // 5 :]
    return (images[train], labels[train]), (images[test], labels[test])


def init(key, sizes=(64, 128, 10)):
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        key, sub = random.split(key)
        layers.append(
            {
                "w": random.normal(sub, (fan_in, fan_out)) * (2 / fan_in) ** 0.5,
                "b": jnp.zeros(fan_out),
            }
        )
    return layers


def predict(layers, x):
    for layer in layers[:-1]:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def loss(layers, x, y):
    logits = predict(layers, x)
    return -jnp.mean(jnp.sum(nn.log_softmax(logits) * nn.one_hot(y, 10), axis=-1))


@jit
def step(layers, state, x, y):
    value, gradients = value_and_grad(loss)(layers, x, y)
    updates, state = optim.adam(gradients, state, learning_rate=RATE)
    return optim.apply_updates(layers, updates), state, value


@jit
def accuracy(layers, x, y):
    return jnp.mean(jnp.argmax(predict(layers, x), axis=-1) == y)


def main():
    (train_x, train_y), (test_x, test_y) = load()
    layers = init(random.key(1))
    state = optim.adam_init(layers)
    steps = len(train_x) // BATCH
    curve = []
    start = time.perf_counter()
    with Progress(transient=True) as progress:
        task = progress.add_task("training", total=EPOCHS * steps)
        for epoch in range(EPOCHS):
            order = np.asarray(
                random.permutation(random.fold_in(random.key(2), epoch), len(train_x))
            )
            total = 0.0
            for i in range(steps):
                rows = order[i * BATCH : (i + 1) * BATCH]
                layers, state, value = step(layers, state, train_x[rows], train_y[rows])
                total += float(value)
                progress.advance(task)
            curve.append((total / steps, float(accuracy(layers, test_x, test_y))))
    seconds = time.perf_counter() - start
    print(f"trained {EPOCHS * steps} steps in {seconds:.1f} s")
    print(f"loss {curve[-1][0]:.4f}")
    print(f"accuracy {100 * curve[-1][1]:.1f} %")

    print("\nThe jaxpr of the loss:")
    print(plait.make_jaxpr(loss)(layers, train_x[:BATCH], train_y[:BATCH]))
    print("\nWhere the step runs:")
    print(plait.explain(step, layers, state, train_x[:BATCH], train_y[:BATCH]))

    per_example = jit(vmap(grad(loss), in_axes=(None, 0, 0)))
    gradients = per_example(layers, train_x[:BATCH], train_y[:BATCH])
    norms = jnp.sqrt(
        sum(jnp.sum(g.reshape(BATCH, -1) ** 2, axis=1) for g in plait.tree.leaves(gradients))
    )
    print(
        "\nNorms of per-example gradients: smallest {:.2e}, largest {:.2e}".format(
            float(norms.min()), float(norms.max())
        )
    )
    picture(curve)


def picture(curve):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    output = ROOT / "output"
    output.mkdir(exist_ok=True)
    figure, left = plt.subplots(figsize=(6, 3.5))
    epochs = range(1, len(curve) + 1)
    left.plot(epochs, [value for value, _ in curve], color="tab:blue")
    left.set_xlabel("epoch")
    left.set_ylabel("training loss", color="tab:blue")
    left.set_yscale("log")
    right = left.twinx()
    right.plot(epochs, [100 * value for _, value in curve], color="tab:orange")
    right.set_ylabel("test accuracy [%]", color="tab:orange")
    figure.tight_layout()
    figure.savefig(output / "learning_curve.png", dpi=120)
    print(f"saved {(output / 'learning_curve.png').relative_to(ROOT.parent)}")


if __name__ == "__main__":
    main()
