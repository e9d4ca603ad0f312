"""plait.numpy beside NumPy, call by call: `./dev bench numpy [WORD…]` runs the calls that contain one of the words.

  --quick           fewer turns
  --sizes A,B       elements of the inputs (default 1,1000,1000000)
  --only A,B        these contestants: eager, jitted, jax; NumPy always runs
  --threads N       threads of each contestant (default 2, or the cores there are)
  --worst N         so many rows of each table (default 25; 0: all)
  --output FOLDER   where numpy.json and numpy.txt go (default: bench in the build folder)

All run in one process, on the same inputs, and take turns: plait eager, plait jitted, JAX jitted where it is installed,
and NumPy. Results are waited for. A figure is the median over turns of the time of a call by NumPy's in the same turn;
in the summary, the median over calls. Calls whose results have data-dependent sizes cannot be jitted, nor those that
plait computes of no array: they have no such figure. DIFFERS stands where plait's result is not NumPy's.
"""

# SPDX-License-Identifier: Apache-2.0

import argparse
import gc
import importlib.util
import json
import math
import os
import statistics
import sys
import time
import warnings

import machine
import namespace_cases
import numpy as np
import report

CONTESTANTS = ("eager", "jitted", "jax")
BUNCH = 3e-4  # seconds: calls shorter than the clock can tell are timed in bunches
# Calls whose results are another choice among right ones, random, or not computed.
UNCOMPARED = ("qr", "svd(", "eig(", "eigh", "empty", "einsum_path", "roots", "argpartition", "partition", "eigvals(",
              "argsort(", "logical_", "unique_values", "lstsq", "pinv", "cond", "nextafter", "spacing", "unwrap", "choose", "full(", "poly")  # fmt: skip


def arguments(words):
    description, _, epilog = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="./dev bench numpy", description=description, epilog=epilog
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="*", metavar="WORD", help="a part of the calls")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--sizes", default="1,1000,1000000", help="elements of the inputs")
    parser.add_argument("--only", default=",".join(CONTESTANTS), help="the contestants")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--worst", type=int, default=25, help="rows of each table")
    folder = os.path.join(os.environ.get("PLAIT_BUILD_DIR", "build"), "bench")
    parser.add_argument("--output", default=folder, help="the folder of the results")
    return parser.parse_args(words)


class Libraries:
    """The contestants: each makes a call without arguments of a case and NumPy's inputs, or None."""

    def __init__(self, names):
        import plait
        import plait.numpy

        self.plait, self.arrays = plait, {}
        self.makers = {name: getattr(self, name) for name in names}
        if "jax" in names:
            import jax
            import jax.numpy

            jax.config.update("jax_enable_x64", True)
            self.jax_module = jax

    def numpy(self, function, values):
        return lambda: function(np, *values)

    def eager(self, function, values):
        values = [self.plait.numpy.array(value) for value in values]
        xp, wait = self.plait.numpy, self.plait.block_until_ready
        if values and values[0].size >= 100_000:
            return lambda: wait(function(xp, *values))
        return lambda: function(xp, *values)  # nothing is asynchronous on CPUs

    def jitted(self, function, values):
        if not values:
            return None
        values = [self.plait.numpy.array(value) for value in values]
        xp = self.plait.numpy
        call = self.plait.jit(lambda *values: function(xp, *values))
        return lambda: call(*values)

    def jax(self, function, values):
        jax = self.jax_module
        values = [jax.numpy.array(value) for value in values]
        call = jax.jit(lambda *values: function(jax.numpy, *values))
        return lambda: jax.block_until_ready(call(*values))


def timed(call, inner):
    numbers = range(inner)
    start = time.perf_counter()
    for _ in numbers:
        call()
    return (time.perf_counter() - start) / inner


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


def differs(case, result, expected):
    """Whether it is not NumPy's result, within what rounding in other orders does."""
    if any(word in case for word in UNCOMPARED):
        return False
    for a, b in zip(leaves(result), leaves(expected)):
        if a.shape != b.shape:
            return True
        if b.dtype.kind not in "biufc":
            continue
        if not np.allclose(
            a, b, rtol=2e-2, atol=1e-2 * np.nanmax(np.abs(b), initial=0), equal_nan=True
        ):
            return True
    return False


