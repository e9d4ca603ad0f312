"""What a row of the scoreboard is, and what it has to reach.

A row says what is computed, on which inputs, by which function of each library, what the results
must be (a reference in float64, by NumPy or Python), how much work that is at least, and the target.
The families of rows are the modules rows_*.py; none of them imports plait or a peer.
"""

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import importlib
import typing

import numpy as np

FAMILIES = (
    "rows_dispatch",
    "rows_cold",
    "rows_gpt",
    "rows_elementwise",
    "rows_reductions",
    "rows_training",
    "rows_convolution",
    "rows_attention",
    "rows_loops",
    "rows_linalg",
    "rows_finance",
    "rows_indexing",
    "rows_programs",
    "rows_users",
)


@dataclasses.dataclass(frozen=True)
class Work:
    """What a call must do at least: products and sums by width, bytes between memory and cores."""

    flops: float = 0  # in float32
    flops64: float = 0
    flops16: float = 0  # bfloat16 factors, float32 sums
    bytes: float = 0  # read and written
    calls: int = 0  # of a function that does nothing, from Python

    def seconds(self, rates):
        """The least time at these rates (machine.Rates), or None where nothing is said."""
        parts = [
            self.flops / rates["fma32"],
            self.flops64 / rates["fma64"],
            self.flops16 / rates["product16"],
            self.bytes / rates["copy"],
            self.calls * rates["call"],
        ]
        return max(parts) or None


# --- Targets ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Figures:
    """What a target may look at."""

    peers: dict = dataclasses.field(default_factory=dict)  # name -> value
    limit: float | None = None
    rows: dict = dataclasses.field(default_factory=dict)  # name of a row -> plait's value there


@dataclasses.dataclass(frozen=True)
class Target:
    text: str
    allowed: typing.Callable  # Figures -> the most that ours may be, or None where it is unknown


NOTHING = Target("", lambda figures: None)


def at_most(value, text):
    return Target("≤ " + text, lambda figures: value)


def microseconds(number):
    return at_most(number * 1e-6, f"{number:g} µs")


def milliseconds(number):
    return at_most(number * 1e-3, f"{number:g} ms")


def megabytes(number):
    return at_most(number * 1e6, f"{number:g} MB")


def best_peer(factor=1.0):
    """Not slower than factor times the fastest peer."""

    def allowed(figures):
        return factor * min(figures.peers.values()) if figures.peers else None

    return Target("≤ best peer" if factor == 1 else f"≤ {factor:.2g}× best peer", allowed)


def peer(name, factor=1.0):
    def allowed(figures):
        return factor * figures.peers[name] if name in figures.peers else None

    return Target(f"≤ {name}" if factor == 1 else f"≤ {factor:g}× {name}", allowed)


def of_limit(share):
    def allowed(figures):
        return figures.limit / share if figures.limit else None

    return Target(f"≥ {share:.0%} of limit", allowed)


def of_row(name, factor):
    """Not slower than factor times plait in another row."""

    def allowed(figures):
        return factor * figures.rows[name] if name in figures.rows else None

    return Target(f"≤ {factor:g}× {name}", allowed)


def both(*targets):
    return _joined(" and ", min, targets)


def either(*targets):
    return _joined(" or ", max, targets)


def _joined(word, choose, targets):
    def allowed(figures):
        values = [target.allowed(figures) for target in targets]
        return choose((value for value in values if value is not None), default=None)

    return Target(word.join(target.text for target in targets), allowed) if targets else NOTHING


