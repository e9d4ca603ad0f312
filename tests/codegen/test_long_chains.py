"""Long chains of functions, cut into segments over blocks; rows of few elements, as lines; results over operands.

What is right is the same in NumPy in float64, or a loop over single elements, and eager evaluation to the bit.
"""

# SPDX-License-Identifier: Apache-2.0

import math

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

random = np.random.default_rng(31)
SIZES = [1, 15, 100, 1000, 4097, 100_003]


def uniform(*shape):
    return random.uniform(0.1, 1, shape)


def gelus(x):
    for _ in range(6):
        x = 0.5 * x * (1 + lax.erf(x * 0.7071067811865476))
    return x


def gelus_by_hand(x):
    for _ in range(6):
        x = np.array([0.5 * v * (1 + math.erf(v * 0.7071067811865476)) for v in x])
    return x


def check(program, by_hand, *inputs, rtol=1e-12):
    """Against NumPy, and against eager evaluation to the bit."""
    arguments = [jnp.asarray(x) for x in inputs]
    jitted = plait.jit(program, wait=True)
    got = plait.tree.leaves(jitted(*arguments))
    wanted = by_hand(*inputs)
    for mine, theirs in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, rtol=rtol)
    with plait.disable_jit():
        eager = plait.tree.leaves(program(*arguments))
    for mine, theirs in zip(got, eager, strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))
    return jitted


@pytest.mark.parametrize("size", SIZES)
def test_a_chain_is_right_at_every_size(size):
    check(gelus, gelus_by_hand, random.standard_normal(size))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_chain_of_short_numbers(dtype):
    x = jnp.asarray(random.standard_normal(1000).astype(np.float32)).astype(dtype)
    with plait.disable_jit():
        eager = gelus(x).astype("float32")
    got = plait.jit(gelus, wait=True)(x).astype("float32")
    np.testing.assert_array_equal(np.asarray(got), np.asarray(eager))


@pytest.mark.parametrize("size", [1000, 4097])
def test_what_crosses_cuts_is_used_again_far_behind(size):
    def program(x, y):
        first, flag = jnp.exp(x) * y, x > y
        z = jnp.log1p(first) + jnp.sin(jnp.tanh(first))
        for _ in range(3):
            z = jnp.exp(-z * z) + jnp.cos(z) * y
        return jnp.where(flag, z + first, z - x), z * 2, flag

    def by_hand(x, y):
        first, flag = np.exp(x) * y, x > y
        z = np.log1p(first) + np.sin(np.tanh(first))
        for _ in range(3):
            z = np.exp(-z * z) + np.cos(z) * y
        return np.where(flag, z + first, z - x), z * 2, flag

    check(program, by_hand, uniform(size), uniform(size))


def test_the_place_is_a_number_in_every_block():
    def program(x):
        i = jnp.arange(x.shape[0])
        y = jnp.exp(jnp.sin(x)) + jnp.tanh(jnp.cos(x)) * jnp.log(x)
        return jnp.where(i % 3 == 0, jnp.exp(jnp.sin(y)) * jnp.log1p(y * y), y * i)

    def by_hand(x):
        i = np.arange(len(x))
        y = np.exp(np.sin(x)) + np.tanh(np.cos(x)) * np.log(x)
        return np.where(i % 3 == 0, np.exp(np.sin(y)) * np.log1p(y * y), y * i)

    check(program, by_hand, uniform(5003))


def test_a_chain_in_the_steps_of_a_loop():
    def program(x):
        return lax.fori_loop(0, 3, lambda i, x: gelus(x) + x * i, x)

    def by_hand(x):
        for i in range(3):
            x = gelus_by_hand(x) + x * i
        return x

    check(program, by_hand, random.standard_normal(2000), rtol=1e-10)


@pytest.mark.parametrize(
    ("shape", "others"),
    [
        ((1000, 3), [(3,), (1000, 1)]),
        ((100_000, 7), [(7,), (100_000, 1)]),
        ((33, 2), [(2,), (33, 1)]),
        ((8, 70, 5), [(5,), (70, 1), (8, 1, 5), (8, 70, 1), (8, 1, 1)]),
        ((6, 5000, 3), [(6, 1, 3), (5000, 1)]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_rows_of_few_elements(shape, others, dtype):
    def number(*shape):
        return random.integers(-9, 9, shape).astype(dtype)

    def program(x, *others):
        y = x
        for other in others:
            y = jnp.maximum(y + other, other * 2)
        return y, x * others[0] - others[-1]

    def by_hand(x, *others):
        y = x
        for other in others:
            y = np.maximum(y + other, other * 2)
        return y, x * others[0] - others[-1]

    check(program, by_hand, number(*shape), *[number(*other) for other in others])


def test_rows_of_few_elements_in_the_steps_of_a_loop():
    def program(x, v, m):
        def step(state, _):
            x, v = state
            v = v - 0.1 * m[:, None] * x
            return (x + 0.1 * v, v), None

        return lax.scan(step, (x, v), None, length=5)[0]

    def by_hand(x, v, m):
        for _ in range(5):
            v = v - 0.1 * m[:, None] * x
            x = x + 0.1 * v
        return x, v

    check(program, by_hand, uniform(100, 3), uniform(100, 3), uniform(100))


def test_a_result_lies_where_an_operand_did():
    x, y = uniform(1 << 20), uniform(1 << 20)
    step = plait.jit(lambda x, y: gelus(x * y) + y, donate_argnums=1, wait=True)
    given = jnp.asarray(y)
    place = np.from_dlpack(given).ctypes.data
    got = step(jnp.asarray(x), given)
    with plait.disable_jit():
        wanted = gelus(jnp.asarray(x) * jnp.asarray(y)) + jnp.asarray(y)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
    assert np.from_dlpack(got).ctypes.data == place


def test_what_is_read_behind_a_write_is_not_written_over():
    """Reversed, shifted and broadcast reads of what the result would lie over."""
    n = 5000
    for program, by_hand in [
        (lambda x: x + x[::-1], lambda x: x + x[::-1]),
        (lambda x: jnp.roll(x, 1) * x, lambda x: np.roll(x, 1) * x),
        (lambda x: x - x[0], lambda x: x - x[0]),
        (lambda x: x - x.sum(), lambda x: x - x.sum()),
    ]:
        x = uniform(n)
        got = plait.jit(program, donate_argnums=0, wait=True)(jnp.asarray(x.copy()))
        np.testing.assert_allclose(np.asarray(got), by_hand(x), rtol=1e-12)


def mixed(x, step, sin):
    for i in range(1500):
        x = sin(x) * 0.5 + step if i % 50 == 0 else x * 0.9 + x[::-1] * 0.1
    return x


def test_steps_of_very_many_operations_are_several_kernels():
    program = lambda x: lax.fori_loop(0, 3, lambda i, x: mixed(x, i, jnp.sin), x)  # noqa: E731
    x = uniform(8)
    jitted, wanted = plait.jit(program, wait=True), x
    for i in range(3):
        wanted = mixed(wanted, i, np.sin)
    np.testing.assert_allclose(np.asarray(jitted(jnp.asarray(x))), wanted, rtol=1e-12)
    explained = str(jitted.explain(jnp.asarray(x)))
    assert "too many statements" in explained and "interpreted" not in explained
