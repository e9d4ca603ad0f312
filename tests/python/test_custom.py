"""custom_jvp and custom_vjp: rules that read values, call themselves, and keep under every transform.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def triple_vjp(derivative=lambda x: 3.0):
    """x**2 whose rule says another derivative, so that it is seen to be used."""

    @plait.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, ct: (ct * derivative(x),))
    return f


def triple_jvp(derivative=lambda x: 3.0):
    @plait.custom_jvp
    def f(x):
        return x * x

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return x * x, t * derivative(x)

    return f


BOTH = [triple_vjp, triple_jvp]


@pytest.mark.parametrize("make", BOTH)
def test_the_rule_is_used_everywhere(make):
    f = make()
    x = np.float32([1, 2, 4])
    for g in (
        plait.grad(lambda x: f(x).sum()),
        plait.vmap(plait.grad(f)),
        plait.grad(lambda x: plait.vmap(f)(x).sum()),
        plait.jit(plait.grad(lambda x: f(x).sum())),
        plait.grad(plait.jit(lambda x: f(x).sum())),
        plait.grad(lambda x: plait.jit(plait.vmap(f))(x).sum()),
        plait.grad(plait.checkpoint(lambda x: f(x).sum())),
        lambda x: plait.vjp(f, x)[1](np.ones(3, np.float32))[0],
        lambda x: plait.linearize(f, x)[1](np.ones(3, np.float32)),
        lambda x: plait.jvp(f, (x,), (np.ones(3, np.float32),))[1],
        lambda x: np.diag(plait.jacfwd(f)(x)),
        lambda x: np.diag(plait.jacrev(f)(x)),
        lambda x: np.diag(plait.jit(plait.jacrev(f))(x)),
    ):
        np.testing.assert_allclose(g(x), [3, 3, 3])
    np.testing.assert_allclose(f(x), x * x)
    np.testing.assert_allclose(plait.jit(f)(x), x * x)


@pytest.mark.parametrize("make", BOTH)
def test_derivatives_of_the_rule(make):
    f = make(lambda x: x**3)
    assert float(plait.grad(f)(2.0)) == 8
    assert float(plait.grad(plait.grad(f))(2.0)) == 12
    assert float(plait.grad(plait.grad(plait.grad(f)))(2.0)) == 12
    assert float(plait.jit(plait.grad(plait.grad(f)))(2.0)) == 12
    assert float(plait.grad(plait.jit(plait.grad(f)))(2.0)) == 12
    assert float(plait.grad(plait.grad(plait.jit(f)))(2.0)) == 12


def test_rules_and_functions_read_values():
    @plait.custom_vjp
    def f(x):
        return -x if x < 0 else x

    def fwd(x):
        return (f(x) if x != 0 else x * 0), (x, x > 5)

    def bwd(residuals, ct):
        x, large = residuals
        if large:
            return (ct * 100,)
        return (ct * 2,) if x < 0 else (ct * 3,)

    f.defvjp(fwd, bwd)
    assert [float(plait.grad(f)(x)) for x in (-1.0, 1.0, 9.0)] == [2, 3, 100]
    assert [float(plait.vjp(f, x)[1](1.0)[0]) for x in (-1.0, 1.0)] == [2, 3]
    value, gradient = plait.value_and_grad(f)(-2.0)
    assert float(value) == 2 and float(gradient) == 2

    @plait.custom_jvp
    def g(x, y):
        return x * y if y > 0 else x

    @g.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        return g(x, y), (tx * 2 if y > 0 else tx * 7) + ty * 0

    assert float(plait.grad(g)(2.0, 1.0)) == 2 and float(plait.grad(g)(2.0, -1.0)) == 7
    assert float(plait.jvp(g, (2.0, -1.0), (1.0, 0.0))[1]) == 7
    assert float(plait.grad(plait.grad(lambda x: g(x, 1.0) * g(x, -1.0)))(3.0)) == 2 * 2 * 7
    # An unmapped argument is known under vmap, as in a plain function.
    x = np.float32([1, 2])
    np.testing.assert_allclose(plait.vmap(lambda x: g(x, 1.0))(x), x)


def test_values_are_unknown_under_jit_and_say_so():
    @plait.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, x), lambda x, ct: (ct if x > 0 else -ct,))
    assert float(plait.grad(f)(-1.0)) == -1
    with pytest.raises(plait.TracerError, match="is needed, but it is not known"):
        plait.jit(plait.grad(f))(1.0)


def test_recursive_rules():
    """The rule of cos is made of sin, whose rule is made of cos: derivatives of every order."""

    @plait.custom_jvp
    def sin(x):
        return pnp.sin(x)

    @plait.custom_jvp
    def cos(x):
        return pnp.cos(x)

    sin.defjvps(lambda t, y, x: t * cos(x))
    cos.defjvps(lambda t, y, x: -t * sin(x))
    f = sin
    for order in range(1, 8):
        f = plait.grad(f)
        expected = [np.sin, np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)][order % 4](0.3)
        assert float(f(0.3)) == pytest.approx(expected, rel=1e-6)
        assert float(plait.jit(f)(0.3)) == pytest.approx(expected, rel=1e-6)

    @plait.custom_vjp
    def power(x, n):
        return x**n if n else x * 0 + 1

    power = plait.custom_vjp(power.fun, nondiff_argnums=1)
    power.defvjp(
        lambda x, n: (power(x, n), x), lambda n, x, ct: (ct * n * power(x, n - 1) if n else ct * 0,)
    )
    f, expected = power, 1.0
    for order in range(6):
        f = plait.grad(f)
        expected *= 6 - order
        assert float(f(1.0, 6)) == pytest.approx(expected)


def product(x):
    return pnp.sin(x) * x


def slope(x):
    return pnp.cos(x) * x + pnp.sin(x)


@plait.custom_vjp
def by_vjp(x):
    return product(x)


@plait.custom_jvp
def by_jvp(x):
    return product(x)


# Rules that call their own function, whose derivatives are those of the plain function.
by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda x, ct: (ct * slope(x),))
by_jvp.defjvp(lambda primals, tangents: (by_jvp(*primals), tangents[0] * slope(primals[0])))

COMPOSITIONS = {
    "hessian": plait.hessian,
    "jacrev(jacrev)": lambda f: plait.jacrev(plait.jacrev(f)),
    "jacfwd(jacfwd)": lambda f: plait.jacfwd(plait.jacfwd(f)),
    "jacrev(jacfwd)": lambda f: plait.jacrev(plait.jacfwd(f)),
    "hvp": lambda f: lambda x: plait.hvp(f, (x,), (2 * x,)),
    "third": lambda f: plait.hessian(lambda x: (plait.grad(f)(x) ** 2).sum()),
    "vmap(grad)": lambda f: lambda x: plait.vmap(plait.grad(f))(np.stack([x, 2 * x])),
    "grad(vmap)": lambda f: plait.grad(lambda x: plait.vmap(f)(pnp.stack([x, 2 * x])).sum()),
    "vmap(vmap(grad))": lambda f: lambda x: plait.vmap(plait.vmap(plait.grad(f)))(
        np.stack([x, 2 * x])[None]
    ),
    "jit(hessian)": lambda f: plait.jit(plait.hessian(f)),
    "hessian(jit)": lambda f: plait.hessian(plait.jit(f)),
    "hessian(checkpoint)": lambda f: plait.hessian(plait.checkpoint(f)),
    "linearize(grad)": lambda f: lambda x: plait.linearize(plait.grad(f), x)[1](x),
    "grad(mask)": lambda f: lambda x: plait.grad(plait.mask(f, "n"))(x, n=3),
}


@pytest.mark.parametrize("composition", COMPOSITIONS)
@pytest.mark.parametrize("function", [by_vjp, by_jvp], ids=repr)
def test_compositions_agree_with_the_plain_function(function, composition):
    def total(f):
        return lambda x: f(x).sum() + (f(x * 2) * x).sum()

    x = np.float64([0.3, -1.2, 2.0])
    apply = COMPOSITIONS[composition]
    np.testing.assert_allclose(apply(total(function))(x), apply(total(product))(x), rtol=1e-10)


def test_nondiff_argnums_hold_anything():
    @functools.partial(plait.custom_vjp, nondiff_argnums=(0, 2))
    def apply(function, x, name):
        return function(x)

    def fwd(function, x, name):
        assert name == "relu" and callable(function)
        return function(x), x

    def bwd(function, name, x, ct):
        return (ct * 10,) if name == "relu" else (ct,)

    apply.defvjp(fwd, bwd)
    assert float(plait.grad(lambda x: apply(pnp.sin, x, "relu"))(1.0)) == 10
    assert float(plait.grad(lambda x: apply(name="relu", x=x, function=pnp.sin))(1.0)) == 10
    assert float(apply(pnp.sin, 0.0, "other")) == 0

    @functools.partial(plait.custom_jvp, nondiff_argnums=(1,))
    def scaled(x, mode="up"):
        return x

    @scaled.defjvp
    def rule(mode, primals, tangents):
        return primals[0], tangents[0] * (2 if mode == "up" else 3)

    assert float(plait.grad(scaled)(1.0)) == 2
    assert float(plait.grad(lambda x: scaled(x, mode="down"))(1.0)) == 3


def test_trees_integers_and_none():
    @plait.custom_vjp
    def f(p, i):
        return {"y": p["a"] * p["b"], "n": i + 1}

    def fwd(p, i):
        return f(p, i), (p, i)

    def bwd(residuals, ct):
        p, i = residuals
        return {"a": ct["y"] * p["b"] * 5, "b": ct["y"] * 0}, None

    f.defvjp(fwd, bwd)
    gradient = plait.grad(lambda p: f(p, 3)["y"])({"a": 2.0, "b": 4.0})
    assert float(gradient["a"]) == 20 and float(gradient["b"]) == 0
    gradient = plait.jit(plait.grad(lambda p: f(p, 3)["y"]))({"a": 2.0, "b": 4.0})
    assert float(gradient["a"]) == 20

    @plait.custom_vjp
    def unused(x, y):
        return x

    unused.defvjp(lambda x, y: (x, None), lambda _, ct: (ct, None))
    assert float(plait.grad(unused, argnums=1)(1.0, 2.0)) == 0


def test_straight_through_and_gradient_clipping():
    @plait.custom_vjp
    def clip_gradient(x, limit):
        return x

    clip_gradient.defvjp(
        lambda x, limit: (x, limit), lambda limit, ct: (pnp.clip(ct, -limit, limit), None)
    )
    x = np.float32([-3, 0.1, 3])
    g = plait.grad(lambda x: (clip_gradient(x, 1.0) ** 2).sum())(x)
    np.testing.assert_allclose(g, [-1, 0.2, 1], rtol=1e-6)

    @plait.custom_jvp
    def round_through(x):
        return pnp.round(x)

    round_through.defjvps(lambda t, y, x: t)
    np.testing.assert_allclose(plait.grad(lambda x: round_through(x * 2).sum())(x), [2, 2, 2])


def test_captured_arrays():
    scale = pnp.asarray(np.float32(3))

    @plait.custom_vjp
    def f(x):
        return x * scale

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * scale * 2,))
    assert float(plait.grad(f)(1.0)) == 6 and float(plait.jit(plait.grad(f))(1.0)) == 6
    assert float(plait.grad(plait.jit(f))(1.0)) == 6
    with pytest.raises(plait.TracerError, match="captures an array"):
        plait.linearize(f, np.float32(1))[1](np.float32(1))

    def outer(w, x):
        @plait.custom_vjp
        def g(x):
            return x * w

        g.defvjp(lambda x: (g(x), w), lambda w, ct: (ct * w,))
        return g(x)

    # Values of an outer vmap may be captured; what is differentiated must be an argument.
    for transform in (plait.grad, plait.jit, lambda f: plait.jit(plait.grad(f))):
        for x in (2.0, None):
            function = transform(lambda w: outer(w, w if x is None else x))
            if transform is plait.jit:
                assert float(function(3.0)) == 3 * (x or 3)
                continue
            with pytest.raises(plait.TracerError, match="`g` has a custom derivative and captures"):
                function(3.0)
    np.testing.assert_allclose(
        plait.vmap(lambda w: plait.grad(lambda x: outer(w, x))(1.0))(np.float32([2, 3])), [2, 3]
    )


def test_wrong_rules():
    def check(message, fwd, bwd, error=plait.TreeError):
        @plait.custom_vjp
        def f(x, y):
            return x * y

        f.defvjp(fwd, bwd)
        for transform in (plait.grad(f), plait.jit(plait.grad(f)), plait.grad(plait.jit(f))):
            with pytest.raises(error, match=message):
                transform(1.0, 2.0)

    check("the fwd rule of `f` returned", lambda x, y: x * y, lambda r, ct: (ct, ct))
    check("returned 1 cotangents for 2", lambda x, y: (x * y, ()), lambda r, ct: (ct,))
    check(
        "the bwd rule of `f` returned",
        lambda x, y: (x * y, ()),
        lambda r, ct: (ct * np.ones(3), ct),
        plait.ShapeError,
    )
    with pytest.raises(plait.ValueError, match="has no rule yet"):
        plait.grad(plait.custom_jvp(lambda x: x))(1.0)
    with pytest.raises(
        plait.ValueError, match=r"defjvps gave `<lambda:\d+>` 1 rules, and it was called with 2"
    ):
        short = plait.custom_jvp(lambda x, y: x)
        short.defjvps(lambda t, y, *primals: t)
        plait.grad(short)(1.0, 2.0)
    with pytest.raises(plait.ValueError, match="nondiff_argnums=\\(3,\\)"):
        wrong = plait.custom_jvp(lambda x: x, nondiff_argnums=3)
        wrong.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        wrong(1.0)


def test_residuals_that_are_no_arrays_reach_bwd():
    @plait.custom_vjp
    def f(x, y):
        return x * y

    def bwd(residuals, ct):
        name, x, (function, y) = residuals
        assert name == "text" and function is np.sin
        return ct * y, ct * x

    f.defvjp(lambda x, y: (f(x, y), ("text", x, [np.sin, y])), bwd)
    for gradient in (plait.grad(f), plait.jit(plait.grad(f)), plait.grad(plait.jit(f))):
        assert float(gradient(2.0, 5.0)) == 5
    np.testing.assert_allclose(plait.vmap(plait.grad(f))(pnp.ones(3), pnp.arange(3.0)), [0, 1, 2])


# Symbolic zeros: f(x, y) = x * y, whose rules say what varies.


def saying_jvp(seen):
    @plait.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        seen.append([not isinstance(t, plait.SymbolicZero) for t in tangents])
        assert all(t.shape == p.shape and t.dtype == p.dtype for p, t in zip(primals, tangents))
        parts = [t * p for t, p in ((tx, y), (ty, x)) if not isinstance(t, plait.SymbolicZero)]
        return f(x, y), sum(parts) if parts else plait.SymbolicZero(x)

    f.defjvp(rule, symbolic_zeros=True)
    return f


def saying_vjp(seen):
    @plait.custom_vjp
    def f(x, y):
        return x * y

    def fwd(x, y):
        seen.append([x.perturbed, y.perturbed])
        return f(x.value, y.value), (x.perturbed and y.value, y.perturbed and x.value)

    def bwd(residuals, ct):
        assert not all(r is False for r in residuals)
        return tuple(plait.SymbolicZero(ct) if r is False else ct * r for r in residuals)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return f


WHERE_VARIED = {
    "eager": lambda f: f, "jit inside": plait.jit, "jit of jit": lambda f: plait.jit(plait.jit(f)), "vmap of jit": lambda f: lambda x, y: plait.vmap(plait.jit(f))(x, y),
    "jit of vmap": lambda f: plait.jit(plait.vmap(f)), "vmap of jit of vmap": lambda f: lambda x, y: plait.vmap(plait.jit(plait.vmap(f)))(x[None], y[None])[0],
    "scan": lambda f: lambda x, y: plait.lax.scan(lambda c, a: (c, f(*a)), 0.0, (x, y))[1], "checkpoint": plait.checkpoint, "half mapped": lambda f: lambda x, y: plait.vmap(plait.jit(f), (0, None))(x, y[0]),
}  # fmt: skip


@pytest.mark.parametrize("make", [saying_jvp, saying_vjp])
@pytest.mark.parametrize("where", WHERE_VARIED)
def test_rules_know_what_varies(make, where):
    seen = []
    f = WHERE_VARIED[where](make(seen))
    x, y = pnp.asarray([2.0, 3.0]), pnp.asarray([5.0, 5.0])
    np.testing.assert_allclose(f(x, y), [10, 15])
    assert seen == []  # nobody differentiates
    total = (
        plait.jit(lambda x, y: pnp.sum(f(x, y)))
        if where == "jit inside"
        else lambda x, y: pnp.sum(f(x, y))
    )
    np.testing.assert_allclose(plait.grad(total)(x, y), [5, 5])
    assert seen and all(flags == [True, False] for flags in seen)
    seen.clear()
    gradient = plait.grad(total, 1)(x, y)
    np.testing.assert_allclose(gradient, [5, 0] if where == "half mapped" else [2, 3])
    assert seen and all(flags == [False, True] for flags in seen)
    seen.clear()
    plait.grad(total, (0, 1))(x, y)
    assert seen and all(flags == [True, True] for flags in seen)
    assert float(plait.jit(plait.grad(total))(x, y)[0]) == 5


def test_rules_may_apply_functions_that_are_wrapped_anew_for_each_call():
    def cube(x):
        f = plait.custom_vjp(lambda x: x**3)
        f.defvjp(lambda x: (cube(x), x), lambda x, ct: (ct * 3 * x**2,))
        return f(x)

    def square(x):
        f = plait.custom_jvp(lambda x: x**2)
        f.defjvp(lambda primals, tangents: (square(*primals), 2 * primals[0] * tangents[0]))
        return f(x)

    for f, values in ((cube, [8, 12, 12, 6]), (square, [4, 4, 2, 0])):
        g = plait.jit(f)
        for value in values:
            np.testing.assert_allclose(g(2.0), value)
            g = plait.grad(g)


@pytest.mark.parametrize(
    "transform", [plait.jit, plait.vmap, lambda f: lambda x, y: plait.vmap(plait.jit(f))(x, y)]
)
def test_a_rule_that_refuses_some_derivatives(transform):
    @plait.custom_jvp
    def f(x, y):
        return x * y

    def rule(primals, tangents):
        if not isinstance(tangents[1], plait.SymbolicZero):
            raise RuntimeError("y is not to be differentiated")
        return f(*primals), tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    g = transform(f)
    x, y = pnp.asarray([2.0, 3.0]), pnp.asarray([5.0, 7.0])
    np.testing.assert_allclose(plait.grad(lambda x: pnp.sum(g(x, y)))(x), [5, 7])
    np.testing.assert_allclose(plait.jit(plait.grad(lambda x: pnp.sum(g(x, y))))(x), [5, 7])
    with pytest.raises(RuntimeError, match="y is not to be differentiated"):
        plait.grad(lambda y: pnp.sum(g(x, y)))(y)


def test_pending_rules_capture_what_is_known_and_are_saved(tmp_path):
    scale = pnp.asarray([3.0, 4.0])

    @plait.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (f(x.value), ()), lambda _, ct: (ct * scale,), symbolic_zeros=True)
    x = pnp.ones(2)
    for g in (f, plait.jit(f), lambda x: plait.vmap(plait.jit(f))(x[None]), plait.checkpoint(f)):
        for gradient in (
            plait.grad(lambda x: pnp.sum(g(x))),
            plait.jit(plait.grad(lambda x: pnp.sum(g(x)))),
        ):
            np.testing.assert_allclose(gradient(x), [3, 4])

    @plait.custom_vjp
    def h(x):
        return x * 2

    numbers = [
        pnp.asarray(value) for value in (True, 2.5, np.int64(3), 2j, np.ones((1, 1), np.float16))
    ]
    h.defvjp(
        lambda x: (h(x.value), ()),
        lambda _, ct: (ct * sum(pnp.abs(pnp.sum(number)) for number in numbers),),
        symbolic_zeros=True,
    )
    assert float(plait.grad(plait.jit(h))(1.0)) == 1 + 2.5 + 3 + 2 + 1
    numbers[:] = [pnp.ones(9000)]
    with pytest.raises(plait.ValueError, match="uses an array of type f32.9000. that it was not"):
        plait.grad(plait.jit(h))(2.0)

    plait.save(tmp_path / "f.plait", plait.jit(f), x)
    loaded = plait.load(tmp_path / "f.plait")
    np.testing.assert_allclose(loaded(x), [2, 2])
    np.testing.assert_allclose(plait.grad(lambda x: pnp.sum(loaded(x)))(x), [3, 4])
    plait.save(tmp_path / "h.plait", plait.vmap(h), x)
    loaded = plait.load(tmp_path / "h.plait")
    np.testing.assert_allclose(loaded(x), [2, 2])
    with pytest.raises(plait.TracerError, match="rules of `h` depend on which inputs vary"):
        plait.grad(lambda x: pnp.sum(loaded(x)))(x)

    def outer(w, x):
        @plait.custom_vjp
        def g(x):
            return x * 2

        g.defvjp(lambda x: (g(x.value), ()), lambda _, ct: (ct * w,), symbolic_zeros=True)
        return pnp.sum(plait.jit(g)(x))

    with pytest.raises(plait.TracerError, match="was used after its trace had ended"):
        plait.grad(lambda x: plait.jit(outer)(x, x))(x)
