"""Strangers can extend plait: the recipes build against an installed library and run.

The installation is a staged one, and only its headers, library, .pc file and CMake files are seen.
"""

# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import sys

import pytest

from processes import run, tool

ROOT = pathlib.Path(__file__).parent.parent.parent
HERE = pathlib.Path(__file__).parent
RECIPES = ["new_primitive", "new_transform", "new_backend"]


@pytest.fixture(scope="module")
def programs(installed, tmp_path_factory):
    libdir, pc, stage = installed
    environment = dict(
        os.environ, PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(stage)
    )
    environment["PATH"] = (
        str(pathlib.Path(sys.executable).parent) + os.pathsep + environment["PATH"]
    )
    build = tmp_path_factory.mktemp("outside")
    # Where the system has Eigen: not below the folder that plait was installed in.
    eigen = run("pkg-config", "--cflags-only-I", "eigen3").split()[0].replace("-I", "-Deigen=")
    run(tool("meson"), "setup", build, HERE, "-Doptimization=0", eigen, env=environment)
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
    code = [
        line
        for line in source.split("int main()")[0].splitlines()
        if line.strip() and not line.strip().startswith(("//", "#include"))
    ]
    assert len(code) <= 40, f"{len(code)} lines"


def test_an_application_keeps_its_own_eigen(programs):
    build, environment = programs
    environment = dict(environment, OMP_NUM_THREADS="2")
    output = run(build / "eigen_application", env=environment)
    assert output.startswith("largest difference below 1e-9")


def test_a_process_ends_while_its_threads_work(programs, tmp_path):
    build, environment = programs
    environment = dict(environment, PLAIT_WAIT="1", PLAIT_CACHE_DIR=str(tmp_path))
    for round in range(30):
        run(build / "detached_threads", 7 * round % 200, env=environment, timeout=60)


def test_users_are_asked_for_no_options_of_the_compiler(installed):
    libdir, pc, _ = installed
    for file in (pc, *(libdir / "cmake" / "plait").glob("*.cmake")):
        assert not re.search(r"-m\w+|-f\w+|COMPILE_OPTIONS", file.read_text()), file


def test_the_laws_are_asked_of_a_module(programs, installed):
    build, environment = programs
    program = next(installed[2].rglob("bin/plait"))
    module = next(build.rglob("plait_accelerator.so"))
    words = ["conformance", "--backend", "accelerator", "--module", module, "add", "reduce"]
    output = run(program, *words, env=environment)
    assert re.search(r"^add +passed +f32$", output, re.MULTILINE), output
    assert "accelerator: 1 passed, " in output and output.endswith(" 0 failed\n")


def test_the_installed_program_finds_its_library_wherever_it_was_moved(installed, tmp_path):
    prefix = next(installed[2].rglob("bin/plait")).parent.parent
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved, symlinks=True)
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    libraries = run("ldd", moved / "bin" / "plait", env=environment)
    found = re.search(r"libplait\.so\S* => (\S+)", libraries)[1]
    assert pathlib.Path(found).resolve().is_relative_to(moved.resolve())
    assert "plait" in run(moved / "bin" / "plait", "--version", env=environment)


@pytest.mark.parametrize("recipe", RECIPES)
def test_programs_link_plait_and_no_python(programs, recipe):
    build, environment = programs
    libraries = run("ldd", build / recipe, env=environment)
    assert "libplait.so" in libraries and "python" not in libraries


def test_find_package_finds_the_installation(installed, tmp_path):
    libdir, _, _ = installed
    cmake = tool("cmake")
    assert cmake, "cmake is among the requirements of dev"
    ninja = [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-G", "Ninja"]  # a bare system has no make
    run(cmake, "-S", HERE, "-B", tmp_path, *ninja, f"-Dplait_DIR={libdir / 'cmake' / 'plait'}")
