"""Elementwise programs over large arrays."""

# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
from libraries import compiled, jitted
from rows import Row, Work, best_peer, of_limit, spread

LARGE = 1 << 26
SAMPLE = 1 << 16  # elements that are checked of the largest


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def some(value):
    return spread(value.reshape(-1), SAMPLE)


def some_of_each(*arrays):
    return [some(array) for array in arrays]


# --- relu(x*y+z) - 0.5*x ---------------------------------------------------------------------------


def chain(xp, x, y, z):
    return xp.maximum(x * y + z, 0.0) - 0.5 * x


def three():
    part = [np.tile(normal(1 << 20, seed=i), LARGE >> 20) for i in range(3)]
    return tuple(part)


def chain_into(library, x, y, z):
    """The same into the memory of z; z is what the call before gave."""
    xp, now = library.xp, [z]
    if library.kind == "jaxlike":
        step = library.jit(functools.partial(chain, xp), donate_argnums=2)
    elif library.kind == "torchlike":

        def into(x, y, z):
            return z.copy_(chain(xp, x, y, z))

        step = library.jit(into) if library.name == "compile" else into
    else:

        def step(x, y, z):
            np.add(np.multiply(x, y), z, out=z)
            np.maximum(z, 0, out=z)
            return np.subtract(z, 0.5 * x, out=z)

    def call():
        now[0] = step(x, y, now[0])
        return library.wait(now[0])

    return call


# --- Ten exact GELUs -------------------------------------------------------------------------------


def gelus(xp, x):
    for _ in range(10):
        x = 0.5 * x * (1 + xp.erf(x * 0.7071067811865476))
    return x


def gelus_reference(x):
    import math

    erf = np.vectorize(math.erf, otypes=[np.float64])
    for _ in range(10):
        x = 0.5 * x * (1 + erf(x * 0.7071067811865476))
    return x


def gelus_of(library, x):
    if library.kind == "torchlike":
        gelu = library.module.nn.functional.gelu

        def run(x):
            for _ in range(10):
                x = gelu(x)
            return x

        return compiled(library, run, x)
    if library.name == "numpy" and library.xp.erf is None:
        return None
    return jitted(gelus)(library, x)


# --- An equation of state: some 60 operations on float64 -------------------------------------------

POINTS = 4_000_000


def state(xp, salinity, temperature, pressure):
    """Density and its slopes, after the form of the equation of state of sea water."""
    s, t, p = salinity, temperature, pressure
    root = xp.sqrt(s)
    water = 999.842594 + t * (
        6.793952e-2 + t * (-9.09529e-3 + t * (1.001685e-4 + t * (-1.120083e-6 + t * 6.536332e-9)))
    )
    salt = 0.824493 + t * (-4.0899e-3 + t * (7.6438e-5 + t * (-8.2467e-7 + t * 5.3875e-9)))
    mixed = -5.72466e-3 + t * (1.0227e-4 - t * 1.6546e-6)
    surface = water + s * (salt + root * mixed + 4.8314e-4 * s)
    bulk = 19652.21 + t * (148.4206 + t * (-2.327105 + t * (1.360477e-2 - t * 5.155288e-5)))
    bulk = bulk + s * (54.6746 + t * (-0.603459 + t * (1.09987e-2 - t * 6.167e-5)))
    bulk = bulk + s * root * (7.944e-2 + t * (1.6483e-2 - t * 5.3009e-4))
    bulk = bulk + p * (3.239908 + t * (1.43713e-3 + t * (1.16092e-4 - t * 5.77905e-7)))
    bulk = bulk + p * s * (2.2838e-3 + t * (-1.0981e-5 - t * 1.6078e-6) + 1.91075e-4 * root)
    return surface / (1 - p / bulk)


def water():
    rng = np.random.default_rng(0)
    return (
        rng.uniform(0, 40, POINTS),
        rng.uniform(0, 30, POINTS),
        rng.uniform(0, 1000, POINTS),
    )


ROWS = [
    Row(
        "elementwise/chain",
        "relu(x*y+z) - 0.5*x, f32[2^26], a new result",
        of_limit(0.9),
        three,
        functools.partial(chain, np),
        some_of_each,
        {"*": jitted(chain)},
        some,
        Work(bytes=4 * 4 * LARGE),
        fresh=True,
    ),
    Row(
        "elementwise/chain-into",
        "the same into an argument",
        of_limit(0.9),
        three,
        functools.partial(chain, np),
        some_of_each,
        {"*": chain_into},
        some,
        Work(bytes=4 * 4 * LARGE),
    ),
    Row(
        "elementwise/gelu10",
        "ten exact GELUs, f32[1000,1024]",
        best_peer(1 / 1.2),
        lambda: (normal(1000, 1024),),
        gelus_reference,
        lambda x: (spread(x, 16),),
        {"*": gelus_of},
        lambda y: spread(y, 16),
        Work(bytes=2 * 4 * 1000 * 1024, flops=10 * 20 * 1000 * 1024),
        fresh=True,
    ),
    Row(
        "elementwise/state",
        "equation of state, 60 operations, f64[4M]",
        best_peer(1 / 1.2),
        water,
        functools.partial(state, np),
        calls={"*": jitted(state)},
        work=Work(bytes=4 * 8 * POINTS, flops64=2 * 32 * POINTS),
        tolerance=1e-12,
        x64=True,
        fresh=True,
    ),
]
