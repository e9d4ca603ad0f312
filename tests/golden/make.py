"""Writes the golden files of the format that this plait saves: python tests/golden/make.py.

Files of each version stay as they were written; tests load all of them and run their test vectors. Run it once
when the format gets a new number, and commit what it writes.
"""

# SPDX-License-Identifier: Apache-2.0
import collections
import pathlib
import sys

import ml_dtypes
import numpy as np

import plait
import plait.numpy as jnp
from plait import lax, nn, optim, random

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(0)
Pair = collections.namedtuple("Pair", "left right")
DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", "complex64", "complex128"]


def training(path):
    """Gradients, an optimiser, constants that entries share, a size with a name."""
    rates = jnp.asarray([0.2, 0.1])
    scale = {"inputs": np.linspace(0.5, 2, 4).astype(np.float32)}
    weights = {
        "w": rng.normal(size=(4, 3)).astype(np.float32),
        "b": rng.normal(size=3).astype(np.float32),
    }
    x, y = rng.normal(size=(5, 4)).astype(np.float32), np.arange(5, dtype=np.int32) % 3

    def predict(weights, x):
        return nn.softmax((x * scale["inputs"]) @ weights["w"] + weights["b"])

    def train_step(weights, state, x, y):
        def loss(weights):
            return -jnp.mean(jnp.sum(jnp.log(predict(weights, x)) * nn.one_hot(y, 3), -1))

        value, slope = plait.value_and_grad(loss)(weights)
        slope = {"w": slope["w"] * rates[0], "b": slope["b"] * rates[1]}
        updates, state = optim.adam(slope, state, learning_rate=0.1)
        return optim.apply_updates(weights, updates), state, value

    plait.save(
        path,
        {
            "train_step": (train_step, weights, optim.adam_init(weights), x, y),
            "predict": (predict, {"w": "4 3", "b": "3"}, "n 4"),
        },
        meta={"task": "a golden file", "unit": "µm"},
        licence="Apache-2.0",
    )


def control(path):
    """Control flow, custom rules, random numbers, indexing, and functions inside functions."""

    @plait.custom_vjp
    def clipped(x):
        return jnp.sin(x)

    clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (jnp.clip(ct * jnp.cos(x), -1, 1),))

    def walk(key, x):
        def body(carry, k):
            carry = carry + random.normal(k, (3,))
            return carry, jnp.sum(carry)

        return lax.scan(body, x, random.split(key, 4))

    def newton(x):
        return lax.while_loop(
            lambda s: jnp.abs(s * s - x) > 1e-9, lambda s: 0.5 * (s + x / s), x + 1.0
        )

    def mixed(x, i):
        y = lax.cond(jnp.sum(x) > 0, jnp.cumsum, lambda v: clipped(v[::-1]), x)
        z = lax.switch(i, [jnp.sort, lambda v: -v, plait.jit(jnp.tanh)], y)
        return plait.grad(lambda v: jnp.sum(clipped(v) * z))(x), z.at[jnp.asarray([0, 2])].add(1.0)

    key, x = random.key(3), np.zeros(3, np.float32)
    values = rng.normal(size=6)
    plait.save(
        path,
        {
            "walk": (walk, key, x),
            "newton": (newton, np.float64(2.0)),
            "mixed": (mixed, values, np.int32(0)),
            "mapped": (plait.vmap(mixed, (0, 0)), np.stack([values, -values]), np.int32([1, 2])),
        },
    )


def structures(path):
    """Every dtype as argument and constant, and every container."""
    constants = {name: jnp.asarray(np.arange(6).reshape(2, 3).astype(name)) for name in DTYPES}
    constants["bfloat16"] = jnp.asarray(np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16))

    def add(values, pair, empty):
        sums = {name: values[name] + constants[name] for name in constants if name != "bool"}
        either = jnp.logical_or(values["bool"], constants["bool"])
        return Pair({**sums, "bool": either}, [pair.left, (pair.right, None, empty)])

    values = {name: np.ones((2, 3), np.asarray(array).dtype) for name, array in constants.items()}
    plait.save(path, add, values, Pair(np.float32(1), 2.5), np.zeros((0, 2), np.float32))


def bare(path):
    """Without constants and test vectors."""
    factor = jnp.asarray(np.float32([1, 2, 3]))
    plait.save(path, lambda x: x * factor, "n 3", constants=False, test_vectors=False)


if __name__ == "__main__":
    folder = HERE / f"format_{sys.argv[1]}"
    folder.mkdir(exist_ok=True)
    for make in (training, control, structures, bare):
        make(folder / f"{make.__name__}.plait")
