"""Random programs of plait.lax's control flow over trees, against Python's own `if` and `for` on NumPy's numbers.

Each seed is a program: nested cond, switch, while_loop, fori_loop, scan, map and associative_scan over dicts, tuples
and lists of floats, integers and bools. PLAIT_SEEDS=1000:3000 tries others.

SPDX-License-Identifier: Apache-2.0
"""

import os
import random

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

FIRST, LAST = map(int, os.environ.get("PLAIT_SEEDS", "0:100").split(":"))
SEEDS = range(FIRST, LAST)
STACKED = 3  # rows of what is scanned
MODES = (None, "select", "partition")


# --- Control flow by Python ----------------------------------------------------------------------


def rows(tree, i):
    return plait.tree.map(lambda x: x[i], tree)


def stacked(trees):
    return plait.tree.map(lambda *leaves: np.stack([np.asarray(x) for x in leaves]), *trees)


class Plain:
    """lax's functions as statements of Python; options that change no result are ignored."""

    numpy = np

    @staticmethod
    def cond(predicate, then, orelse, *operands, mode=None):
        return then(*operands) if predicate else orelse(*operands)

    @staticmethod
    def switch(index, branches, *operands, mode=None):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)

    @staticmethod
    def while_loop(test, body, carry, checkpoints=None, mode=None):
        while test(carry):
            carry = body(carry)
        return carry

    @staticmethod
    def fori_loop(lower, upper, body, carry, unroll=1):
        for i in range(int(lower), int(upper)):
            carry = body(np.int32(i), carry)
        return carry

    @staticmethod
    def scan(f, carry, xs, reverse=False, unroll=1, checkpoints=None):
        ys = [None] * STACKED
        for i in reversed(range(STACKED)) if reverse else range(STACKED):
            carry, ys[i] = f(carry, rows(xs, i))
        return carry, stacked(ys)

    @staticmethod
    def map(f, xs, batch_size=None):
        return stacked([f(rows(xs, i)) for i in range(STACKED)])

    @staticmethod
    def associative_scan(f, xs, reverse=False):
        found = [None] * STACKED
        last = None
        for i in reversed(range(STACKED)) if reverse else range(STACKED):
            last = rows(xs, i) if last is None else f(last, rows(xs, i))
            found[i] = last
        return stacked(found)


class Traced:
    numpy = pnp
    cond, switch, while_loop = lax.cond, lax.switch, lax.while_loop
    fori_loop, scan, map, associative_scan = lax.fori_loop, lax.scan, lax.map, lax.associative_scan


# --- Programs ------------------------------------------------------------------------------------


def state_of(choose):
    """A tree of the names of leaves: f is a float, k an integer, b a bool, v a vector of floats."""
    return choose.choice(
        [
            lambda f, k, b, v: {"f": f, "rest": (k, [b, v])},
            lambda f, k, b, v: (f, (k, b), {"v": v}),
            lambda f, k, b, v: [v, {"b": b, "k": k}, f],
            lambda f, k, b, v: {"pair": (v, f), "flags": {"b": b}, "k": k, "none": None},
        ]
    )


def parts_of(tree):
    """The leaves by what they are: (f, k, b, v)."""
    found = {}
    for leaf in plait.tree.leaves(tree):
        kind = np.dtype(leaf.dtype).kind
        found[kind if kind != "f" else "fv"[leaf.ndim > 0]] = leaf
    return found["f"], found["i"], found["b"], found["v"]


