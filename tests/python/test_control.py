"""cond, switch, while_loop, fori_loop, scan, map, associative_scan: against Python's own loops and NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import lax

pytestmark = pytest.mark.isa


def numeric_gradient(f, x, step=1e-6):
    x = np.asarray(x, dtype=np.float64)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        more, less = x.copy(), x.copy()
        more[index] += step
        less[index] -= step
        gradient[index] = (f(more) - f(less)) / (2 * step)
    return gradient


XS = np.array([0.3, -0.2, 0.5, 0.9, 1.1])


def test_scan_is_a_loop_over_trees():
    def step(carry, x):
        carry = {"sum": carry["sum"] + x["a"], "steps": carry["steps"] + 1}
        return carry, (carry["sum"] * x["b"], None)

    xs = {"a": XS, "b": np.arange(5.0)}
    last, (ys, none) = lax.scan(step, {"sum": 0.0, "steps": 0}, xs)
    assert none is None
    np.testing.assert_allclose(last["sum"], XS.sum())
    assert int(last["steps"]) == 5
    np.testing.assert_allclose(ys, np.cumsum(XS) * np.arange(5.0))
    _, back = lax.scan(lambda c, x: (c + x, c), 0.0, XS, reverse=True)
    np.testing.assert_allclose(back, np.append(np.cumsum(XS[::-1])[::-1][1:], 0))
    last, none = lax.scan(lambda c, _: (c * 2.0, None), 1.0, length=10)
    assert float(last) == 1024 and none is None
    last, ys = lax.scan(lambda c, x: (c + x, c), 1.0, np.zeros((0,)))
    assert float(last) == 1 and ys.shape == (0,)


def newton(a):
    """The square root of a, by Newton's method."""
    return lax.while_loop(
        lambda x: pnp.abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), 1.0 + 0.0 * a
    )


@pytest.mark.parametrize("jit", [False, True])
def test_reverse_mode_goes_through_while_loop(jit):
    f = plait.jit(newton) if jit else newton
    a = np.float64(2.7)
    np.testing.assert_allclose(f(a), np.sqrt(a), rtol=1e-12)
    np.testing.assert_allclose(plait.grad(f)(a), 0.5 / np.sqrt(a), rtol=1e-8)
    np.testing.assert_allclose(plait.jvp(f, (a,), (np.float64(1),))[1], 0.5 / np.sqrt(a), rtol=1e-8)
    second = -0.25 * a**-1.5
    for hessian in (
        plait.grad(plait.grad(f)),
        plait.jacfwd(plait.grad(f)),
        plait.jacrev(plait.jacfwd(f)),
    ):
        np.testing.assert_allclose(hessian(a), second, rtol=1e-6)


def test_lanes_of_a_while_loop_end_at_different_times():
    a = np.array([0.5, 2.0, 1.5, 1e6, 9.0])
    np.testing.assert_allclose(plait.vmap(newton)(a), np.sqrt(a), rtol=1e-11)
    np.testing.assert_allclose(plait.vmap(plait.grad(newton))(a), 0.5 / np.sqrt(a), rtol=1e-7)
    total = plait.grad(lambda a: plait.vmap(newton)(a).sum())
    np.testing.assert_allclose(total(a), 0.5 / np.sqrt(a), rtol=1e-7)
    np.testing.assert_allclose(
        plait.jit(plait.vmap(plait.vmap(plait.grad(newton))))(a[:4].reshape(2, 2)),
        0.5 / np.sqrt(a[:4].reshape(2, 2)),
        rtol=1e-7,
    )


