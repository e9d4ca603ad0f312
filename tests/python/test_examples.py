"""The lessons run, and a lesson in C++ prints what its twin in Python prints."""

# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
TWINS = sorted(p.stem for p in EXAMPLES.glob("*.py") if (EXAMPLES / f"{p.stem}.cpp").exists())


def output_of(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def program(stem):
    return BUILD / "tests" / f"example_{stem}"


def test_every_lesson_has_a_twin():
    assert [p.stem for p in sorted(EXAMPLES.glob("0*.*")) if p.stem not in TWINS] == []


@pytest.mark.parametrize("stem", [s for s in TWINS if s != "demo"])
def test_twins_print_the_same(stem):
    assert output_of(program(stem)) == output_of(sys.executable, EXAMPLES / f"{stem}.py")


def test_the_demo_reaches_the_same_accuracy_from_python_and_cpp():
    python = output_of(sys.executable, EXAMPLES / "demo.py")
    cpp = output_of(program("demo"))
    accuracies = [float(re.search(r"accuracy (\d+\.\d) %", text)[1]) for text in (python, cpp)]
    assert accuracies[0] == accuracies[1] >= 97
    assert re.search(r"loss \d\.\d+", python)[0] == re.search(r"loss \d\.\d+", cpp)[0]
    assert "onednn" in python  # where the matmuls ran
    assert (EXAMPLES / "output" / "learning_curve.png").stat().st_size > 10_000


@pytest.mark.parametrize("stem", sorted(p.stem for p in EXAMPLES.glob("*.cpp")))
def test_programs_link_no_python(stem):
    libraries = output_of("ldd", program(stem))
    assert "libplait" in libraries and "libpython" not in libraries
