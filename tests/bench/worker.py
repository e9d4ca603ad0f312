"""A process with one library: it prepares rows, checks their results, and times calls when told to.

Requests and answers are lines of JSON, on standard input and on what was standard output; what the
library prints goes to standard error. Between requests it waits in a read and uses no processor.
"""

# SPDX-License-Identifier: Apache-2.0

import gc
import itertools
import json
import os
import pickle
import sys
import time
import traceback

import libraries
import numpy as np
import rows
from machine import priority

BUNCH = 2e-4  # seconds: calls shorter than the clock can tell are timed in bunches
MOST = 200  # bunches in a turn


class Worker:
    def __init__(self, name, families):
        self.library = libraries.load(name)
        self.rows = {row.name: row for row in rows.all_rows(families)}
        self.call = None

    def answer(self, request):
        return getattr(self, "do_" + request.pop("do"))(**request)

    def do_hello(self):
        return {"version": libraries.version_of(self.library.name)}

    def do_prepare(self, row, reference):
        """Builds the calls, checks the first result of each, keeps the fastest."""
        row = self.rows[row]
        calls = self.build(row)
        if calls is None:
            return {"status": "absent"}
        wanted = load(reference)
        best, notes = None, {}
        for name, call in calls.items():
            error, failure = self.check(row, call, wanted)
            if failure:
                notes[name] = failure
                continue
            seconds = warm(call)
            notes[name] = seconds
            if best is None or seconds < best[0]:
                best = seconds, name, call, error
        if best is None:
            differs = any(note.startswith("WRONG") for note in notes.values())
            return {"status": "wrong" if differs else "failed", "notes": notes}
        self.seconds, name, self.call, error = best
        return {
            "status": "ok",
            "seconds": self.seconds,
            "variant": name,
            "error": error,
            "notes": notes if len(notes) > 1 else {},
        }

    def do_time(self, turn):
        """The least mean of bunches of calls in about this many seconds, one call at least."""
        inner = max(1, int(BUNCH / self.seconds))
        bunches = max(1, min(MOST, int(turn / (self.seconds * inner))))
        with priority():
            return {"seconds": min(timed(self.call, inner) for _ in range(bunches))}

    def do_cold(self, row, reference):
        """The seconds of the first call, and the bytes that memory grew by at most meanwhile."""
        row = self.rows[row]
        calls = self.build(row)
        if calls is None:
            return {"status": "absent"}
        wanted = load(reference)
        call = next(iter(calls.values()))
        gc.collect()
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # the peak begins anew
        before = memory("VmRSS")
        with priority():
            start = time.perf_counter()
            value = call()
            seconds = time.perf_counter() - start
            if row.beyond_warm:
                seconds = max(seconds - timed(call, 1), 1e-6)
        grown = memory("VmHWM") - before
        error, failure = rows.wrong(row, row.pick(self.library.numpy(value)), wanted)
        answer = {"status": "ok", "seconds": seconds, "grown": grown, "error": error}
        if failure:
            answer |= {"status": "wrong", "notes": {"": failure}}
        return answer

    def do_product(self, dtype):
        """The least seconds of a product of two matrices of 1024 × 1024."""
        library = self.library
        x = np.random.default_rng(0).standard_normal((1024, 1024), dtype=np.float32)
        if dtype == "bfloat16":
            import ml_dtypes

            x = x.astype(ml_dtypes.bfloat16)
        x = library.array(x)
        call = library.waiting(library.jit(lambda x: x @ x), x)
        return {"seconds": min(warm(call) for _ in range(5))}

    def do_drop(self):
        self.call = None
        gc.collect()
        return {}

    def build(self, row):
        """Calls by name; None where the library has no such row."""
        self.do_drop()
        builder = row.builder(self.library)
        if builder is None:
            return None
        self.library.setup(row)
        calls = builder(self.library, *self.library.arrays(tuple(row.inputs())))
        return {"": calls} if callable(calls) else calls

    def check(self, row, call, wanted):
        try:
            return rows.wrong(row, row.pick(self.library.numpy(call())), wanted)
        except Exception as error:
            traceback.print_exc()
            return None, f"{type(error).__name__}: {error}"[:500]


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def timed(call, inner):
    start = time.perf_counter()
    for _ in itertools.repeat(None, inner):
        call()
    return (time.perf_counter() - start) / inner


def warm(call):
    """The least of some calls: the first ones finish what compilation left for later."""
    best, spent = float("inf"), 0.0
    with priority():
        for _ in range(5):
            seconds = timed(call, 1)
            best, spent = min(best, seconds), spent + seconds
            if spent > 1:
                break
    return max(best, 1e-9)


def memory(key):
    """Bytes of the process: VmRSS now, VmHWM at most so far."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(key))
    return int(line.split()[1]) * 1024


def main(name, *families):
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(name, families)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            answer = {"status": "failed", "notes": {"": f"{type(error).__name__}: {error}"[:500]}}
        print(json.dumps(answer), file=channel, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
