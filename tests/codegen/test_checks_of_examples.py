"""Examples with indices of their own, which may fail: each runs through all steps, and the error is that of the step and the
example that fail first where all examples go from step to step together.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

random = np.random.default_rng(29)
SIDE, STEPS = 12, 40


def flipped(spins, sites, uniforms):
    """One site after the other, by what is beside it."""

    def flip(k, s):
        i, j = sites[k, 0], sites[k, 1]
        h = s[(i + 1) % SIDE, j] + s[(i - 1) % SIDE, j] + s[i, (j + 1) % SIDE] + s[i, j - 1]
        return s.at[i, j].multiply(jnp.where(uniforms[k] < jnp.exp(-h * s[i, j]), -1.0, 1.0))

    return lax.fori_loop(0, STEPS, flip, spins)


def flipped_by_hand(spins, sites, uniforms):
    s = spins.copy()
    for (i, j), u in zip(sites, uniforms):
        h = s[(i + 1) % SIDE, j] + s[(i - 1) % SIDE, j] + s[i, (j + 1) % SIDE] + s[i, j - 1]
        s[i, j] *= np.where(u < np.exp(-h * s[i, j]), -1.0, 1.0)
    return s


def permuted(x, picks):
    """Several indices in each step."""

    def step(x, pick):
        x = x.at[pick].add(0.5 * x[pick[::-1]])
        return x, x[pick[0]]

    return lax.scan(step, x, picks)


def permuted_by_hand(x, picks):
    x, ys = x.copy(), []
    for pick in picks:
        np.add.at(x, pick, 0.5 * x[pick[::-1]])
        ys.append(x[pick[0]])
    return x, np.array(ys)


def chained(x, picks):
    """A loop that may fail, and one that goes on with what it has made."""

    def step(x, pick):
        x = x.at[(pick + 1) % x.size].multiply(-0.5 * jnp.tanh(x[pick]))
        return x, x

    def back(c, x):
        c = 0.5 * c + x
        return c, c

    return lax.scan(back, jnp.zeros_like(x), lax.scan(step, x, picks)[1], reverse=True)[1]


def chained_by_hand(x, picks):
    x, made = x.copy(), []
    for pick in picks:
        x[(pick + 1) % x.size] *= -0.5 * np.tanh(x[pick])
        made.append(x.copy())
    c, out = np.zeros_like(x), []
    for x in reversed(made):
        c = 0.5 * c + x
        out.append(c)
    return np.stack(out[::-1])


def signs():
    return np.sign(random.standard_normal((SIDE, SIDE)))


def distinct():
    return np.stack([random.permutation(30)[:10] for _ in range(STEPS)]).astype(np.int32)


CASES = {
    "flipped": (
        flipped,
        flipped_by_hand,
        lambda: (
            signs(),
            random.integers(0, SIDE, (STEPS, 2)).astype(np.int32),
            random.uniform(0, 1, STEPS),
        ),
    ),
    "chained": (chained, chained_by_hand, lambda: (random.standard_normal(30), distinct())),
    "permuted": (permuted, permuted_by_hand, lambda: (random.standard_normal(30), distinct())),
}


def drawn(name, examples):
    draws = [CASES[name][2]() for _ in range(examples)]
    return draws, [np.stack(each) for each in zip(*draws)]


def leaves(tree):
    return [np.asarray(leaf) for leaf in plait.tree.leaves(tree)]


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("examples", [3, 9, 70])
@pytest.mark.parametrize("name", CASES)
def test_examples_have_indices_of_their_own(name, examples, wait):
    program, by_hand, _ = CASES[name]
    draws, stacked = drawn(name, examples)
    found = leaves(plait.jit(plait.vmap(program), wait=wait)(*map(jnp.asarray, stacked)))
    single = [leaves(plait.jit(program)(*map(jnp.asarray, one))) for one in draws]
    right = [leaves(by_hand(*one)) for one in draws]
    for k, leaf in enumerate(found):
        np.testing.assert_array_equal(leaf, np.stack([one[k] for one in single]))
        np.testing.assert_allclose(leaf, np.stack([one[k] for one in right]), rtol=1e-12)


def error_of(call):
    with pytest.raises(IndexError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("where", [[(20, 5, 77), (20, 3, 78), (31, 0, 79)], [(STEPS - 1, 69, -50)]])
@pytest.mark.parametrize("name", CASES)
def test_the_first_step_that_fails_is_reported(name, where, wait):
    program, _, _ = CASES[name]
    _, stacked = drawn(name, 70)
    for step, example, index in where:
        stacked[1][example, step, 1] = index
    inputs = [jnp.asarray(each) for each in stacked]
    mapped = plait.vmap(program)
    with plait.disable_jit():
        eager = error_of(lambda: mapped(*inputs))
    jitted = plait.jit(mapped, wait=wait)
    for _ in range(3):
        found = error_of(lambda: jitted(*inputs))
        assert found.splitlines()[0] == eager.splitlines()[0]
    stacked = drawn(name, 70)[1]  # and none is
    for a, b in zip(
        leaves(jitted(*map(jnp.asarray, stacked))), leaves(mapped(*map(jnp.asarray, stacked)))
    ):
        np.testing.assert_array_equal(a, b)
