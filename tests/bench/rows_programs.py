"""Rows of C++ programs, which print lines "name value"."""

# SPDX-License-Identifier: Apache-2.0

import os
import subprocess

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


DISPATCH, MLP, FILES, NANO, MILLI = "bench_dispatch", "bench_mlp", "bench_files", 1e-9, 1e-3
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
]
