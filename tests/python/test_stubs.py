"""The type stubs are those that the catalogue gives, and they type-check.

SPDX-License-Identifier: Apache-2.0
"""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_stubs_are_current():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "python" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text in module.stubs().items():
        path = ROOT / "python" / "plait" / name
        assert path.exists() and path.read_text() == text, (
            f"{name} is old: run python/make_stubs.py"
        )


def test_stubs_type_check(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport plait\nimport plait.numpy as pnp\n\n"
        "def loss(x: plait.Array) -> plait.Array:\n    return pnp.sum(x * 2.0 + x.sum(axis=0))\n\n"
        "y: plait.Array = pnp.asarray(np.ones(3))\nz: plait.Array = y.at[0].set(1.0).reshape(3, 1)\n"
        "g = plait.grad(loss)(y)\nf = plait.jit(loss)\nprint(f(z), g)\n"
    )
    stubs = [str(path) for path in sorted((ROOT / "python" / "plait").glob("*.pyi"))]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(program), *stubs],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(ROOT / "python"), "PATH": ""},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
