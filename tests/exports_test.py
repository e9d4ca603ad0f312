"""What plait's shared libraries show, and what they leave for the end of a process.

An application may have the same functions of Eigen or of the C++ library, compiled otherwise: of
two that are shown, the dynamic linker takes one for everybody.
"""

# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
LIBRARIES = [BUILD / "libplait.so", *sorted((BUILD / "plait" / "backends").glob("*.so"))]
ARCHIVES = sorted(BUILD.glob("libplait_run*.a"))
# How names are mangled: a function or object of namespace plait, perhaps const or qualified by
# reference; what compilers add to types, objects and virtual functions; objects inside functions.
OF_PLAIT = re.compile(r"_Z(T[ISTVWH]|T[hvc]\w*_|G[VR])?Z?N(K?[RO]?)5plait")


def shown(library):
    """The names that a library defines for others, as they are mangled."""
    ran = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return {line.split()[0].split("@")[0] for line in ran.stdout.splitlines()}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_libraries_show_namespace_plait_alone(library):
    names = shown(library)
    assert not [name for name in names if not OF_PLAIT.match(name)]


def test_the_library_shows_what_others_share():
    names = shown(LIBRARIES[0])
    assert len(names) > 1000
    for name in (
        "_ZTIN5plait9UserErrorE",  # caught where it was not thrown
        "_ZTVN5plait12ConcreteNodeE",
        "_ZN5plait3Jvp5tableEv",  # one table of rules in a process
        "_ZN5plait5sin_pE",
    ):
        assert name in names


def test_the_python_module_shows_what_python_looks_for():
    modules = list((BUILD / "python").glob("_plait*.so"))
    if not modules:
        pytest.skip("plait was built without Python")
    assert shown(modules[0]) == {"PyInit__plait"}


def test_exit_destroys_nothing_of_plait():
    """Threads may outlive main: what they use must, too (`*new T`, not a static T)."""
    ran = subprocess.run(["nm", "-A", "-u", *ARCHIVES], capture_output=True, text=True)
    assert ran.returncode == 0 and "lib_base_tree" in ran.stdout, ran.stderr
    members = re.findall(r"^(\S+?):\s+U __cxa_atexit$", ran.stdout, re.MULTILINE)
    assert not members
