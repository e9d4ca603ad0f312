"""`./dev bench scale`: several processes, on one machine: all-reduce, a data-parallel step, a stencil, and a model.

  --quick           smaller sizes: up to 4 MB
  --turns N         how often each job runs (default 3); a figure is the median of the turns
  --output FOLDER   where scale.json and scale.txt go (default: bench in the build folder)

All-reduce is measured beside mpi4py and NumPy with the same algorithm, where mpi4py is installed (with an MPI that
mpirun belongs to). Jobs take turns, so that other work of the machine falls on all of them. A model of a latency, a time
by byte and a time of computing is fitted to all-reduces and to single processes; what it predicts of the step and of the
stencil on two ranks stands beside the times. The table for 8 to 256 ranks is this model with published figures of
networks, and no measurement.
"""

# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

JOB = pathlib.Path(__file__).with_name("scale_job.py")
BATCH, ROWS, COLUMNS, STEPS = 8192, 1024, 1024, 50
NUM_WEIGHTS = 784 * 1024 + 1024 * 1024 + 1024 * 10
# One-way latency in seconds between two programs, and bytes a second.
NETWORKS = {
    # J. Squyres, "MPI over 40Gb Ethernet", Cisco 2015: NetPIPE, Open MPI 1.8.1 with usNIC
    "40 Gb Ethernet, usNIC": (1.93e-6, 37.23e9 / 8),
    # Microsoft, "HBv3-series performance", Azure documentation 2023: OSU benchmarks, 200 Gb/s HDR
    "InfiniBand HDR": (1.2e-6, 192e9 / 8),
}


def job(ranks, threads, *words):
    """{name: seconds} of a job, or text that says why there is none."""
    command = [sys.executable, str(JOB), *map(str, words)]
    environment = os.environ | {"PLAIT_THREADS": str(threads), "PLAIT_WAIT": "1"}
    environment |= {"PLAIT_PYTHON": sys.executable, "OMP_NUM_THREADS": str(threads)}
    if ranks > 1:
        build = pathlib.Path(environment.get("PLAIT_BUILD_DIR", "build"))
        program = build / "lib" / "tool" / "plait"
        command = [str(program), "run", "-n", str(ranks), *command[1:]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["it failed"])[-1]
    found = {}
    for line in done.stdout.splitlines():
        name, _, seconds = line.rpartition(" ")
        found[name] = max(found.get(name, 0), float(seconds))  # of the slowest rank
    return found


