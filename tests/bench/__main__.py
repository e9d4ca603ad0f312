"""The scoreboard of plait: `./dev bench [NAME…]` runs the rows whose names contain one of the words.
`./dev bench numpy` runs another one, of every function of plait.numpy (its own --help), and `./dev bench scale`
one of several processes.

  --list            names what there is
  --quick           fewer repeats
  --only A,B        these contestants: plait, jax, torch, compile, mlx, numpy
  --threads N       threads of each contestant (default 2, or the cores there are)
  --output FOLDER   where scoreboard.json, .txt and .png go (default: bench in the build folder)
  --show            prints and draws what was measured last, and measures nothing

Each library runs in a process of its own, and they take turns, as root at a high priority. A result is
compared with a reference in float64, before anything is timed, or, of first calls, the result of the
timed call: WRONG instead of a time says that the norm of its difference or one element is off. Of some
large results (rows with `spread`) so many elements count, from the first to the last. C++ programs
check their own results and fail; imports have none. Figures are medians of turns. "÷ peer" is plait's by the fastest peer's, "least" the same of
the least times, which a busy machine disturbs less; "limit" is what the machine needs at least, at the
rates that it reached in this run, and "÷ lim" is plait's time by that.
"""

# SPDX-License-Identifier: Apache-2.0

import argparse
import importlib.util
import os
import sys

import libraries
import machine
import report
import rows
from contest import Contest, judge, record_of


def available(names):
    """Those contestants that can be imported; the others are named once."""
    found = []
    for name in names:
        try:
            there = importlib.util.find_spec(libraries.module_of(name)) is not None
        except ModuleNotFoundError:
            there = False
        if there:
            found.append(name)
        else:
            print(f"{name} is not installed (./dev bench --peers installs the peers)")
    return found


def arguments(words):
    description, _, epilog = __doc__.partition("\n\n")
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(prog="./dev bench", description=description, epilog=epilog)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="*", metavar="NAME", help="a part of the rows' names")
    parser.add_argument("--list", action="store_true", help="name the rows")
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", default=",".join(libraries.NAMES), help="the contestants")
    parser.add_argument("--threads", type=int, default=min(2, cores))
    folder = os.path.join(os.environ.get("PLAIT_BUILD_DIR", "build"), "bench")
    parser.add_argument("--output", default=folder, help="the folder of the results")
    parser.add_argument("--show", action="store_true", help="show the last results")
    return parser.parse_args(words)


def show(result, folder):
    with open(os.path.join(folder, "scoreboard.txt"), "w") as file:
        file.write(report.board(result) + "\n")
    try:
        report.plot(result, os.path.join(folder, "scoreboard.png"))
    except ImportError:
        print("no picture: matplotlib is not installed")


def run(chosen, options):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    names = available(options.only.split(","))
    more = {"repeats": 3, "budget": 20, "limit": 120} if options.quick else {}
    contest = Contest(names, options.threads, folder=options.output, **more)
    path = os.path.join(options.output, "scoreboard.json")
    result = report.read(path)
    try:
        rates = machine.rates(options.threads, contest)
        print(machine.text(rates))
        print(report.header(names), flush=True)
        for row in chosen:
            result["rows"][row.name] = record_of(row, contest.measure(row))
            rates = machine.better(rates, options.threads)
            finish(result, options, contest, rates, [row])
            report.write(result, path)
            report.show_row(row.name, result["rows"][row.name], names)
    finally:
        contest.close()
    finish(result, options, contest, rates, chosen)
    report.write(result, path)
    print()
    print(report.summary({row.name: result["rows"][row.name] for row in chosen}))
    show(result, options.output)


def finish(result, options, contest, rates, chosen):
    """Adds what follows from the figures, and what they were measured with."""
    order = {row.name: number for number, row in enumerate(rows.all_rows())}
    kept = sorted((name for name in result["rows"] if name in order), key=order.get)
    result["rows"] = {name: result["rows"][name] for name in kept}
    ours = {name: record.get("plait") for name, record in result["rows"].items()}
    others = {name: value for name, value in ours.items() if value is not None}
    for row in chosen:
        judge(row, result["rows"][row.name], rates, others)
    result |= {"machine": machine.describe(options.threads), "rates": rates}
    result["versions"] = result.get("versions", {}) | contest.versions


def main(words):
    if words[:1] == ["numpy"]:
        import namespace  # it chooses how plait runs

        return namespace.main(words[1:])
    if words[:1] == ["scale"]:
        import scale

        return scale.main(words[1:])
    options = arguments(words)
    every = rows.all_rows()
    chosen = [
        row for row in every if not options.words or any(word in row.name for word in options.words)
    ]
    if not chosen:
        sys.exit("bench: no row has such a name; --list names them")
    if options.list:
        for row in chosen:
            print(f"{row.name:{report.WIDTH}} {row.what}  {row.reach.text}")
    elif options.show:
        result = report.read(os.path.join(options.output, "scoreboard.json"))
        print(report.board(result))
        show(result, options.output)
    else:
        run(chosen, options)


if __name__ == "__main__":
    main(sys.argv[1:])
