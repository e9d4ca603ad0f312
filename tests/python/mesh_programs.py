"""Random programs over meshes, and the same mathematics on whole arrays; as a script, one rank of a job.

SPDX-License-Identifier: Apache-2.0
"""

import hashlib
import math
import sys

import numpy as np
import plait
import plait.numpy as pnp
from plait import P, lax

MESHES = {2: ((2,), ("x",)), 4: ((2, 2), ("x", "y")), 5: ((5,), ("x",))}
COUNTS = {2: 10, 4: 30, 5: 10}
ROWS, COLUMNS = 2, 3  # of a block


class Whole:
    """What places give each other, where all blocks are one array: the axes of places, then those of a block."""

    def __init__(self, xp, shape, names):
        self.xp, self.shape, self.names = xp, shape, names

    def dim(self, axis):
        return self.names.index(axis)

    def size(self, axis):
        return self.shape[self.dim(axis)]

    def index(self, axis):
        dim, ones = self.dim(axis), [1] * (len(self.shape) + 2)
        ones[dim] = self.shape[dim]
        return np.arange(float(self.shape[dim])).reshape(ones)

    def total(self, s, axis):
        return s.sum(self.dim(axis), keepdims=True) + 0 * s

    def largest(self, s, axis):
        return s.max(self.dim(axis), keepdims=True) + 0 * s

    def of_block(self, s):
        return s.sum((-2, -1), keepdims=True)


# Each operation for one place, and for all of them. `axis` is an axis of the mesh.
def _index(x, axis):
    return lax.axis_index(axis).astype(x.dtype)


def _ring(axis):
    size = lax.axis_size(axis)
    return [(i, (i + 1) % size) for i in range(size)]


def _exchange(x, axis):
    rows = lax.all_gather(x, axis) * (1.0 + _index(x, axis))
    return lax.all_to_all(rows, axis, 0, 0).sum(0) * 0.1


def _doubled(x, axis):
    def goes_on(x):
        return lax.pmax(abs(x).max(), axis) < 5.0  # it may differ along another axis

    return lax.while_loop(goes_on, lambda x: x * 1.7 + 0.01 * lax.pmean(x, axis), x)


def _doubled_whole(w, s, axis):
    for _ in range(12):
        goes_on = w.largest(abs(s).max((-2, -1), keepdims=True), axis) < 5.0
        s = w.xp.where(goes_on, s * 1.7 + 0.01 * w.total(s, axis) / w.size(axis), s)
    return s


def _own_while(w, s):
    for _ in range(30):
        s = w.xp.where(abs(s).max((-2, -1), keepdims=True) < 4, s * 1.5, s)
    return s


def _steps(x, axis):
    def step(c, scale):
        return pnp.tanh(c) * scale + 0.3 * lax.pmean(c, axis), lax.psum(c.sum(), axis)

    last, sums = lax.scan(step, x, np.array([1.0, 0.5, 2.0]))
    return last + 0.01 * sums.sum()


def _steps_whole(w, s, axis):
    sums = 0.0
    for scale in (1.0, 0.5, 2.0):
        sums = sums + w.total(w.of_block(s), axis)
        s = w.xp.tanh(s) * scale + 0.3 * w.total(s, axis) / w.size(axis)
    return s + 0.01 * sums


