"""The laws of primitives on a GPU, in several processes that never stop at a failure.

laws.py BACKEND is one of those: it reads names of primitives, and answers a line of JSON for each.
What fails is tried again in a process of its own, which leaves the texts of its kernels, their
machine code and what was found in a folder.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time

import board

HERE = os.path.dirname(os.path.abspath(__file__))


NAMES = """
import plait
report = plait.conformance("reference", runs=False)
print(*dict.fromkeys(row.primitive for row in report.rows))
"""


def primitives():
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True)
    return done.stdout.split()


class Tester(board.Process):
    """A process for laws; what it prints besides goes to the log."""

    def start(self):
        self.rest = b""
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "laws.py"), self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **self.environment},
            )


class Laws:
    def __init__(self, add, folder, seconds_of_each=60):
        self.add, self.folder, self.seconds = add, folder, seconds_of_each
        self.lock = threading.Lock()
        self.failed, self.counts = [], {}

    def test(self, backend, names, until, num_processes):
        left = queue.SimpleQueue()
        for name in names:
            left.put(name)
        threads = [
            threading.Thread(target=self.work, args=(backend, left, until, number))
            for number in range(num_processes)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.add(f"laws {backend}", "passed", **self.counts, primitives=len(names))
        self.counts = {}
        while not left.empty():
            self.add(f"laws {backend} {left.get()}", "skipped", why="no time is left")

    def work(self, backend, left, until, number):
        log = os.path.join(self.folder, f"laws-{number}.log")
        tester = Tester(backend, False, log, {})
        while time.monotonic() < until - 1:
            try:
                name = left.get_nowait()
            except queue.Empty:
                break
            self.take(backend, name, self.ask(tester, name, until))
        tester.stop()

    def ask(self, tester, name, until):
        seconds = min(self.seconds, until - time.monotonic())
        try:
            return tester.ask(seconds, name=name)
        except (board.Gone, OSError) as gone:
            tester.stop()
            why = "took too long" if "no answer" in str(gone) else str(gone)
            return {"failures": [f"{name}: {why}"]}

    def take(self, backend, name, answer):
        with self.lock:
            for state, count in answer.get("counts", {}).items():
                self.counts[state] = self.counts.get(state, 0) + count
            for what in answer["failures"]:
                self.add(f"laws {backend} {name}", "failed", what=what[:800])
            if answer["failures"]:
                self.failed.append((backend, name))

    def dump_failures(self, until, most=12):
        """Runs what failed alone, and keeps what it was made of; and under compute-sanitizer."""
        for backend, name in self.failed[:most]:
            left = until - time.monotonic()
            if left < 3:
                break
            folder = os.path.join(self.folder, f"failure-{backend}-{name}")
            os.makedirs(folder, exist_ok=True)
            environment = {"PLAIT_CUDA_DUMP": folder, "PLAIT_CACHE_DIR": "0"}
            log = os.path.join(folder, "errors.txt")
            tester = Tester(backend, False, log, environment)
            with open(os.path.join(folder, "found.json"), "w") as file:
                json.dump(self.ask(tester, name, time.monotonic() + min(left, 40)), file, indent=1)
            tester.stop()

    def sanitize(self, names, until):
        """compute-sanitizer, where it is there, on what failed and on a sample."""
        chosen = [*dict.fromkeys([name for _, name in self.failed[:4]] + names)]
        for name in chosen:
            left = until - time.monotonic()
            if left < 10:
                break
            command = ["compute-sanitizer", "--error-exitcode", "9", sys.executable, "-c"]
            code = f"import plait; plait.conformance('cuda', ['{name}'], device='cuda:0', "
            code += "programs=False)"
            try:
                done = subprocess.run(
                    [*command, code], capture_output=True, text=True, timeout=min(left, 45)
                )
            except FileNotFoundError:
                self.add("compute-sanitizer", "skipped", why="it is not installed")
                return
            except subprocess.TimeoutExpired:
                self.add(f"compute-sanitizer {name}", "skipped", why="took too long")
                continue
            state = "passed" if done.returncode == 0 else "failed"
            tail = (done.stdout + done.stderr)[-1500:] if state == "failed" else ""
            self.add(f"compute-sanitizer {name}", state, output=tail)


def main(backend):
    import plait

    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"ready": backend}), file=channel, flush=True)
    for line in sys.stdin:
        name = json.loads(line)["name"]
        try:
            report = plait.conformance(backend, [name], device="cuda:0")
            counts = {}
            for row in report.rows:
                counts[row.state] = counts.get(row.state, 0) + 1
            failures = [
                f"{row.dtype}: {row.detail}" for row in report.rows if row.state == "failed"
            ]
            answer = {"counts": counts, "failures": failures}
        except Exception as error:
            answer = {"failures": [f"{type(error).__name__}: {error}"]}
        print(json.dumps(answer), file=channel, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
