"""Lesson 19: heat that spreads over a square, of which each place has some rows. Rows at the seams are exchanged.

Before each step a place sends its first row up and its last row down, by ppermute, and gets those of its neighbours.
Who has no neighbour gets zeros: the edge is cold. The loop and the exchange in it are one compiled program, and
differentiable. As in lesson 16, on ranks or alone:

    plait run -n 4 examples/19_stencil.py

Prints the same numbers as its twin, 19_stencil.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import sys

import plait
import plait.numpy as jnp
from plait import P, grad, jit, lax, shard_map

SIZE, STEPS, RATE = 40, 200, 0.2  # 2, 4 and 5 places divide the size
PLACES = plait.process_count()
if PLACES == 1:
    PLACES = int(sys.argv[1]) if len(sys.argv) > 1 else 4
mesh = plait.mesh((PLACES,), ("rows",))
DOWN = [(i, i + 1) for i in range(PLACES - 1)]
UP = [(i + 1, i) for i in range(PLACES - 1)]


def spread(above, heat, below):
    """One step: the five-point stencil, between a row above and a row below."""
    rows = jnp.concatenate([above, heat, below])
    columns = jnp.pad(heat, ((0, 0), (1, 1)))
    around = rows[:-2] + rows[2:] + columns[:, :-2] + columns[:, 2:]
    return heat + RATE * (around - 4 * heat)


def in_a_place(heat):
    def step(_, heat):
        above = lax.ppermute(heat[-1:], "rows", DOWN)
        below = lax.ppermute(heat[:1], "rows", UP)
        return spread(above, heat, below)

    return lax.fori_loop(0, STEPS, step, heat)


def undivided(heat):
    cold = jnp.zeros((1, SIZE))
    return lax.fori_loop(0, STEPS, lambda _, heat: spread(cold, heat, cold), heat)


in_places = jit(shard_map(in_a_place, mesh, P("rows"), P("rows")))

place = jnp.arange(SIZE)
start = jnp.where((place[:, None] // 10 + place // 10) % 3 == 0, 100.0, 0.0)
after, expected = in_places(start), jit(undivided)(start)
# How the heat at one point depends on that of the start: the gradient goes back through the exchanges.
back = grad(lambda heat: in_places(heat)[20, 20])(start)
if plait.process_index() == 0:
    print(f"heat {float(jnp.sum(start)):.1f} before, {float(jnp.sum(after)):.1f} after")
    for row in (5, 19, 20, 39):
        print(f"row {row}:", " ".join(f"{t:.3f}" for t in after[row, ::8].tolist()))
    print("equal to the undivided:", bool(jnp.max(jnp.abs(after - expected)) < 1e-3))
    print("of the heat at the middle:", " ".join(f"{1e3 * t:.3f}" for t in back[20, ::8].tolist()))
