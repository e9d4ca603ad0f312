"""The benchmarks of plait: `./dev bench [NAME…]` runs the rows whose names contain one of the words.

Every row times plait and, where they can be imported, JAX, PyTorch and NumPy, in turns within one run, so
that what else the machine does meets all of them. A ratio above 1 says how many times faster plait is than
the fastest peer; `limit` is what must hold.
"""

# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
import time

import rows

ROUNDS = 7


def best_of(call, inner):
    """The least seconds of one call, over a round of inner calls."""
    start = time.perf_counter()
    for _ in range(inner):
        call()
    return (time.perf_counter() - start) / inner


def measure(contestants):
    """Seconds by name; rounds go round the contestants."""
    inner = {}
    for name, call in contestants.items():
        call()  # traces and compiles
        once = max(best_of(call, 1), 1e-7)
        inner[name] = max(1, min(20000, int(0.05 / once)))
    best = {}
    for _ in range(ROUNDS):
        for name, call in contestants.items():
            seconds = best_of(call, inner[name])
            best[name] = min(best.get(name, seconds), seconds)
    return best


def text_of(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def print_row(name, times, limit):
    ours = times.pop("plait")
    peers = "  ".join(f"{peer} {text_of(seconds)}" for peer, seconds in times.items())
    ratio = f"{min(times.values()) / ours:.2f}×" if times else ""
    verdict, said = "", ""
    if isinstance(limit, tuple):  # (peer, factor): not slower than factor times the peer
        peer, factor = limit
        said = f"{factor}× {peer}"
        verdict = "" if peer not in times else "ok" if ours <= factor * times[peer] else "OVER"
    elif limit is not None:
        said = text_of(limit)
        verdict = "ok" if ours <= limit else "OVER"
    print(f"{name:34} {text_of(ours):>9}  limit {said:>9} {verdict:4}  {ratio:>7}  {peers}", flush=True)


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
        print(f"{name} is skipped: {reason}")
    for row in rows.ROWS:
        if words and not any(word in row.name for word in words):
            continue
        try:
            contestants = row.contestants(found)
        except (AttributeError, ImportError) as error:
            print(f"{row.name:34} cannot run: {error}")
            continue
        if isinstance(contestants, dict) and all(isinstance(v, float) for v in contestants.values()):
            print_row(row.name, contestants, row.limit)  # timed by the row itself
        else:
            print_row(row.name, measure(contestants), row.limit)
    programs(words)


if __name__ == "__main__":
    main(sys.argv[1:])
