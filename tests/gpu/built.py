"""What was built here, for a machine with another Python: all but Python's module travels as it is.

`pack` copies it from a build folder; `unpack` makes a build folder of it, and `compile_module` the module,
by the compiler and the Python that are there.

SPDX-License-Identifier: Apache-2.0
"""

import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig

LIBRARY = "libplait.so.0.1.0"
MODULE = "plait/backends/plait_cuda.so"
FILES = [LIBRARY, MODULE, "tests/test_kernels", "tests/bench_launches"]


def has_all(build_folder):
    return all(os.path.exists(os.path.join(build_folder, name)) for name in FILES)


def pack(build_folder, packed):
    """Needs a build of the release variant with Python."""
    import pybind11

    for name in FILES:
        path = os.path.join(packed, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run(["strip", "-o", path, os.path.join(build_folder, name)], check=True)
    shutil.copytree(os.path.join(pybind11.get_include(), "pybind11"),
                    os.path.join(packed, "include", "pybind11"))  # fmt: skip
    with open(os.path.join(build_folder, "compile_commands.json")) as file:
        commands = json.load(file)
    units = {}
    for command in commands:
        name, words = command["file"], shlex.split(command["command"])
        if os.path.dirname(name) == "python" and name.endswith(".cpp"):
            units[os.path.basename(name)] = [word for word in words if travels(word)]
            shutil.copy(os.path.join(build_folder, name), packed)
    with open(os.path.join(packed, "units.json"), "w") as file:
        json.dump(units, file)


def travels(word):
    """Which words of a compiler's command mean the same there."""
    if word.startswith("-W"):
        return word.startswith("-Wno-")
    return word.startswith(("-O", "-D", "-std=", "-m", "-f")) and "diagnostics" not in word


def unpack(root, packed, build_folder):
    """All but the module: the programs of tests can run while that compiles."""
    for name in FILES:
        path = os.path.join(build_folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(os.path.join(packed, name), path)
    for name in ("libplait.so.0", "libplait.so"):
        os.symlink(LIBRARY, os.path.join(build_folder, name))
    package = os.path.join(build_folder, "python", "plait")
    os.makedirs(package)
    for name in os.listdir(os.path.join(root, "python", "plait")):
        if name != "__pycache__":
            os.symlink(os.path.join(root, "python", "plait", name), os.path.join(package, name))


def compile_module(root, packed, build_folder):
    """What the compiler said, if it failed. An earlier call's module is taken."""
    name = "_plait" + sysconfig.get_config_var("EXT_SUFFIX")
    module = os.path.join(build_folder, "python", "plait", name)
    if os.path.exists(os.path.join(packed, name)):
        shutil.copy(os.path.join(packed, name), module)
        return ""
    with open(os.path.join(packed, "units.json")) as file:
        units = json.load(file)
    folders = ["python", "python/src", "include", "lib"]
    include = ["-I" + os.path.join(root, folder) for folder in folders]
    include += ["-isystem", sysconfig.get_path("include"), "-isystem", packed + "/include"]

    def compiled(unit):
        path = os.path.join(build_folder, unit + ".o")
        words = ["g++", *units[unit], *include, "-w", "-fPIC", "-c", os.path.join(packed, unit)]
        return path, output_of([*words, "-o", path])

    with concurrent.futures.ThreadPoolExecutor(len(units)) as pool:
        made = list(pool.map(compiled, units))
    said = "".join(text for _, text in made)
    words = ["g++", "-shared", "-s", "-o", module]
    words += [path for path, _ in made] + [os.path.join(build_folder, "libplait.so")]
    words += ["-Wl,--version-script=" + os.path.join(root, "python", "exports.map")]
    return said or output_of([*words, "-Wl,-rpath," + build_folder])


def output_of(words):
    """Of a command that failed; "" of one that did not."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if done.returncode == 0 else done.stdout.decode(errors="replace")[-3000:]


def is_usable(build_folder):
    """Whether this Python imports plait from there."""
    path = os.path.join(build_folder, "python")
    done = subprocess.run([sys.executable, "-c", "import plait"], capture_output=True,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    return done.returncode == 0
