"""One contestant of the scoreboard, in a process of its own: worker.py LIBRARY [small].

It answers requests, lines of JSON, on what was standard output. Calls of a row only submit work;
a turn submits some and waits once, so that what is short is timed as it runs in a pipeline.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import gc
import json
import os
import sys
import time
import traceback

import contestants
import numpy as np
import gpu_rows as rows

MOST_ELEMENTS = 1 << 14  # of each result, that are compared


class Worker:
    def __init__(self, name, is_small):
        self.library = contestants.load(name)
        self.rows = {row.name: row for row in rows.all_rows(is_small)}
        self.call = None

    def do_prepare(self, name, path):
        """Builds the row's call, and saves some of its first result."""
        self.do_drop()
        row = self.rows[name]
        contestants.set_rules(self.library, row.rounds)
        self.library.setup(row)
        builder = row.calls.get(self.library.name) or row.calls.get(self.library.kind)
        if builder is None:
            return {"absent": True}
        arrays = self.library.arrays(tuple(row.inputs()))
        self.library.sync(arrays)
        begin = time.perf_counter()
        calls = builder(self.library, *arrays)
        if calls is None:
            return {"absent": True}
        # Of several ways the last one: torch.compile has one, optimizers are fused first.
        call = calls if callable(calls) else next(iter(calls.values()))
        value = call()
        self.library.sync(value)
        first = time.perf_counter() - begin
        np.savez(path, *[part(leaf) for leaf in rows.leaves(row.pick(self.library.numpy(value)))])
        del value
        for _ in range(3):
            self.library.sync(call())
        self.call = call
        return {"first": first}

    def do_time(self, turn):
        """Seconds of a call: of some in a pipeline, and of the quickest one with a wait."""
        begin = time.perf_counter()
        self.library.sync(self.call())
        single = time.perf_counter() - begin
        number = max(1, min(1000, int(turn / max(single, 1e-7))))
        begin = time.perf_counter()
        for _ in range(number):
            value = self.call()
        submitted = time.perf_counter() - begin
        self.library.sync(value)
        spent = time.perf_counter() - begin
        return {"pipelined": spent / number, "single": single, "submitted": submitted / number}

    def do_drop(self):
        """Leaves the memory of the device to others."""
        self.call = None
        gc.collect()
        self.library.release()
        return {}

    def do_profile(self):
        """A compiled call in plait's profiler."""
        if not isinstance(self.call, functools.partial):
            return {"profile": "no single compiled call"}
        profile = self.library.module.profile(self.call.func, *self.call.args, runs=5)
        return {"profile": str(profile)[:6000]}


def part(leaf):
    """Some elements, from the first to the last."""
    flat = np.asarray(leaf).reshape(-1)
    if flat.size > MOST_ELEMENTS:
        flat = flat[np.linspace(0, flat.size - 1, MOST_ELEMENTS).astype(np.int64)]
    return flat.astype(np.float64) if flat.dtype.kind not in "iub" else flat


def main(name, *more):
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(name, "small" in more)
    print(json.dumps({"ready": name}), file=channel, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, "do_" + request.pop("do"))(**request)
        except Exception as error:
            traceback.print_exc()
            worker.do_drop()
            answer = {"error": f"{type(error).__name__}: {error}"[:600]}
        print(json.dumps(answer), file=channel, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
