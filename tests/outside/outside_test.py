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


# --- The README ----------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text()
# A block of code, and what it prints where a block of text follows.
BLOCKS = re.findall(r"```(python|cpp)\n(.*?)```\n(?:\n```text\n(.*?)```)?", README, re.DOTALL)


@pytest.mark.parametrize("code, printed", [b[1:] for b in BLOCKS if b[0] == "python"])
def test_python_in_the_readme_prints_what_it_says(code, printed, tmp_path):
    (tmp_path / "train.py").write_text(code)
    result = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=dict(os.environ, MPLBACKEND="Agg"),
    )
    error = result.stderr[result.stderr.find("\nplait.") + 1 :] if result.returncode else ""
    assert result.stdout + error == printed, result.stderr
    assert (result.returncode != 0) == printed.startswith("plait.")
    if "savefig" in code:
        assert next(tmp_path.glob("*.png")).stat().st_size > 5000


@pytest.mark.parametrize("code, printed", [b[1:] for b in BLOCKS if b[0] == "cpp"])
def test_cpp_in_the_readme_builds_as_it_says_and_prints(code, printed, installed, tmp_path):
    libdir, pc, stage = installed
    (tmp_path / "first.cpp").write_text(code)
    command = re.search(r"^(g\+\+ first.cpp .*) -o first$", README, re.MULTILINE)[1]
    environment = dict(
        os.environ,
        PKG_CONFIG_PATH=str(pc.parent),
        PKG_CONFIG_SYSROOT_DIR=str(stage),
        LD_LIBRARY_PATH=str(libdir),
    )
    run("sh", "-c", command + " -O0 -o first", cwd=tmp_path, env=environment)
    assert run(tmp_path / "first", env=environment) == printed


def test_the_readme_says_what_a_newcomer_must_know():
    for name in ("PLAIT_LOG", "PLAIT_THREADS", "PLAIT_CACHE_DIR", "PLAIT_MAX_ISA"):
        assert f"`{name}`" in README
    for fact in ("Apache-2.0", "x86-64", "AVX2", "Python 3.11 to 3.13", "pip uninstall plait"):
        assert fact in README
    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    assert f"Version {version}" in README
    glossary = README[README.index("## Glossary") : README.index("## Licence")]
    assert 35 <= glossary.count("\n| ") - 1 <= 60