def collatz(n):
    return lax.while_loop(
        lambda s: s[0] != 1,
        lambda s: (pnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
        (n, 0),
    )[1]


def test_loops_of_integers():
    def steps(n):
        count = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            count += 1
        return count

    numbers = np.arange(1, 30)
    assert [int(collatz(n)) for n in numbers] == [steps(n) for n in numbers]
    assert plait.jit(plait.vmap(collatz))(numbers).tolist() == [steps(n) for n in numbers]


def test_cond_takes_one_branch():
    def f(x):
        return lax.cond(x > 0, lambda x: pnp.log(x), lambda x: x * x, x)

    assert float(plait.grad(f)(2.0)) == 0.5
    assert float(plait.grad(f)(-3.0)) == -6
    np.testing.assert_array_equal(
        plait.vmap(plait.grad(f))(np.array([2.0, -3.0, 0.0])), [0.5, -6, 0]
    )
    np.testing.assert_array_equal(
        plait.grad(lambda x: plait.vmap(f)(x).sum())(np.array([2.0, -3.0, 0.0])), [0.5, -6, 0]
    )
    hessian = plait.vmap(plait.grad(plait.grad(f)))(np.array([2.0, -3.0]))
    np.testing.assert_array_equal(hessian, [-0.25, 2])


def test_a_branch_that_would_not_end_is_not_run():
    def f(x):
        return lax.cond(
            x > 0, lambda x: lax.while_loop(lambda y: y < 10, lambda y: y + x, x), lambda x: x, x
        )

    np.testing.assert_allclose(plait.vmap(f)(np.array([3.0, -1.0, 0.0])), [12, -1, 0])
    np.testing.assert_allclose(
        plait.jit(plait.vmap(plait.grad(f)))(np.array([3.0, -1.0, 0.0])), [4, 1, 1]
    )


def test_switch_clamps():
    def f(i, x):
        return lax.switch(i, [lambda x: x, lambda x: 2 * x, lambda x: x**3], x)

    assert [float(f(i, 2.0)) for i in (-1, 0, 1, 2, 3, 2**40)] == [2, 2, 4, 8, 8, 8]
    np.testing.assert_array_equal(
        plait.vmap(f, in_axes=(0, None))(np.array([-1, 1, 7]), 2.0), [2, 4, 8]
    )
    np.testing.assert_array_equal(
        plait.vmap(plait.grad(f, 1))(np.array([0, 1, 2]), np.full(3, 2.0)), [1, 2, 12]
    )


def test_fori_loop():
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, y: y * x, 1.0 + 0 * x)

    assert float(power(3.0, 4)) == 81
    assert float(plait.jit(power)(3.0, 4)) == 81
    assert float(plait.jit(plait.grad(power))(3.0, 4)) == 108
    assert float(plait.grad(power)(3.0, plait.numpy.asarray(4))) == 108
    np.testing.assert_allclose(
        plait.vmap(plait.grad(power))(np.full(3, 3.0), np.array([0, 1, 3])), [0, 1, 27]
    )
    assert float(lax.fori_loop(2, 5, lambda i, s: s + i, 0)) == 9
    assert float(lax.fori_loop(5, 2, lambda i, s: s + i, 7)) == 7


@pytest.mark.parametrize("batch_size", [None, 1, 2, 5, 7])
def test_map(batch_size):
    xs = np.linspace(0, 1, 10).reshape(5, 2)
    result = lax.map(lambda x: {"s": x.sum(), "x": x * 2}, xs, batch_size=batch_size)
    np.testing.assert_allclose(result["s"], xs.sum(1))
    np.testing.assert_allclose(result["x"], xs * 2)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 33])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))

    def affine(f, g):
        return g[0] * f[0], g[0] * f[1] + g[1]

    scale, shift = lax.associative_scan(affine, (a, b), reverse=reverse)
    order = range(n - 1, -1, -1) if reverse else range(n)
    s, t = np.ones(3), np.zeros(3)
    for i in order:
        s, t = a[i] * s, a[i] * t + b[i]
        np.testing.assert_allclose(scale[i], s, rtol=1e-12)
        np.testing.assert_allclose(shift[i], t, rtol=1e-12, atol=1e-12)


