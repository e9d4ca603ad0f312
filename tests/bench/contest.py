"""The parent of the workers: gives each its turns, and makes figures of what they report."""

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import os
import pickle
import select
import statistics
import subprocess
import sys
import tempfile
import time

import libraries
import rows

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSE = 0.02  # seconds before a turn: OpenMP's threads spin for some 10 ms after their last loop
KEEP = {  # of glibc's allocator, for "peer, keeping its memory"
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
}


class Gone(Exception):
    """A worker died or took too long."""


class Process:
    """One worker: a library in a process of its own."""

    def __init__(self, name, families, environment, log):
        self.name, self.rest = name, b""
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(HERE, "worker.py"), name, *families],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
            )

    def send(self, **request):
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Gone("died") from None

    def receive(self, limit):
        """The answer, within this many seconds."""
        end = time.monotonic() + limit
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()
                raise Gone(f"no answer in {limit:.0f} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                self.process.wait()
                raise Gone(f"died with status {self.process.returncode}")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def ask(self, limit=60, **request):
        self.send(**request)
        return self.receive(limit)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@dataclasses.dataclass
class Entry:
    """What one contestant came to in one row."""

    status: str  # "ok", "absent", "wrong", "failed"
    values: list = dataclasses.field(default_factory=list)  # one for each turn
    variant: str = ""
    error: float | None = None  # the difference from the reference
    notes: dict = dataclasses.field(default_factory=dict)

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None


class Contest:
    """All contestants: `measure` gives the entries of a row by contestant.

    A contestant is a library, or a peer whose allocator keeps its memory: "jax" and "jax+".
    """

    def __init__(
        self,
        names,
        threads=2,
        repeats=9,
        turn=0.05,  # seconds
        limit=300,  # seconds in which a contestant must have prepared a row
        budget=60,  # seconds that the turns of one contestant may take in a row
        folder=".",
        families=rows.FAMILIES,
    ):
        self.names, self.threads, self.folder = list(names), threads, folder
        self.families = families
        self.repeats, self.turn, self.limit, self.budget = repeats, turn, limit, budget
        self.workers, self.versions = {}, {}
        os.makedirs(folder, exist_ok=True)

    def environment(self, contestant, **more):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
        for key in ("OMP", "MKL", "OPENBLAS"):
            env[key + "_NUM_THREADS"] = str(self.threads)
        env["PLAIT_THREADS"] = str(self.threads)
        if contestant.endswith("+"):
            env.update(KEEP)
        return env | more

    def start(self, contestant, **more):
        name = contestant.rstrip("+")
        log = os.path.join(self.folder, f"worker-{contestant}.log")
        environment = self.environment(contestant, **more)
        worker = Process(name, self.families, environment, log)
        worker.send(do="hello")
        self.versions[name] = worker.receive(120)["version"]
        return worker

    def worker(self, contestant):
        if contestant not in self.workers:
            # Programs are measured in their last tier.
            self.workers[contestant] = self.start(contestant, PLAIT_WAIT="1")
        return self.workers[contestant]

    def close(self):
        for contestant in list(self.workers):
            self.lose(contestant)

    def lose(self, contestant):
        self.workers.pop(contestant).stop()

    def contestants(self, row):
        """Those that have such a row."""
        found = []
        for name in self.names:
            kind = libraries.CLASSES[name].kind
            if row.calls and not {name, kind, "*"} & set(row.calls):
                continue
            found.append(name)
            if row.fresh and name != "plait":
                found.append(name + "+")
        return found

    def measure(self, row):
        """Entries by contestant."""
        if row.measure:
            return row.measure(row, self)
        with tempfile.NamedTemporaryFile(suffix=".pickle", delete=False) as file:
            inputs = rows.wide(tuple(row.sample(*row.inputs())))
            pickle.dump(rows.wide(row.reference(*inputs)), file)
            del inputs
        try:
            measure = self.measure_cold if row.cold else self.measure_warm
            return measure(row, self.contestants(row), file.name)
        finally:
            os.remove(file.name)

    def measure_warm(self, row, contestants, reference):
        entries, seconds = {}, {}
        for name in contestants:
            answer = self.ask(name, self.limit, do="prepare", row=row.name, reference=reference)
            seconds[name] = answer.pop("seconds", None)
            entries[name] = Entry(**answer)
        able = [name for name in contestants if entries[name].status == "ok"]
        for turn in range(self.repeats):
            for name in able:
                # What is slow gets fewer turns, and plait as many as anyone.
                if name != "plait" and turn * max(seconds[name], self.turn) > self.budget:
                    continue
                time.sleep(PAUSE)
                answer = self.ask(name, self.limit, do="time", turn=self.turn)
                if "seconds" in answer:
                    entries[name].values.append(answer["seconds"] / row.per)
                else:
                    entries[name] = Entry(**answer)
        for name in able:
            self.ask(name, do="drop")
        return entries

    def measure_cold(self, row, contestants, reference):
        """Each turn in a new process, with empty caches unless the row is about full ones."""
        entries = {name: Entry("ok") for name in contestants}
        spent = dict.fromkeys(contestants, 0.0)
        with tempfile.TemporaryDirectory() as top:
            for turn in range(self.repeats + row.cached):
                for name in contestants:
                    if entries[name].status != "ok" or spent[name] > self.budget:
                        continue
                    fills = row.cached and turn == 0
                    folder = os.path.join(top, name, "" if row.cached else str(turn))
                    answer = self.ask_new(name, row, reference, folder, fills)
                    seconds, grown = answer.pop("seconds", 0.0), answer.pop("grown", 0)
                    values = entries[name].values
                    entries[name] = Entry(**answer)
                    if answer["status"] == "ok" and not fills:
                        value = grown if row.unit == "B" else seconds
                        entries[name].values = [*values, value / row.per]
                        spent[name] += seconds
        return entries

    def ask(self, contestant, limit=60, **request):
        """The answer of a worker; one that dies is replaced at its next turn."""
        try:
            return self.worker(contestant).ask(limit, **request)
        except Gone as gone:
            if contestant in self.workers:
                self.lose(contestant)
            return {"status": "failed", "notes": {"": str(gone)}}

    def ask_new(self, contestant, row, reference, folder, fills):
        """The answer of a new worker, about its first call; one that fills caches has time for it."""
        os.makedirs(folder, exist_ok=True)
        caches = ("PLAIT_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
        more = {key: folder for key in caches if row.cached or not key.startswith("JAX")}
        more["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        if fills:
            more["PLAIT_WAIT"] = "1"
        worker = None
        try:
            worker = self.start(contestant, **more)
            return worker.ask(self.limit, do="cold", row=row.name, reference=reference)
        except Gone as gone:
            return {"status": "failed", "notes": {"": str(gone)}}
        finally:
            if worker:
                worker.stop()


def record_of(row, entries):
    """What a row came to, as JSON keeps it."""
    return {
        "what": row.what,
        "reach": row.reach.text,
        "unit": row.unit,
        "entries": {
            name: dataclasses.asdict(entry)
            | {"median": entry.median, "least": min(entry.values, default=None)}
            for name, entry in entries.items()
        },
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "load": os.getloadavg()[0],
    }


def judge(row, record, rates, others):
    """Adds to a record what follows from its figures. others: plait's values in other rows."""
    ours, peers = figures(record, "median")
    limit = row.work.seconds(rates)
    limit = limit / row.per if limit else None
    allowed = row.reach.allowed(rows.Figures(peers, limit, others))
    known = ours is not None and allowed is not None
    record |= {
        "plait": ours,
        "peers": peers,
        "ratio": ratio(ours, peers),
        "least_ratio": ratio(*figures(record, "least")),
        "limit": limit,
        "of_limit": ours / limit if ours and limit else None,
        "allowed": allowed,
        "distance": ours / allowed if known and allowed else None,
        "passes": ours <= allowed if known else None,
    }


def figures(record, kind):
    """plait's value, and those of the peers by name: "median" or "least" of the turns."""
    values = {name: entry[kind] for name, entry in record["entries"].items()}
    values = {name: value for name, value in values.items() if value is not None}
    ours, peers = values.pop("plait", None), {}
    for name, value in values.items():  # the better of both allocators
        base = name.rstrip("+")
        peers[base] = min(value, peers.get(base, value))
    return ours, peers


def ratio(ours, peers):
    """plait's by the best peer's, or None."""
    return ours / min(peers.values()) if ours and peers else None
