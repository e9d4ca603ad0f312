"""Runs programs of this folder on plait's drop-in and on JAX, and compares what they print.

    python tests/libraries/compare.py PYTHON_WITH_LIBRARIES PYTHON_WITH_LIBRARIES_AND_JAX [PROGRAM ...]

The first interpreter finds plait by PYTHONPATH or as a package, and the libraries installed with `pip install --no-deps`;
the second has JAX too. SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

FOLDER = pathlib.Path(__file__).parent


def run(command, environment=None):
    """The results by name, the seconds, and the last line of the error."""
    start = time.perf_counter()
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=FOLDER, timeout=400
    )
    seconds = time.perf_counter() - start
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    error = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]
    return {row["name"]: row for row in rows}, seconds, error


def difference(a, b):
    """The largest difference of two results, relative to 1 and to their size; infinite for other shapes."""
    if [len(x) for x in a["values"]] != [len(x) for x in b["values"]]:
        return np.inf
    worst = 0.0
    for x, y in zip(a["values"], b["values"]):
        x, y = np.asarray(x, float), np.asarray(y, float)
        if not np.array_equal(np.isnan(x), np.isnan(y)):
            return np.inf
        with np.errstate(invalid="ignore"):
            gap = np.where(x == y, 0, np.abs(x - y) / np.maximum(1, np.abs(y)))
        worst = max(worst, float(np.nanmax(gap, initial=0)))
    return worst


def main():
    ours, theirs, *names = sys.argv[1:]
    programs = [FOLDER / f"{name}.py" for name in names] or sorted(
        path
        for path in FOLDER.glob("*.py")
        if path.name not in ("compare.py", "report.py", "from_jax.py")
    )
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    for program in programs:
        plait, seconds, error = run([ours, "-m", "plait.jax", str(program)])
        jax, jax_seconds, jax_error = run([theirs, str(program)], clean)
        failed = {name: row["error"] for name, row in plait.items() if "error" in row}
        failed_there = [name for name, row in jax.items() if "error" in row]
        jax = {name: row for name, row in jax.items() if "error" not in row}
        both = [name for name in jax if name in plait and name not in failed]
        gaps = {name: difference(plait[name], jax[name]) for name in both}
        dtypes = [name for name in both if plait[name]["dtypes"] != jax[name]["dtypes"]]
        worst = max(gaps, key=gaps.get, default=None)
        print(
            f"{program.stem}: {len(both)} of {len(jax)} results, largest difference "
            f"{gaps.get(worst, 0):.1e} ({worst}), other dtypes {dtypes}, "
            f"{seconds:.1f} s, JAX {jax_seconds:.1f} s"
        )
        for who, text in (("plait", error), ("JAX", jax_error)):
            if text:
                print(f"    {who}: {text[:300]}")
        for name, text in failed.items():
            print(f"    {name}: {text[:200]}{' (in JAX too)' if name in failed_there else ''}")
        for name, gap in gaps.items():
            if gap > 1e-3:
                print(f"    {name}: {gap:.1e}")


if __name__ == "__main__":
    main()