# --- Rows ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the scoreboard.

    calls has a function (library, *inputs) -> call for contestants, by their name ("plait", "jax",
    "torch", "compile", "numpy", "mlx"), by kind ("jaxlike": plait and jax; "torchlike": torch and
    compile) or for all ("*"); the first that is there counts. It gives a function without arguments,
    or several by name, of which the fastest that is right takes part. Inputs are the library's arrays.
    """

    name: str  # "family/what"
    what: str
    reach: Target = NOTHING
    inputs: typing.Callable = tuple  # -> NumPy arrays, in trees
    reference: typing.Callable | None = None  # inputs in float64 -> a tree of arrays
    sample: typing.Callable = lambda *inputs: inputs  # of the inputs, what the reference looks at
    calls: dict = dataclasses.field(default_factory=dict)
    pick: typing.Callable = lambda value: value  # of a result, what the reference says
    work: Work = Work()
    tolerance: float = 1e-4  # of the norm of the difference, by the reference's
    most: float | None = None  # that one element may be off: see `outlier`; 100 tolerances, or 1/4
    per: float = 1  # what seconds are divided by: steps in a loop
    x64: bool = False  # JAX needs to be told
    fresh: bool = False  # large results: peers also with an allocator that keeps its memory
    cold: bool = False  # the first call, in a new process
    cached: bool = False  # and cold, when an earlier process has filled the caches on disk
    beyond_warm: bool = False  # and cold, less what the second call takes
    measure: typing.Callable | None = None  # (row, contest) -> {name: values}, instead of calls
    unit: str = "s"  # or "B"

    def builder(self, library):
        for key in (library.name, library.kind, "*"):
            if key in self.calls:
                return self.calls[key]
        return None


def all_rows(families=FAMILIES):
    """The rows of these families, in order."""
    return [row for family in families for row in importlib.import_module(family).ROWS]


# --- Results ---------------------------------------------------------------------------------------


def leaves(tree):
    """The leaves of tuples, lists and dicts; keys in order."""
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [tree]


def pairs(result, reference):
    """The leaves of both in float64, which must have the same shapes."""
    found, wanted = leaves(result), leaves(reference)
    if len(found) != len(wanted):
        raise ValueError(f"{len(found)} results, not {len(wanted)}")
    if not found:
        raise ValueError("no result")
    for a, b in zip(found, wanted):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            raise ValueError(f"a result of shape {a.shape}, not {b.shape}")
        yield a.astype(np.float64), b.astype(np.float64)


def difference(result, reference):
    """How far a leaf is from its reference at most: the norm of their difference, by that of the
    reference."""
    worst = 0.0
    for a, b in pairs(result, reference):
        error = np.linalg.norm(a - b) / (np.linalg.norm(b) or 1.0)
        worst = max(worst, float("inf") if np.isnan(error) else float(error))
    return worst


def outlier(result, reference):
    """How far one element is from its reference at most, by its size and the mean size of all: a
    norm hides what few elements have wrong."""
    worst = 0.0
    for a, b in pairs(result, reference):
        scale = np.abs(b) + (np.sqrt(np.mean(b * b)) if b.size else 1.0)
        error = np.max(np.abs(a - b) / np.where(scale > 0, scale, 1.0), initial=0.0)
        worst = max(worst, float("inf") if np.isnan(error) else float(error))
    return worst


def wrong(row, result, reference):
    """The difference from the reference, and what is wrong with it, if anything."""
    error, most = difference(result, reference), row.most
    if error > row.tolerance:
        return error, f"WRONG: differs by {error:.1e}, {row.tolerance:.0e} allowed"
    single = outlier(result, reference)
    if most is None:
        most = min(100 * row.tolerance, 0.25)
    if single > most:
        return error, f"WRONG: an element differs by {single:.1e}, {most:.0e} allowed"
    return error, None


def spread(value, count):
    """So many elements of the first axis, or rows, from the first to the last: of results so large
    that their reference would take longer than the row."""
    return value[np.linspace(0, len(value) - 1, count).astype(np.int64)]


def wide(tree):
    """The float leaves of a tree in float64."""
    if isinstance(tree, dict):
        return {key: wide(value) for key, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(wide(value) for value in tree)
    tree = np.asarray(tree)
    return tree if tree.dtype.kind in "iub" else tree.astype(np.float64)
