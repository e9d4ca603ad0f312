"""The scoreboard of a GPU: plait, PyTorch (eager, and compiled with captured graphs) and JAX.

Each has processes of its own. To prepare a row takes most of its time (imports, compilers), so some
rows are prepared at once, each by its own processes; then they are timed one after the other, and
the contestants of a row take turns. What is missing, fails or takes too long is noted, and the
others go on. The figure of a row is the least of its turns: the seconds of a call in a pipeline.

SPDX-License-Identifier: Apache-2.0
"""

import concurrent.futures
import json
import math
import os
import select
import subprocess
import sys
import tempfile
import time

import contestants
import gpu_rows
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


class Gone(Exception):
    pass


class Process:
    """A worker; it is started when it is first asked, and again after it is gone."""

    def __init__(self, name, is_small, log, environment):
        self.name, self.more, self.log = name, ["small"] if is_small else [], log
        self.environment = environment
        self.process, self.rest = None, b""

    def start(self):
        self.rest = b""
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "worker.py"), self.name, *self.more],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **self.environment},
            )

    def ask(self, seconds, **request):
        end = time.monotonic() + max(seconds, 0.1)
        if self.process is None:
            self.start()
            self.receive(end)  # that it is there
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return self.receive(end)

    def receive(self, end):
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                raise Gone("no answer in time")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                self.process.wait()
                status = self.process.returncode
                self.stop()
                raise Gone(f"died with status {status}")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def differs(path, other, tolerance):
    """How far results are from those of a peer, or None where they are close."""
    ours, theirs = np.load(path), np.load(other)
    if len(ours.files) != len(theirs.files):
        return f"{len(ours.files)} results, not {len(theirs.files)}"
    for name in ours.files:
        a, b = ours[name].astype(np.float64), theirs[name].astype(np.float64)
        if a.shape != b.shape:
            return f"a result of {a.size} elements, not {b.size}"
        error = np.linalg.norm(a - b) / (np.linalg.norm(b) or 1.0)
        if not error <= tolerance:
            return f"differs by {error:.1e}"
    return None


