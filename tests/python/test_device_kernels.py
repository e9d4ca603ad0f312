"""Kernels of a GPU: the numbers that the CPU and NumPy give, for odd shapes.

The GPU is the stand-in of tests/cuda, which runs kernels on the CPU and checks every access.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import pytest
from device_kernels import CASES
from mpi_jobs import launcher, run  # noqa: F401

BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).resolve()
STAND_INS = BUILD / "tests" / "cuda"

pytestmark = pytest.mark.skipif(
    not (STAND_INS / "libcuda.so.1").exists(), reason="the stand-ins of CUDA are not built"
)
ENVIRONMENT = {**os.environ, "PLAIT_CUDA_LIBRARIES": str(STAND_INS)}


# The others are of hundreds of kernels, each of which a compiler of C++ takes most of a second for.
QUICK = (
    "histograms",
    "views_and_numbers_alone",
    "arrays_without_elements",
    "products_over_scattered_axes",
    "convolutions",
    "largest_elements",
    "running_reductions",
    "long_running_reductions",
    "long_rows_gone_through_several_times",
    "sums_of_the_same_bits",
    "neighbours_at_once",
    "indices_outside",
    "sequences_of_unequal_lengths",
    "loops_whose_steps_are_products",
    "systems_of_three_diagonals",
    "updated_factors",
    "stored_numbers",
    "keys_of_random_numbers",
    "places_of_a_mesh",
    "known_arrays",
)


@pytest.mark.parametrize("name", CASES)
def test_kernels_give_the_numbers_of_the_cpu(name):
    if name not in QUICK and "PLAIT_TEST_LARGE" not in os.environ:
        pytest.skip("compiles hundreds of kernels: ./dev test --large")
    program = pathlib.Path(__file__).with_name("device_kernels.py")
    result = subprocess.run(
        [sys.executable, program, name], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert result.stdout.strip() == f"{name}: passed", result.stdout + result.stderr


def test_only_compositions_are_refused():
    result = subprocess.run(
        [sys.executable, "-m", "plait", "conformance", "--backend", "cuda", "--device", "cuda:0"]
        + ["--claims"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    refused = [line for line in result.stdout.splitlines() if line.split()[1] == "refused"]
    assert refused and all("(control: " in line or "(decomposed: " in line for line in refused)


RANKS = """
import numpy as np, plait, plait.numpy as pnp
from plait import P, lax

def place(x, w):
    total = lax.psum(pnp.tanh(x @ w), "x")
    moved = lax.ppermute(x, "x", [(0, 1), (1, 0)]) * lax.axis_index("x")
    rows = lax.all_to_all(lax.all_gather(x, "x"), "x", 0, 0)
    return total, moved, rows.sum((0, 1)) + lax.pmax(x[0], "x")

f = plait.jit(plait.shard_map(place, plait.mesh((2,), ("x",)), (P("x"), P()), (P(), P("x"), P("x"))))
x, w = (np.random.default_rng(i).normal(size=(4 + 2 * i, 6)).astype("f4") for i in range(2))
here = f(x, w)
there = f(plait.device_put(x, "cuda:0"), plait.device_put(w, "cuda:0"))
for a, b in zip(there, here):
    assert a.device == "cuda:0" and np.asarray(a).tobytes() == np.asarray(b).tobytes()
print("the same")
"""


def test_ranks_give_each_other_arrays_of_devices(launcher, tmp_path):  # noqa: F811
    program = tmp_path / "ranks.py"
    program.write_text(RANKS)
    code, out, err = run(
        launcher,
        2,
        sys.executable,
        program,
        PLAIT_CUDA_LIBRARIES=str(STAND_INS),
        PLAIT_DEADLINE="60",
    )
    assert code == 0 and out.count("the same") == 2, out + err
