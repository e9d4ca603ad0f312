"""The engine of jobs, under each MPI that is here: collectives, errors instead of waits, `plait run -n`.

SPDX-License-Identifier: Apache-2.0
"""

import os
import signal
import subprocess
import sys
import time

import pytest
from command_line import run as run_alone
from mpi_jobs import ENGINE_JOB, environment, launcher, launchers, run, start  # noqa: F401

pytestmark = pytest.mark.skipif(not ENGINE_JOB.exists(), reason=f"{ENGINE_JOB} is not built")


def notes_of(folder, num_ranks):
    """What each rank wrote into a file of its own: launchers mix what ranks print."""
    return [(folder / str(rank)).read_text() for rank in range(num_ranks)]


def num_threads(num_ranks):
    return max(1, min(os.cpu_count(), len(os.sched_getaffinity(0))) // num_ranks)


@pytest.mark.parametrize("num_ranks", [2, 4, 5])
def test_collectives_have_the_bits_of_one_process(launcher, num_ranks, tmp_path):  # noqa: F811
    code, out, err = run(launcher, num_ranks, ENGINE_JOB, "laws", ENGINE_JOB_NOTES=str(tmp_path))
    assert code == 0, out + err
    fine = f"fine, {num_ranks} here, {num_threads(num_ranks)} threads"
    assert notes_of(tmp_path, num_ranks) == [fine] * num_ranks


def test_ranks_that_disagree_are_told_what_each_is_about_to_do(launcher, tmp_path):  # noqa: F811
    code, out, err = run(launcher, 3, ENGINE_JOB, "disagree", ENGINE_JOB_NOTES=str(tmp_path))
    assert code == 0, out + err
    said = (
        "the ranks of a job are about to do different things:\n"
        "  ranks 0 and 2: psum at a.py:1 (call 1, program 6)\n"
        "  rank 1: psum at b.py:2 (call 1, program 8)"
    )
    assert notes_of(tmp_path, 3) == [said] * 3


def test_a_wait_ends_by_its_deadline_and_all_that_wait_say_where(launcher):  # noqa: F811
    code, out, err = run(launcher, 3, ENGINE_JOB, "stop", PLAIT_DEADLINE="1")
    assert code != 0
    for rank in (0, 2):
        assert f"plait: rank {rank} of 3 (process " in err
    assert err.count("for rank 1 in the psum at train.py:12") == 2
    assert "the time is up, so the job ends" in err


@pytest.mark.parametrize(
    "what, reason",
    [("fail", "plait: rank 1 of 3 (process"), ("end", "rank 1 has ended its program")],
)
def test_nobody_waits_for_a_rank_that_has_ended(launcher, what, reason):  # noqa: F811
    began = time.monotonic()
    code, out, err = run(launcher, 3, ENGINE_JOB, what, PLAIT_DEADLINE="2")
    assert code == (3 if what == "fail" else 1)
    assert reason in err
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("seed", range(2))
def test_ranks_that_diverge_at_random_end_in_an_error(launcher, seed):  # noqa: F811
    code, out, err = run(launcher, 4, ENGINE_JOB, "diverge", seed, PLAIT_DEADLINE="2")
    assert code != 0
    assert "in another collective" in err or "has ended its program" in err


def is_running(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(") ")[2][0] != "Z"  # which init has not yet waited for
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill_one(launcher, victim):  # noqa: F811
    """Seconds until the job has ended, and its errors, after SIGKILL of one of its ranks."""
    job = start(launcher, 4, ENGINE_JOB, "work")
    processes = {}
    while len(processes) < 4:
        rank, process = map(int, job.stdout.readline().split())
        processes[rank] = process
    time.sleep(0.2)
    os.kill(processes[victim], signal.SIGKILL)
    began = time.monotonic()
    _, err = job.communicate(timeout=60)
    assert job.returncode != 0
    assert f"plait: rank {victim} of 4 (process {processes[victim]} on " in err
    assert "was ended by SIGKILL" in err
    while any(is_running(process) for process in processes.values()):
        assert time.monotonic() - began < 10
        time.sleep(0.02)
    return time.monotonic() - began


def test_a_rank_that_is_killed_ends_the_job_and_is_named(launcher):  # noqa: F811
    for victim in (0, 3):
        assert kill_one(launcher, victim) < 10


def test_a_forked_child_is_no_rank(launcher):  # noqa: F811
    code, out, err = run(launcher, 2, ENGINE_JOB, "fork")
    assert code == 0, out + err


def test_scripts_and_programs_run_on_ranks_with_their_own_words(launcher, tmp_path):  # noqa: F811
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "rank = os.environ.get('OMPI_COMM_WORLD_RANK', os.environ.get('PMI_RANK'))\n"
        "text = repr([sys.argv[1:], os.environ['PLAIT_THREADS']])\n"
        "(pathlib.Path(__file__).parent / rank).write_text(text)\n"
        "sys.exit(7 if '--fail' in sys.argv and rank == '1' else 0)\n"
    )
    code, _, err = run(launcher, 2, script, "--rate", "0.1", "-n", PLAIT_PYTHON=sys.executable)
    assert code == 0, err
    wanted = repr([["--rate", "0.1", "-n"], str(num_threads(2))])
    assert notes_of(tmp_path, 2) == [wanted] * 2
    assert run(launcher, 2, script, "--fail", PLAIT_PYTHON=sys.executable)[0] == 7


def test_programs_are_found_on_path_and_files_of_the_folder_before_them(
    launcher,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    assert run(launcher, 2, "sh", "-c", "echo from $0", "a")[:2] == (0, "from a\nfrom a\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sh").write_text("#!/bin/sh\necho here $1\n")
    (tmp_path / "sh").chmod(0o755)
    assert run(launcher, 2, "sh", "-c")[:2] == (0, "here -c\nhere -c\n")


def test_a_signal_to_the_launcher_reaches_the_ranks(launcher):  # noqa: F811
    job = start(launcher, 2, ENGINE_JOB, "work")
    processes = [int(job.stdout.readline().split()[1]) for _ in range(2)]
    job.send_signal(signal.SIGTERM)
    _, err = job.communicate(timeout=30)
    assert job.returncode != 0
    assert "was ended by" not in err  # as somebody asked for it
    deadline = time.monotonic() + 10
    while any(is_running(process) for process in processes):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_program_runs_alone_without_a_launcher(tmp_path):
    assert run_alone("run", ENGINE_JOB) == (0, "alone\n", "")


@pytest.mark.parametrize(
    "words, problem",
    [
        (["-n"], "-n needs a value: N"),
        (["-n", "two", "a.py"], "-n two is no number of ranks"),
        (["-n", "2"], "-n is followed by the program: script.py, or a path"),
        (["-n", "2", "absent.py"], "absent.py cannot be read: No such file or directory"),
        (["-n", "2", "absent-program"], "absent-program cannot be read: No such file"),
    ],
)
def test_what_cannot_be_started_is_said(words, problem):
    code, out, err = run_alone("run", *words)
    assert code != 0 and out == "" and problem in err


def test_messages_of_more_than_two_gigabytes_come_in_pieces(launcher):  # noqa: F811
    if "PLAIT_TEST_LARGE" not in os.environ:
        pytest.skip("needs 10 GB of memory: ./dev test --large")
    code, out, err = run(launcher, 2, ENGINE_JOB, "large")
    assert code == 0, out + err


def test_ranks_are_alone_where_that_is_asked_for(launcher):  # noqa: F811
    assert run(launcher, 2, ENGINE_JOB, PLAIT_MPI="0")[:2] == (0, "alone\nalone\n")


def test_ranks_of_slurm_load_the_mpi_of_its_interface(launcher, tmp_path):  # noqa: F811
    """Where there are both: Open MPI ends a process that was started through PMI."""
    slurm = {"SLURM_PROCID": "0", "ENGINE_JOB_NOTES": str(tmp_path)}
    code, out, err = run(launcher, 2, ENGINE_JOB, "laws", **slurm)
    assert code == 0, out + err


def test_tasks_of_slurm_that_are_alone_are_told(launcher):  # noqa: F811
    def said_by(**variables):
        slurm = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"} | variables
        ran = subprocess.run([ENGINE_JOB], capture_output=True, text=True, env=environment(launcher, **slurm))  # fmt: skip
        assert (ran.returncode, ran.stdout) == (0, "alone\n")
        return ran.stderr

    assert "srun started 4 tasks without an MPI: each of them is alone" in said_by()
    assert "fix: give srun --mpi=pmi2 for MPICH or --mpi=pmix" in said_by()
    assert said_by(SLURM_PROCID="1") == said_by(PLAIT_MPI="0") == ""


def test_an_mpi_that_did_not_start_the_job_is_refused(launcher):  # noqa: F811
    """As where the library of another installation is found: it sees one rank."""
    other = {"OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "0"}
    if launcher != launchers().get("openmpi"):
        other = {"PMI_SIZE": "3", "PMI_RANK": "0"}
    ran = subprocess.run(
        [ENGINE_JOB, "laws"], capture_output=True, text=True, env=environment(launcher, **other)
    )
    assert ran.returncode == 1
    assert "it is not the MPI that started this job\n  fix: set PLAIT_MPI_LIBRARIES" in ran.stderr
