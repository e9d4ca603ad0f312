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
PYTHON_ONLY = ["08_script"]  # about the syntax of Python
TWINS = sorted(p.stem for p in EXAMPLES.glob("*.py") if (EXAMPLES / f"{p.stem}.cpp").exists())


def output_of(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def program(stem):
    return BUILD / "tests" / f"example_{stem}"


def test_every_lesson_has_a_twin():
    lessons = sorted(EXAMPLES.glob("0*.*"))
    assert [p.stem for p in lessons if p.stem not in TWINS] == PYTHON_ONLY


def test_python_as_it_is_written():
    lines = output_of(sys.executable, EXAMPLES / "08_script.py").splitlines()
    assert (
        "keep 0.5: 2.9688 in 6 bounces" in lines and "keep 0.9999: -1.0000 in 1000 bounces" in lines
    )
    assert "outlier at 3 and -1" in lines and lines[-1] == "explain names the island: True"
    rows = [
        [float(v) for v in line.split()[1:]]
        for line in lines
        if line.startswith(("ways", "slopes"))
    ]
    # way = 1 + 2 sum of keep^k, k = 1 .. n
    expected = [[1 + 2 * sum(k**i for i in range(1, n + 1)) for k, n in ((0.3, 3), (0.5, 6), (0.8, 20))],
                [2 * sum(i * k ** (i - 1) for i in range(1, n + 1)) for k, n in ((0.3, 3), (0.5, 6), (0.8, 20))]]  # fmt: skip
    assert all(abs(a - b) < 1e-3 for row, want in zip(rows, expected) for a, b in zip(row, want))


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


def test_a_port_to_new_hardware_obeys_the_laws():
    output = output_of(program("accelerator"))  # which fails where a law does not hold
    assert re.search(
        r"accelerator .*dot_general.*\[\d+ commands, \d+ bytes on the device\]", output
    )
    passed, refused, failed = map(
        int, re.search(r"(\d+) passed, (\d+) refused .*, (\d+) failed", output).groups()
    )
    assert 10 <= passed <= 25 and refused > 200 and failed == 0
    assert re.search(r"^add +passed +f32$", output, re.MULTILINE)


@pytest.mark.parametrize("stem", sorted(p.stem for p in EXAMPLES.glob("*.cpp")))
def test_programs_link_no_python(stem):
    libraries = output_of("ldd", program(stem))
    assert "libplait" in libraries and "libpython" not in libraries
