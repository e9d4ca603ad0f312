"""The wheel, packed from the build as ./dev wheel packs it: small, complete, and at work in a clean environment.

SPDX-License-Identifier: Apache-2.0
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from processes import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))


@pytest.fixture(scope="module")
def make_wheel():
    spec = importlib.util.spec_from_file_location("make_wheel", ROOT / "python" / "make_wheel.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheels(make_wheel, tmp_path_factory):
    if "sanitize" in BUILD.name:
        pytest.skip("instrumented libraries are no wheel")
    return make_wheel.make(BUILD, tmp_path_factory.mktemp("dist"), [sys.executable])


@pytest.fixture(scope="module")
def clean(wheels, tmp_path_factory):
    """An environment that has the wheel, NumPy and ml_dtypes, and sees nothing of the tree."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    install(python, wheels[0])
    packages = next(folder.glob("lib/python*/site-packages"))
    others = pathlib.Path(np.__file__).parents[1]
    (packages / "others.pth").write_text(f"{others}\n")
    return python


def install(python, wheel):
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel)  # fmt: skip


def outcome_of(*command):
    """The finished command, which ran outside of the tree and of its environment."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    command = [str(word) for word in command]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", env=kept)


def output_of(*command):
    result = outcome_of(*command)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_it_is_small_and_says_where_it_runs(wheels):
    wheel, parts = wheels
    assert wheel.stat().st_size <= 25e6
    short = "cp%d%d" % sys.version_info[:2]
    assert re.fullmatch(rf"plait-[\d.]+-{short}-{short}-manylinux_2_\d+_x86_64\.whl", wheel.name)
    assert re.fullmatch(r"plait_compile-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl", parts.name)


def test_it_holds_what_it_loads_but_the_systems_own(wheels, make_wheel, tmp_path):
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(tmp_path)
    paths = [path for path in tmp_path.rglob("*") if path.is_file() and make_wheel.is_elf(path)]
    names = {path.name for path in paths}
    assert {"libplait.so", "plait_onednn.so", "libgomp.so.1", "plait"} <= names
    assert not [name for name in names if "LLVM" in name or "cuda.so." in name]
    for path in paths:
        for name in make_wheel.needed_by(path):
            assert name in names or make_wheel.SYSTEM.match(name), f"{path.name} needs {name}"
        assert ".symtab" not in output_of("readelf", "-S", path), path.name
    terms = {path.name for path in tmp_path.rglob("licenses/*")}
    assert "LICENSE" in terms and len(terms) >= 4
    listed = next(tmp_path.rglob("RECORD")).read_text().splitlines()
    assert len(listed) == sum(path.is_file() for path in tmp_path.rglob("*"))
    config = (tmp_path / "plait/lib/cmake/plait/plait-config.cmake").read_text()
    for relative in re.findall(r"\$\{CMAKE_CURRENT_LIST_DIR\}/([^\"]+)\"", config):
        assert (tmp_path / "plait/lib/cmake/plait" / relative).exists()


PROGRAM = """
import os, sys
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
import numpy
before = resident()
import plait, plait.numpy as jnp
print(resident() - before)
print(plait.__file__)
print(plait.grad(lambda x: jnp.sum(jnp.tanh(x @ x)))(numpy.eye(3))[0, 0])
print(plait.explain(lambda x: x @ x, jnp.ones((256, 256))))
plait.save(sys.argv[1], jnp.sin, jnp.ones(3))
print(plait.load(sys.argv[1]).sin(jnp.zeros(3)))
import ssl
with open("/proc/self/maps") as file:
    print({line.split()[-1] for line in file if "libdnnl" in line or "libgomp" in line or "libzip" in line})
"""


def test_it_works_in_a_clean_environment(clean, tmp_path):
    lines = output_of(clean, "-c", PROGRAM, tmp_path / "f.plait").splitlines()
    assert float(lines[0]) <= 30  # MB beyond NumPy's
    folder = str(clean.parents[1])
    assert lines[1].startswith(folder)
    assert abs(float(lines[2]) - 2 * (1 - np.tanh(1.0) ** 2)) < 1e-6
    text = "\n".join(lines[3:])
    assert " onednn " in text and "[0. 0. 0.]" in text
    loaded = eval(lines[-1])
    assert len(loaded) == 3 and all(path.startswith(folder) for path in loaded), loaded
    assert "sin" in output_of(clean.with_name("plait"), "show", tmp_path / "f.plait")


def test_compiled_programs_need_the_other_wheel(clean, wheels, tmp_path):
    output_of(clean, "-c", PROGRAM, tmp_path / "f.plait")
    command = [clean.with_name("plait"), "compile", tmp_path / "f.plait", "-o", tmp_path / "f.so"]
    result = outcome_of(*command)
    assert result.returncode != 0 and "pip install 'plait[compile]'" in result.stderr
    install(clean, wheels[1])
    output_of(*command)
    assert (tmp_path / "f.so").stat().st_size > 100_000 and (tmp_path / "f.h").exists()
