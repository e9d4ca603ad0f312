"""The type stubs are those that the catalogue gives, and they type-check.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_stubs_are_current():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "python" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text in module.stubs().items():
        path = ROOT / "python" / "plait" / name
        assert path.exists() and path.read_text() == text, (
            f"{name} is old: run python/make_stubs.py"
        )


PROGRAM = """
import functools
from typing import NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import flatten_util, grad, jit, lax, nn, optim, random, tree, value_and_grad, vmap
from plait.nn import initializers
from plait.scipy.stats import norm


class Layer(NamedTuple):
    w: plait.Array
    b: plait.Array


def make(key: plait.Array, sizes: list[int]) -> list[Layer]:
    keys = random.split(key, len(sizes) - 1)
    init = initializers.he_normal()
    return [Layer(init(k, (m, n), np.float32), pnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def model(layers: list[Layer], x: plait.Array) -> plait.Array:
    for layer in layers[:-1]:
        x = nn.relu(x @ layer.w + layer.b)
    return nn.log_softmax(x @ layers[-1].w + layers[-1].b, axis=-1)


def loss(layers: list[Layer], x: plait.Array, y: plait.Array) -> plait.Array:
    return -pnp.mean(pnp.take_along_axis(model(layers, x), y[:, None], axis=1))


@jit
def step(layers: list[Layer], state: object, x: plait.Array, y: plait.Array) -> tuple[plait.Array, list[Layer], object]:
    value, gradients = value_and_grad(loss)(layers, x, y)
    updates, state = optim.adam(optim.clip_by_global_norm(gradients, 1.0), state, layers, learning_rate=1e-3)
    return value, optim.apply_updates(layers, updates), state


key: plait.Array = random.key(0)
layers = make(key, [4, 8, 3])
state = optim.adam_init(layers)
x = random.normal(key, (16, 4))
y: plait.Array = random.randint(key, (16,), 0, 3)
value, layers, state = step(layers, state, x, y)
per_example = vmap(functools.partial(grad(loss), layers))(x[:, None], y[:, None])
vector, unravel = flatten_util.ravel_pytree(layers)
count: int = sum(leaf.size for leaf in tree.leaves(layers))
pooled: plait.Array = lax.reduce_window(x, -pnp.inf, lax.max, (2, 2), (2, 2), "VALID")
parts: tuple[plait.Array, ...] = pnp.split(x, 4)
total: plait.Array = pnp.add.reduce(x) if count else x.sum(axis=0, keepdims=True)
changed = x.at[0, ::2].set(1.0, mode="drop").T.reshape(-1).astype(pnp.bfloat16)
shown = np.asarray(norm.logpdf(x, 0.0, scale=2.0) + pnp.linalg.norm(x, axis=1, keepdims=True))
rows = [row.tolist() for row in x] + [float(x[0, 0]), int(y[0]), bool(x.any()), len(x)]
kind: bool = pnp.issubdtype(x.dtype, pnp.floating)
print(plait.make_jaxpr(loss)(layers, x, y), shown, rows, kind, total, pooled, parts, changed, per_example)
"""
# Each of these lines is an error that the stubs show.
WRONG = """
import plait
import plait.numpy as pnp
from plait import lax, random

x: plait.Array = pnp.ones(3)
pnp.sum(x, axsi=0)
x.reshap(3)
pnp.no_such_function(x)
lax.dot(x)
random.normal(random.key(0), dtype="float32", shapes=(3,))
number: int = pnp.mean(x)
"""


def mypy(tmp_path, text):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(text)
    stubs = [str(path) for path in sorted((ROOT / "python" / "plait").rglob("*.pyi"))]
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(program), *stubs],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(ROOT / "python"), "PATH": ""},
    )  # fmt: skip


def test_a_training_program_type_checks(tmp_path):
    result = mypy(tmp_path, PROGRAM)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_training_program_runs():
    with contextlib.redirect_stdout(io.StringIO()) as text:
        exec(compile(PROGRAM, "program", "exec"), {"__name__": "program"})
    assert "lambda" in text.getvalue()


def test_wrong_programs_do_not_type_check(tmp_path):
    result = mypy(tmp_path, WRONG)
    lines = {
        int(line.split(":")[1])
        for line in result.stdout.splitlines()
        if "program.py" in line and "error" in line
    }
    assert lines == set(range(7, 13)), result.stdout
