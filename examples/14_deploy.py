"""Lesson 14: a device that trains: the digits' training step as a shared object, called from C.

Saves a program with a training step, trains with it here, compiles it with the command line, and runs
deploy/train.c and deploy/classify.cpp, which include the header that plait compile writes. They are linked
with the object alone: no plait, no Python.
"""

# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from digits import load_digits

import plait
import plait.numpy as jnp
from plait import nn, optim, random, value_and_grad

HERE = pathlib.Path(__file__).resolve().parent
EPOCHS, BATCH = 20, 64


def init():
    """Weights, and what Adam keeps of them."""
    keys = random.split(random.key(0), 2)
    weights = {
        "hidden": random.normal(keys[0], (64, 32)) * (2 / 64) ** 0.5,
        "hidden_bias": jnp.zeros(32),
        "scores": random.normal(keys[1], (32, 10)) * (2 / 32) ** 0.5,
        "scores_bias": jnp.zeros(10),
    }
    return weights, optim.adam_init(weights)


def predict(weights, x):
    hidden = nn.relu(x @ weights["hidden"] + weights["hidden_bias"])
    return hidden @ weights["scores"] + weights["scores_bias"]


def train_step(weights, state, x, y):
    def loss(weights):
        return -jnp.mean(jnp.sum(nn.log_softmax(predict(weights, x)) * nn.one_hot(y, 10), axis=-1))

    value, gradients = value_and_grad(loss)(weights)
    updates, state = optim.adam(gradients, state, learning_rate=3e-3)
    return optim.apply_updates(weights, updates), state, value


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{command[0]} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def main(folder):
    images, labels = load_digits()
    is_test = np.arange(len(labels)) % 5 == 0
    train_images, train_labels = images[~is_test], labels[~is_test]
    weights, state = init()
    shapes = {name: " ".join(map(str, array.shape)) for name, array in weights.items()}
    functions = {
        "init": (init,),
        "train_step": (train_step, weights, state, train_images[:BATCH], train_labels[:BATCH]),
        "predict": (predict, shapes, "n 64"),
    }
    path = folder / "digits.plait"
    plait.save(path, functions, test_vectors=False)

    program = plait.load(path)
    step = plait.jit(program.train_step)
    for _ in range(EPOCHS):
        for i in range(0, len(train_labels) - BATCH + 1, BATCH):
            batch = slice(i, i + BATCH)
            weights, state, loss = step(weights, state, train_images[batch], train_labels[batch])
    guesses = np.argmax(program.predict(weights, images[is_test]), axis=1)
    right = 100 * np.mean(guesses == labels[is_test])
    print(f"in Python:  loss {float(loss):.3f}, accuracy {right:.1f} %")

    # --size makes n an argument of the function, up to a bound.
    run(
        sys.executable,
        "-m",
        "plait",
        "compile",
        path,
        "-o",
        folder / "digits.so",
        "--size",
        "n<=512",
    )
    library = folder / "digits.so"
    data = HERE.parent / "data" / "digits.bin"
    options = ["-O2", "-I", folder, library, "-Wl,-rpath," + str(folder)]
    run("cc", HERE / "deploy" / "train.c", *options, "-lpthread", "-o", folder / "train")
    print(run(folder / "train", data, folder / "weights.bin"), end="")
    run("c++", "-std=c++17", HERE / "deploy" / "classify.cpp", *options, "-o", folder / "classify")
    print(run(folder / "classify", data, folder / "weights.bin"), end="")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else temporary))