class Program:
    """A function of a state to a state of the same structure, written once for Plain and Traced.

    Integers are multiplied by powers of two, which float32 holds: NumPy's result is a float64 there.
    """

    def __init__(self, seed):
        choose = random.Random(seed)
        self.make = state_of(choose)
        self.steps = self.block(choose, depth=2)

    def block(self, choose, depth):
        kinds = ["assign", "assign", "cond", "switch", "while", "fori", "scan", "map", "fold"]
        steps = []
        for _ in range(choose.randrange(1, 4)):
            kind = choose.choice(kinds if depth else kinds[:2])
            count = {"assign": 0, "fold": 0, "cond": 2, "switch": 3}.get(kind, 1)
            blocks = [self.block(choose, depth - 1) for _ in range(count)]
            steps.append((kind, choose.randrange(1000), blocks))
        return steps

    def run(self, flow, state, steps=None):
        for kind, salt, blocks in self.steps if steps is None else steps:
            bodies = [lambda s, block=block: self.run(flow, s, block) for block in blocks]
            state = getattr(self, kind + "_")(flow, state, salt, bodies)
        return state

    def assign_(self, flow, state, salt, _):
        np_, (f, k, b, v) = flow.numpy, parts_of(state)
        weight = 0.25 + salt % 7 / 10
        f, v = [
            (np_.sin(f * weight) + v.sum() * 0.1, np_.tanh(v * f)),
            (f * 0.5 + v[0], np_.where(b, v, np_.cos(v) * weight)),
            (np_.where(v.sum() > f, f, -f) * weight, v[::-1] + f),
            (f / (1 + f * f) + k * 0.0625, np_.cumsum(v) * 0.3),
        ][salt % 4]
        k = (k * 3 + salt) % 5 if salt % 2 else k
        return self.make(f, k, np_.logical_xor(b, f > weight) if salt % 3 else b, v)

    def cond_(self, flow, state, salt, bodies):
        f, k, b, v = parts_of(state)
        predicate = [b, f > 0.1234, k > 1, (v > 0.5).any()][salt % 4]
        return flow.cond(predicate, *bodies, state, mode=MODES[salt // 4 % 3])

    def switch_(self, flow, state, salt, bodies):
        return flow.switch(parts_of(state)[1] - salt % 2, bodies, state, mode=MODES[salt // 2 % 3])

    def while_(self, flow, state, salt, bodies):
        def test(carry):
            f, k, b, v = parts_of(carry[1])
            return flow.numpy.logical_and(carry[0] < 1 + salt % 3, v.sum() > -0.7)

        def step(carry):
            return carry[0] + 1, bodies[0](carry[1])

        options = {"mode": MODES[salt // 3 % 2], "checkpoints": [None, 1, 2][salt // 6 % 3]}
        return flow.while_loop(test, step, (np.int32(0), state), **options)[1]

    def fori_(self, flow, state, salt, bodies):
        def body(i, state):
            f, k, b, v = parts_of(state)
            return bodies[0](self.make(f + i * 0.0625, k, b, v))

        upper = parts_of(state)[1] if salt % 2 else 2 + salt % 2
        unroll = 1 if salt % 2 else salt // 2 % 3 + 1
        return flow.fori_loop(salt % 3, upper, body, state, unroll=unroll)

    def scan_(self, flow, state, salt, bodies):
        f, k, b, v = parts_of(state)

        def step(carry, row):
            f, k, b, v = parts_of(carry)
            carry = bodies[0](self.make(f * 0.7 + row["x"], k, b, v))
            return carry, {"y": parts_of(carry)[0] * row["x"], "k": parts_of(carry)[1]}

        options = {"reverse": salt % 2 == 1, "unroll": 1 + salt % 3}
        options["checkpoints"] = [None, 1, 2][salt // 6 % 3]
        carry, ys = flow.scan(step, state, {"x": v, "none": None}, **options)
        f, k, b, v = parts_of(carry)
        return self.make(f + ys["y"].sum(), (k + ys["k"][0]) % 5, b, v * 0.5 + ys["y"])

    def map_(self, flow, state, salt, bodies):
        f, k, b, v = parts_of(state)
        each = lambda x: parts_of(bodies[0](self.make(x, k, b, v)))[0]  # noqa: E731
        return self.make(f, k, b, flow.map(each, v, batch_size=[None, 1, 2, 5][salt % 4]))

    def fold_(self, flow, state, salt, _):
        f, k, b, v = parts_of(state)
        after = lambda g, h: (g[0] * h[0], g[1] * h[0] + h[1])  # noqa: E731  of affine maps
        scale, shift = flow.associative_scan(
            after, (flow.numpy.tanh(v), v * 0.5), reverse=salt % 2 == 1
        )
        return self.make(f + scale[-1], k, b, shift)

    def function(self, flow):
        """Of numbers to numbers: (f, k, b, v) -> (f, k, b, v)."""
        return lambda f, k, b, v: parts_of(self.run(flow, self.make(f, k, b, v)))


def arguments(seed, batch=()):
    rng = np.random.default_rng(seed)
    return (
        np.asarray(rng.normal(size=batch)),  # an array: a scalar of NumPy would be weak
        rng.integers(0, 5, size=batch).astype(np.int32),
        rng.random(batch) > 0.5,
        rng.normal(size=(*batch, STACKED)),
    )


def same(actual, expected, text=""):
    for a, e in zip(actual, expected):
        assert a.dtype == np.asarray(e).dtype and a.shape == np.shape(e), (text, a, e)
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-10, err_msg=text)


def scalar(arguments):
    """NumPy's numbers, not arrays without axes, as Python's loops want them."""
    return tuple(x[()] for x in arguments)


# --- Tests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_are_what_python_computes(seed):
    program = Program(seed)
    plain, traced = program.function(Plain), program.function(Traced)
    args = scalar(arguments(seed))
    arrays = [plait.numpy.asarray(np.asarray(each)) for each in args]  # scalars would be weak
    expected = plain(*args)
    same(traced(*arrays), expected)
    same(plait.jit(traced)(*arrays), expected, "jit")
    batch = arguments(seed + 1, (4,))
    examples = [plain(*scalar([x[i] for x in batch])) for i in range(4)]
    expected = [np.stack(each) for each in zip(*examples)]
    mapped = plait.vmap(traced)
    same((mapped if seed % 2 else plait.jit(mapped))(*batch), expected, "vmap")
    shared = plait.vmap(traced, in_axes=(0, None, None, 1), out_axes=-1)
    examples = [plain(*scalar((batch[0][i], args[1], args[2], batch[3][i]))) for i in range(4)]
    expected = [np.stack(each, axis=-1) for each in zip(*examples)]
    same(shared(batch[0], args[1], args[2], batch[3].T), expected, "vmap of some")


def slopes(function, x, step=1e-6):
    """Central differences of a number by each element of x."""
    x = np.asarray(x, np.float64)
    slope = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        high, low = x.copy(), x.copy()
        high[index] += step
        low[index] -= step
        slope[index] = (function(high) - function(low)) / (2 * step)
    return slope


def total(function, k, b):
    def summed(f, v):
        f, _, _, v = function(f, k, b, v)
        return f + (v * v).sum()

    return summed


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_random_programs_differentiate(seed):
    program = Program(seed)
    f, k, b, v = scalar(arguments(seed))
    plain = total(program.function(Plain), k, b)
    traced = total(program.function(Traced), k, b)
    expected = slopes(lambda f: plain(f, v), f), slopes(lambda v: plain(f, v), v)

    def close(actual, text):
        for a, e in zip(actual, expected):
            np.testing.assert_allclose(a, e, rtol=2e-5, atol=2e-6, err_msg=text)

    f = plait.numpy.asarray(np.asarray(f))  # a scalar would be weak
    gradient = plait.grad(traced, argnums=(0, 1))
    close(gradient(f, v), "grad")
    close(plait.jit(gradient)(f, v), "jit(grad)")
    close(plait.grad(plait.checkpoint(traced), argnums=(0, 1))(f, v), "grad(checkpoint)")
    close(plait.jacfwd(traced, argnums=(0, 1))(f, v), "jacfwd")
    close([x[1] for x in plait.vmap(gradient)(np.stack([-f, f]), np.stack([v, v]))], "vmap(grad)")
    x, y = plait.variable(f), plait.variable(v)
    result = traced(x, y)
    if result.requires_grad:
        result.backward()
    close([0.0 if x.grad is None else x.grad, 0 * v if y.grad is None else y.grad], "tape")
    gradients = plait.grad(lambda f, v: sum(g.sum() for g in gradient(f, v)))
    curvature = slopes(lambda f: sum(np.sum(g) for g in gradient(f, v)), f)
    np.testing.assert_allclose(gradients(f, v), curvature, rtol=1e-4, atol=1e-4)
