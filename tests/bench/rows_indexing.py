"""Sorting, cumulative sums, gathering and scattering, of a million elements."""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
from libraries import compiled, jitted
from rows import Row, Work, best_peer, peer
from rows_elementwise import normal

MILLION, TABLE, ROW = 1_000_000, 100_000, 16


def cumulative(library, x):
    return compiled(library, lambda x: library.xp.cumsum(x, 0), x)


def sorting(library, x):
    def run(x):
        result = library.xp.sort(x)
        return result if library.kind != "torchlike" else result.values

    return compiled(library, run, x)


def table():
    index = np.random.default_rng(1).integers(0, MILLION, MILLION).astype(np.int32)
    return normal(MILLION, ROW), index


def gather(library, x, index):
    if library.kind == "jaxlike":
        return compiled(library, lambda x, i: library.xp.take(x, i, axis=0, mode="clip"), x, index)
    if library.kind == "torchlike":
        index = index.long()
        return compiled(library, lambda x, i: library.module.index_select(x, 0, i), x, index)
    return lambda: np.take(x, index, 0)


def updates():
    index = np.random.default_rng(1).integers(0, TABLE, MILLION).astype(np.int32)
    return normal(TABLE), index, normal(MILLION, seed=2)


def scatter(library, x, index, values):
    if library.kind == "jaxlike":
        add = lambda x, i, v: x.at[i].add(v, mode="clip")  # noqa: E731
        return compiled(library, add, x, index, values)
    if library.kind == "torchlike":
        add = lambda x, i, v: x.index_add(0, i, v)  # noqa: E731
        return compiled(library, add, x, index.long(), values)
    return lambda: x + np.bincount(index, values, TABLE).astype(np.float32)


def scatter_reference(x, index, values):
    return x + np.bincount(index, values, TABLE)


ROWS = [
    Row(
        "indexing/sort",
        "sort, f32[1M]",
        peer("numpy"),
        lambda: (normal(MILLION),),
        np.sort,
        calls={"numpy": jitted(lambda xp, x: xp.sort(x)), "*": sorting},
        work=Work(bytes=2 * 4 * MILLION),
        fresh=True,
    ),
    Row(
        "indexing/cumsum",
        "cumulative sum, f32[1M]",
        best_peer(),
        lambda: (normal(MILLION),),
        np.cumsum,
        calls={"*": cumulative},
        tolerance=1e-3,
        work=Work(bytes=2 * 4 * MILLION),
        fresh=True,
    ),
    Row(
        "indexing/gather",
        "1M rows of 16 of a table of 1M, f32",
        best_peer(),
        table,
        lambda x, index: x[index],
        calls={"*": gather},
        work=Work(bytes=4 * MILLION * (2 * ROW + 1)),
        fresh=True,
    ),
    Row(
        "indexing/scatter-add",
        "1M numbers added to 100k places, f32",
        best_peer(),
        updates,
        scatter_reference,
        calls={"*": scatter},
        work=Work(bytes=4 * 2 * (MILLION + TABLE)),
        fresh=True,
    ),
]
