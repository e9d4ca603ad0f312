"""The tape: writing to arrays as NumPy does, and how long what it keeps lives.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import gc
import threading
import weakref

import numpy as np
import plait
import plait.numpy as pnp
from plait import grad, jit, vmap
from test_tape import bits, by_differences, by_tape, floats

# --- Writing -------------------------------------------------------------------------------------


def numpy_agrees(program, *shapes):
    """program(library, *arrays) writes to arrays; all end up as in NumPy."""
    values = [floats(*shape) for shape in shapes]
    theirs, ours = [v.copy() for v in values], [pnp.array(v) for v in values]
    results = program(np, *theirs), program(pnp, *ours)
    for a, b in zip((*theirs, *results[0]), (*ours, *results[1])):
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-6)


def test_writing_is_that_of_numpy():
    def program(m, x, y):
        view, row, other = x[1:3], x[0], x
        part = view[:, 1]
        x[2, 1] = 7
        view[...] += 1
        row[...] = y
        part[...] *= 2
        x[::2] -= y
        y[[0, 2]] = 5
        other[3:, :2] = m.ones((1, 2))
        x[x > 6] = 0
        rev = x[::-1]
        rev[0] **= 2
        x[...] /= 2
        element = x[0, 0]
        element += 1
        return view, row, part, rev, element

    numpy_agrees(program, (4, 3), (3,))


def test_an_operator_gives_its_name_alone_a_new_value():
    x = pnp.ones(3)
    same, view, held = x, x[:2], [x]
    x += 1
    assert same is held[0] is not x and x.tolist() == [2, 2, 2]
    assert same.tolist() == [1, 1, 1] and view.tolist() == [1, 1]

    def helper(x):
        x *= 5
        return x

    for call in (helper, jit(helper)):
        assert call(x).tolist() == [10, 10, 10] and x.tolist() == [2, 2, 2]
    table = pnp.zeros((2, 3))
    for row in table:
        row += 1
    assert not table.any()
    x += pnp.ones((2, 3), "complex64")  # promotes and broadcasts
    assert x.tolist() == [[3 + 0j] * 3] * 2
    assert (
        grad(residual)(pnp.array([0.3, 0.4])).tolist()
        == grad(written_out)(pnp.array([0.3, 0.4])).tolist()
    )


def residual(x):
    res = x
    x += pnp.sin(x)
    return pnp.sum(x * res)


def written_out(x):
    return pnp.sum((x + pnp.sin(x)) * x)


def test_a_subscript_writes_to_every_name_and_to_no_copy():
    x = pnp.ones(3)
    flat = np.asarray(x)
    copies = (
        copy.copy(x),
        copy.deepcopy(x),
        +x,
        pnp.array(x),
        pnp.asarray(x, copy=True),
        pnp.copy(x),
    )
    same, shown = x, (pnp.asarray(x), x[...], x[:])
    x[0] = 9
    assert same.tolist() == [9, 1, 1] and flat.tolist() == [1, 1, 1]
    assert all(c.tolist() == [1, 1, 1] for c in copies)
    assert all(s.tolist() == [9, 1, 1] for s in shown)


def test_weak_arrays_yield_when_written_to():
    total = pnp.asarray(0.0)
    total += pnp.ones((), "float32")
    assert total.dtype == np.float32 and float(total) == 1


def test_views_die_and_chains_of_them_are_no_recursion():
    x = pnp.zeros(301)
    view = x
    for step in range(100_000):
        view = view[1:] if step % 400 == 0 else view[:]
    view[...] += 1
    assert float(x.sum()) == 51
    alive = weakref.ref(view)
    del view
    gc.collect()
    assert alive() is None
    x[0] = 5


def test_what_is_written_is_differentiated():
    def program(a, b):
        z = pnp.zeros((3, 4)) + a
        view = z[1:]
        z[0] = b * 2
        view[...] *= a
        view[0, 1:] = b[1:] ** 2
        z[:, 0] += z[:, 3]
        return pnp.sum(z * z) + pnp.sum(view**3)

    values = floats(4, dtype="float64"), floats(4, dtype="float64")
    ours = by_tape(program, *values)
    for a, b in zip(ours, by_differences(program, *values)):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5)
    for transform in (grad(program, (0, 1)), jit(grad(program, (0, 1)))):
        assert [bits(g) for g in ours] == [bits(g) for g in transform(*values)]


def test_views_of_variables_are_differentiated():
    x = plait.variable(np.arange(6, dtype="f").reshape(2, 3))
    top, column = x[0], x[:, 1]
    pnp.sum(top * top + column[0]).backward()
    assert x.grad.tolist() == [[0, 5, 4], [0, 0, 0]]


def test_variables_are_updated_under_no_grad():
    x = plait.variable(np.ones(3, "f"))
    old = pnp.sum(x * x * x)
    view = x[:2]
    with plait.no_grad():
        x *= 2
        x[0] = 5
    assert x.tolist() == [5, 2, 2] and x.requires_grad
    assert view.tolist() == [5, 2] and view.requires_grad
    old.backward()  # the derivative of what was computed then
    assert x.grad.tolist() == [3, 3, 3]
    x.grad = None
    pnp.sum(view * view).backward()
    assert x.grad.tolist() == [10, 4, 0]


def test_transforms_hand_out_fresh_arrays():
    def f(x):
        x += 1
        x[0] = 0
        return pnp.sum(x * x)

    rule = plait.custom_jvp(f)
    rule.defjvp(lambda p, t: (f(*p), pnp.sum(t[0])))
    x = pnp.arange(3.0)
    assert float(jit(f)(x)) == 13 and grad(f)(x).tolist() == [0, 4, 6]
    assert float(plait.checkpoint(f)(x)) == 13 and float(rule(x)) == 13
    assert vmap(f)(x.reshape(1, 3)).tolist() == [13]
    assert grad(lambda y, x: f(x) * y)(1.0, x).tolist() == 13
    assert x.tolist() == [0, 1, 2]


# --- Life ----------------------------------------------------------------------------------------


def test_long_chains_are_no_recursion():
    x = plait.variable(np.float32(1))
    y = x
    for _ in range(100_000):
        y = y * np.float32(1.00001)
    y.backward()
    assert abs(float(x.grad) - float(y)) < 1e-2
    del y
    z = x
    for _ in range(100_000):
        z = z + 1  # no equations: the tangent passes
    z.backward()
    z = x
    for _ in range(100_000):
        z = pnp.sin(z)
    del z  # never differentiated


def test_the_tape_is_freed_with_its_values():
    x = plait.variable(np.ones(3, "f"))
    y = pnp.exp(x) * x
    alive = weakref.ref(x)
    del x
    assert alive() is None  # y keeps the leaf, not the variable
    pnp.sum(y).backward()


def test_recorded_gradients_make_no_cycle():
    before = plait._plait.num_variables()
    for _ in range(10):
        x = plait.variable(np.ones(3, "f"))
        pnp.sum(pnp.exp(x) * x).backward(create_graph=True)
        assert x.grad.requires_grad
        del x
    assert plait._plait.num_variables() == before


def test_threads_share_variables():
    w = plait.variable(np.zeros(4, "float64"))
    shared_value = pnp.sum(w * 2.0)
    failures = []

    def work(seed):
        try:
            for _ in range(50):
                pnp.sum((w + seed) * (w + seed)).backward()
                shared_value.backward(retain_graph=True)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(s),)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert w.grad.tolist() == [50 * 2 * (0 + 1 + 2 + 3) + 4 * 50 * 2] * 4


def test_no_grad_is_of_one_thread():
    x = plait.variable(np.float32(1))
    seen = []
    with plait.no_grad():
        thread = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        thread.start()
        thread.join()
    assert seen == [True]