def test_nested_loops_differentiate():
    def f(x):
        def outer(carry, a):
            inner = lax.while_loop(lambda s: s[0] < a, lambda s: (s[0] + 1, s[1] * x), (0, carry))[
                1
            ]
            return pnp.sin(inner), inner

        last, ys = lax.scan(outer, x, np.array([1, 3, 0, 2]))
        return last + ys.sum()

    def plain(x):
        carry, total = x, 0.0
        for a in (1, 3, 0, 2):
            for _ in range(a):
                carry = carry * x
            total += carry
            carry = np.sin(carry)
        return carry + total

    x = np.float64(0.8)
    np.testing.assert_allclose(f(x), plain(x))
    expected = numeric_gradient(plain, x)
    np.testing.assert_allclose(plait.grad(f)(x), expected, rtol=1e-7)
    np.testing.assert_allclose(plait.jit(plait.grad(f))(x), expected, rtol=1e-7)
    np.testing.assert_allclose(
        plait.vmap(plait.grad(f))(np.array([0.8, 0.5])),
        [expected, numeric_gradient(plain, np.float64(0.5))],
        rtol=1e-7,
    )
    np.testing.assert_allclose(
        plait.grad(plait.grad(f))(x),
        (numeric_gradient(plain, x + 1e-4) - numeric_gradient(plain, x - 1e-4)) / 2e-4,
        rtol=1e-4,
    )


def test_scan_over_a_ragged_axis_stops_at_its_end():
    def last_and_sum(x):
        carry, ys = lax.scan(lambda c, v: (pnp.tanh(c * 0.5 + v), c), 0.0, x)
        return carry + ys.sum()

    def plain(x):
        c, total = 0.0, 0.0
        for v in x:
            total += c
            c = np.tanh(c * 0.5 + v)
        return c + total

    masked = plait.mask(last_and_sum, "n")
    padded = np.full((3, 6), np.nan)
    lengths = np.array([6, 2, 0])
    data = np.random.default_rng(0).normal(size=(3, 6))
    for row, n in enumerate(lengths):
        padded[row, :n] = data[row, :n]
    f = plait.vmap(lambda x, n: masked(x, n=n))
    np.testing.assert_allclose(
        f(padded, lengths), [plain(data[i, :n]) for i, n in enumerate(lengths)], rtol=1e-6
    )
    gradients = plait.jit(plait.grad(lambda x: f(x, lengths).sum()))(padded)
    for row, n in enumerate(lengths):
        expected = np.zeros(6)
        expected[:n] = numeric_gradient(plain, data[row, :n])
        np.testing.assert_allclose(gradients[row], expected, rtol=1e-6, atol=1e-9)


def test_carries_keep_their_types():
    assert lax.scan(lambda c, x: (c + x, None), 0, XS)[0].dtype == np.float64
    assert lax.while_loop(lambda c: c < 3, lambda c: c + np.float32(1), 0).dtype == np.float32
    with pytest.raises(plait.DtypeError, match=r"the carry\['a'\] has type i32\[\] at the start"):
        lax.scan(lambda c, x: ({"a": c["a"] + x}, None), {"a": np.int32(0)}, XS)
    with pytest.raises(plait.ShapeError, match=r"the carry has type f64\[5\] at the start"):
        lax.while_loop(lambda c: True, lambda c: c[:2], XS)
    with pytest.raises(plait.TreeError, match="structure"):
        lax.scan(lambda c, x: ((c, c), None), 0.0, XS)
    with pytest.raises(plait.DtypeError, match="bool scalar"):
        lax.while_loop(lambda c: c, lambda c: c, 1.0)
    with pytest.raises(plait.ShapeError, match="the predicate is bool"):
        lax.cond(XS > 0, lambda: 1, lambda: 2)
    with pytest.raises(
        plait.ShapeError, match=r"the output\['y'\] is f64\[5\] where the predicate is false"
    ):
        lax.cond(True, lambda: {"y": pnp.asarray(1.0)}, lambda: {"y": pnp.asarray(XS)})