class Board:
    LANES = 5  # rows that are prepared at once

    def __init__(self, add, folder, is_small=False, peaks=None, without=()):
        self.add, self.folder, self.is_small, self.peaks = add, folder, is_small, peaks or {}
        self.processes, self.ratios, self.without = {}, [], without
        with concurrent.futures.ThreadPoolExecutor(len(contestants.NAMES)) as pool:
            there = list(pool.map(available, contestants.NAMES))
        self.names = [
            name
            for name, is_there in zip(contestants.NAMES, there)
            if is_there and name not in without
        ]

    def process(self, name, lane, rounds):
        """plait rounds factors as its process was told at the start."""
        key = (name, lane, rounds and name == "plait")
        if key not in self.processes:
            environment = {"PLAIT_TF32": "1" if key[2] else "0", "PLAIT_WAIT": "1"}
            log = os.path.join(self.folder, f"worker-{name}-{lane}.log")
            self.processes[key] = Process(name, self.is_small, log, environment)
        return self.processes[key]

    def prepare(self, row, lane, seconds, folder):
        """Each contestant's call; gives what was found out before it is timed."""
        with concurrent.futures.ThreadPoolExecutor(len(self.names)) as pool:
            answers = pool.map(
                lambda name: self.ask(name, lane, row, seconds, do="prepare", name=row.name,
                                      path=os.path.join(folder, name + ".npz")),
                self.names)  # fmt: skip
            answers = dict(zip(self.names, answers))
        figures = {name: {"first": a["first"]} for name, a in answers.items() if "first" in a}
        notes = {name: a["error"] for name, a in answers.items() if "error" in a}
        peer = next((name for name in figures if name != "plait"), None)
        if peer and "plait" in figures:
            paths = (os.path.join(folder, name + ".npz") for name in ("plait", peer))
            what = differs(*paths, row.tolerance)
            if what:
                notes["plait"] = f"WRONG: {what} from {peer}"
        return figures, notes

    def measure(self, rows, seconds):
        """Rows that are prepared at once; seconds are for that."""
        with tempfile.TemporaryDirectory() as folder:
            places = [os.path.join(folder, str(lane)) for lane in range(len(rows))]
            for place in places:
                os.mkdir(place)
            with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
                found = list(
                    pool.map(self.prepare, rows, range(len(rows)), [seconds] * len(rows), places)
                )
        for lane, (row, (figures, notes)) in enumerate(zip(rows, found)):
            self.take_turns(row, lane, figures, notes)
            self.report(row, figures, notes)

    def take_turns(self, row, lane, figures, notes):
        turn = 0.02 if self.is_small else 0.1
        for number in range(2 if self.is_small else 4):
            slowest = max((figures[name].get("single", 0) for name in figures), default=0)
            if number == 2 and slowest > 0.02:  # seconds: it varies less
                break
            for name in list(figures):
                answer = self.ask(name, lane, row, 10, do="time", turn=turn)
                if "error" in answer:
                    notes[name] = answer["error"]
                    del figures[name]
                    continue
                for key, value in answer.items():
                    figures[name][key] = min(value, figures[name].get(key, math.inf))
        for name in figures:
            self.ask(name, lane, row, 5, do="drop")

    def ask(self, contestant, lane, row, seconds, **request):
        process = self.process(contestant, lane, row.rounds)
        try:
            return process.ask(seconds, **request)
        except (Gone, OSError) as gone:
            process.stop()
            return {"error": str(gone)}

    def report(self, row, figures, notes):
        times = {name: f["pipelined"] for name, f in figures.items() if "pipelined" in f}
        ours = times.pop("plait", None)
        facts = {"target": row.target, "figures": figures, "notes": notes}
        limit = self.limit(row)
        if limit:
            facts["limit_us"] = limit * 1e6
        if ours is None:
            self.add(row.name, "failed", **facts)
            return
        facts["us"] = ours * 1e6
        if row.bytes:
            facts["GB/s"] = row.bytes / ours / 1e9
        if row.flops:
            facts["TFLOP/s"] = row.flops / ours / 1e12
        if limit:
            facts["of_limit"] = limit / ours
        if times:
            facts["over_best_peer"] = min(times.values()) / ours
            self.ratios.append((facts["over_best_peer"], row.name))
        good = "WRONG" not in notes.get("plait", "")
        reached = [row.share and limit and limit / ours >= row.share,
                   row.factor and times and facts["over_best_peer"] >= row.factor]  # fmt: skip
        facts["reached"] = any(reached)
        self.add(row.name, "passed" if good else "failed", **facts)

    def limit(self, row):
        """The least seconds at the rates that the device reached."""
        rates = [(row.bytes, "copy"), (row.flops, row.unit)]
        parts = [work / self.peaks[rate] for work, rate in rates if work and self.peaks.get(rate)]
        return max(parts, default=None)

    def run(self, until, seconds, words=()):
        """Until then; seconds are what rows that are prepared at once may take for it."""
        rows = [row for row in gpu_rows.all_rows(self.is_small)
                if (not words or any(word in row.name for word in words))
                and not any(word in row.name for word in self.without)]  # fmt: skip
        for first in range(0, len(rows), self.LANES):
            some, left = rows[first : first + self.LANES], until - time.monotonic()
            if left < (0 if self.is_small else 10):
                for row in some:
                    self.add(row.name, "skipped", why="no time is left")
                continue
            self.measure(some, min(seconds, left - (0 if self.is_small else 5)))
        if gpu_rows.folder_of_programs() is None:
            self.add("programs", "skipped", why="../shared/programs is not here")
        self.summarize()

    def profile_worst(self, until):
        """plait's own profiler on the rows that are furthest behind their peers."""
        for _, name in sorted(self.ratios)[:5]:
            row = next(row for row in gpu_rows.all_rows(self.is_small) if row.name == name)
            left = until - time.monotonic()
            if left < 5:
                break
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "result.npz")
                self.ask("plait", 0, row, left, do="prepare", name=name, path=path)
                answer = self.ask("plait", 0, row, left, do="profile")
            self.add(f"profile of {name}", "passed", **answer)

    def summarize(self):
        of_programs = [ratio for ratio, name in self.ratios if name.startswith("program ")]
        if of_programs:
            mean = math.exp(sum(map(math.log, of_programs)) / len(of_programs))
            self.add("programs, geometric mean over JAX", "passed", value=mean)

    def close(self):
        for process in self.processes.values():
            process.stop()


def available(name):
    module = {"compile": "torch"}.get(name, name)
    found = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True)
    return found.returncode == 0