OPERATIONS = {
    "tanh": (lambda x, v, a: pnp.tanh(x) * 1.5, lambda w, s, v, a: w.xp.tanh(s) * 1.5),
    "matmul": (lambda x, v, a: x @ v, lambda w, s, v, a: s @ v),
    "centred": (
        lambda x, v, a: x - x.mean(1, keepdims=True),
        lambda w, s, v, a: s - s.mean(-1, keepdims=True),
    ),
    "psum": (
        lambda x, v, a: x + 0.2 * lax.psum(pnp.sin(x), a),
        lambda w, s, v, a: s + 0.2 * w.total(w.xp.sin(s), a),
    ),
    "pmax": (
        lambda x, v, a: x - 0.5 * lax.pmax(x, a),
        lambda w, s, v, a: s - 0.5 * w.largest(s, a),
    ),
    "pmean": (
        lambda x, v, a: x * lax.pmean(x.sum(), a),
        lambda w, s, v, a: s * w.total(w.of_block(s), a) / w.size(a),
    ),
    "ppermute": (
        lambda x, v, a: x + 0.5 * lax.ppermute(x, a, _ring(a)),
        lambda w, s, v, a: s + 0.5 * w.xp.roll(s, 1, w.dim(a)),
    ),
    "shift": (
        lambda x, v, a: x - lax.ppermute(x, a, _ring(a)[:-1]),
        lambda w, s, v, a: s - w.xp.roll(s, 1, w.dim(a)) * (w.index(a) > 0),
    ),
    "all_gather": (
        lambda x, v, a: x
        + 0.1 * pnp.tensordot(pnp.arange(1.0 * lax.axis_size(a)), lax.all_gather(x, a), 1),
        lambda w, s, v, a: s + 0.1 * w.total(s * w.index(a), a),
    ),
    "all_to_all": (
        lambda x, v, a: _exchange(x, a),
        # Place j gets from each place k the block of j, times 1 + k, as all have those of all.
        lambda w, s, v, a: 0.1 * s * sum(range(1, w.size(a) + 1)),
    ),
    "psum_scatter": (
        lambda x, v, a: x - 0.1 * lax.psum_scatter(lax.all_gather(x, a) ** 2, a),
        lambda w, s, v, a: s - 0.1 * w.size(a) * s**2,
    ),
    "axis_index": (
        lambda x, v, a: x * (1.0 + 0.1 * _index(x, a)),
        lambda w, s, v, a: s * (1.0 + 0.1 * w.index(a)),
    ),
    "scan": (lambda x, v, a: _steps(x, a), lambda w, s, v, a: _steps_whole(w, s, a)),
    "while": (lambda x, v, a: _doubled(x, a), lambda w, s, v, a: _doubled_whole(w, s, a)),
    "own while": (
        lambda x, v, a: lax.while_loop(lambda x: abs(x).max() < 4, lambda x: x * 1.5, x),
        lambda w, s, v, a: _own_while(w, s),
    ),
    "cond": (
        lambda x, v, a: lax.cond(
            lax.psum(x.sum(), a) > 0.1,
            lambda x: x * lax.psum(x, a),
            lambda x: pnp.cos(x),
            x,
        ),
        lambda w, s, v, a: w.xp.where(
            w.total(w.of_block(s), a) > 0.1, s * w.total(s, a), w.xp.cos(s)
        ),
    ),
    "own cond": (
        lambda x, v, a: lax.cond(x.sum() > 0.1, lambda x: x * 2 - _index(x, a), lambda x: x - 1, x),
        lambda w, s, v, a: w.xp.where(w.of_block(s) > 0.1, s * 2 - w.index(a), s - 1),
    ),
    "grad": (
        lambda x, v, a: x + plait.grad(lambda x: lax.psum((pnp.tanh(x) ** 2).sum(), a))(x),
        lambda w, s, v, a: s + 2 * w.xp.tanh(s) * (1 - w.xp.tanh(s) ** 2),
    ),
    "vmap": (
        lambda x, v, a: plait.vmap(lambda r: r - lax.pmean(r, (a, "row")), axis_name="row")(x),
        lambda w, s, v, a: s - w.total(s.mean(-2, keepdims=True), a) / w.size(a),
    ),
    "checkpoint": (
        lambda x, v, a: plait.checkpoint(lambda x: pnp.sin(x) + lax.pmean(x @ v, a))(x),
        lambda w, s, v, a: w.xp.sin(s) + w.total(s @ v, a) / w.size(a),
    ),
}


def program(number, size):
    """Names of operations and axes, an array and weights."""
    random = np.random.default_rng([number, size])
    shape, axes = MESHES[size]
    names = list(OPERATIONS)
    chosen = [names[number % len(names)], *random.choice(names, random.integers(2, 5))]
    steps = [(str(name), str(random.choice(axes))) for name in chosen]
    x = random.normal(size=(math.prod(shape) * ROWS, COLUMNS))
    return steps, x, random.normal(size=(COLUMNS, COLUMNS)) * 0.5


def over_mesh(number, size):
    """The program's function of an array and weights: (a number, an array), and its arguments."""
    steps, x, weights = program(number, size)
    shape, axes = MESHES[size]

    def place(x, weights):
        for name, axis in steps:
            x = OPERATIONS[name][0](x, weights, axis)
        return lax.psum((x * pnp.cos(x)).sum(), axes), x

    spec = P(axes)
    return plait.shard_map(place, plait.mesh(shape, axes), (spec, P()), (P(), spec)), x, weights


def on_whole_arrays(number, size, xp):
    """The same, without a mesh, in NumPy or plait.numpy."""
    steps, _, _ = program(number, size)
    whole = Whole(xp, *MESHES[size])

    def f(x, weights):
        s = x.reshape(*whole.shape, ROWS, COLUMNS)
        for name, axis in steps:
            s = OPERATIONS[name][1](whole, s, weights, axis)
        return (s * xp.cos(s)).sum(), s.reshape(x.shape)

    return f


def results(number, size):
    """Loss, array, and gradients by both arguments; every other program runs as one."""
    f, x, weights = over_mesh(number, size)
    both = plait.value_and_grad(f, argnums=(0, 1), has_aux=True)
    (loss, array), gradients = (plait.jit(both) if number % 2 else both)(x, weights)
    return [np.asarray(each) for each in (loss, array, *gradients)]


def digest(arrays):
    return hashlib.md5(b"".join(np.asarray(each).tobytes() for each in arrays)).hexdigest()


def digests(size):
    return [digest(results(number, size)) for number in range(COUNTS[size])]


if __name__ == "__main__":
    size = int(sys.argv[1])
    rank = plait.process_index()
    assert plait.process_count() == size
    lines = [f"program {number}: {each}" for number, each in enumerate(digests(size))]
    if len(sys.argv) > 2:  # a program that one process has saved
        _, x, weights = program(0, size)
        lines.append("saved: " + digest(plait.load(sys.argv[2])(x, weights)))
    try:
        plait.mesh((size + 1,), "x")
    except ValueError as error:
        lines.append(str(error).splitlines()[0])
    print("".join(f"rank {rank}: {line}\n" for line in lines), end="", flush=True)
