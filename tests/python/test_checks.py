"""Checks of values and of functions, and indices out of bounds.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn

rng = np.random.default_rng(0)


# --- check ---


def root(x):
    plait.check(x >= 0, "x is {}, which has no root", x)
    return pnp.sqrt(x)


@pytest.mark.parametrize(
    "run", [lambda f: f, plait.jit, plait.grad, lambda f: plait.jit(plait.grad(f))]
)
def test_check_under_transforms(run):
    assert np.isfinite(run(root)(pnp.asarray(4.0)))
    with pytest.raises(plait.ValueError, match=r"check: x is -1.0, which has no root"):
        run(root)(pnp.asarray(-1.0))


def test_check_names_the_example_and_the_element():
    with pytest.raises(plait.ValueError, match=r"x is -3.0, .*; in example 2"):
        plait.vmap(root)(pnp.asarray([1.0, 2.0, -3.0]))
    with pytest.raises(plait.ValueError, match=r"x is -3.0, .*; in example \(0, 1\)"):
        plait.jit(plait.vmap(plait.vmap(root)))(pnp.asarray([[1.0, -3.0]]))
    with pytest.raises(plait.ValueError, match=r"x is -5.0, .*; at element 1"):
        root(pnp.asarray([1.0, -5.0]))

    def row(x, limit):
        plait.check(x < limit, "too large", x, limit)

    with pytest.raises(plait.ValueError, match=r"too large: 7.0, 3.0; at element 1; in example 1"):
        plait.vmap(row, in_axes=(0, None))(pnp.asarray([[1.0, 2.0], [0.0, 7.0]]), 3.0)


def test_check_does_not_look_at_padding():
    def total(x):
        plait.check(x > 0, "x is {}", x)
        return pnp.sum(x)

    m = plait.mask(total, "n")
    padded = pnp.asarray([1.0, 2.0, np.nan, -1.0])
    assert m(padded, n=2) == 3
    with pytest.raises(plait.ValueError, match="x is -1.0; at element 3"):
        m(pnp.asarray([1.0, 2.0, 3.0, -1.0]), n=4)
    assert plait.vmap(m)(pnp.stack([padded, padded + 5]), n=pnp.asarray([1, 2])).tolist() == [1, 13]


def test_checks_keep_their_order_and_are_not_dropped():
    @plait.jit
    def f(x):
        plait.check(x > 1, "first")
        plait.check(x > 2, "second")
        return x

    with pytest.raises(plait.ValueError, match="first"):
        f(0.0)
    with pytest.raises(plait.ValueError, match="second"):
        f(1.5)
    assert f(3.0) == 3


def test_check_wants_bools_and_text():
    with pytest.raises(plait.DtypeError):
        plait.check(pnp.asarray(1.0), "message")
    with pytest.raises(plait.DtypeError):
        plait.check(pnp.asarray(True), 3)
    plait.check(True, "message")
    with pytest.raises(plait.ValueError, match="message"):
        plait.check(False, "message")


# --- Indices ---


@pytest.mark.parametrize("jit", [False, True])
def test_indices_out_of_bounds_raise_by_default(jit):
    x = pnp.arange(6.0).reshape(2, 3)
    numbers = (((1,), (0,), (0,)), (1, 3))
    for f in (
        lambda x, i: x[:, i],
        lambda x, i: x[::2, i],
        lambda x, i: x.at[0, i].get(),
        lambda x, i: x.at[0, i].set(9.0),
        lambda x, i: x.at[::2, i].add(9.0),
        lambda x, i: pnp.take(x, i, 1),
        lambda x, i: pnp.take_along_axis(x, i[None], 1),
        lambda x, i: lax.gather(x, i[:, None], *numbers),
    ):
        run = plait.jit(f) if jit else f
        for wrong in ([0, 3], [-4, 0]):
            with pytest.raises(plait.IndexError, match="out of bounds"):
                run(x, pnp.asarray(wrong))
        run(x, pnp.asarray([0, 1]))
    with pytest.raises(plait.IndexError, match="out of bounds"):
        plait.vmap(lambda i: x[0, i])(pnp.asarray([0, 7]))
    with pytest.raises(plait.IndexError, match="out of bounds"):
        plait.grad(lambda x: pnp.sum(x[0, pnp.asarray([7])]))(x)


def test_modes_choose_what_happens_outside():
    x, i = pnp.arange(3.0), pnp.asarray([0, 7])
    for get in (
        lambda **mode: x.at[i].get(**mode),
        lambda **mode: pnp.take(x, i, **mode),
        lambda **mode: pnp.take_along_axis(x, i, **mode),
    ):
        assert get(mode="clip").tolist() == [0, 2]
        assert np.array_equal(get(mode="fill"), [0, np.nan], equal_nan=True)
        assert get(fill_value=-1.0).tolist() == [0, -1]
        assert get(mode="fill", fill_value=-1.0).tolist() == [0, -1]
        with pytest.raises(plait.IndexError):
            get(mode="raise")
        with pytest.raises(plait.ValueError, match="mode is 'bogus'"):
            get(mode="bogus")
    inside = pnp.asarray([0, 2])
    assert x.at[inside].get(mode="promise").tolist() == [0, 2]
    assert pnp.take(x, inside, mode="promise").tolist() == [0, 2]
    assert x.at[i].set(9.0, mode="clip").tolist() == [9, 1, 9]
    assert x.at[i].set(9.0, mode="fill").tolist() == [9, 1, 2]
    gradient = plait.grad(lambda x: pnp.nansum(x.at[i].get(mode="fill")))(x)
    assert gradient.tolist() == [1, 0, 0]


# --- first_nan ---


def f32(values):
    return pnp.asarray(values, dtype=np.float32)


def loss(w, x):
    hidden = pnp.tanh(x @ w)
    logs = pnp.log(hidden)  # of negative numbers
    return pnp.sum(logs)


def test_first_nan_names_the_equation_and_the_line():
    w, x = f32([[1.0], [-2.0]]), f32([[1.0, 0.0], [3.0, 1.0], [1.0, 1.0]])
    found = plait.first_nan(loss, w, x)
    assert found.equation == "log f32[3,1] -> f32[3,1]"
    assert "# of negative numbers" in found.source
    assert found.element == (2, 0)
    assert found.transforms == ["loss"]
    assert "NaN first at element (2, 0) of the result of `log" in repr(found)
    assert plait.first_nan(loss, w, abs(x) * f32([1.0, 0.0])) is None


def test_first_nan_goes_through_transforms_and_calls():
    def one(w, x):
        return plait.jit(lambda z: nn.relu(pnp.sqrt(z)))(x @ w)

    f = plait.jit(plait.vmap(one, in_axes=(None, 0)))
    w, x = f32([1.0, 1.0]), f32([[1.0, 1.0], [2.0, 3.0], [-1.0, 0.0]])
    found = plait.first_nan(f, w, x)
    assert found.equation == "sqrt f32[3] -> f32[3]"
    assert found.element == (2,)
    assert found.transforms[0] == "jit(vmap(one))"
    gradient = plait.grad(lambda x: pnp.sum(pnp.where(x > 0, pnp.sqrt(x), 0.0)))
    found = plait.first_nan(gradient, pnp.asarray([1.0, 0.0, -1.0]))
    assert found.element == (2,) and "grad(" in found.transforms[0]


def test_first_nan_names_the_step_of_a_loop():
    def body(c, x):
        c = c - x
        return c, pnp.log(c)  # of 5 - 6, 5 steps on

    def f(xs):
        return lax.scan(body, 5.0, xs)

    found = plait.first_nan(f, f32(np.ones(8)))
    assert found.equation == "log f32[] -> f32[]" and "# of 5 - 6" in found.source
    assert found.transforms == ["f", "scan, step 5"]
    found = plait.first_nan(plait.jit(plait.vmap(f)), f32([np.zeros(8), np.ones(8)]))
    assert found.element == (1,) and found.transforms[-1] == "scan, step 5"

    def halving(x):
        def step(c):
            return c[0] + 1, pnp.sqrt(c[1]) - 1.0  # 16, 3, 0.7, -0.1

        return lax.while_loop(lambda c: c[0] < 6, step, (0, x))[1]

    for run in (halving, plait.jit(halving), plait.grad(halving)):
        found = plait.first_nan(run, 16.0)
        assert "sqrt" in found.equation and "# 16, 3" in found.source
        assert found.transforms[-1] == "while, step 3"
    assert plait.first_nan(halving, 1e30) is None


def test_first_nan_of_a_derivative_is_looked_for_in_its_own_loop():
    def f(x):  # its value is x; its derivative at 1 is 0 * inf in every step
        return lax.scan(lambda c, _: (pnp.sqrt(c - 1) ** 2 + 1, None), x, None, length=3)[0]

    def g(x):
        return lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, pnp.sqrt(c[1] - 1) ** 2 + 1), (0, x)
        )[1]

    for function in (f, g):
        assert plait.first_nan(function, 1.0) is None
        found = plait.first_nan(plait.grad(function), 1.0)
        assert found.transforms == [
            f"grad({function.__name__})",
            "scan, step 2",
        ]  # the last one comes first
        assert "sqrt(c" in found.source
        found = plait.first_nan(plait.vmap(plait.grad(function)), pnp.asarray([2.0, 3.0, 1.0]))
        assert found.element == (2,) and found.transforms[-1] == "scan, step 2"


def test_first_nan_names_the_branch_and_the_example():
    def f(x):
        return lax.cond(x > 0, lambda x: pnp.sqrt(x - 2), lambda x: 2 * x, x)

    found = plait.first_nan(f, 1.0)
    assert "sqrt" in found.equation and found.transforms[-1] == "cond, branch 1"
    assert plait.first_nan(f, -1.0) is None
    xs = pnp.asarray([-1.0, 3.0, 1.0])  # sqrt(-1 - 2) is of a branch not taken
    for run in (f, plait.grad(f)):
        found = plait.first_nan(plait.vmap(run), xs)
        assert found.transforms[1:] == ["vmap, example 2", "cond, branch 1"]
        assert plait.first_nan(plait.vmap(run), xs[:2]) is None

    def loop(x):
        def step(c):
            return c[0] + 1, lax.cond(
                c[1] > 3, lambda y: y - 1, lambda y: y * pnp.inf - pnp.inf, c[1]
            )

        return lax.while_loop(lambda c: c[0] < 4, step, (0, x))[1]

    found = plait.first_nan(plait.vmap(plait.vmap(loop)), pnp.asarray([[100.0, 50.0], [60.0, 5.0]]))
    assert found.equation.startswith("sub")
    assert found.transforms[1:] == ["while, step 2", "vmap, example (1, 1)", "cond, branch 0"]


def test_first_nan_is_not_of_padding():
    m = plait.mask(lambda x: pnp.sum(pnp.log(x)), "n")

    def f(x, n):
        return m(x, n=n)

    xs, lengths = pnp.asarray([[1.0, 2.0, -1.0], [1.0, -2.0, 4.0]]), pnp.asarray([2, 2])
    found = plait.first_nan(plait.vmap(f), xs, lengths)
    assert found.equation.startswith("log") and found.element == (1,)
    assert found.transforms[1:] == ["mask, n = 2, example 1"]
    assert plait.first_nan(plait.vmap(f), xs, pnp.asarray([2, 1])) is None


def test_first_nan_of_arguments():
    found = plait.first_nan(lambda x, y: x + y["a"], 1.0, {"a": pnp.asarray([1.0, np.nan])})
    assert found.element == (1,) and "argument 1['a']" in repr(found)


# --- grad_check ---


def test_grad_check_passes_true_derivatives():
    args = (
        {"w": rng.normal(size=(3, 2)), "b": rng.normal(size=2).astype(np.float32)},
        np.arange(3),
    )

    def f(p, i):
        return pnp.sum(pnp.tanh(p["w"][i] + p["b"]) ** 2, axis=0), i

    plait.grad_check(f, args)
    plait.grad_check(f, args, modes="fwd")
    plait.grad_check(plait.jit(f), args, order=2)
    plait.grad_check(lambda x: pnp.exp(x) * pnp.sin(x), (0.3,), order=3, rtol=1e-4, atol=1e-4)


def test_grad_check_finds_wrong_rules():
    @plait.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (ct * pnp.where(x > 1, 2 * x**2, 3 * x**2),))
    args = (1.0, {"w": np.array([0.5, 0.7, 2.0])})
    with pytest.raises(
        plait.ValueError, match=r"by reverse mode .* by argument 1\['w'\] at element 2"
    ):
        plait.grad_check(lambda a, p: a * cube(p["w"]), args, modes="rev")

    @plait.custom_jvp
    def sine(x):
        return pnp.sin(x)

    sine.defjvp(lambda x, dx: (pnp.sin(x[0]), pnp.cos(x[0]) * dx[0] * 1.001))
    with pytest.raises(plait.ValueError, match="by forward mode the derivative of `sine`"):
        plait.grad_check(sine, (np.float32(0.5),))
    # True by the first derivative, wrong by the second.
    plait.grad_check(wrong_second, (1.5,))
    with pytest.raises(plait.ValueError, match="derivative 1 of"):
        plait.grad_check(wrong_second, (1.5,), order=2)


@plait.custom_jvp
def wrong_second(x):
    return pnp.sin(x)


wrong_second.defjvp(lambda x, dx: (pnp.sin(x[0]), plait.stop_gradient(pnp.cos(x[0])) * dx[0]))


def test_grad_check_refuses():
    for wrong in (
        lambda: plait.grad_check(pnp.sin, (1.0,), modes="both"),
        lambda: plait.grad_check(pnp.sin, (1.0,), order=0),
        lambda: plait.grad_check(lambda x: x, (3,)),
        lambda: plait.grad_check(lambda x: 3, (3.0,)),
        lambda: plait.grad_check("f", (3.0,)),
        lambda: plait.grad_check(pnp.abs, (3j,)),
    ):
        with pytest.raises(plait.UserError):
            wrong()
