"""jit(donate_argnums=): memory is taken over, donated arrays cannot be used, others are never written to.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import gc
import operator

import numpy as np
import pytest

import plait
import plait.numpy as pnp

SIZE = 1000


def fresh(value=1.0):
    """An array in memory of its own."""
    return pnp.ones(SIZE) * value


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def axpy(w, g):
    return w - 0.5 * g


def test_the_result_takes_over_the_memory():
    step = plait.jit(axpy, donate_argnums=0)
    w, g = fresh(3.0), fresh(2.0)
    before = address(w)
    gc.collect()
    result = step(w, g)
    assert address(result) == before
    np.testing.assert_array_equal(np.asarray(result), np.full(SIZE, 2, np.float32))
    assert w.is_deleted() and not g.is_deleted() and not result.is_deleted()


def test_the_hundredth_step_is_right():
    step = plait.jit(lambda w, g: (w - 0.5 * g, w.sum()), donate_argnames="w")
    w, expected = fresh(3.0), np.full(SIZE, 3, np.float32)
    for _ in range(100):
        w, total = step(w, fresh())
        assert float(total) == expected.sum()
        expected = expected - np.float32(0.5)
    np.testing.assert_array_equal(np.asarray(w), expected)


def test_trees_are_donated_whole_and_optimizers_agree_with_no_donation():
    def step(state, x):
        return {"w": [state["w"][0] * 2 + x, state["w"][1] - x], "n": state["n"] + 1}

    def start():
        return {"w": [fresh(), fresh(2.0)], "n": pnp.asarray(np.int32(0))}

    plain, donating = plait.jit(step), plait.jit(step, donate_argnums=(0,))
    a, b = start(), start()
    for i in range(5):
        old = b
        a, b = plain(a, fresh(i)), donating(b, fresh(i))
        assert old["w"][0].is_deleted() and old["w"][1].is_deleted() and old["n"].is_deleted()
    for x, y in zip(plait.tree.leaves(a), plait.tree.leaves(b)):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_each_result_takes_over_its_own_input_before_memory_of_the_step():
    """The product dies in the step too, but its memory serves other steps."""

    def update(w, m, x):
        gradient = x @ x.T
        return w - gradient, m + gradient

    step = plait.jit(update, donate_argnums=(0, 1))
    x = pnp.array(np.arange(300, dtype=np.float32)[:, None])
    gradient = np.multiply.outer(np.arange(300), np.arange(300))
    for _ in range(4):
        w, m = (pnp.zeros((300, 300)) + i for i in (1, 2))
        before = address(w), address(m)
        gc.collect()
        w, m = step(w, m, x)
        assert (address(w), address(m)) == before
        np.testing.assert_array_equal(np.asarray(w), 1 - gradient)
        np.testing.assert_array_equal(np.asarray(m), 2 + gradient)


def test_by_keyword():
    step = plait.jit(axpy, donate_argnums=0)
    w = fresh()
    step(g=fresh(), w=w)
    assert w.is_deleted()


def test_memory_that_numpy_or_dlpack_sees_is_not_written_to():
    step = plait.jit(axpy, donate_argnums=0)
    w = fresh(3.0)
    view = np.asarray(w)
    step(w, fresh(2.0))
    np.testing.assert_array_equal(view, np.full(SIZE, 3, np.float32))
    w = fresh(3.0)
    exported = np.from_dlpack(w)
    step(w, fresh(2.0))
    np.testing.assert_array_equal(exported, np.full(SIZE, 3, np.float32))
    w = fresh(3.0)
    memory = memoryview(w)
    step(w, fresh(2.0))
    assert memory[0] == 3
    owner = np.full(SIZE, 3, np.float32)
    step(plait.from_dlpack(owner), fresh(2.0))
    assert owner[0] == 3


def test_memory_that_another_array_sees_is_not_written_to():
    step = plait.jit(axpy, donate_argnums=0)
    for other_of in (
        lambda w: w[10:20],
        lambda w: w.reshape(SIZE),
        lambda w: w.reshape(10, -1),
        lambda w: pnp.asarray(w) + 0,
        lambda w: plait.jit(lambda x: x)(w),
        lambda w: {"kept": w.T}["kept"],
    ):
        w = fresh(3.0)
        other = other_of(w)
        step(w, fresh(2.0))
        assert w.is_deleted() or other is w
        if other is not w:
            assert float(other.sum()) == 3 * other.size


def test_one_array_as_two_arguments_and_as_a_captured_one():
    global captured
    step = plait.jit(axpy, donate_argnums=(0, 1))
    w = fresh(3.0)
    np.testing.assert_array_equal(np.asarray(step(w, w)), np.full(SIZE, 1.5, np.float32))
    captured = fresh(3.0)
    np.testing.assert_array_equal(
        np.asarray(plait.jit(lambda w: w * captured, donate_argnums=0)(captured)),
        np.full(SIZE, 9, np.float32),
    )
    assert captured.is_deleted()


def test_an_input_that_is_an_output():
    step = plait.jit(lambda w: (w, w + 1), donate_argnums=0)
    same, more = step(fresh(3.0))
    assert float(same.sum()) == 3 * SIZE and float(more.sum()) == 4 * SIZE


def test_what_is_no_array_in_memory_is_left_alone():
    step = plait.jit(axpy, donate_argnums=0)
    w = np.ones(SIZE, np.float32)
    assert float(step(w, fresh(2.0)).sum()) == 0 and w[0] == 1
    assert float(step(2.0, 2.0)) == 1
    # Inside another transform nothing is donated.
    w = fresh()
    plait.grad(lambda w: step(w, w).sum())(w)
    plait.jit(lambda w: step(w, w))(w)
    assert not w.is_deleted()


def test_every_use_of_a_donated_array_is_an_error():
    w = fresh()
    plait.jit(axpy, donate_argnums=0)(w, fresh())
    uses = (
        lambda: w + 1,
        lambda: np.asarray(w),
        lambda: float(w[0]),
        lambda: w.tolist(),
        lambda: memoryview(w),
        lambda: w.__dlpack__(),
        lambda: plait.jit(axpy)(w, w),
        lambda: plait.grad(lambda x: (x * w).sum())(fresh()),
        lambda: plait.vmap(lambda x: x * w)(fresh()),
        lambda: plait.jit(lambda x: x * w)(fresh()),
        lambda: pnp.concatenate([w, w]),
    )
    for use in uses:
        with pytest.raises(plait.ValueError, match="was used after it had been donated to `axpy`"):
            use()
    # What it was can still be asked.
    assert w.shape == (SIZE,) and w.dtype == np.float32 and "donated" in repr(w)
    assert copy.copy(w).is_deleted()


def test_wrong_arguments():
    with pytest.raises(plait.ValueError, match="static and donated"):
        plait.jit(axpy, donate_argnums=0, static_argnames="w")
    with pytest.raises(plait.DtypeError, match="donate_argnums is"):
        plait.jit(axpy, donate_argnums="w")
    w = fresh()
    with pytest.raises(plait.ShapeError):
        plait.jit(axpy, donate_argnums=0)(w, pnp.ones(3))
    assert not w.is_deleted()


@pytest.mark.parametrize(
    "update, write",
    [
        (lambda x, i, v: plait.lax.dynamic_update_slice(x, v, (i, 0)), operator.setitem),
        (lambda x, i, v: x.at[i].set(v[0]), operator.setitem),
        (
            lambda x, i, v: x.at[pnp.stack([i, i + 2])].add(v[0]),
            lambda x, i, v: np.add.at(x, [i, i + 2], v[0]),
        ),
    ],
    ids=["dynamic_update_slice", "set", "add"],
)
def test_a_row_of_a_donated_table_is_written_where_it_lies(update, write):
    step = plait.jit(update, donate_argnums=0)
    table = np.random.default_rng(0).standard_normal((50, 16)).astype(np.float32)
    rows = np.ones((1, 16), np.float32)
    x, expected = pnp.array(table), table.copy()
    for i in range(8):
        before = address(x)
        gc.collect()
        x = step(x, pnp.asarray(np.int32(i)), rows * i)
        assert address(x) == before
        write(expected, i, rows * i)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_a_table_that_is_read_again_is_not_written_over():
    def step(x, v):
        y = x * 2
        changed = y.at[3].add(v)
        return changed, (y * changed).sum()

    x = np.arange(40, dtype=np.float32).reshape(8, 5)
    v = np.ones(5, np.float32)
    changed = 2 * x
    changed[3] += v
    for _ in range(4):
        ours, total = plait.jit(step)(pnp.array(x), v)
        np.testing.assert_array_equal(np.asarray(ours), changed)
        np.testing.assert_allclose(float(total), (2 * x * changed).sum())
