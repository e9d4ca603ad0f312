"""vmap of loops: an axis along which nothing depends on each other goes outside of the steps.

What is right is the loop that Python runs over all examples, to the bit in each tier, and a loop
over single calls, whose sums may have another order.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

random = np.random.default_rng(11)


def numbers(*shape):
    return random.standard_normal(shape)


def compare(program, inputs, in_axes=0, examples=9, nested=False):
    """inputs(): those of one example; an axis of None has the same for all."""
    axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(inputs())
    first = inputs()
    columns = [
        np.stack([inputs()[k] for _ in range(examples)]) if axis == 0 else first[k]
        for k, axis in enumerate(axes)
    ]
    expected = []
    for e in range(examples):
        one = [jnp.asarray(c[e] if axis == 0 else c) for c, axis in zip(columns, axes)]
        expected.append(plait.tree.leaves(plait.jit(program, wait=True)(*one)))
    mapped = plait.vmap(program, in_axes=axes)
    with plait.disable_jit():
        together = plait.tree.leaves(mapped(*(jnp.asarray(c) for c in columns)))
    for wait in (False, True):
        for _ in range(2):
            found = plait.tree.leaves(
                plait.jit(mapped, wait=wait)(*(jnp.asarray(c) for c in columns))
            )
            for k, leaf in enumerate(found):
                np.testing.assert_array_equal(np.asarray(leaf), np.asarray(together[k]))
                alone = np.stack([np.asarray(one[k]) for one in expected])
                np.testing.assert_allclose(np.asarray(leaf), alone, rtol=1e-9, atol=1e-12)


def fori(count, step, start):
    return lax.fori_loop(0, count, step, start)


def filtered(x, xs):
    """Numbers carried, slices read and results stacked."""

    def step(c, v):
        c = c * 0.5 + v
        return c, c * 2

    return lax.scan(step, x, xs)


def heated(u):
    """An array made anew at every step, in memories that change places."""
    step = lambda t, u: u.at[1:-1, 1:-1].add(0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1]))  # noqa: E731
    return fori(7, step, u)


def swept(u, f):
    """One element after the other, each of what was just written."""

    def cell(j, s):
        i, u = s
        return i, u.at[i, j].set(0.5 * (u[i - 1, j] + u[i, j - 1]) - f[i, j])

    def row(i, u):
        return fori(u.shape[1] - 1, lambda j, s: cell(j + 1, s), (i, u))[1]

    return fori(u.shape[0] - 1, lambda i, u: row(i + 1, u), u)


def turned(p):
    """Vectors of three made of their parts."""

    def slope(p):
        x, y, z = p
        return jnp.stack([y - x, x * (2 - z) - y, x * y - z])

    def step(p, _):
        k = slope(p)
        return p + 0.01 * slope(p + 0.005 * k), None

    return lax.scan(step, p, None, length=40)[0]


def filtered_by_matrices(a, p, zs):
    """Products of small matrices."""

    def step(p, z):
        p = a @ p @ a.T + z
        return p / jnp.sum(p * p), p[0]

    return lax.scan(step, p, zs)


def chosen(x, i):
    """A branch that all examples take alike, and rows by computed indices."""

    def step(k, x):
        x = lax.cond(k % 2 == 0, lambda x: x * 0.5, lambda x: x + 1, x)
        return x.at[(i + k) % x.shape[0]].add(x[i])

    return fori(6, step, x)


def orthogonal(a):
    """Sums along axes, columns, and a triangle that is the same for all."""

    def column(k, s):
        q, a = s
        v = a[:, k]
        q = q.at[:, k].set(v / jnp.sqrt(v @ v))
        row = jnp.where(jnp.arange(a.shape[1]) > k, q[:, k] @ a, 0.0)
        return q, a - q[:, k, None] * row[None]

    return fori(a.shape[1], column, (jnp.zeros_like(a), a))[0]


def beads(x, v):
    """Nests of several axes, shorter ones than the examples are."""

    def force(x):
        d = x[1:] - x[:-1]
        r = jnp.sqrt(jnp.sum(d * d, 1, keepdims=True))
        f = (r - 1) * d / r
        return jnp.zeros_like(x).at[:-1].add(f).at[1:].add(-f).at[0].set(0.0)

    def step(s, _):
        x, v = s
        v = v + 0.1 * force(x)
        x = x + 0.1 * v
        return (x, v), jnp.sum(v * v)

    return lax.scan(step, (x, v), None, length=20)


def scaled(k, a, b):
    """An array that a step makes of another one, and that no later step reads."""
    step = lambda t, s: (u := a / (k @ s[1]), b / (u @ k))  # noqa: E731
    return fori(5, step, (jnp.ones_like(a), jnp.ones_like(b)))


def substituted(a, b):
    """Sums of the elements behind an index, which is the same for all."""

    def row(i, x):
        behind = jnp.arange(b.size) < i
        return x.at[i].set((b[i] - jnp.sum(jnp.where(behind, a[i] * x, 0.0))) / a[i, i])

    return fori(b.size, row, jnp.zeros_like(b))


def until(x, n):
    """A while whose end is the same for all."""
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.9 + s[0]), (0, x))


def nested(x):
    """Numbers of an inner loop, and its array as a result."""

    def outer(c, v):
        c, ys = lax.scan(lambda c, w: (c * 0.3 + w, c), c + v, x)
        return c, ys[2] + ys[4]

    return lax.scan(outer, x[0], x)


def fitted(p, values):
    """Arrays of some elements beside much that is done with few."""
    at = jnp.linspace(0.0, 1.0, 20)

    def residual(p):
        return p[0] * jnp.exp(-p[1] * at) + p[2] - values

    def step(i, p):
        slopes = plait.jacfwd(residual)(p)
        return p - jnp.linalg.solve(slopes.T @ slopes + 0.1 * jnp.eye(3), slopes.T @ residual(p))

    return fori(4, step, p)


def corrected(a, xs):
    """Products without sums."""

    def step(a, x):
        a = a - 0.1 * jnp.outer(a @ x, x)
        return a, a[0]

    return lax.scan(step, a, xs)


def rolled(x):
    return fori(5, lambda t, x: jnp.roll(x, 1) * 0.5 + x * 1j, x)


def aligned(s, t):
    """A table of integers of 32 bits, of choices between numbers of Python, which are wider."""

    def cell(i, j, h):
        best = h[i, j] + jnp.where(s[i] == t[j], 1, -1)
        return h.at[i + 1, j + 1].set(jnp.maximum(best, jnp.maximum(h[i, j + 1], h[i + 1, j]) - 1))

    h = jnp.zeros((s.size + 1, t.size + 1), jnp.int32)
    return fori(s.size, lambda i, h: fori(t.size, lambda j, h: cell(i, j, h), h), h)


def advected(u, w):
    """Forward and backward sweeps over planes, which lie apart for the examples."""

    def down(s, x):
        m = 1 / (1 + 0.3 * x[1] - 0.2 * s[0])
        s = 0.3 * x[1] * m, (x[0] - 0.3 * s[1]) * m
        return s, s

    z = jnp.zeros_like(u[0])
    _, (c, d) = lax.scan(down, (z, z), (u, w))
    return lax.scan(lambda x, s: (s[1] - s[0] * x,) * 2, z, (c, d), reverse=True)[1]


CASES = {
    "beads": (beads, lambda: (numbers(19, 3) + np.arange(19)[:, None], numbers(19, 3)), 0),
    "filtered": (filtered, lambda: (numbers(), numbers(30)), 0),
    "filtered-shared": (filtered, lambda: (numbers(), numbers(30)), (0, None)),
    "heated": (heated, lambda: (numbers(12, 11),), 0),
    "heated-once-more": (lambda u: heated(heated(u) + 1), lambda: (numbers(9, 10),), 0),
    "swept": (swept, lambda: (numbers(12, 10), numbers(12, 10)), (0, None)),
    "turned": (turned, lambda: (numbers(3),), 0),
    "matrices": (
        filtered_by_matrices,
        lambda: (numbers(3, 3), numbers(3, 3), numbers(20, 3, 3)),
        (None, 0, 0),
    ),
    "chosen": (chosen, lambda: (numbers(10), random.integers(0, 10, 4).astype(np.int32)), 0),
    "orthogonal": (orthogonal, lambda: (numbers(12, 6),), 0),
    "scaled": (scaled, lambda: tuple(abs(numbers(*s)) + 1 for s in ((17, 12), (17,), (12,))), 0),
    "substituted": (substituted, lambda: (numbers(20, 20) + 9 * np.eye(20), numbers(20)), 0),
    "until": (until, lambda: (numbers(4), np.int32(5)), (0, None)),
    "nested": (nested, lambda: (numbers(6),), 0),
    "fitted": (fitted, lambda: (np.array([1.0, 0.5, 0.2]) + 0.1 * numbers(3), numbers(20)), 0),
    "corrected": (corrected, lambda: (numbers(3, 4), numbers(7, 4)), 0),
    "corrected-long": (corrected, lambda: (numbers(40, 50), numbers(3, 50)), 0),
    "advected": (advected, lambda: (numbers(7, 3, 9), abs(numbers(7, 3, 9))), 0),
    "advected-shared": (advected, lambda: (numbers(7, 20), abs(numbers(7, 20))), (0, None)),
    "aligned": (aligned, lambda: (random.integers(0, 4, 9), random.integers(0, 4, 7)), 0),
    "rolled": (rolled, lambda: (numbers(13) + 1j * numbers(13),), 0),
}


@pytest.mark.parametrize("examples", [9, 40])
@pytest.mark.parametrize("case", CASES)
def test_examples_are_as_they_are_alone(case, examples):
    program, inputs, axes = CASES[case]
    compare(program, inputs, axes, examples)


@pytest.mark.parametrize("case", ["turned", "filtered", "heated", "swept"])
def test_examples_of_examples(case):
    program, inputs, axes = CASES[case]
    inner = plait.vmap(program, in_axes=axes)
    batches = axes if isinstance(axes, tuple) else (axes,) * len(inputs())

    def many():
        return [
            np.stack([one for _ in range(12)])
            * np.linspace(0.5, 1, 12).reshape(-1, *[1] * one.ndim)
            if axis == 0
            else one
            for one, axis in zip(map(np.asarray, inputs()), batches)
        ]

    compare(inner, many, axes, 8)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_memories_that_change_places_keep_what_the_examples_have(steps):
    """After an odd number of steps an array lies in the other memory."""

    def program(u):
        step = lambda t, u: jnp.concatenate([u[1:] + u[:-1], u[:1]]) * 0.5  # noqa: E731
        v = fori(steps, step, u)
        return v, fori(steps, step, v * u)

    compare(program, lambda: (numbers(70),), 0, 11)


def test_numbers_of_the_loop_are_known_behind_it():
    def program(x):
        count, x = lax.while_loop(
            lambda s: s[0] < 9, lambda s: (s[0] + 2, s[1] * 0.5 + s[0]), (0, x)
        )
        return x * count, count

    compare(program, lambda: (numbers(5),))


def test_an_index_outside_raises_as_alone():
    def program(x, i):
        return fori(5, lambda k, x: x.at[i + k].add(1.0), x)

    f = plait.jit(plait.vmap(program, in_axes=(0, None)))
    for _ in range(3):
        with pytest.raises(plait.IndexError, match="index 10 is out of bounds for axis 1"):
            f(numbers(9, 10), np.int32(6))


def test_an_integer_that_does_not_fit_raises_as_step_by_step():
    def program(x, n):
        return fori(4, lambda k, s: (s[0] + s[1], 2 * s[1]), (x, n))[0]

    def weak(numbers):
        return jnp.stack([jnp.asarray(int(number)) for number in numbers])

    f = plait.jit(plait.vmap(program), wait=True)
    x, n = np.arange(20, dtype=np.int8), np.arange(20) % 7
    assert f(x, weak(n)).tolist() == (x + 15 * n).tolist()
    n[[7, 12, 15]] = 40, 70, 80  # 160 in the third step, 140 and 160 in the second one
    for _ in range(3):
        with pytest.raises(plait.ValueError, match="the integer 140 does not fit int8"):
            f(x, weak(n))


def test_gradients():
    def loss(u):
        return jnp.sum(jnp.tanh(heated(u)))

    compare(plait.grad(loss), lambda: (numbers(9, 9),), 0, 10)
