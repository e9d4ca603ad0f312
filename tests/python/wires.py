"""An interposer between jobs and their MPI: messages are delayed, reordered and dropped (tests/mpi/wires.c).

SPDX-License-Identifier: Apache-2.0
"""

import functools
import glob
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
from mpi_jobs import launchers

SOURCE = pathlib.Path(__file__).parents[1] / "mpi" / "wires.c"
LIBRARIES = {"openmpi": ("libmpi.so.40",), "mpich": ("libmpi.so.12", "libmpich.so.12")}


def real_library(kind):
    """The library of a launcher, as jobs find it: (name, path), or None."""
    prefix = pathlib.Path(launchers()[kind]).resolve().parent.parent
    for name in LIBRARIES[kind]:
        for folder in ("lib", "lib64", "lib/*-linux-gnu"):
            for path in sorted(glob.glob(str(prefix / folder / name))):
                return name, path
    return None


@functools.cache
def folder_of_wires(kind):
    """The folder of an interposer that has the name of the real library, which it is linked with."""
    compiler, real = shutil.which("cc") or shutil.which("gcc"), real_library(kind)
    if compiler is None or real is None:
        pytest.skip("needs a compiler of C, and the library of MPI beside its launcher")
    folder = tempfile.mkdtemp(prefix="plait-wires-")
    name, path = real
    flags = ["-DWIRES_HANDLES"] if kind == "openmpi" else []
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", *flags, "-o", f"{folder}/{name}", SOURCE]
        + ["-Wl,--no-as-needed", path, f"-Wl,-rpath,{pathlib.Path(path).parent}", "-ldl"],
        check=True,
    )
    return folder


def through_wires(launcher, **settings):
    """Variables of a job whose messages pass an interposer: delayed=percent, drop="RANK:NUMBER", seed=number."""
    kind = next(kind for kind, path in launchers().items() if path == launcher)
    return {"PLAIT_MPI_LIBRARIES": folder_of_wires(kind)} | {
        "WIRES_" + name.upper(): str(value) for name, value in settings.items()
    }


if __name__ == "__main__":
    print(folder_of_wires(sys.argv[1]))