def measure(case, values, libraries, turns, budget):
    """Seconds of NumPy's call, and of each contestant the ratio to it, or why there is none."""
    function = namespace_cases.function_of(case)
    chosen = [values[letter] for letter in namespace_cases.letters(case)]
    record, calls = {}, {"numpy": libraries.numpy(function, chosen)}
    expected = calls["numpy"]()
    for name, make in libraries.makers.items():
        try:
            call = make(function, chosen)
            if call is None:
                continue
            result = call()
            if name != "jax" and differs(case, result, expected):
                record[name] = "DIFFERS"
            calls[name] = call
        except Exception as error:
            record[name] = f"{type(error).__name__}: {error}".partition("\n")[0][:90]
    inner = {}
    for name, call in calls.items():
        seconds = min(timed(call, 1) for _ in range(3))
        inner[name] = max(1, int(BUNCH / max(seconds, 1e-8)))
    times = {name: [] for name in calls}
    spent = time.perf_counter()
    for turn in range(turns):
        for name, call in calls.items():
            times[name].append(timed(call, inner[name]))
        if turn >= 2 and time.perf_counter() - spent > budget:
            break
    record["seconds"] = statistics.median(times["numpy"])
    for name in calls:
        if name != "numpy" and name not in record:
            ratios = [a / b for a, b in zip(times[name], times["numpy"])]
            record[name] = statistics.median(ratios)
    return record


def figure(value):
    return report.ratio(value) if isinstance(value, float) else "—" if value is None else "see"


def table(rows, names, worst):
    """Rows, those first in which plait takes longest, by NumPy or by JAX."""

    def key(row):
        record = row[1]
        ours = [record[name] for name in ("eager", "jitted") if isinstance(record.get(name), float)]
        return -max(ours, default=0.0)

    ordered = sorted(rows.items(), key=key)
    lines = [f"{'':46}{'numpy':>9}" + "".join(f"{name:>8}" for name in names)]
    for case, record in ordered[: worst or None]:
        cells = "".join(f"{figure(record.get(name)):>8}" for name in names)
        lines.append(f"{case:46.46}{report.amount(record['seconds']):>9}{cells}")
    return "\n".join(lines)


def summary(rows, names):
    lines = []
    for name in names:
        found = [record[name] for record in rows.values() if isinstance(record.get(name), float)]
        if not found:
            continue
        slower = sum(value > 1.0 for value in found)
        mean = math.exp(statistics.mean(math.log(value) for value in found))
        lines.append(
            f"{name:8} median {statistics.median(found):.2f} × NumPy's time, geometric mean {mean:.2f}, "
            f"slower in {slower} of {len(found)} calls"
        )
        if name == "jitted":
            both = [
                record["jax"] / record["jitted"]
                for record in rows.values()
                if isinstance(record.get("jax"), float) and isinstance(record.get("jitted"), float)
            ]
            if both:
                lines.append(
                    f"         median {statistics.median(both):.2f} times as fast as JAX jitted, of {len(both)}"
                )
    return "\n".join(lines)


def notes(rows):
    for case, record in rows.items():
        for name, value in record.items():
            if isinstance(value, str) and name == "eager":
                yield f"{case}: {name}: {value}"


def main(words):
    options = arguments(words)
    cases = namespace_cases.CASES
    if options.words:
        cases = [case for case in cases if any(word in case for word in options.words)]
    if not cases:
        sys.exit("bench: no call has such a name")
    names = [name for name in options.only.split(",") if name in CONTESTANTS]
    if "jax" in names and importlib.util.find_spec("jax") is None:
        print("jax is not installed (./dev bench --peers installs the peers)")
        names.remove("jax")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    os.environ["PLAIT_WAIT"] = "1"  # programs run in their last tier
    for key in ("PLAIT", "OMP", "OPENBLAS"):
        os.environ[key + "_THREADS" if key == "PLAIT" else key + "_NUM_THREADS"] = str(
            options.threads
        )
    libraries = Libraries(names)
    turns, budget = (3, 0.3) if options.quick else (9, 1.5)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    result, text = {}, []
    gc.disable()
    for size in options.sizes.split(","):
        values, rows = namespace_cases.inputs(int(size)), {}
        with machine.priority():
            for case in cases:
                try:
                    rows[case] = measure(case, values, libraries, turns, budget)
                except Exception as error:  # NumPy has no such call at this size
                    if len(cases) < 5:
                        print(f"{case}: {type(error).__name__}: {error}")
                gc.collect()
        result[size] = rows
        text.append(
            f"{size} elements, {len(rows)} calls\n{table(rows, names, options.worst)}\n\n"
            f"{summary(rows, names)}\n" + "".join(f"{line}\n" for line in notes(rows))
        )
        print(text[-1], flush=True)
    os.makedirs(options.output, exist_ok=True)
    with open(os.path.join(options.output, "numpy.json"), "w") as file:
        json.dump({"machine": machine.describe(options.threads), "rows": result}, file, indent=1)
    with open(os.path.join(options.output, "numpy.txt"), "w") as file:
        file.write("\n".join(text))