def measure(most, turns):
    jobs = {
        "plait": (2, 1, "all_reduce", most),
        "mpi4py": (2, 1, "peer", most),
        "one process, two threads": (1, 2, "step", BATCH),
        "two ranks": (2, 1, "step", BATCH),
        "step apart": (2, 1, "step", BATCH // 2, "apart"),
        "exchange": (2, 1, "stencil", ROWS, "exchange"),
        "apart": (2, 1, "stencil", ROWS, "apart"),
    }
    taken = {}
    for _ in range(turns):
        for name, words in jobs.items():
            found = job(*words)
            if isinstance(found, str):
                print(f"{name}: not measured: {found}")
                continue
            for row, seconds in found.items():
                taken.setdefault(name, {}).setdefault(row, []).append(seconds)
    return {
        name: {row: statistics.median(all) for row, all in rows.items()}
        for name, rows in taken.items()
    }


def fitted(reduces):
    """(seconds of a call, seconds by byte): least squares of relative errors over the all-reduces of two ranks."""
    points = sorted((int(name.split()[1]), seconds) for name, seconds in reduces.items())
    ones = [(1 / t, size / t) for size, t in points]
    a, b, c = (sum(x[i] * x[j] for x in ones) for i, j in ((0, 0), (0, 1), (1, 1)))
    p, q = (sum(x[i] for x in ones) for i in (0, 1))
    by_call, by_byte = (p * c - b * q) / (a * c - b * b), (a * q - b * p) / (a * c - b * b)
    return max(by_call, 0.0), by_byte


def all_reduce_on(network, ranks, size, sum_rate):
    """Of the slices' exchange, the sum of them, and the gathering."""
    latency, rate = network
    part = size / ranks
    each_way = latency + (ranks - 1) * (0.2e-6 + part / rate)  # 0.2 us: posting a message
    return 2 * each_way + (ranks - 1) * part / sum_rate


def report(taken):
    lines = []
    say = lines.append
    ours, peers = taken.get("plait", {}), taken.get("mpi4py", {})
    say("all-reduce of float32 on two ranks, microseconds")
    say(f"{'bytes':>12}{'plait':>12}{'mpi4py':>12}{'ratio':>8}")
    for name, seconds in ours.items():
        theirs = peers.get(name)
        more = f"{theirs * 1e6:12.1f}{seconds / theirs:8.2f}" if theirs else ""
        say(f"{name.split()[1]:>12}{seconds * 1e6:12.1f}{more}")
    one = taken["one process, two threads"][f"step {BATCH} shared"]
    two = taken["two ranks"][f"step {BATCH} shared"]
    say(f"\nstep of batch {BATCH}: two ranks {two * 1e3:.1f} ms, one process on two threads")
    say(f"  {one * 1e3:.1f} ms: {one / two:.2f} of its speed")
    exchange = taken["exchange"][f"stencil {ROWS} exchange"]
    apart = taken["apart"][f"stencil {ROWS} apart"]
    say(
        f"stencil of {STEPS} steps on {ROWS} x {COLUMNS} for each rank: {exchange * 1e3:.1f} ms, without"
    )
    say(f"  exchange {apart * 1e3:.1f} ms: {apart / exchange:.2f} of its speed")

    by_call, by_byte = fitted(ours)
    half = taken["step apart"][f"step {BATCH // 2} apart"]
    say(
        f"\nmodel: an all-reduce on two ranks takes {by_call * 1e6:.1f} us + {by_byte * 1e9:.3f} ns a byte"
    )
    predictions = {
        "step": (half + by_call * 4 + by_byte * 4 * NUM_WEIGHTS, two),
        "stencil": (apart + STEPS * (2 * by_call + by_byte * 4 * COLUMNS), exchange),
    }
    for name, (expected, found) in predictions.items():
        say(f"  {name}: {expected * 1e3:.1f} ms expected, {found * 1e3:.1f} ms measured: "
            f"off by {100 * abs(expected / found - 1):.0f} %")  # fmt: skip
    say(
        "\nmodel, not measured: speed of a rank among n by that of one alone, the work of a rank as above"
    )
    say(f"{'ranks':>44}" + "".join(f"{n:>8}" for n in (8, 16, 32, 64, 128, 256)))
    sum_rate = 1 / by_byte
    for name, network in NETWORKS.items():
        steps, divided, stencils = [], [], []
        for n in (8, 16, 32, 64, 128, 256):
            sums = all_reduce_on(network, n, 4 * NUM_WEIGHTS, sum_rate)
            steps.append(half / (half + sums))
            divided.append(2 * half / n / (2 * half / n + sums))
            halo = STEPS * 2 * (network[0] + 0.2e-6 + 4 * COLUMNS / network[1])
            stencils.append(apart / (apart + halo))
        for what, row in (
            (f"step, {BATCH // 2} a rank", steps),
            (f"step, {BATCH} in all", divided),
            (f"stencil, {ROWS} rows a rank", stencils),
        ):
            say(f"{name + ': ' + what:>44}" + "".join(f"{x:8.2f}" for x in row))
    return "\n".join(lines)


def main(words):
    description, _, epilog = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="./dev bench scale", description=description, epilog=epilog
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--turns", type=int, default=3)
    folder = os.path.join(os.environ.get("PLAIT_BUILD_DIR", "build"), "bench")
    parser.add_argument("--output", default=folder, help="the folder of the results")
    options = parser.parse_args(words)
    taken = measure(4 << 20 if options.quick else 256 << 20, 1 if options.quick else options.turns)
    os.makedirs(options.output, exist_ok=True)
    with open(os.path.join(options.output, "scale.json"), "w") as file:
        json.dump(taken, file, indent=1)
    text = report(taken)
    print(text)
    with open(os.path.join(options.output, "scale.txt"), "w") as file:
        file.write(text + "\n")
