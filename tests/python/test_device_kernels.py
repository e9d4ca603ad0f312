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


# Left to the CPU, where explain says so: decompositions by iterations that no loop program writes yet.
ON_THE_CPU = (
    "cholesky_update constant eig pivoted_order polar schur sqrtm triangular_sylvester tridiagonal_solve"
).split()


def test_only_compositions_are_refused():
    result = subprocess.run(
        [sys.executable, "-m", "plait", "conformance", "--backend", "cuda", "--device", "cuda:0"]
        + ["--claims"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    refused = [line for line in result.stdout.splitlines() if line.split()[1] == "refused"]
    assert set(ON_THE_CPU) <= {line.split()[0] for line in refused}
    refused = [line for line in refused if line.split()[0] not in ON_THE_CPU]
    assert refused and all("(control: " in line or "(decomposed: " in line for line in refused)
