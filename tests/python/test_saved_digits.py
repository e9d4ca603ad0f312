"""A training on the digits that begins here goes on in a C++ program, which knows it from its file alone."""

# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys

import numpy as np

import plait
import plait.numpy as jnp
from plait import grad, jit, nn, optim, random, value_and_grad, vmap

ROOT = pathlib.Path(__file__).parent.parent.parent
PROGRAM = (
    pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
    / "tests"
    / "example_saved_digits"
)
DATA = ROOT / "data" / "digits.bin"
BATCH = 64


def predict(layers, x):
    hidden = nn.relu(x @ layers[0]["w"] + layers[0]["b"])
    return hidden @ layers[1]["w"] + layers[1]["b"]


def loss(layers, x, y):
    return -jnp.mean(jnp.sum(nn.log_softmax(predict(layers, x)) * nn.one_hot(y, 10), axis=-1))


def train_step(layers, state, x, y):
    value, slope = value_and_grad(loss)(layers, x, y)
    updates, state = optim.adam(slope, state, learning_rate=3e-3)
    return optim.apply_updates(layers, updates), state, value


def plain_step(layers, x, y):
    return plait.tree.map(lambda p, g: p - 0.1 * g, layers, grad(loss)(layers, x, y))


def accuracy(layers, x, y):
    return jnp.mean(jnp.argmax(predict(layers, x), axis=-1) == y)


def start():
    layers = []
    for number, (fan_in, fan_out) in enumerate([(64, 32), (32, 10)]):
        w = random.normal(random.key(number), (fan_in, fan_out)) * (2 / fan_in) ** 0.5
        layers.append({"w": w, "b": jnp.zeros(fan_out)})
    return layers, optim.adam_init(layers)


def norm(tree):
    return float(np.sqrt(sum(np.sum(np.asarray(leaf) ** 2) for leaf in plait.tree.leaves(tree))))


def load_digits():
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import digits
    finally:
        sys.path.pop(0)
    return digits.load_digits()


def test_a_training_that_was_saved_goes_on_in_cpp(tmp_path):
    images, labels = load_digits()
    batches = len(labels) * 4 // 5 // BATCH

    def rows(i):
        return images[i * BATCH : (i + 1) * BATCH], labels[i * BATCH : (i + 1) * BATCH]

    layers, state = start()
    step = jit(train_step)
    for i in range(batches):
        layers, state, _ = step(layers, state, *rows(i))
    path = tmp_path / "digits.plait"
    specs = [{"w": "64 32", "b": "32"}, {"w": "32 10", "b": "10"}], "n 64", "i32[n]"
    plait.save(
        path,
        {
            "start": (lambda: (layers, state),),
            "train_step": (train_step, layers, state, *rows(0)),
            "plain_step": (plain_step, *specs),
            "loss": (loss, *specs),
            "accuracy": (accuracy, *specs),
        },
    )
    done = subprocess.run([PROGRAM, path, DATA], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = [line.replace(" %", "").rsplit(" ", 1) for line in done.stdout.splitlines()]

    # What it prints, computed here from the functions themselves.
    x, y = rows(batches)
    wanted = [("steps before", batches)]
    for _ in range(3):
        total = 0.0
        for i in range(batches):
            layers, state, value = step(layers, state, *rows(i))
            total += float(value)
        wanted.append(("loss", total / batches))
    wanted.append(("accuracy", 100 * float(accuracy(layers, x, y))))
    wanted.append(("slope", norm(grad(loss)(layers, x, y))))
    through = grad(lambda p: loss(plain_step(p, x, y), x, y))(layers)
    wanted.append(("slope through a step", norm(through)))
    each = vmap(grad(lambda p, x, y: loss(p, x[None], y[None])), (None, 0, 0))(layers, x, y)
    sizes = np.linalg.norm(np.asarray(each[1]["b"]), axis=1)
    wanted.append(("largest slope of an example", sizes.max()))
    halves = plait.tree.map(lambda leaf: 0.5 * leaf, layers)
    first, second = (float(train_step(p, state, x, y)[2]) for p in (layers, halves))
    wanted.append((f"two networks {first:.5f}", second))

    assert [name for name, _ in lines] == [name for name, _ in wanted]
    for (name, got), (_, want) in zip(lines, wanted):
        assert abs(float(got) - want) <= 2e-4 * max(1, abs(want)), name
    assert wanted[3][1] < 0.8 and wanted[4][1] > 85  # it learns
