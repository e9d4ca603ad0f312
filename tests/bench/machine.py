"""What the machine can do: the rates that limits are made of, measured in the same run."""

# SPDX-License-Identifier: Apache-2.0

import contextlib
import itertools
import os
import platform
import subprocess
import time

FIRST = -19  # how nice turns are to other processes


def rates(threads, contest):
    """Bytes and products a second, seconds of an empty call; and what says which machine it is."""
    found = {"call": empty_call()} | measured(threads, "copy", "fma")
    for key, dtype in (("product32", "float32"), ("product16", "bfloat16")):
        found[key] = max((product(contest, name, dtype) for name in ("plait", "torch")), default=0)
    return found


def measured(threads, *kinds):
    """What bench_limits says of these kinds."""
    program = os.path.join(os.environ.get("PLAIT_BUILD_DIR", "build"), "tests", "bench_limits")
    command = [program, str(threads), *kinds]
    output = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, text=True, preexec_fn=before_others
    ).stdout
    return {key: float(value) for key, value in (line.split() for line in output.splitlines())}


def before_others():
    """In a new process: it goes on as workers take their turns."""
    give_priority(FIRST)


def better(rates, threads):
    """The rates, with those of copies measured again: on a busy machine the best of many counts."""
    again = measured(threads, "copy")
    return rates | {key: max(value, rates[key]) for key, value in again.items()}


def product(contest, name, dtype):
    """Products and sums a second of a library's 1024³ matrix product; 0 where it has none."""
    if name not in contest.names:
        return 0.0
    answer = contest.ask(name, do="product", dtype=dtype)
    return 2 * 1024**3 / answer["seconds"] if "seconds" in answer else 0.0


@contextlib.contextmanager
def priority():
    """This process before others, where that is permitted."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    give_priority(FIRST)
    try:
        yield
    finally:
        give_priority(before)


def give_priority(level):
    """To all threads of this process."""
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), level)


def empty_call():
    """Seconds of a call, from Python, of a function in C that does nothing."""
    call, many = (()).__len__, 100_000

    def loop(function):
        start = time.perf_counter()
        for _ in itertools.repeat(None, many):
            function()
        return time.perf_counter() - start

    def nothing():
        start = time.perf_counter()
        for _ in itertools.repeat(None, many):
            pass
        return time.perf_counter() - start

    with priority():
        return (min(loop(call) for _ in range(9)) - min(nothing() for _ in range(9))) / many


def describe(threads):
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if "model name" in line), "")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "load": os.getloadavg()[0],
    }


def text(rates):
    return (
        f"limits: copies {rates['copy_one'] / 1e9:.1f} GB/s by one thread, "
        f"{rates['copy'] / 1e9:.1f} by all; FMA float32 {rates['fma32_one'] / 1e9:.0f} and "
        f"{rates['fma32'] / 1e9:.0f} GFLOP/s, float64 {rates['fma64'] / 1e9:.0f}; products float32 "
        f"{rates['product32'] / 1e9:.0f}, bfloat16 {rates['product16'] / 1e9:.0f}; "
        f"an empty call {rates['call'] * 1e9:.0f} ns"
    )
