"""What runs where a GPU is (tests/gpu/run), in small, on the stand-ins of tests/cuda.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import pathlib
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
    rows, output = rehearse("all", "peaks,intrinsics,launches,board,profile", tmp_path)
    states = {row["row"]: row["state"] for row in rows}
    assert states["peaks: device"] == states["intrinsics"] == states["add"] == "passed"
    assert states["a captured step from C++"] == "passed"
    same = next(row["same"] for row in rows if row["row"] == "intrinsics")
    assert same >= 7
    assert "0 failed" in output and (tmp_path / "failures.tar.gz").exists()


def test_a_contestant_that_is_not_there_is_noted(tmp_path):
    rows, _ = rehearse("3", "board,eager add", tmp_path)
    row = next(row for row in rows if row["row"] == "eager add")
    assert row["state"] == "passed" and row["us"] > 0 and "plait" in row["figures"]