def test_max_steps():
    with pytest.raises(plait.ValueError, match="max_steps = 100"):
        lax.while_loop(lambda x: x > 0, lambda x: x + 1, 1, max_steps=100)
    assert int(lax.while_loop(lambda x: x < 5, lambda x: x + 1, 1, max_steps=4)) == 5


def test_programs_print_and_check():
    jaxpr = plait.make_jaxpr(plait.grad(newton))(np.float64(2))
    text = str(jaxpr)
    assert "stack[f64[]]" in text and "while[" in text and "scan[" in text


def test_checkpoint_of_a_scan_and_scan_of_a_checkpoint():
    def step(c, x):
        return pnp.sin(c * 1.3) + x, c * x

    def f(step):
        def g(c):
            last, ys = lax.scan(step, c, XS)
            return last + ys.sum()

        return g

    expected = plait.grad(f(step))(0.4)
    np.testing.assert_allclose(plait.grad(f(plait.checkpoint(step)))(0.4), expected, rtol=1e-6)
    np.testing.assert_allclose(plait.grad(plait.checkpoint(f(step)))(0.4), expected, rtol=1e-6)


def test_checkpoint_of_loops_and_branches():
    def f(x):
        def body(state):
            i, y = state
            return i + 1, lax.cond(y > 0.5, lambda y: pnp.sin(y * x), lambda y: y * y, y)

        return lax.while_loop(lambda state: state[0] < 3, body, (0, x))[1] ** 2

    for x in (0.4, 0.9):
        expected = numeric_gradient(lambda v: float(f(np.float64(v))), x)
        for g in (plait.checkpoint(f), plait.jit(plait.checkpoint(f))):
            np.testing.assert_allclose(plait.grad(g)(np.float64(x)), expected, rtol=1e-7)
            np.testing.assert_allclose(
                plait.vmap(plait.grad(g))(np.array([x, x])), [expected, expected], rtol=1e-7
            )


def test_branches_and_loops_without_results():
    assert lax.cond(True, lambda x: None, lambda x: None, 1.0) is None
    assert lax.switch(1, [lambda: (), lambda: ()]) == ()
    assert lax.scan(lambda c, x: (c, None), None, XS) == (None, None)
    assert plait.jit(lambda x: lax.cond(x > 0, lambda: {}, lambda: {}))(1.0) == {}


def test_arguments_are_jaxs():
    for pred, wanted in ((-1, 2), (0, 1), (2.5, 2), (np.float32(0), 1), (np.bool_(True), 2)):
        assert float(lax.cond(pred, lambda: 2.0, lambda: 1.0)) == wanted
        assert float(plait.jit(lambda p: lax.cond(p, lambda: 2.0, lambda: 1.0))(pred)) == wanted
    assert float(lax.cond(True, lambda x: x + 1, lambda x: x, operand=2.0)) == 3
    assert float(lax.cond(False, lambda x: 1.0, lambda x: 2.0, operand=None)) == 2
    assert float(lax.switch(1, [lambda x: x, lambda x: -x], operand=2.0)) == -2
    with pytest.raises(plait.ValueError, match="operand"):
        lax.cond(True, lambda x: x, lambda x: x, 1.0, operand=2.0)
    np.testing.assert_array_equal(lax.scan(lambda c, x: [c + x, c], 0.0, XS)[0], XS.sum())
    with pytest.raises(
        plait.TreeError, match=r"the result of `<lambda:\d+>` has the structure \(\*,\)"
    ):
        lax.while_loop(lambda c: (c < 1,), lambda c: c + 1, 0)
    with pytest.raises(
        plait.DtypeError,
        match=r"f32\[\] where the predicate is false, and i32\[\] where it is true",
    ):
        lax.cond(True, lambda: np.int32(1), lambda: np.float32(1))
