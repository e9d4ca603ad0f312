"""The benchmarks of plait: `./dev bench [NAME…]` runs the rows whose names contain one of the words.

Every row times plait and, where they can be imported, JAX, PyTorch and NumPy, in turns within one
run, and takes the least time of each, so that what else the machine does meets all of them; the
load printed with a row says how much that was. A ratio above 1 says how many times faster plait is
than the fastest peer. `limit` is what must hold, `roof` the time that the machine needs at least:
the work divided by what its best matrix product or copy reached in this run.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
import time

import machine
import rows

PEERS = ("jax", "torch", "numpy")
ROUNDS = 25
ROUND = 0.02  # seconds of one contestant in a round
PAUSE = 0.02  # before it: OpenMP's threads spin for some 10 ms after their last loop


def seconds_of(call, inner):
    start = time.perf_counter()
    for _ in range(inner):
        call()
    return (time.perf_counter() - start) / inner


def measure(contestants):
    """The least seconds of a call, by name. Calls too short for the clock are timed in bunches."""
    inner, bunches, best = {}, {}, {}
    for name, call in contestants.items():
        call()  # traces and compiles
        once = min(seconds_of(call, 1) for _ in range(3))
        inner[name] = max(1, int(2e-4 / once))
        bunches[name] = max(1, min(100, int(ROUND / (once * inner[name]))))
        best[name] = once
    for _ in range(ROUNDS):
        for name, call in contestants.items():
            time.sleep(PAUSE)
            for _ in range(bunches[name]):
                best[name] = min(best[name], seconds_of(call, inner[name]))
    return best


def text_of(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def print_row(name, times, limit=None, roof=None):
    ours = times.pop("plait")
    verdict, said = "", ""
    if isinstance(limit, tuple):  # (peer, factor): not slower than factor times the peer
        peer, factor = limit
        said = f"{factor}× {peer}"
        verdict = "" if peer not in times else "ok" if ours <= factor * times[peer] else "OVER"
    elif limit is not None:
        said = text_of(limit)
        verdict = "ok" if ours <= limit else "OVER"
    peers = [f"{peer} {text_of(seconds)}" for peer, seconds in times.items()]
    if roof:
        peers.append(f"roof {text_of(roof)}")
    of_peers = [seconds for name, seconds in times.items() if name in PEERS]
    ratio = f"{min(of_peers) / ours:.2f}×" if of_peers else ""
    load = os.getloadavg()[0]
    print(
        f"{name:38} {text_of(ours):>8}  {said:>9} {verdict:4} {ratio:>7}  load {load:4.1f}  ",
        "  ".join(peers),
        flush=True,
    )


def programs(words):
    """Rows that C++ programs print: lines "name value"."""
    folder = os.environ.get("PLAIT_BUILD_DIR", "build")
    for program, entries in rows.PROGRAMS.items():
        if words and not any(word in row for row, _, _ in entries.values() for word in words):
            continue
        path = os.path.join(folder, "tests", program)
        if not os.path.exists(path):
            print(f"{program}: not built")
            continue
        output = subprocess.run([path], stdout=subprocess.PIPE, check=True).stdout.decode()
        values = dict(line.split() for line in output.splitlines())
        for key, (row, unit, limit) in entries.items():
            print_row(row, {"plait": float(values[key]) * unit}, limit)


def main(words):
    found, absent = rows.peers()
    for name, reason in absent.items():
        print(f"{name} is skipped: {reason} (./dev bench --peers installs it)")
    chosen = [row for row in rows.ROWS if not words or any(word in row.name for word in words)]
    rates = machine.Rates() if any(row.work for row in chosen) else None
    if rates:
        print(rates)
    print(f"{'':38} {'plait':>8}  {'limit':>9} {'':4} {'ratio':>7}")
    for row in chosen:
        contestants = row.contestants(found)
        if not all(isinstance(entry, float) for entry in contestants.values()):
            contestants = measure(contestants)  # otherwise the row has timed itself
        print_row(row.name, contestants, row.limit, rates.roof(row.work) if row.work else None)
    programs(words)


if __name__ == "__main__":
    main(sys.argv[1:])
