"""Molecular dynamics: forces are the gradient of the energy, and a thousand steps are one program.

Argon-like atoms that repel and attract (Lennard-Jones 1924) in a periodic box, moved by velocity Verlet. What must
not change says whether it is right: energy, and momentum. The heat capacity of the fluid comes from the fluctuation of
its temperature, and its pressure from the derivative of the energy by the size of the box.
"""

# SPDX-License-Identifier: Apache-2.0
from typing import Any, NamedTuple

import plait.numpy as jnp
from plait import grad, jit, lax, random, value_and_grad

SIDE = 4  # atoms along each side of the lattice that they start on
COUNT = SIDE**3
DENSITY = 0.8
BOX = (COUNT / DENSITY) ** (1 / 3)
CUT = 2.2  # energies beyond this distance are left out, and begin there at zero
STEP = 0.004


def pair_energy(squared):
    """4 (r^-12 - r^-6) of squared distances."""
    inverse = 1 / squared**3
    return 4 * (inverse**2 - inverse)


def potential(positions, box=BOX):
    """The energy of all pairs, each with the nearest image of the other."""
    i, j = jnp.triu_indices(COUNT, 1)
    apart = positions[i] - positions[j]
    apart = apart - box * jnp.round(apart / box)
    squared = jnp.sum(apart**2, axis=-1)
    return jnp.sum(jnp.where(squared < CUT**2, pair_energy(squared) - pair_energy(CUT**2), 0.0))


def pressure(positions, velocities):
    """-dE/dV + N kT / V, with the atoms moving as the box does."""
    slope = grad(lambda scale: potential(scale * positions, scale * BOX))(1.0)
    return (jnp.sum(velocities**2) - slope) / (3 * BOX**3)


class State(NamedTuple):
    positions: Any
    velocities: Any
    forces: Any


def verlet(state, step):
    velocities = state.velocities + step / 2 * state.forces
    positions = (state.positions + step * velocities) % BOX
    energy, slope = value_and_grad(potential)(positions)
    forces = -slope
    velocities = velocities + step / 2 * forces
    return State(positions, velocities, forces), energy


def start(key, temperature):
    line = jnp.arange(SIDE) * (BOX / SIDE)
    positions = jnp.stack(jnp.meshgrid(line, line, line), axis=-1).reshape(COUNT, 3)
    velocities = jnp.sqrt(temperature) * random.normal(key, (COUNT, 3))
    return State(positions, velocities - jnp.mean(velocities, axis=0), -grad(potential)(positions))


def simulate(key, steps=1000, settling=300):
    """Energies, temperatures and pressures of every step, after the lattice has melted."""

    def settle(state, _):
        state = verlet(state, STEP)[0]
        now = jnp.sum(state.velocities**2) / (3 * COUNT)
        return state._replace(velocities=state.velocities * jnp.sqrt(1.2 / now)), None

    def step(state, _):
        state, energy = verlet(state, STEP)
        kinetic = jnp.sum(state.velocities**2) / 2
        seen = (
            energy + kinetic,
            2 * kinetic / (3 * COUNT),
            pressure(state.positions, state.velocities),
        )
        return state, seen

    state = lax.scan(settle, start(key, 1.2), None, settling)[0]
    return lax.scan(step, state, None, steps)


def program():
    """What is compiled, and its arguments."""
    return jit(simulate), (random.key(1),)


if __name__ == "__main__":
    run, arguments = program()
    state, (energy, temperature, pressures) = run(*arguments)
    drift = float(jnp.max(jnp.abs(energy - energy[0])) / COUNT)
    momentum = float(jnp.max(jnp.abs(jnp.sum(state.velocities, axis=0))))
    print(f"energy of an atom {float(energy[-1]) / COUNT:.2f}, kept to 0.01: {drift < 0.01}")
    print(f"momentum zero to 0.001: {momentum < 1e-3}")
    print(
        f"temperature {float(jnp.mean(temperature)):.1f}, pressure {float(jnp.mean(pressures)):.0f}"
    )
