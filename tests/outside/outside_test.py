"""Strangers can extend plait: the recipes build against an installed library and run.

The installation is a staged one, and only its headers, library, .pc file and CMake files are seen.
"""

# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
HERE = pathlib.Path(__file__).parent
RECIPES = ["new_primitive", "new_transform", "new_backend"]


def run(*command, **kwargs):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **kwargs)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def tool(name):
    beside = pathlib.Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An installation of the build folder; yields its prefix."""
    stage = tmp_path_factory.mktemp("stage")
    build = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
    run(tool("meson"), "install", "-C", build, "--no-rebuild", "--destdir", stage)
    library = next(stage.rglob("libplait.so"))
    return library.parent, next(stage.rglob("plait.pc")), stage


@pytest.fixture(scope="module")
def programs(installed, tmp_path_factory):
    libdir, pc, stage = installed
    environment = dict(os.environ, PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(stage))
    environment["PATH"] = str(pathlib.Path(sys.executable).parent) + os.pathsep + environment["PATH"]
    build = tmp_path_factory.mktemp("outside")
    run(tool("meson"), "setup", build, HERE, "-Doptimization=0", env=environment)
    run(tool("ninja"), "-C", build, env=environment)
    return build, dict(os.environ, LD_LIBRARY_PATH=str(libdir))


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_is_short_and_runs(programs, recipe):
    build, environment = programs
    output = run(build / recipe, env=environment)
    expected = {
        "new_primitive": r"softsign a\n.*0\.\d+",
        "new_transform": r"f\(\[-1, 2\]\) is within \[-0\.5232, 2\.9281\]\n`exp` has no interval rule",
        "new_backend": r"sines.*0\.42073",
    }[recipe]
    assert re.search(expected, output, re.DOTALL), output
    source = (ROOT / "examples" / f"{recipe}.cpp").read_text()
    code = [line for line in source.split("int main()")[0].splitlines() if line.strip() and not line.strip().startswith(("//", "#include"))]
    assert len(code) <= 40, f"{len(code)} lines"


@pytest.mark.parametrize("recipe", RECIPES)
def test_programs_link_plait_and_no_python(programs, recipe):
    build, environment = programs
    libraries = run("ldd", build / recipe, env=environment)
    assert "libplait.so" in libraries and "python" not in libraries


def test_find_package_finds_the_installation(installed, tmp_path):
    libdir, _, _ = installed
    cmake = tool("cmake")
    assert cmake, "cmake is among the requirements of dev"
    run(cmake, "-S", HERE, "-B", tmp_path, f"-Dplait_DIR={libdir / 'cmake' / 'plait'}")
