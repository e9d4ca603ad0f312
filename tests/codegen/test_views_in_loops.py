"""Loops over views of arrays: read where they lie, or copied first where steps read them again and again.

What is right is the loop in Python, with the same views as arrays of their own.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

random = np.random.default_rng(12)

VIEWS = {
    "transposed": lambda x: x.T,
    "moved": lambda x: jnp.moveaxis(x.reshape(4, -1, 9), 1, 0).reshape(-1, 36),
    "part": lambda x: x[2:, 1:],
    "every other": lambda x: x[::2, 1::3],
    "from the end": lambda x: x[::-1],
    "column": lambda x: jnp.broadcast_to(x[:, :1], (x.shape[0], 17)),
    "row": lambda x: jnp.broadcast_to(x[3], (20, x.shape[1])),
}


def sums(v):
    """Each slice once."""
    return lax.scan(lambda s, row: (s * 0.5 + row, s[0] + row[-1]), jnp.zeros_like(v[0]), v)


def products(v):
    """All elements in every step."""
    step = lambda t, x: (v @ x) @ v / (1 + jnp.sum(x * x))  # noqa: E731
    return lax.fori_loop(0, 5, step, jnp.ones_like(v[0]))


def carried(v):
    """A view as the first carry, written in place."""
    return lax.fori_loop(1, v.shape[0], lambda i, y: y.at[i].add(0.5 * y[i - 1] * v[i]), v)


def picked(v):
    """Elements at computed indices, in a loop of unknown length."""

    def step(s):
        i, total = s
        return i + 1, total + v[(7 * i) % v.shape[0], i % v.shape[1]]

    return lax.while_loop(lambda s: s[0] < v.shape[0], step, (0, 0.0))


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("loop", [sums, products, carried, picked])
def test_a_view_is_what_its_copy_is(loop, view, wait):
    x = random.standard_normal((36, 36))
    seen = np.ascontiguousarray(np.asarray(VIEWS[view](jnp.asarray(x))))
    with plait.disable_jit():
        expected = plait.tree.leaves(loop(jnp.asarray(seen)))
    of_view = plait.jit(lambda x: loop(VIEWS[view](x)), wait=wait)
    argument = jnp.asarray(x)
    for _ in range(2):
        for found, wanted in zip(plait.tree.leaves(of_view(argument)), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-11)
    np.testing.assert_array_equal(np.asarray(argument), x)


@pytest.mark.parametrize("examples", [3, 33])
def test_examples_along_another_axis(examples):
    """vmap of a scan: slices are those of all examples, which lie apart."""

    def program(x, a):
        return lax.scan(lambda s, row: (s * a + row[0], s - row[1]), 0.0, x)

    xs, a = random.standard_normal((50, examples, 2)), random.standard_normal(examples)
    found = plait.jit(plait.vmap(program, in_axes=(1, 0)), wait=True)(
        jnp.asarray(xs), jnp.asarray(a)
    )
    for e in range(examples):
        s, ys = 0.0, []
        for row in xs[:, e]:
            ys.append(s - row[1])
            s = s * a[e] + row[0]
        np.testing.assert_allclose(float(found[0][e]), s, rtol=1e-11)
        np.testing.assert_allclose(np.asarray(found[1][e]), ys, rtol=1e-11)
