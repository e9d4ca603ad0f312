"""Views: what is written to an array shows in whatever NumPy makes a view of it, and the other way round.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import warnings

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import grad, jit, vmap

# --- What NumPy gives views for ------------------------------------------------------------------

# reshape and ravel give NumPy views of these arrays too, which lie in order.
VIEWS = {
    "slice": lambda m, x: x[1:, ::2],
    "reversed slice": lambda m, x: x[::-1, 1:3],
    "new axis": lambda m, x: x[:, None],
    "row": lambda m, x: x[1],
    "reshape": lambda m, x: x.reshape(6, -1),
    "reshape of the function": lambda m, x: m.reshape(x, (12,)),
    "ravel": lambda m, x: x.ravel(),
    "ravel of the function": lambda m, x: m.ravel(x),
    "T": lambda m, x: x.T,
    "transpose": lambda m, x: m.transpose(x[None], (1, 0, 2)),
    "transpose of the method": lambda m, x: x.transpose(1, 0),
    "swapaxes": lambda m, x: x.swapaxes(0, 1),
    "moveaxis": lambda m, x: m.moveaxis(x[None], 0, -1),
    "rollaxis": lambda m, x: m.rollaxis(x, 1),
    "squeeze": lambda m, x: x[None].squeeze(),
    "expand_dims": lambda m, x: m.expand_dims(x, (0, 2)),
    "atleast_3d": lambda m, x: m.atleast_3d(x),
    "atleast_1d of two": lambda m, x: m.atleast_1d(x, 1.0)[0],
    "split": lambda m, x: m.split(x, 2, axis=1)[1],
    "split at indices": lambda m, x: m.split(x, [1, 2])[1],
    "array_split": lambda m, x: m.array_split(x, 2)[0],
    "vsplit": lambda m, x: m.vsplit(x, 3)[2],
    "hsplit": lambda m, x: m.hsplit(x, 2)[0],
    "flip": lambda m, x: m.flip(x),
    "fliplr": lambda m, x: m.fliplr(x),
    "flipud": lambda m, x: m.flipud(x),
    "rot90": lambda m, x: m.rot90(x),
    "real": lambda m, x: x.real,
    "real of the function": lambda m, x: m.real(x),
    "named argument": lambda m, x: m.reshape(x, (4, 3))
    if m is np
    else m.reshape(shape=(4, 3), a=x),
    "chain": lambda m, x: m.flip(x.T[1:].reshape(-1, 3), 0)[:, ::2],
}


def program(m, view_of, x, fill):
    """Writes to an array, to a view of it and to a view of that, and reads all of them in between."""
    view = view_of(m, x)
    inner = view[..., :1]
    x[1] = 10
    seen = view + 0
    view[...] = view * 2 + 1
    inner[0] = fill
    x[2, 1] += 3
    return seen, view, inner, x


def chain_has_copies(name):
    return name == "chain"  # NumPy copies where memory does not lie in order


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64", "bool"])
def test_views_are_those_of_numpy(name, dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype)
    view_of = VIEWS[name]
    if chain_has_copies(name):
        view_of = lambda m, x: m.flip(x.T[1:], 0)[:, ::2]  # noqa: E731
    if dtype == "bool":  # there is no arithmetic
        theirs, ours = values.copy(), pnp.array(values)
        for m, x in ((np, theirs), (pnp, ours)):
            view_of(m, x)[...] = True
            x[0, 0] = False
        np.testing.assert_array_equal(np.asarray(ours), theirs)
        return
    expected = program(np, view_of, values.copy(), 7)
    for run in (program, lambda m, v, x, fill: jit(lambda x: program(m, v, x.copy(), fill))(x)):
        for a, b in zip(run(pnp, view_of, pnp.array(values), 7), expected):
            np.testing.assert_array_equal(np.asarray(a), b)


def test_a_reshape_of_any_view_is_a_view():
    x = pnp.arange(12.0).reshape(3, 4)
    numbers = x.T.reshape(-1)
    numbers[1] = 50  # x[1, 0]
    assert float(x[1, 0]) == 50
    x[2, 3] = 60
    assert float(numbers[11]) == 60


@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views_are_differentiated(name):
    values = np.arange(12.0).reshape(3, 4) / 10

    def f(x, fill):
        parts = program(pnp, VIEWS[name], x + 0, fill)
        return sum(pnp.sum(part * part * part) for part in parts)

    slopes = grad(f, (0, 1))(pnp.array(values), pnp.array(0.5))
    step = 1e-4
    for place in np.ndindex(values.shape):
        up, down = values.copy(), values.copy()
        up[place] += step
        down[place] -= step
        rise = (float(f(pnp.array(up), 0.5)) - float(f(pnp.array(down), 0.5))) / (2 * step)
        np.testing.assert_allclose(float(slopes[0][place]), rise, rtol=1e-4, atol=1e-6)
    rise = (float(f(pnp.array(values), 0.5 + step)) - float(f(pnp.array(values), 0.5 - step))) / (
        2 * step
    )
    np.testing.assert_allclose(float(slopes[1]), rise, rtol=1e-4, atol=1e-6)


def test_parts_of_complex_numbers_are_written():
    theirs = np.array([1 + 2j, 3 + 4j])
    ours = pnp.array(theirs)
    for x in (theirs, ours):
        x.imag[0] = 9
        x.real *= 2
        x.imag = x.imag[::-1] + 0
    np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.parametrize(
    "made_by, make",
    [
        ("diagonal", lambda x: x.diagonal()),
        ("diagonal", lambda x: pnp.linalg.diagonal(x)),
        ("diag", lambda x: pnp.diag(x)),
        ("broadcast_to", lambda x: pnp.broadcast_to(x, (2, 3, 3))),
        ("broadcast_arrays", lambda x: pnp.broadcast_arrays(x, pnp.ones((2, 1, 1)))[0]),
        ("imag of real numbers", lambda x: x.imag),
        ("imag of real numbers", lambda x: pnp.imag(x)),
    ],
)
def test_some_views_cannot_be_written_to_and_show_their_base(made_by, make):
    x = pnp.ones((3, 3))
    view = make(x)
    for write in (view, view[..., :1], view.T):
        with pytest.raises(ValueError, match=f"result of {made_by}, which cannot be written to"):
            write[...] = 5
    x[...] = 4
    expected = make(pnp.full((3, 3), 4.0))
    np.testing.assert_array_equal(np.asarray(view), np.asarray(expected))


def test_what_is_no_view_is_written_alone():
    x = pnp.ones((2, 3))
    values = (
        x.flatten(),
        x.astype("float32"),
        x.copy(),
        x.at[0].set(1.0),
        x[pnp.array([0, 1])],
        x[x > 0],
        plait.lax.reshape(x, (6,)),
        jit(lambda x: x)(x),
        vmap(lambda row: row)(x),
        pnp.diag(x[0]),
    )
    for value in values:
        value[0] = 5
    assert x.tolist() == [[1, 1, 1]] * 2
    x[...] = 2
    assert all(float(value[-1].sum()) < 6 for value in values)
    detached = x.detach()
    with pytest.raises(ValueError, match=r"detach\(\), which cannot be written to"):
        detached[0] = 1
    x[...] = 3
    assert detached.tolist() == [[2, 2, 2]] * 2


def test_writing_drops_no_fraction_and_no_imaginary_part():
    numbers, flags = pnp.arange(3), pnp.array([True, False, True])
    for write, text in (
        (lambda: numbers.__setitem__(0, 1.5), "dtype float64 for an array of dtype int32"),
        (lambda: numbers.__setitem__(0, np.ones(1)), "dtype float64 for"),
        (lambda: flags.__setitem__(0, 1.5), "for an array of dtype bool"),
        (lambda: pnp.ones(3).__setitem__(0, 1j), "dtype complex128 for"),
        (lambda: jit(lambda x: pnp.arange(3).__setitem__(0, x))(1.5), "dtype float64 for"),
    ):
        with pytest.raises(TypeError, match=text):
            write()
    numbers[0], flags[0] = True, 0
    assert numbers.tolist() == [1, 1, 2] and flags.tolist() == [False, False, True]


# --- Under transforms ----------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [jit, grad, vmap, plait.checkpoint])
def test_writing_to_an_argument_warns_while_tracing(transform):
    def f(x):
        x[...] = 0
        return pnp.sum(x)

    x = pnp.ones((2, 3)) if transform is vmap else pnp.ones(3)
    traced = transform(f)
    with pytest.warns(
        UserWarning, match=r"x\[...\] = v writes to an argument of a function"
    ) as found:
        traced(x)
    assert found[0].filename == __file__ and float(x.min()) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jit(lambda x: x.copy().__setitem__(0, 1))(pnp.ones(3))
        f(pnp.ones(3))  # nothing is traced


def test_views_of_a_donated_array_show_it_and_are_not_written_to():
    step = jit(lambda w: w * 2, donate_argnums=0)
    w = pnp.arange(1000.0)
    shown, hidden = w[:2], w[2:4]
    w[1] = 50
    assert shown.tolist() == [0, 50]
    step(w)
    assert shown.tolist() == [0, 50] and hidden.tolist() == [2, 3]
    for view in (shown, hidden):
        with pytest.raises(
            ValueError, match="a view of one, is written to after it had been donated"
        ):
            view[0] = 1


COUNT = pnp.zeros(())


class Running:
    def __init__(self):
        self.mean, self.parts = pnp.zeros(3), {"last": [None]}

    def update(self, x):
        self.mean += x
        return x * 2

    def update_sum(self, x):
        return pnp.sum(self.update(x))

    def keep(self, x):
        self.parts["last"][0] = x * 2
        return x

    def forget(self, x):
        self.mean = x * 2
        self.mean = None
        return x


def count(x):
    global COUNT
    COUNT += x
    return x * 2


def test_values_that_a_trace_leaves_behind_are_named():
    history = []

    def collect(x):
        history.append(x * 2)
        return pnp.sum(x)

    def nested(x):
        def inner(y):
            history.append(y + x)
            return pnp.sum(y)

        return grad(inner)(x)

    cases = [
        (jit, Running().update, pnp.ones(3), "self.mean"),
        (jit, Running().keep, pnp.ones(3), r"self.parts\['last'\]\[0\]"),
        (plait.make_jaxpr, Running().update, pnp.ones(3), "self.mean"),
        (vmap, Running().update, pnp.ones((2, 3)), "self.mean"),
        (grad, collect, pnp.ones(3), r"history\[0\]"),
        (grad, Running().update_sum, pnp.ones(3), "self.mean"),
        (jit, collect, pnp.ones(3), r"history\[0\]"),
        (jit, nested, pnp.ones(3), r"history\[0\]"),
        (jit, count, 1.0, "COUNT"),
        (lambda f: lambda x: plait.lax.scan(lambda c, row: (c, f(row)), 0.0, x), collect, pnp.ones((2, 3)), r"history\[0\]"),
    ]  # fmt: skip
    global COUNT
    for transform, function, x, place in cases:
        history.clear()
        with pytest.raises(plait.TracerError, match=f"`{place}` holds a traced value"):
            transform(function)(x)
        COUNT = pnp.zeros(())


def test_what_dies_with_the_call_or_is_a_number_is_not_left_behind():
    running, history = Running(), []

    def f(x):
        history.append(pnp.zeros(2) if not plait._plait.is_tracing() else x.shape)
        parts = [x * 2]
        parts.append(parts)  # freed by the collector alone
        return pnp.sum(x)

    gc.disable()
    try:
        jit(f)(pnp.ones(3))
        grad(f)(pnp.ones(3))
    finally:
        gc.enable()
    assert jit(running.forget)(2.0) == 2

    def eager(x):
        history.append(pnp.ones(3) + 1)  # known while grad runs
        return x * x

    assert float(grad(eager)(3.0)) == 6 and history[-1].tolist() == [2, 2, 2]


def test_functions_that_run_inside_a_trace_may_keep_its_values():
    def f(x):
        kept = []

        def combine(a, b):
            kept.append(a * b)
            return a + b

        sums = plait.lax.associative_scan(combine, x)
        return pnp.sum(sums) + pnp.sum(kept[0])

    x = pnp.arange(1.0, 5.0)
    assert float(jit(f)(x)) == float(f(x)) == (1 + 3 + 6 + 10) + (1 * 2 + 3 * 4)


# --- Memory --------------------------------------------------------------------------------------


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def writes():
    yield lambda x: x.__setitem__(5, 2.0)
    yield lambda x: x.__setitem__(slice(3, 9, 2), 2.0)
    yield lambda x: x.__setitem__(np.array([4, 4, 7]), 2.0)
    yield lambda x: x.__setitem__(pnp.arange(1000) < 3, 2.0)
    yield lambda x: x[10:20].__setitem__(3, 2.0)
    yield lambda x: x.reshape(10, 100).T.__setitem__((3, 4), 2.0)
    yield lambda x: pnp.flip(x)[::2].__setitem__(slice(3), 2.0)


@pytest.mark.parametrize("number", range(7))
def test_elements_are_written_where_they_lie(number):
    write = list(writes())[number]
    x = pnp.ones(1000) * 1
    expected = np.ones(1000, np.float32)
    views = [x[i : i + 5] for i in range(100)]
    before = address(x)
    gc.collect()
    for _ in range(3):
        write(x)
    if number == 3:
        expected[:3] = 2
    elif number == 5:
        expected.reshape(10, 100).T[3, 4] = 2
    elif number == 6:
        np.flip(expected)[::2][:3] = 2
    elif number == 4:
        expected[13] = 2
    else:
        expected[[[5], [3, 5, 7], [4, 7]][number]] = 2
    assert address(x) == before
    np.testing.assert_array_equal(np.asarray(x), expected)
    for i, view in enumerate(views):
        np.testing.assert_array_equal(np.asarray(view), expected[i : i + 5])


@pytest.mark.parametrize(
    "other_of",
    [
        np.asarray,
        lambda x: memoryview(x),
        lambda x: np.from_dlpack(x),
        lambda x: x.copy(),
        lambda x: plait.lax.reshape(x, (1000,)),
        lambda x: jit(lambda x: x)(x),
        lambda x: x[5],
        lambda x: [plait.lax.slice(x, (0,), (1000,))],
        lambda x: plait.vjp(lambda y: y * x, x)[1](pnp.ones(1000))[0],
    ],
)
def test_memory_that_others_hold_is_not_written_to(other_of):
    x = pnp.ones(1000) * 1
    other = other_of(x)
    before = np.array(other).copy()
    x[5] = 7
    np.testing.assert_array_equal(np.asarray(other), before)
    assert float(x[5]) == 7 and float(x.sum()) == 1006


def test_values_that_overlap_are_read_before_they_are_written():
    ours, theirs = pnp.arange(10.0) + 0, np.arange(10.0)
    for x in (ours, theirs):
        x[1:] = x[:-1]
        x[::-1] = x
        x[0], x[3] = x[3], x[0]
        x[:4], x[4:8] = x[4:8], x[:4] + 0
    np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_broadcast_memory_is_not_written_to_twice():
    x = plait.lax.broadcast_in_dim(pnp.ones(1) * 1, (3, 4), (1,))
    x[1, 2] = 5
    assert x.tolist() == [[1, 1, 1, 1], [1, 1, 5, 1], [1, 1, 1, 1]]


def test_indices_that_are_refused_leave_the_array_as_it_was():
    x = pnp.ones(1000) * 1
    for index, error in ((1000, IndexError), (np.array([1, 2000]), IndexError), (1.5, TypeError)):
        with pytest.raises(error):
            x[index] = 3
    with pytest.raises(ValueError):
        x[:3] = np.ones(4)
    assert float(x.sum()) == 1000


def test_residuals_and_values_of_the_tape_keep_what_they_were():
    w = plait.variable(np.ones(3, "f"))
    x = pnp.full(3, 2.0) * 1
    product = w * x
    x[0] = 50
    pnp.sum(product).backward()
    assert w.grad.tolist() == [2, 2, 2] and x.tolist() == [50, 2, 2]


def test_variables_and_their_views_are_written_under_no_grad_alone():
    w = plait.variable(np.ones((2, 2), "f"))
    start, same, row, column = w.detach(), w, w[0], w.T[1]
    with pytest.raises(ValueError, match="was written to while the tape records"):
        w += 1
    with pytest.raises(ValueError, match="was written to while the tape records"):
        row *= 2
    with plait.no_grad():
        w += 1
        row *= 3
        column[...] += 0.5
    assert same is w and w.tolist() == [[6, 6.5], [2, 2.5]] and start.tolist() == [[1, 1]] * 2
    assert row.requires_grad and row.tolist() == [6, 6.5] and w.requires_grad
    pnp.sum(row * row).backward()
    assert w.grad.tolist() == [[12, 13], [0, 0]]


def test_writes_through_strided_views_by_arrays_reach_the_base():
    for write in (
        lambda m, x: x.T.__setitem__((m.array([0, 1]), slice(1, 3)), 9),
        lambda m, x: x[:, 1:].__setitem__((m.array([2, 0]), slice(None, None, 2)), 7),
        lambda m, x: x[::-1].__setitem__((slice(None, None, 2), m.array([3, 1])), 5),
    ):
        found, wanted = pnp.array(np.arange(12.0).reshape(3, 4)), np.arange(12.0).reshape(3, 4)
        write(pnp, found), write(np, wanted)
        np.testing.assert_array_equal(found, wanted)


def test_a_row_at_a_traced_index_is_a_view():
    def rows(n):
        table = pnp.zeros((3, 2))
        for i in range(n):
            row = table[i]
            row[...] = row + 1
            table[i][0] += 1
        return table

    wanted = [[2, 1], [2, 1], [0, 0]]
    np.testing.assert_array_equal(rows(2), wanted)
    np.testing.assert_array_equal(jit(plait.script(rows))(2), wanted)

    def put(x, i):
        x = x.copy()
        row = x[i]
        row[1] = 5
        return x.sum(), x

    x = pnp.arange(6.0).reshape(3, 2)
    wanted = [[0, 1], [2, 5], [4, 5]]
    np.testing.assert_array_equal(put(x, 1)[1], wanted)
    np.testing.assert_array_equal(jit(put)(x, 1)[1], wanted)
    np.testing.assert_array_equal(vmap(put, in_axes=(None, 0))(x, pnp.array([1, 1]))[1][1], wanted)
    slopes = grad(lambda x: put(x, 1)[0])(x)
    np.testing.assert_array_equal(slopes, [[1, 1], [1, 0], [1, 1]])


def test_reshape_makes_a_copy_that_is_asked_for():
    x = pnp.zeros((2, 3))
    copied, viewed = pnp.reshape(x, (6,), copy=True), pnp.reshape(x, (6,))
    copied[0] = 1
    viewed[1] = 2
    np.testing.assert_array_equal(x, [[0, 2, 0], [0, 0, 0]])
    np.testing.assert_array_equal(copied, [1, 0, 0, 0, 0, 0])
