"""Loops over whole arrays, whose carries are written where they lie: what must be read first, copied, or left alone.

Each step computes with arrays, so that it runs as kernels of its own; beside it stands the loop in NumPy.
"""

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax


def random(*shape):
    return np.random.default_rng(11).standard_normal(shape)


def unchanged(x, w):
    return lax.fori_loop(0, 9, lambda i, s: (s[0].at[i].set(s[1][i] @ s[0]), s[1]), (x, w))


def unchanged_by_hand(x, w):
    for i in range(9):
        x[i] = w[i] @ x
    return x, w


def swapped(a, b):
    return lax.fori_loop(0, 5, lambda i, s: (jnp.sin(s[1]), s[0] * 2 + s[1]), (a, b))


def swapped_by_hand(a, b):
    for i in range(5):
        a, b = np.sin(b), a * 2 + b
    return a, b


def passed_on(a, b):  # each becomes the other, one of them changed
    return lax.fori_loop(0, 5, lambda i, s: (s[1], s[0].at[i].set(jnp.sum(s[1]))), (a, b))


def passed_on_by_hand(a, b):
    for i in range(5):
        c = a.copy()
        c[i] = np.sum(b)
        a, b = b, c
    return a, b


def read_behind_the_write(a, b):
    def step(i, s):
        a, b = s
        old = a
        a = a.at[i].set(-jnp.sum(b))
        return a, jnp.cos(old) + a[::-1]

    return lax.fori_loop(0, 6, step, (a, b))


def read_behind_the_write_by_hand(a, b):
    for i in range(6):
        old = a.copy()
        a[i] = -np.sum(b)
        b = np.cos(old) + a[::-1]
    return a, b


def columns(y, x):
    return lax.fori_loop(
        2, 9, lambda j, y: y.at[:, j].set(0.5 * x[:, j] + 0.3 * y[:, j - 1] - 0.2 * y[:, j - 2]), y
    )


def columns_by_hand(y, x):
    for j in range(2, 9):
        y[:, j] = 0.5 * x[:, j] + 0.3 * y[:, j - 1] - 0.2 * y[:, j - 2]
    return y


def branches(a, b):
    def step(i, s):
        a, b = s
        return lax.cond(
            jnp.sum(a) > 0,
            lambda a, b: (a.at[i].set(-9.0), b),
            lambda a, b: (b[::-1], a * 0.5),
            a,
            b,
        )

    return lax.fori_loop(0, 7, step, (a, b))


def branches_by_hand(a, b):
    for i in range(7):
        if np.sum(a) > 0:
            a = a.copy()
            a[i] = -9.0
        else:
            a, b = b[::-1].copy(), a * 0.5
    return a, b


def nested(a, w):
    def outer(i, s):
        return lax.fori_loop(0, 4, lambda j, s: (s[0].at[j].add(jnp.sum(s[1][i] * s[0])), s[1]), s)

    return lax.fori_loop(0, 9, outer, (a, w))


def nested_by_hand(a, w):
    for i in range(9):
        for j in range(4):
            a[j] += np.sum(w[i] * a)
    return a, w


def until(a, b):
    def goes_on(s):
        return jnp.sum(s[0] ** 2) < 1e6

    def step(s):
        a, b = s
        return a.at[0].set(jnp.sum(b)) * 1.5, b.at[1].set(jnp.max(a))

    return lax.while_loop(goes_on, step, (a, b))


def until_by_hand(a, b):
    while np.sum(a**2) < 1e6:
        old = a.copy()
        a[0] = np.sum(b)
        a = a * 1.5
        b[1] = np.max(old)
    return a, b


def stacked(a, xs):
    return lax.scan(lambda a, x: (a.at[1].set(jnp.sum(x * a)), a), a, xs)


def stacked_by_hand(a, xs):
    ys = []
    for x in xs:
        ys.append(a.copy())
        a[1] = np.sum(x * a)
    return a, np.stack(ys)


def more_results_than_operands(a, b):
    def step(i, s):
        a, b = s
        first, second, third = lax.cond(
            i > 2, lambda a: (a.at[i].set(0.0), a * 2, -a), lambda a: (a, jnp.cos(a), a), a
        )
        return first + third * b[i], second

    return lax.fori_loop(0, 6, step, (a, b))


def more_results_than_operands_by_hand(a, b):
    for i in range(6):
        first, second, third = a.copy(), np.cos(a), a
        if i > 2:
            first[i], second, third = 0.0, a * 2, -a
        a, b = first + third * b[i], second
    return a, b


PAIRS = {
    "more results than operands": (
        more_results_than_operands,
        more_results_than_operands_by_hand,
        random(12),
        random(12),
    ),
    "unchanged": (unchanged, unchanged_by_hand, random(9), random(9, 9) / 9),
    "swapped": (swapped, swapped_by_hand, random(12), random(12)),
    "passed on": (passed_on, passed_on_by_hand, random(12), random(12)),
    "read behind the write": (
        read_behind_the_write,
        read_behind_the_write_by_hand,
        random(12),
        random(12),
    ),
    "columns": (columns, columns_by_hand, random(11, 9), random(11, 9)),
    "branches": (branches, branches_by_hand, random(12), random(12)),
    "nested": (nested, nested_by_hand, random(9), random(9, 9) / 9),
    "until": (until, until_by_hand, random(12), random(12)),
    "stacked": (stacked, stacked_by_hand, random(9), random(6, 9)),
}


def check(got, expected):
    for a, b in zip(plait.tree.leaves(got), plait.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_a_carry_in_place_is_what_numpy_gives(name, wait):
    program, by_hand, *inputs = PAIRS[name]
    expected = by_hand(*[x.copy() for x in inputs])
    arguments = [jnp.asarray(x) for x in inputs]
    function = plait.jit(program, wait=wait)
    for _ in range(3):
        check(function(*arguments), expected)
    check(program(*arguments), expected)
    for argument, given in zip(arguments, inputs):  # nothing wrote to an argument
        np.testing.assert_array_equal(np.asarray(argument), given)


@pytest.mark.parametrize("name", PAIRS)
def test_donated_arguments_become_carries(name):
    program, by_hand, *inputs = PAIRS[name]
    function = plait.jit(program, donate_argnums=(0, 1))
    for _ in range(2):
        check(function(*[jnp.array(x) for x in inputs]), by_hand(*[x.copy() for x in inputs]))


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"until"}))
def test_the_gradient_is_that_of_finite_differences(name):
    program, by_hand, *inputs = PAIRS[name]

    def total(x):
        return sum(
            jnp.sum(jnp.cos(leaf)) for leaf in plait.tree.leaves(program(x, jnp.asarray(inputs[1])))
        )

    def total_by_hand(x):
        leaves = plait.tree.leaves(by_hand(x.copy(), inputs[1].copy()))
        return sum(np.sum(np.cos(leaf)) for leaf in leaves)

    gradient = np.asarray(plait.jit(plait.grad(total))(jnp.asarray(inputs[0])))
    direction = np.random.default_rng(5).standard_normal(inputs[0].shape)
    step = 1e-6
    difference = total_by_hand(inputs[0] + step * direction) - total_by_hand(
        inputs[0] - step * direction
    )
    np.testing.assert_allclose(
        np.sum(gradient * direction), difference / (2 * step), rtol=2e-6, atol=1e-7
    )
