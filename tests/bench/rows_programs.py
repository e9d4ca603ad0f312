"""Rows of C++ programs, which print lines "name value"."""

# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import sys
import tempfile

import machine
from contest import Entry
from rows import NOTHING, Row, microseconds, milliseconds, of_row


def printed(program, key, unit):
    """Runs the program in each turn."""

    def measure(row, contest):
        folder = os.environ.get("PLAIT_BUILD_DIR", "build")
        path = os.path.join(folder, "tests", program)
        entry = Entry("ok")
        for _ in range(min(contest.repeats, 7)):
            try:
                output = subprocess.run(
                    [path],
                    stdout=subprocess.PIPE,
                    check=True,
                    text=True,
                    env=contest.environment("plait", PLAIT_WAIT="1"),
                    preexec_fn=machine.before_others,
                ).stdout
            except (OSError, subprocess.CalledProcessError) as error:
                return {"plait": Entry("failed", notes={"": str(error)})}
            values = dict(line.split() for line in output.splitlines())
            entry.values.append(float(values[key]) * unit)
        return {"plait": entry}

    return measure


def program_row(program, key, unit, name, what, reach=NOTHING):
    return Row(f"c++/{name}", what, reach, measure=printed(program, key, unit))


# --- Compiled objects ------------------------------------------------------------------------------

SAVE = """
import numpy as np, plait, plait.numpy as jnp
from plait import value_and_grad
def loss(w, x):
    return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"]) ** 2)
rng = np.random.default_rng(0)
a, b, x = (0.3 * rng.standard_normal(s).astype(np.float32) for s in ((64, 32), (32, 10), (64, 64)))
plait.save("model.plait", {"step": (value_and_grad(loss), {"a": a, "b": b}, x)}, test_vectors=False)
# The inputs, then the results in float64 by NumPy.
a64, b64, x64 = (v.astype(np.float64) for v in (a, b, x))
h = np.tanh(x64 @ a64)
slope = 2 * (h @ b64) / (64 * 10)
by_a, by_b = x64.T @ (slope @ b64.T * (1 - h * h)), h.T @ slope
value = np.mean((h @ b64) ** 2)
np.concatenate([v.astype(np.float32).ravel() for v in (a, b, x, value, by_a, by_b)]).tofile("values")
"""

FIRST = """
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}
static float a[64 * 32], b[32 * 10], x[64 * 64], given[1 + 64 * 32 + 32 * 10], right[1 + 64 * 32 + 32 * 10];
static int is_wrong(void) {
  double error = 0, size = 0;
  for (int i = 0; i < 1 + 64 * 32 + 32 * 10; ++i) {
    error += fabs(given[i] - right[i]);
    size += fabs(right[i]);
  }
  return !(error < 1e-4 * size);
}
int main(void) {
  FILE *values = fopen("values", "rb");
  if (!values || fread(a, sizeof a, 1, values) + fread(b, sizeof b, 1, values) + fread(x, sizeof x, 1, values) +
                 fread(right, sizeof right, 1, values) != 4) return 3;
  const void *inputs[] = {a, b, x};
  void *outputs[] = {given, given + 1, given + 1 + 64 * 32}, *session;
  const double begin = now();
  void *library = dlopen("./model.so", RTLD_NOW);
  if (!library) return 1;
  int (*open)(void **) = dlsym(library, "model_open");
  int (*call)(void *, int, const void *, const void **, void **) = dlsym(library, "model_call");
  if (open(&session) || call(session, 0, 0, inputs, outputs)) return 2;
  const double first = now() - begin;
  if (is_wrong()) return 4;
  const double again = now();
  for (int i = 0; i < 1000; ++i) call(session, 0, 0, inputs, outputs);
  const double end = now();
  if (is_wrong()) return 4;
  printf("first_ms %g\\ncall_ms %g\\n", first, (end - again) / 1000);
  return 0;
}
"""


def compiled(key):
    """Of an object of plait compile, in a new process each time: see FIRST."""

    def measure(row, contest):
        build = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).absolute()
        entry = Entry("ok")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "first.c").write_text(FIRST)

            def run(*words):
                done = subprocess.run(
                    words,
                    cwd=folder,
                    check=True,
                    text=True,
                    stdout=subprocess.PIPE,
                    env=contest.environment("plait"),
                    preexec_fn=machine.before_others,
                )
                return done.stdout

            try:
                run(sys.executable, "-c", SAVE)
                run(
                    str(build / "lib" / "tool" / "plait"),
                    *"compile model.plait -o model.so".split(),
                )
                run(*"cc -O1 first.c -o first -ldl -lm".split())
                for _ in range(min(contest.repeats, 7)):
                    values = dict(line.split() for line in run("./first").splitlines())
                    entry.values.append(float(values[key]) * MILLI)
            except (OSError, subprocess.CalledProcessError) as error:
                return {"plait": Entry("failed", notes={"": str(error)})}
        return {"plait": entry}

    return measure


