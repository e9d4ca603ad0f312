"""The scoreboard as text, as JSON and as a picture."""

# SPDX-License-Identifier: Apache-2.0

import json
import os
import sys

import libraries

WIDTH = 30  # of a row's name


def amount(value, unit="s"):
    """A number with three digits and its unit."""
    if value is None:
        return "—"
    scales = {
        "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
        "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")),
    }[unit]
    for scale, name in scales:
        if abs(value) >= scale:
            break
    digits = f"{value / scale:.3g}"
    return f"{float(digits):.0f} {name}" if "e" in digits else f"{digits} {name}"


def ratio(value):
    if value is None:
        return "—"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def cell(record, name):
    """What a contestant came to: its median, or why there is none."""
    values = record["peers"] | {"plait": record["plait"]}
    if values.get(name) is not None:
        return amount(values[name], record["unit"])
    entry = record["entries"].get(name)
    if entry is None or entry["status"] == "absent":
        return "—"
    return {"wrong": "WRONG", "failed": "FAILED"}.get(entry["status"], "—")


def header(names):
    columns = "".join(f"{name:>9}" for name in names)
    return f"{'':{WIDTH}}{columns}{'÷ peer':>8}{'least':>7}{'limit':>9}{'÷ lim':>7}  to reach"


def line(name, record, names):
    cells = "".join(f"{cell(record, contestant):>9}" for contestant in names)
    verdict = {True: "ok  ", False: "OVER", None: "    "}[record["passes"]]
    limit = amount(record["limit"], record["unit"])
    return (
        f"{name:{WIDTH}}{cells}{ratio(record['ratio']):>8}"
        f"{ratio(record['least_ratio']):>7}{limit:>9}"
        f"{ratio(record['of_limit']):>7}  {verdict} {record['reach']}"
    )


def failures(records):
    """Lines about what went wrong."""
    for row, record in records.items():
        for name, entry in record["entries"].items():
            if entry["status"] in ("wrong", "failed"):
                notes = "; ".join(dict.fromkeys(str(note) for note in entry["notes"].values()))
                yield f"{row}: {name} {entry['status']}: {' '.join(notes.split())[:160]}"


def farthest(records):
    """Rows over their target, the farthest first: (times what is allowed, name)."""
    over = [
        (record["distance"], name) for name, record in records.items() if record["passes"] is False
    ]
    return sorted(over, reverse=True)


def summary(records):
    """What the scoreboard comes to, and where it is worst."""
    judged = [record["passes"] for record in records.values() if record["passes"] is not None]
    lines = [f"{sum(judged)} of {len(judged)} rows with a target reach it"]
    over = farthest(records)
    if over:
        lines.append("farthest from their targets, in times what is allowed:")
        lines += [
            f"  {distance:7.2f}  {name}  ({records[name]['reach']})" for distance, name in over
        ]
    return "\n".join(lines)


def show_row(name, record, names):
    print(line(name, record, names))
    for text in failures({name: record}):
        print("  " + text)
    sys.stdout.flush()


def board(result, names=None):
    names = names or [name for name in libraries.NAMES if name in result["versions"]]
    records = result["rows"]
    lines = [header(names)]
    lines += [line(name, record, names) for name, record in records.items()]
    return "\n".join([*lines, "", summary(records), *failures(records)])


def read(path):
    """The last result, of which the rows that are measured now are replaced."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"rows": {}}


def write(result, path):
    with open(path + ".new", "w") as file:
        json.dump(result, file, indent=1, ensure_ascii=False)
    os.replace(path + ".new", path)


def plot(result, path):
    """Horizontal bars: plait's time by the best peer's, on a logarithmic axis."""
    from matplotlib.figure import Figure

    shown = [(name, r) for name, r in result["rows"].items() if r["ratio"]]
    figure = Figure(figsize=(9, 1.2 + 0.22 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    colours = {True: "tab:green", False: "tab:red", None: "tab:grey"}
    axes.barh(
        range(len(shown)),
        [record["ratio"] - 1 for _, record in shown],
        left=1,
        color=[colours[record["passes"]] for _, record in shown],
    )
    for place, (_, record) in enumerate(shown):
        if record["allowed"]:
            best = record["plait"] / record["ratio"]
            axes.plot([record["allowed"] / best] * 2, [place - 0.4, place + 0.4], color="black")
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown], fontsize=8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.set_xlabel("plait ÷ best peer (less is better); the mark is what to reach")
    figure.savefig(path, dpi=130)
