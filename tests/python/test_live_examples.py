"""Errors and effects of what some examples do not take: branches of others, loops that have ended, padded examples.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

RUNS = [lambda f: f, plait.jit]
RUN_NAMES = ["eager", "jit"]


def guarded(read):
    """read(x, i) where i is inside x, else zeros."""

    def f(x, i):
        return lax.cond(i < 3, read, lambda x, i: 0 * read(x, 0), x, i)

    return f


READS = {
    "gather": lambda x, i: x[i],
    "take": lambda x, i: pnp.take(x, i),
    "at get": lambda x, i: x.at[i].get(),
    "scatter": lambda x, i: x.at[i].set(7.0),
    "scatter add": lambda x, i: x.at[i].add(x[i]),
    "rows": lambda x, i: x[pnp.stack([i, i])],
}


@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_index_outside_is_an_error_only_where_it_is_used(read, run):
    x, indices = pnp.asarray([1.0, 2.0, 4.0]), [0, 5, 2, 9]
    f = guarded(read)
    expected = np.stack([f(x, i) for i in indices])
    one_by_one = run(plait.vmap(f, in_axes=(None, 0)))
    assert np.array_equal(one_by_one(x, pnp.asarray(indices)), expected)
    both = run(plait.vmap(f))
    assert np.array_equal(both(pnp.stack([x] * 4), pnp.asarray(indices)), expected)
    nested = run(plait.vmap(plait.vmap(f, in_axes=(None, 0)), in_axes=(None, 0)))
    found = nested(x, pnp.asarray(indices).reshape(2, 2))
    assert np.array_equal(found, expected.reshape(2, 2, *expected.shape[1:]))

    def total(x):
        return pnp.sum(plait.vmap(f, in_axes=(None, 0))(x, pnp.asarray(indices)))

    alone = sum(np.asarray(plait.grad(lambda x: pnp.sum(f(x, i)))(x)) for i in indices)
    assert np.array_equal(run(plait.grad(total))(x), alone)
    with pytest.raises(plait.IndexError, match="out of bounds for axis . with size 3"):
        one_by_one(x, pnp.asarray([0, 5, -9]))


@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
def test_indices_that_all_examples_share(run):
    def f(x, index, take):
        return lax.cond(take, lambda x: x[index][0], lambda x: -x[0], x)

    each = run(plait.vmap(f, in_axes=(None, None, 0)))
    x = pnp.asarray([1.0, 2.0])
    assert each(x, pnp.asarray([5]), pnp.asarray([False, False])).tolist() == [-1, -1]
    assert each(x, pnp.asarray([1]), pnp.asarray([True, False])).tolist() == [2, -1]
    with pytest.raises(plait.IndexError, match="index 5"):
        each(x, pnp.asarray([5]), pnp.asarray([False, True]))


@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
def test_nothing_is_read_from_an_empty_array_by_no_one(run):
    def f(x, i, take):
        return lax.cond(take, lambda: x[i], lambda: 3.0)

    each = run(plait.vmap(f, in_axes=(None, 0, 0)))
    i = pnp.asarray([0, 1])
    assert each(pnp.zeros(0), i, pnp.asarray([False, False])).tolist() == [3, 3]
    with pytest.raises(plait.IndexError, match="the axis is empty|with size 0"):
        each(pnp.zeros(0), i, pnp.asarray([False, True]))


@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
def test_loops_that_have_ended_read_no_further(run):
    table = pnp.asarray([1.0, 10.0, 100.0])

    def total(n):
        def step(c):
            i, sum = c
            plait.check(i < 3, "step {}", i)
            return i + 1, sum + table[i]

        return lax.while_loop(lambda c: c[0] < n, step, (0, 0.0))[1]

    each = run(plait.vmap(total))
    assert each(pnp.asarray([3, 0, 2])).tolist() == [111, 0, 11]
    with pytest.raises(plait.ValueError, match="step 3; in example 1"):
        each(pnp.asarray([3, 4, 2]))


@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
def test_checks_are_of_those_who_take_the_branch(run):
    def root(x):
        def real(x):
            plait.check(x > 1, "x is {}", x)
            return pnp.sqrt(x)

        return lax.switch(pnp.sign(x).astype("int32") + 1, [lambda x: x, lambda x: 0 * x, real], x)

    each = run(plait.vmap(root))
    assert each(pnp.asarray([-2.0, 0.0, 4.0])).tolist() == [-2, 0, 2]
    assert run(plait.vmap(plait.grad(root)))(pnp.asarray([-2.0, 0.0, 4.0])).tolist() == [1, 0, 0.25]
    with pytest.raises(plait.ValueError, match=r"x is 0.5; in example 2"):
        each(pnp.asarray([-2.0, 4.0, 0.5]))
    with pytest.raises(plait.ValueError, match=r"x is 0.5; in example \(1, 0\)"):
        run(plait.vmap(plait.vmap(root)))(pnp.asarray([[-2.0, 4.0], [0.5, 2.0]]))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
def test_islands_run_for_those_who_take_the_branch(run, ordered):
    seen = []

    def reciprocal(x):
        seen.append(float(x))
        return np.asarray(1 / float(x))  # raises at 0

    def f(x):
        def island(x):
            return plait.host_call(
                reciprocal, plait.ShapeDtypeStruct((), "float64"), x, ordered=ordered
            )

        return lax.cond(x != 0, island, lambda x: x, x)

    xs = pnp.asarray([2.0, 0.0, -4.0], dtype="float64")
    assert run(plait.vmap(f))(xs).tolist() == [0.5, 0, -0.25]
    assert seen == [2, -4]
    seen.clear()
    both = run(plait.vmap(plait.vmap(f)))(pnp.stack([xs, 0 * xs, -xs]))
    assert both.tolist() == [[0.5, 0, -0.25], [0, 0, 0], [-0.5, 0, 0.25]]
    assert seen == [2, -4, -2, 4]


# --- Padded examples of mask, vmap, mask ---


def ragged_rows(row):
    """row(x) of each of n rows of own lengths, padded twice."""

    def rows(xs, lengths):
        return plait.vmap(lambda x, m: plait.mask(row, "m")(x, m=m))(xs, lengths)

    return plait.mask(rows, ["n 2", "i32[n]"])


@pytest.mark.parametrize("run", RUNS, ids=RUN_NAMES)
def test_padded_examples_have_no_effects_and_raise_nothing(run):
    seen = []
    table = pnp.asarray([1.0, 2.0, 4.0])

    def row(x):
        plait.debug.callback(lambda x: seen.append(np.asarray(x).tolist()), x)
        plait.check(pnp.sum(x) < 5, "the sum is {}", pnp.sum(x))
        plait.check(x < 3, "large")
        return pnp.sum(table[x.astype("int32")])

    f = ragged_rows(row)
    bad = [9.0, np.nan]
    xs = pnp.asarray([[1.0, 2.0], [0.0, np.nan], bad, bad])
    lengths = pnp.asarray([2, 1, 77, -3], dtype="int32")
    assert run(lambda xs, lengths: f(xs, lengths, n=2))(xs, lengths).tolist() == [6, 1, 0, 0]
    assert seen == [[1, 2], [0]]
    seen.clear()

    def many(xs, lengths, n):
        return f(xs, lengths, n=n)

    both = run(plait.vmap(many, in_axes=(0, None, 0)))(
        pnp.stack([xs, xs]), lengths, pnp.asarray([0, 1])
    )
    assert both.tolist() == [[0, 0, 0, 0], [6, 0, 0, 0]]
    assert seen == [[1, 2]]
    # Real examples raise.
    with pytest.raises(plait.ValueError, match="the sum is 9.0"):
        f(xs, pnp.asarray([2, 1, 1, 0], dtype="int32"), n=3)
    with pytest.raises(plait.ValueError, match="large; at element 1; in example 1"):
        f(pnp.asarray([[1.0, 2.0], [0.0, 4.0]]), pnp.asarray([1, 2], dtype="int32"), n=2)
    with pytest.raises(plait.IndexError, match="out of bounds for axis . with size 3"):
        f(pnp.asarray([[1.0, 2.0], [0.0, -7.0]]), pnp.asarray([1, 2], dtype="int32"), n=2)
    with pytest.raises(plait.ValueError, match="the size m is 77 in example 2"):
        f(xs, lengths, n=3)


def test_gradients_past_padded_examples():
    def row(x):
        plait.check(x > 0, "x is {}", x)
        return pnp.sum(pnp.log(x))

    f = ragged_rows(row)
    xs = pnp.asarray([[1.0, 2.0], [4.0, -1.0], [-1.0, np.nan]])
    gradient = plait.grad(lambda xs: pnp.sum(f(xs, pnp.asarray([2, 1, 9], dtype="int32"), n=2)))(xs)
    assert gradient.tolist() == [[1, 0.5], [0.25, 0], [0, 0]]
