"""Masked functions on batches large enough to run grouped by size, against a loop over examples."""

# SPDX-License-Identifier: Apache-2.0
import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as jnp

WIDTH = 32
BOUND = 96


def attend(w, x):
    """Self-attention over n vectors, and a size that the result depends on."""
    q, k = x @ w["q"], x @ w["k"]
    weights = plait.nn.softmax(q @ jnp.transpose(k) / WIDTH**0.5, axis=-1)
    y = jnp.tanh(weights @ x @ w["v"]) + x
    return jnp.mean(y * y) + w["b"], y


def problem(lengths, seed=0):
    rng = np.random.default_rng(seed)
    w = {name: rng.normal(size=(WIDTH, WIDTH)) / 6 for name in "qkv"}
    w["b"] = np.float64(0.5)
    x = rng.normal(size=(len(lengths), BOUND, WIDTH))
    for row, n in zip(x, lengths):
        row[n:] = np.nan
    return w, x, np.array(lengths, np.int32)


def batched(w, x, n):
    masked = plait.mask(attend, in_shapes=({k: None for k in w}, f"n {WIDTH}"))
    return plait.vmap(lambda x, n: masked(w, x, n=n))(x, n)


LENGTHS = [[96, 5, 17, 40, 1, 33, 8, 9] * 2, [1] * 7, [96] * 3, [64, 63, 2], [0, 50, 96, 0]]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_values_are_those_of_each_example_alone(lengths):
    w, x, n = problem(lengths)
    scores, ys = plait.jit(batched)(w, x, n)
    for i, length in enumerate(lengths):
        if length == 0:  # a mean of nothing
            assert np.isnan(scores[i].item())
            continue
        score, y = attend({k: jnp.asarray(v) for k, v in w.items()}, jnp.asarray(x[i, :length]))
        np.testing.assert_allclose(scores[i], score, rtol=1e-12)
        np.testing.assert_allclose(ys[i, :length], y, rtol=1e-10, atol=1e-12)
        assert np.all(np.asarray(ys[i, length:]) == 0)


def test_programs_for_many_sizes_share_their_memory():
    run = plait.jit(batched)
    held = []
    for length in (40, 50, 20, 70, 96, 30):
        arrays = plait.tree.map(jnp.array, problem([length] * 16))
        gc.collect()
        before = plait.memory_stats()["bytes_in_use"]
        run(*arrays)
        gc.collect()
        held.append(plait.memory_stats()["bytes_in_use"] - before)
    results = 16 * BOUND * WIDTH * 8  # bytes, of which a program keeps less than it makes
    assert max(held) < results


def total(w, x, n):
    scores, ys = batched(w, x, n)
    return jnp.sum(scores) + jnp.sum(jnp.sin(ys))


@pytest.mark.parametrize("lengths", LENGTHS[:4], ids=str)
def test_gradients_are_the_sums_over_examples(lengths):
    w, x, n = problem(lengths)
    by_w, by_x = plait.jit(plait.grad(total, argnums=(0, 1)))(w, x, n)

    def alone(w, x):
        score, y = attend(w, x)
        return score + jnp.sum(jnp.sin(y))

    wanted = {k: np.zeros_like(v) for k, v in w.items()}
    for i, length in enumerate(lengths):
        one, at = plait.grad(alone, argnums=(0, 1))(w, x[i, :length])
        for key in wanted:
            wanted[key] = wanted[key] + np.asarray(one[key])
        np.testing.assert_allclose(by_x[i, :length], at, rtol=1e-9, atol=1e-12)
        assert np.all(np.asarray(by_x[i, length:]) == 0)
    for key, value in wanted.items():
        np.testing.assert_allclose(by_w[key], value, rtol=1e-9, atol=1e-12)


def test_jit_has_the_bits_of_eager_evaluation():
    arguments = problem(LENGTHS[0] * 4)
    eager, compiled = plait.grad(total)(*arguments), plait.jit(plait.grad(total))(*arguments)
    for key in eager:
        assert np.array_equal(np.asarray(eager[key]), np.asarray(compiled[key])), key


def test_a_function_and_its_derivative_run_as_one_step():
    w, x, n = problem(LENGTHS[0] * 4)

    def loss(w, x, n):
        return jnp.sum(batched(w, x, n)[0])

    table = plait.jit(plait.value_and_grad(loss)).explain(w, x, n)
    steps = [line for line in table.splitlines() if "grouped by size" in line]
    assert len(steps) == 1, table


@pytest.mark.parametrize(
    "lengths, text",
    [
        ([96, 97], "the size n is 97 in example 1, and the arrays are padded to 96"),
        ([-1, 3], "the size n is -1 in example 0"),
    ],
)
def test_sizes_outside_their_bounds_are_errors(lengths, text):
    w, x, _ = problem([96, 96])
    w, x = {k: jnp.asarray(v) for k, v in w.items()}, jnp.asarray(np.repeat(x, 8, axis=0))
    with pytest.raises(plait.ValueError, match=text):
        plait.jit(batched)(w, x, np.array(lengths * 8, np.int32))


def test_the_laws_of_masking_hold_for_batches_of_any_size():
    """Once more the tests of mask, with even the smallest batch grouped by size."""
    here = os.path.dirname(__file__)
    files = [os.path.join(here, f"test_mask{suffix}.py") for suffix in ("", "_compositions")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    result = subprocess.run(
        command, env=os.environ | {"PLAIT_BY_SIZE": "always"}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
