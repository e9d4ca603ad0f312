"""The gallery of examples/: what each program prints, and its numbers beside those of JAX 0.10.2 for the same program.

JAX's numbers are of these files with their imports exchanged, on a CPU, in float32.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
PATHS = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]


PROGRAM = """
import runpy, sys
import numpy as np
path, out, *names = sys.argv[1:]
after = runpy.run_path(path, run_name="__main__")
np.savez(out, *[np.asarray(after[name]) for name in names])
"""


@pytest.fixture
def ran(tmp_path):
    """What a program prints, and some of its variables as NumPy arrays.

    On one thread: many small loops, where several tests run at once, are mostly waiting for others.
    """

    def run(stem, *names):
        command = [
            sys.executable,
            "-c",
            PROGRAM,
            EXAMPLES / f"{stem}.py",
            tmp_path / "out.npz",
            *names,
        ]
        env = dict(
            os.environ, PLAIT_THREADS="1", PYTHONPATH=os.pathsep.join([*PATHS, str(EXAMPLES)])
        )
        result = subprocess.run([str(w) for w in command], capture_output=True, text=True, env=env)
        assert result.returncode == 0, result.stderr
        with np.load(tmp_path / "out.npz") as values:
            return result.stdout.splitlines(), list(values.values())

    return run


def test_a_transformer_recites_from_its_cache(ran):
    lines, (losses, recited) = ran("kv_cache", "losses", "recited")
    assert lines[1] == "recited: A pure function is traced to a program, small an"
    assert lines[2] == "by heart: True; the same without the cache: True"
    assert abs(losses.mean() - 0.803273) < 0.02 and losses[-1] < 0.3
    assert recited.mean() == 14.125


def test_diffusion_draws_the_digits_that_were_asked_for(ran):
    lines, (losses, drawn) = ran("diffusion", "losses", "drawn")
    assert lines[1].endswith("True") and len(lines) == 10
    assert abs(losses.mean() - 0.130668) < 2e-3
    assert abs(drawn.mean() - -0.386827) < 0.01


def test_nuts_samples_the_eight_schools(ran):
    lines, (samples, leaves) = ran("nuts", "samples", "leaves")
    assert lines[2] == "chains agree: True"
    # JAX's: the same trees. Of the posterior: mu 4.4 ± 3.3, tau 3.6 (Gelman et al., Bayesian Data Analysis).
    assert abs(leaves.mean() - 16.846667) < 1 and abs(samples.mean() - 0.559335) < 0.1
    kept = samples[:, 100:]
    assert abs(kept[..., 0].mean() - 4.4) < 1 and abs(np.exp(kept[..., 1]).mean() - 3.6) < 0.7


def test_a_neural_ode_finds_the_spiral(ran):
    lines, (losses,) = ran("neural_ode", "losses")
    assert [line.endswith("True") for line in lines] == [True, True]
    assert abs(losses.mean() - 0.123910) < 5e-3


def test_a_planner_swings_the_pole_up(ran):
    lines, (xs,) = ran("mpc", "xs")
    assert lines[0].endswith("to the end: True") and lines[2].endswith("True")
    # JAX's: upright after 61 steps. Which way it swings, rounding decides.
    assert abs(int(np.argmax(np.cos(xs[:, 1]) > 0.98)) - 61) < 15


def test_atoms_keep_their_energy(ran):
    lines, (energy, temperature, pressures) = ran(
        "molecular_dynamics", "energy", "temperature", "pressures"
    )
    assert lines[0].endswith("True") and lines[1].endswith("True")
    # JAX's: trajectories part by rounding, energies and means do not.
    assert abs(energy.mean() - -143.7048) < 1
    assert abs(temperature.mean() - 1.2232) < 0.05 and abs(pressures.mean() - 3.1007) < 0.4
