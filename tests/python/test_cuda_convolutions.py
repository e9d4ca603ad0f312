"""Convolutions on CUDA devices where cuDNN is missing, left out, or has another relu than plait.

The devices are the stand-ins of tests/cuda, in processes of their own; tests/cuda/convolutions_test.cpp
has the rest.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).resolve()
STAND_INS = BUILD / "tests" / "cuda"

if not (STAND_INS / "libcudnn.so.9").exists():
    pytest.skip("the stand-ins of CUDA are not built", allow_module_level=True)

LAYER = """
import numpy as np, plait
from plait import lax, nn

def layer(x, w, b):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return nn.relu(y + b)

x = np.sin(np.arange(2 * 9 * 7 * 8, dtype="f4")).reshape(2, 9, 7, 8)
w = np.cos(np.arange(3 * 3 * 8 * 6, dtype="f4")).reshape(3, 3, 8, 6)
b = np.linspace(-1, 1, 6, dtype="f4")
there = [plait.device_put(a, "cuda:0") for a in (x, w, b)]
given = np.asarray(plait.jit(layer)(*there))
np.testing.assert_allclose(given, np.asarray(layer(x, w, b)), rtol=1e-2, atol=1e-2)
print(plait.explain(plait.jit(layer, device="cuda:0"), *there))
"""


def explained(**environment):
    """What explain says of a convolutional layer, whose result is right."""
    variables = {**os.environ, "PLAIT_CUDA_LIBRARIES": str(STAND_INS), **environment}
    done = subprocess.run(
        [sys.executable, "-c", LAYER], env=variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_cudnn_runs_a_layer():
    assert "fused: conv add cmp select  [forward, bias, relu, copies rhs, engine 11]" in explained()


def test_tensor_cores_are_used_where_that_is_asked_for():
    assert "[forward, tf32, bias, relu, copies rhs, engine 7]" in explained(
        PLAIT_TF32="1", PLAIT_MEASURE="0"
    )


def test_a_relu_that_drops_nan_is_not_used():
    text = explained(STANDIN_RELU="drops_nan")
    assert (
        "fused: conv add  [forward, bias, copies rhs, engine 11]" in text and "cmp select" in text
    )


def test_loops_run_what_is_left_to_them(tmp_path):
    assert "cudnn" not in explained(PLAIT_CUDNN="0")
    for name in ("libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13"):
        (tmp_path / name).symlink_to(STAND_INS / name)
    text = explained(PLAIT_CUDA_LIBRARIES=str(tmp_path))
    if "  cudnn  " in text:
        pytest.skip("this machine has cuDNN")
    assert "cudnn: libcudnn.so.9 is not installed" in text and "conv" in text


LAWS = """
import plait
report = plait.conformance("cudnn", "conv", device="cuda:0")
assert report.passed(), report
print(sorted(str(row.dtype) for row in report.rows if row.state == "passed"))
"""


def test_convolutions_obey_the_laws_of_kernels():
    variables = {**os.environ, "PLAIT_CUDA_LIBRARIES": str(STAND_INS)}
    done = subprocess.run(
        [sys.executable, "-c", LAWS], env=variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        assert f"'{dtype}'" in done.stdout
