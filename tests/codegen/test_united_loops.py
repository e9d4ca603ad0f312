"""Loops one after the other, as one loop in which each example, or lane, runs through all of them.

What is right is the same in NumPy, a loop over single calls, and the equations one by one, to the bit.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

random = np.random.default_rng(23)


def uniform(*shape):
    return random.uniform(0.1, 1, shape)


def swept(u, w):
    """Down through levels, and up again through what was made on the way."""

    def down(s, x):
        c, d = s
        u, w = x
        m = 1 / (1 + w - w * c)
        s = w * m, (u - w * d) * m
        return s, s

    z = jnp.zeros_like(u[0])
    _, (c, d) = lax.scan(down, (z, z), (u, w))
    return lax.scan(lambda x, s: (s[1] - s[0] * x,) * 2, z, (c, d), reverse=True)[1]


def swept_by_hand(u, w):
    c = d = np.zeros_like(u[0])
    made = []
    for u_, w_ in zip(u, w):
        m = 1 / (1 + w_ - w_ * c)
        c, d = w_ * m, (u_ - w_ * d) * m
        made.append((c, d))
    x, out = np.zeros_like(u[0]), [None] * len(u)
    for i in reversed(range(len(u))):
        x = made[i][1] - made[i][0] * x
        out[i] = x
    return np.stack(out)


def filtered(image, a, b):
    """Along columns, then along rows: in between, each example is an array."""

    def column(j, y):
        return y.at[:, j].set(a * image[:, j] + b[0] * y[:, j - 1] + b[1] * y[:, j - 2])

    y = lax.fori_loop(2, image.shape[1], column, image)

    def row(i, z):
        return z.at[i].set(a * y[i] + b[0] * z[i - 1] + b[1] * z[i - 2])

    return lax.fori_loop(2, image.shape[0], row, y)


def filtered_by_hand(image, a, b):
    y = image.copy()
    for j in range(2, y.shape[1]):
        y[:, j] = a * image[:, j] + b[0] * y[:, j - 1] + b[1] * y[:, j - 2]
    z = y.copy()
    for i in range(2, z.shape[0]):
        z[i] = a * y[i] + b[0] * z[i - 1] + b[1] * z[i - 2]
    return z


def mixed(c, v):
    c = 0.5 * c + v
    return c, c


def three_times(x):
    """Three loops, each of what the one before it has made."""

    z = jnp.zeros_like(x[0])
    y = lax.scan(mixed, z, x)[1]
    y = lax.scan(mixed, z, y, reverse=True)[1]
    return lax.scan(mixed, z, y)[1]


def three_times_by_hand(x):
    def mixed(x, order):
        y, c = np.empty_like(x), np.zeros_like(x[0])
        for i in order:
            c = y[i] = 0.5 * c + x[i]
        return y

    n = len(x)
    return mixed(mixed(mixed(x, range(n)), reversed(range(n))), range(n))


def through_a_neighbour(x):
    """The second loop needs of the first one what another lane has made."""

    z = jnp.zeros_like(x[0])
    y = lax.scan(mixed, z, x)[1]
    return lax.scan(lambda c, v: ((c * 0.5 + jnp.roll(v, 1)),) * 2, z, y, reverse=True)[1]


def through_a_neighbour_by_hand(x):
    y, c = np.empty_like(x), np.zeros_like(x[0])
    for i in range(len(x)):
        c = y[i] = 0.5 * c + x[i]
    z, c = np.empty_like(x), np.zeros_like(x[0])
    for i in reversed(range(len(x))):
        c = z[i] = c * 0.5 + np.roll(y[i], 1)
    return z


def used_in_between(x):
    """What the first loop makes is a result too."""
    y = three_times(x)
    z = jnp.zeros_like(x[0])
    c, s = lax.scan(lambda c, v: (c + v, c * v), z, y)
    return y, c, s


def used_in_between_by_hand(x):
    y = three_times_by_hand(x)
    c, s = np.zeros_like(x[0]), []
    for v in y:
        s.append(c * v)
        c = c + v
    return y, c, np.stack(s)


CASES = {
    "swept": (swept, swept_by_hand, lambda: (uniform(9, 5, 7), uniform(9, 5, 7))),
    "filtered": (filtered, filtered_by_hand, lambda: (uniform(13, 12), uniform(), uniform(2) / 2)),
    "three_times": (three_times, three_times_by_hand, lambda: (uniform(11, 19),)),
    "through_a_neighbour": (
        through_a_neighbour,
        through_a_neighbour_by_hand,
        lambda: (uniform(11, 19),),
    ),
    "used_in_between": (used_in_between, used_in_between_by_hand, lambda: (uniform(11, 19),)),
}
LARGE = {  # memory of its own for each step
    "swept": lambda: (uniform(9, 23, 17), uniform(9, 23, 17)),
    "filtered": lambda: (uniform(43, 31), uniform(), uniform(2) / 2),
    "three_times": lambda: (uniform(11, 307),),
    "through_a_neighbour": lambda: (uniform(11, 307),),
    "used_in_between": lambda: (uniform(11, 307),),
}


def leaves(tree):
    return [np.asarray(leaf) for leaf in plait.tree.leaves(tree)]


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("examples", [2, 37])
@pytest.mark.parametrize("are_large", [False, True])
def test_examples_run_through_all_loops(name, examples, are_large, wait):
    program, by_hand, draw = CASES[name]
    draws = [(LARGE[name] if are_large else draw)() for _ in range(examples)]
    stacked = [jnp.asarray(np.stack(each)) for each in zip(*draws)]
    mapped = plait.vmap(program)
    found = leaves(plait.jit(mapped, wait=wait)(*stacked))
    for _ in range(2):
        again = leaves(plait.jit(mapped, wait=wait)(*stacked))
        for a, b in zip(found, again):
            np.testing.assert_array_equal(a, b)
    with plait.disable_jit():
        eager = leaves(mapped(*stacked))
    for k, leaf in enumerate(found):
        np.testing.assert_array_equal(leaf, eager[k])
        single = [leaves(plait.jit(program)(*map(jnp.asarray, one)))[k] for one in draws]
        np.testing.assert_allclose(leaf, np.stack(single), rtol=1e-12)
        right = [leaves(by_hand(*one))[k] for one in draws]
        np.testing.assert_allclose(leaf, np.stack(right), rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_gradients_run_through_all_loops(name):
    program, _, draw = CASES[name]
    draws = [draw() for _ in range(5)]
    stacked = [jnp.asarray(np.stack(each)) for each in zip(*draws)]

    def gradient(*inputs):
        return plait.grad(
            lambda *xs: sum(jnp.sum(leaf**2) for leaf in plait.tree.leaves(program(*xs)))
        )(*inputs)

    found = leaves(plait.jit(plait.vmap(gradient), wait=True)(*stacked))
    single = [leaves(plait.jit(gradient, wait=True)(*map(jnp.asarray, one))) for one in draws]
    for k, leaf in enumerate(found):
        np.testing.assert_allclose(leaf, np.stack([one[k] for one in single]), rtol=1e-9)


def test_what_is_made_in_between_takes_no_memory_of_all_examples():
    x = jnp.asarray(uniform(64, 11, 307))
    text = str(plait.jit(plait.vmap(three_times), wait=True).explain(x))
    if "loop program" not in text:
        pytest.skip("no generated code")
    assert "fused: scan scan scan" in text
    arena = int(text.split("arena: ")[1].split(" ")[0])
    assert arena < x.nbytes


def test_a_loop_is_no_part_of_what_it_begins_with():
    x = uniform(3000, 17)
    found = plait.jit(
        lambda x: lax.scan(lambda c, v: (c * 0.5 + v, None), jnp.zeros_like(x[:, 0]), x.T)[0],
        wait=True,
    )(jnp.asarray(np.repeat(x, 4, 0)))
    right = np.zeros(len(x))
    for v in x.T:
        right = right * 0.5 + v
    np.testing.assert_array_equal(np.asarray(found), np.repeat(right, 4))
