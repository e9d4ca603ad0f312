"""Products on CUDA devices where cuBLASLt is missing, left out, or has another relu than plait.

The devices are the stand-ins of tests/cuda, in processes of their own; tests/cuda/products_test.cpp has
the rest.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).resolve()
STAND_INS = BUILD / "tests" / "cuda"

if not (STAND_INS / "libcublasLt.so.13").exists():
    pytest.skip("the stand-ins of CUDA are not built", allow_module_level=True)

LAYER = """
import numpy as np, plait
from plait import nn

def layer(x, w, b):
    return nn.relu(x @ w + b)

x = np.linspace(-1, 1, 40 * 64, dtype="f4").reshape(40, 64)
w = np.sin(np.arange(64 * 24, dtype="f4")).reshape(64, 24)
b = np.linspace(-1, 1, 24, dtype="f4")
there = [plait.device_put(a, "cuda:0") for a in (x, w, b)]
given = np.asarray(plait.jit(layer)(*there))
np.testing.assert_allclose(given, np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-4)
x[0, 0] = np.nan
there[0] = plait.device_put(x, "cuda:0")
assert np.isnan(np.asarray(plait.jit(layer)(*there))[0]).all()
print(plait.explain(plait.jit(layer, device="cuda:0"), *there))
"""


def explained(**environment):
    """What explain says of a dense layer, whose result is right."""
    variables = {**os.environ, "PLAIT_CUDA_LIBRARIES": str(STAND_INS), **environment}
    done = subprocess.run(
        [sys.executable, "-c", LAYER], env=variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cublaslt_runs_a_layer():
    assert "fused: dot_general add cmp select  [bias, relu]" in explained()


def test_float32_is_rounded_to_tf32_where_that_is_asked_for():
    assert "[bias, relu]" in explained() and "[tf32, bias, relu]" in explained(PLAIT_TF32="1")


def test_a_relu_that_drops_nan_is_not_used():
    text = explained(STANDIN_RELU="drops_nan", PLAIT_LOG="0")
    assert "fused: dot_general add  [bias]" in text and "cmp select" in text


def test_loops_run_what_is_left_to_them():
    text = explained(PLAIT_CUBLASLT="0")
    assert "cublaslt" not in text and "dot_general" in text


def test_a_missing_library_is_named(tmp_path):
    for name in ("libcuda.so.1", "libnvrtc.so.13"):
        (tmp_path / name).symlink_to(STAND_INS / name)
    text = explained(PLAIT_CUDA_LIBRARIES=str(tmp_path))
    if "  cublaslt  " in text:
        pytest.skip("this machine has cuBLASLt")
    assert "cublaslt: libcublasLt.so.13 is not installed" in text and "dot_general" in text
