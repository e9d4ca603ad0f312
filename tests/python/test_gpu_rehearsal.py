"""What runs where a GPU is (tests/gpu/run), in small, on the stand-ins of tests/cuda.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build")).resolve()

pytestmark = pytest.mark.skipif(
    not (BUILD / "tests" / "cuda" / "libcuda.so.1").exists(),
    reason="the stand-ins of CUDA are not built",
)


def rehearse(call, stages, folder):
    command = [sys.executable, ROOT / "tests" / "gpu" / "run", call, "--rehearse", "--only", stages]
    environment = {**os.environ, "OUT": str(folder), "PLAIT_BUILD_DIR": str(BUILD)}
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    assert result.returncode == 0, result.stdout + result.stderr
    return rows, result.stdout


def test_the_stages_of_a_gpu_are_rehearsed(tmp_path):
    rows, output = rehearse("1", "intrinsics,launches", tmp_path)
    states = {row["row"]: row["state"] for row in rows}
    assert states["intrinsics"] == states["a captured step from C++"] == "passed"
    same = next(row["same"] for row in rows if row["row"] == "intrinsics")
    assert same >= 7
    assert "0 failed" in output and (tmp_path / "failures.tar.gz").exists()


def test_the_scoreboard_of_a_gpu_is_rehearsed(tmp_path):
    rows, _ = rehearse("2", "peaks,board,profile", tmp_path)
    states = {row["row"]: row["state"] for row in rows}
    assert states["peaks: device"] == states["add"] == "passed"


def test_what_was_built_travels_to_a_machine_with_a_gpu(tmp_path):
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    import built

    if not built.has_all(BUILD):
        pytest.skip("the programs of tests are not built")
    built.pack(BUILD, str(tmp_path / "packed"))
    (module,) = (BUILD / "python" / "plait").glob("_plait*.so")
    shutil.copy(module, tmp_path / "packed")  # as the first call leaves it
    built.unpack(ROOT, str(tmp_path / "packed"), str(tmp_path / "build"))
    assert built.compile_module(ROOT, str(tmp_path / "packed"), str(tmp_path / "build")) == ""
    code = "import plait; print(plait.jit(lambda x: x + 1)(2.0), plait.info())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "build" / "python")}
    environment["LD_LIBRARY_PATH"] = str(
        tmp_path / "build"
    )  # this module names the folder of BUILD
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                            env=environment)  # fmt: skip
    assert result.stdout.startswith("3. "), result.stderr
    # Those of what travels, where other modules are not.
    assert "backends             interpreter, control, reference\n" in result.stdout


def test_a_contestant_that_is_not_there_is_noted(tmp_path):
    rows, _ = rehearse("2", "board,eager add", tmp_path)
    row = next(row for row in rows if row["row"] == "eager add")
    assert row["state"] == "passed" and row["us"] > 0 and "plait" in row["figures"]