DISPATCH, MLP, FILES, NANO, MILLI = "bench_dispatch", "bench_mlp", "bench_files", 1e-9, 1e-3
ARM = "bench_arm"
REWRITE = "bench_rewrite"
DRAW = "bench_draw"
INSPECT = "bench_inspect"

ROWS = [
    program_row(
        DISPATCH,
        "jit_plus_one_ns",
        NANO,
        "plus-one",
        "jitted x + 1, one element",
        microseconds(0.2),
    ),
    program_row(DISPATCH, "executable_plus_one_ns", NANO, "executable", "the executable of x + 1"),
    program_row(DISPATCH, "eager_add_ns", NANO, "eager-add", "add without jit", microseconds(0.5)),
    program_row(
        DISPATCH,
        "trace_1000_ns",
        NANO,
        "trace-1000",
        "trace of 1,000 equations, each",
        microseconds(3),
    ),
    program_row(
        DISPATCH,
        "trace_100000_ns",
        NANO,
        "trace-100000",
        "trace of 100,000 equations, each",
        microseconds(3),
    ),
    program_row(
        DISPATCH, "compile_1000_ns", NANO, "compile-1000", "compile of 1,000 equations, each"
    ),
    program_row(DISPATCH, "compile_100000_ns", NANO, "compile-100000", "compile of 100,000, each"),
    program_row(MLP, "best_ms", MILLI, "mlp", "step of the MLP", of_row("mlp/step-128", 1)),
    program_row(
        ARM, "arm_by_hand_ns", NANO, "arm-by-hand", "an arm of 7 joints: its hand, by hand"
    ),
    program_row(
        ARM, "arm_ns", NANO, "arm", "the same by the executable", of_row("c++/arm-by-hand", 1.2)
    ),
    program_row(
        ARM,
        "arm_session_ns",
        NANO,
        "arm-session",
        "the same by a session",
        of_row("c++/arm-by-hand", 1.2),
    ),
    program_row(ARM, "jacobian_by_hand_ns", NANO, "jacobian-by-hand", "its Jacobian, by hand"),
    program_row(
        ARM,
        "jacobian_ns",
        NANO,
        "jacobian",
        "the same by the executable",
        of_row("c++/jacobian-by-hand", 1.2),
    ),
    program_row(
        ARM,
        "jacobian_session_ns",
        NANO,
        "jacobian-session",
        "the same by a session",
        of_row("c++/jacobian-by-hand", 1.2),
    ),
    program_row(
        INSPECT,
        "summary_ms",
        MILLI,
        "summary-10000",
        "summary, 10,000 equations",
        milliseconds(1000),
    ),
    program_row(INSPECT, "code_ms", MILLI, "code-10000", "code of 10,000 equations"),
    program_row(INSPECT, "diff_ms", MILLI, "diff-10000", "diff of 10,000 equations"),
    program_row(MLP, "first_ms", MILLI, "mlp-first", "its first call", milliseconds(50)),
    program_row(FILES, "print_ns", NANO, "print", "text of 200,000 equations, each"),
    program_row(
        FILES, "parse_ns", NANO, "parse", "parse and check of 10,000, each", microseconds(1)
    ),
    program_row(FILES, "parse_lines_ns", NANO, "parse-lines", "the same with users' lines"),
    program_row(FILES, "plain_read_ms", MILLI, "read-100", "100 MB of plain safetensors read"),
    program_row(
        FILES,
        "load_ms",
        MILLI,
        "load-100",
        "a program with them loaded into memory",
        of_row("c++/read-100", 1.3),
    ),
    program_row(
        FILES,
        "map_ms",
        MILLI,
        "map-100",
        "the same mapped, and the first call traced",
        milliseconds(20),
    ),
    program_row(FILES, "plain_write_ms", MILLI, "write-100", "100 MB of plain safetensors written"),
    program_row(
        FILES,
        "save_ms",
        MILLI,
        "save-100",
        "a program with them saved",
        of_row("c++/write-100", 1.3),
    ),
    program_row(
        REWRITE,
        "rewrite_ms",
        MILLI,
        "rewrite",
        "20 rules over 100,000 equations, 20,000 matches, checked",
        milliseconds(1000),
    ),
    program_row(REWRITE, "rewrite_none_ms", MILLI, "rewrite-none", "19 rules, no match"),
    program_row(REWRITE, "builder_ms", MILLI, "builder", "a builder begun and closed"),
    program_row(
        DRAW, "draw_10000_ms", MILLI, "draw-10000", "page of 10,000 equations", milliseconds(1000)
    ),
    Row(
        "c++/object-first",
        "a compiled training step, opened and called",
        milliseconds(10),
        measure=compiled("first_ms"),
    ),
    Row("c++/object-call", "its next calls, each", measure=compiled("call_ms")),
]
