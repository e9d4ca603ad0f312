"""Jobs in which one rank differs, or messages are lost: an error each time that says where, never a hang or a wrong value.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import re
import sys
import time

import diverging_programs
import mesh_programs
import pytest
from diverging_programs import CHANGES, drawn
from mesh_programs import digests
from mpi_jobs import ENGINE_JOB, launcher, launchers, run  # noqa: F401
from wires import through_wires

pytestmark = pytest.mark.skipif(not launchers(), reason="there is no MPI here: pip install mpich")
SCRIPT = pathlib.Path(diverging_programs.__file__)


def outcome(launcher, seed, size, folder, **variables):  # noqa: F811
    """What is wrong with how a job ended, or None; its errors, and its seconds."""
    began = time.monotonic()
    code, out, err = run(
        launcher, size, sys.executable, SCRIPT, seed, folder, PLAIT_DEADLINE="3", **variables
    )
    took = time.monotonic() - began
    _, rank, _, change = drawn(seed, size)
    problem = None
    if code == 0:
        problem = "no error"
    elif "WRONG" in err or code == 9 and "plait" not in err:
        problem = "a wrong value"
    elif change not in ("aborts",) and re.search("SIGSEGV|SIGABRT|SIGBUS|Segmentation", err):
        problem = "a crash"
    elif not re.search(rf"\branks? [0-9, and]*\b{rank}\b", err):
        problem = "the rank that differs is not named"
    return problem, f"{change} on rank {rank}, seed {seed}: {code}\n{err}{out}", took


@pytest.mark.parametrize("seed", [CHANGES.index(each) for each in ("size", "rounds", "stops")])
def test_programs_that_diverge_at_random_end_in_an_error(launcher, seed, tmp_path):  # noqa: F811
    problem, text, _ = outcome(launcher, seed, 2 + seed % 2, tmp_path)
    assert problem is None, text


def test_late_messages_change_no_bits(launcher):  # noqa: F811
    variables = through_wires(launcher, delayed=30, seed=3)
    code, out, err = run(
        launcher,
        2,
        sys.executable,
        pathlib.Path(mesh_programs.__file__),
        2,
        PLAIT_DEADLINE="60",
        **variables,
    )
    assert code == 0, out + err
    lines = [f"program {number}: {each}" for number, each in enumerate(digests(2))]
    for rank in range(2):
        mine = [line for line in out.splitlines() if line.startswith(f"rank {rank}: program")]
        assert mine == [f"rank {rank}: {each}" for each in lines]


def test_a_lost_message_is_an_error_and_no_other_takes_its_place(launcher):  # noqa: F811
    script = pathlib.Path(mesh_programs.__file__)
    variables = through_wires(launcher, drop="1:40")
    code, out, err = run(launcher, 2, sys.executable, script, 2, PLAIT_DEADLINE="2", **variables)
    assert code != 0 and "plait: rank " in err and " for rank " in err
    assert out == ""  # what a rank prints, it does at its end


def test_many_small_collectives_keep_their_values_and_memory(launcher):  # noqa: F811
    code, out, err = run(launcher, 2, ENGINE_JOB, "often", 2000)
    assert code == 0, out + err


if __name__ == "__main__":  # first and last seed, ranks
    import tempfile

    first, last, size = map(int, sys.argv[1:])
    failed = 0
    for number in range(first, last):
        for path in launchers().values():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    problem, text, took = outcome(path, number, size, folder)
                except Exception as error:
                    problem, text, took = "a hang", str(error), 120
            failed += problem is not None
            print(f"{number} {path} {took:.1f} s: {problem or 'fine'}\n{text}", flush=True)
    sys.exit(failed)
