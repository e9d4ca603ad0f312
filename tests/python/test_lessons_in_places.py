"""The lessons about several places print the same on ranks as in one process."""

# SPDX-License-Identifier: Apache-2.0
import functools
import importlib.util
import pathlib
import subprocess
import sys

import pytest
from command_line import BUILD
from mpi_jobs import launchers, run

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
LESSONS = ["16_data_parallel", "17_tensor_parallel", "18_sharded_sequences", "19_stencil"]


@functools.cache
def alone(stem, places):
    words = [sys.executable, EXAMPLES / f"{stem}.py", str(places)]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("places", [2, 4, 5])
@pytest.mark.parametrize("stem", LESSONS)
def test_lessons_print_the_same_on_ranks(stem, places):
    if not launchers():
        pytest.skip("there is no MPI here: pip install mpich")
    found = list(launchers().values())
    launcher = found[(LESSONS.index(stem) + places) % len(found)]
    data = [EXAMPLES.parent / "data" / "digits.bin"] if stem == "16_data_parallel" else []
    for words in ([EXAMPLES / f"{stem}.py"], [BUILD / "tests" / f"example_{stem}", *data]):
        code, out, err = run(launcher, places, *words, PLAIT_PYTHON=sys.executable)
        assert code == 0, err
        assert out == alone(stem, places)


def test_digits_in_places_are_as_good_as_undivided():
    lines = [line.split(": ")[1] for line in alone("16_data_parallel", 4).splitlines()]
    assert lines[0] == lines[1] and float(lines[0].split()[-2]) > 94


def test_places_compute_what_the_undivided_programs_do():
    for stem in LESSONS[1:]:
        text = alone(stem, 4)
        assert "True" in text and "False" not in text
    assert alone("18_sharded_sequences", 4).count("equal to rounding: True") == 3


@pytest.mark.parametrize("name, module", [("Dask", "distributed"), ("Ray", "ray")])
def test_a_sweep_on_two_workers(name, module):
    words = [sys.executable, EXAMPLES / "20_sweep.py", name.lower()]
    result = subprocess.run(words, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    if importlib.util.find_spec(module) is None:
        assert result.stdout.startswith(f"skipped: {name} is not installed: pip install ")
        pytest.skip(f"{name} is not installed")
    assert f"12 trials on 2 workers of {name}" in result.stdout
    assert "the same bits as in this process: True" in result.stdout
