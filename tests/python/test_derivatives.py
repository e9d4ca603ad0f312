"""Derivatives under JAX's names: auxiliary data, argument numbers, keywords, against finite differences.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
from plait import _plait
import plait.numpy as pnp

pytestmark = pytest.mark.isa

X = np.float64([0.3, -0.7, 1.1])


def finite_difference(f, x, step=1e-6):
    """The Jacobian of f at x by central differences, in float64."""
    columns = []
    for i in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[i] += step
        behind[i] -= step
        columns.append((np.asarray(f(ahead)) - np.asarray(f(behind))) / (2 * step))
    return np.stack(columns, -1).reshape(np.shape(f(x)) + x.shape)


def f(x):
    return pnp.stack([pnp.sin(x).sum(), (x * x * x).prod(), x[0] * x[2]])


def counted(function):
    calls = []

    def wrapper(*args, **kwargs):
        calls.append(None)
        return function(*args, **kwargs)

    return wrapper, calls


@pytest.mark.parametrize("jacobian", [plait.jacfwd, plait.jacrev])
@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_jacobians(jacobian, chunk):
    expected = finite_difference(f, X)
    np.testing.assert_allclose(jacobian(f, chunk=chunk)(X), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(plait.jit(jacobian(f))(X), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        plait.vmap(jacobian(f))(np.stack([X, 2 * X]))[1],
        finite_difference(f, 2 * X),
        rtol=1e-5,
        atol=1e-8,
    )


@pytest.mark.parametrize("jacobian", [plait.jacfwd, plait.jacrev])
@pytest.mark.parametrize("chunk", [None, 1])
def test_jacobians_with_auxiliary_data_run_the_function_once(jacobian, chunk):
    def g(x, y):
        return {"out": f(x) * y}, {"sum": x.sum(), "name": "aux", "count": 3}

    counting, calls = counted(g)
    result, aux = jacobian(counting, argnums=(0, 1), has_aux=True, chunk=chunk)(X, np.float64(2))
    assert len(calls) == 1
    np.testing.assert_allclose(result["out"][0], 2 * finite_difference(f, X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(result["out"][1], f(X), rtol=1e-6)
    assert float(aux["sum"]) == pytest.approx(X.sum())
    assert aux["name"] == "aux" and aux["count"] == 3
    counting, calls = counted(lambda x: (f(x).sum(), x * 2))
    hessian, aux = plait.hessian(counting, has_aux=True)(X)
    assert len(calls) == 1
    gradient = plait.grad(lambda x: f(x).sum())
    np.testing.assert_allclose(hessian, finite_difference(gradient, X), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(aux, 2 * X)
    assert len(counting(X)) == 2


def test_jacobian_blocks_of_trees():
    def g(p):
        return {"a": p["w"] @ p["x"], "b": p["x"].sum()}

    p = {"w": np.arange(6.0).reshape(2, 3), "x": X}
    for jacobian in (plait.jacfwd, plait.jacrev):
        blocks = jacobian(g)(p)
        assert blocks["a"]["w"].shape == (2, 2, 3) and blocks["b"]["w"].shape == (2, 3)
        np.testing.assert_allclose(blocks["a"]["x"], p["w"])
        np.testing.assert_allclose(blocks["a"]["w"], np.einsum("ij,k->ijk", np.eye(2), X))
        np.testing.assert_allclose(blocks["b"]["x"], np.ones(3))
        assert not np.asarray(blocks["b"]["w"]).any()
    with pytest.raises(plait.DtypeError, match="the output has dtype int32"):
        plait.jacfwd(lambda x: x.astype(np.int32))(X)


def test_values_are_known_in_jacobians():
    def g(x):
        return x * 2 if x[0] > 0 else x * 3

    for jacobian in (plait.jacfwd, plait.jacrev):
        np.testing.assert_allclose(jacobian(g)(X), 2 * np.eye(3))
        np.testing.assert_allclose(jacobian(g)(-X), 3 * np.eye(3))


def test_gradients_by_argnums_keywords_and_statics():
    def loss(a, b, *, scale=1.0, mode="sum"):
        total = (a * b * scale).sum() if mode == "sum" else (a * b).max()
        return total

    b = X + 2
    np.testing.assert_allclose(plait.grad(loss)(X, b, scale=3.0), 3 * b)
    np.testing.assert_allclose(plait.grad(loss, argnums=-1)(X, b, mode="sum"), X)
    for argnums in ((0, 1), [0, 1], np.int64(1)):
        result = plait.grad(loss, argnums=argnums)(X, b, mode="max")
        assert isinstance(result, tuple) == isinstance(argnums, (tuple, list))
    value, (da, db) = plait.value_and_grad(loss, argnums=(0, 1))(X, b)
    assert float(value) == pytest.approx((X * b).sum())
    np.testing.assert_allclose(da, b)
    np.testing.assert_allclose(db, X)


def test_auxiliary_data_of_gradients():
    def loss(p):
        return (p["w"] ** 2).sum(), {"w2": p["w"] * 2, "note": "text", "none": None, "k": 7}

    counting, calls = counted(loss)
    gradient, aux = plait.grad(counting, has_aux=True)({"w": X})
    assert len(calls) == 1 and aux["note"] == "text" and aux["none"] is None and aux["k"] == 7
    np.testing.assert_allclose(gradient["w"], 2 * X)
    np.testing.assert_allclose(aux["w2"], 2 * X)
    (value, aux), gradient = plait.value_and_grad(loss, has_aux=True)({"w": X})
    assert float(value) == pytest.approx((X**2).sum())
    value, pull, aux = plait.vjp(loss, {"w": X}, has_aux=True)
    np.testing.assert_allclose(pull(np.float64(2))[0]["w"], 4 * X)
    value, tangent, aux = plait.jvp(loss, ({"w": X},), ({"w": np.ones(3)},), has_aux=True)
    assert float(tangent) == pytest.approx(2 * X.sum())
    value, push, aux = plait.linearize(loss, {"w": X}, has_aux=True)
    assert float(push({"w": np.ones(3)})) == pytest.approx(2 * X.sum()) and aux["note"] == "text"
    gradient, aux = plait.jit(plait.grad(lambda x: ((x**2).sum(), x.sum()), has_aux=True))(X)
    assert float(aux) == pytest.approx(X.sum())
    gradients, aux = plait.vmap(plait.grad(lambda x: (x**2, x + 1), has_aux=True))(X)
    np.testing.assert_allclose(aux, X + 1)


def test_integers_are_refused_or_left_out():
    def loss(p):
        return (p["w"] * p["n"]).sum()

    p = {"w": X, "n": np.int32(3)}
    with pytest.raises(plait.DtypeError, match=r"argument 0\['n'\] has dtype int32"):
        plait.grad(loss)(p)
    gradient = plait.grad(loss, allow_int=True)(p)
    assert gradient["n"] is None
    np.testing.assert_allclose(gradient["w"], [3, 3, 3])
    value, gradient = plait.value_and_grad(loss, allow_int=True)(p)
    assert gradient["n"] is None
    assert plait.jacrev(loss, allow_int=True)(p)["n"] is None


Z = np.complex128([0.5 - 1.25j, -0.75 + 0.5j, 1.5 + 2j])


def complex_gradient(f, z, step=1e-6):
    """df/dx - i df/dy of a real f by central differences."""
    result = np.zeros_like(z)
    for i in np.ndindex(z.shape):
        for direction, factor in ((1, 1), (1j, -1j)):
            ahead, behind = z.copy(), z.copy()
            ahead[i] += step * direction
            behind[i] -= step * direction
            result[i] += factor * (float(f(ahead)) - float(f(behind))) / (2 * step)
    return result


# With JAX's figures at Z.
REAL_OF_COMPLEX = [
    (
        lambda z: (abs(z) ** 4).sum(),
        [3.625 + 9.0625j, -2.4375 - 1.625j, 37.5 - 50j],
    ),
    (
        lambda z: pnp.real(pnp.exp(z) * pnp.conj(z[::-1])).sum(),
        [
            -4.214444954993987 - 7.4618624027564j,
            0.2168674568596817 - 0.6035833554442172j,
            -5.506627102860031 + 1.2709043859830498j,
        ],
    ),
    (lambda z: pnp.angle(z).sum() + pnp.linalg.norm(z), None),
    (lambda z: pnp.real(pnp.vdot(z, pnp.sqrt(z))) + pnp.tanh(z).imag.prod(), None),
    (lambda z: plait.lax.scan(lambda c, x: (c * x + pnp.conj(c), abs(c)), 1j, z)[1].sum(), None),
]


@pytest.mark.parametrize("function, figures", REAL_OF_COMPLEX)
def test_the_gradient_of_a_real_function_by_complex_arguments(function, figures):
    expected = complex_gradient(function, Z)
    if figures:
        np.testing.assert_allclose(expected, figures, rtol=1e-8)
    for gradient in (plait.grad(function), plait.jit(plait.grad(function)), plait.jacrev(function)):
        np.testing.assert_allclose(gradient(Z), expected, rtol=1e-7, atol=1e-9)
    value, gradient = plait.value_and_grad(function)(Z)
    assert float(value) == pytest.approx(float(function(Z))) and gradient.dtype == np.complex128
    both = plait.vmap(plait.grad(function))(np.stack([Z, Z[::-1]]))
    np.testing.assert_allclose(both[0], expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(both[1], complex_gradient(function, Z[::-1]), rtol=1e-7, atol=1e-9)
    # As vjp has it.
    np.testing.assert_allclose(plait.vjp(function, Z)[1](1.0)[0], expected, rtol=1e-7, atol=1e-9)


def test_complex_arguments_among_others():
    def loss(p, x):
        return (p["b"] * abs(p["z"]) ** 2).sum() * x

    gradients = plait.grad(loss, argnums=(0, 1))({"z": Z, "b": X}, 2.0)
    np.testing.assert_allclose(gradients[0]["z"], 4 * X * Z.conj())
    np.testing.assert_allclose(gradients[0]["b"], 2 * abs(Z) ** 2)
    assert float(gradients[1]) == pytest.approx((X * abs(Z) ** 2).sum())
    assert plait.grad(lambda z: abs(z) ** 2)(1 + 2j) == 2 - 4j
    np.testing.assert_array_equal(plait.grad(lambda z: abs(z).sum())(np.zeros(2, complex)), [0, 0])
    single = plait.grad(lambda z: (abs(z) ** 2).sum())(Z.astype(np.complex64))
    assert single.dtype == np.complex64
    np.testing.assert_allclose(single, 2 * Z.conj(), rtol=1e-6)


def test_second_derivatives_by_complex_arguments():
    gradient = plait.grad(lambda z: (abs(z) ** 4).sum())
    squared = plait.grad(lambda z: (abs(gradient(z)) ** 2).sum())
    # |4 |z|^2 conj(z)|^2 = 16 |z|^6.
    np.testing.assert_allclose(squared(Z), 96 * abs(Z) ** 4 * Z.conj())
    v = Z[::-1].copy()
    pushed = plait.jvp(gradient, (Z,), (v,))[1]
    wanted = (np.asarray(gradient(Z + 1e-6 * v)) - np.asarray(gradient(Z - 1e-6 * v))) / 2e-6
    np.testing.assert_allclose(pushed, wanted, rtol=1e-7)
    product = plait.hvp(lambda z: (abs(z) ** 4).sum(), (Z,), (v,))
    np.testing.assert_allclose(product[0], wanted, rtol=1e-7)


def test_masked_functions_of_complex_arguments():
    padded = np.concatenate([Z, [np.nan * 1j]])
    masked = plait.mask(lambda z: (abs(z) ** 2).sum() * z.shape[0], "c128[n]")
    np.testing.assert_allclose(
        plait.grad(lambda z: masked(z, n=3))(padded), np.append(6 * Z.conj(), 0)
    )
    cut = plait.vmap(plait.grad(lambda z, n: masked(z, n=n)), in_axes=(None, 0))(
        padded, np.int32([1, 2])
    )
    np.testing.assert_allclose(cut[1], [4 * Z[0].conj(), 4 * Z[1].conj(), 0, 0])


def test_derivatives_of_holomorphic_functions():
    def f(z):
        return (pnp.exp(z) * z).sum()

    for run in (lambda f: f, plait.jit):
        gradient = run(plait.grad(f, holomorphic=True))(Z)
        np.testing.assert_allclose(gradient, np.exp(Z) * (1 + Z), rtol=1e-12)
        value, gradient = run(plait.value_and_grad(f, holomorphic=True))(Z)
        np.testing.assert_allclose(value, (np.exp(Z) * Z).sum(), rtol=1e-12)
        np.testing.assert_allclose(gradient, np.exp(Z) * (1 + Z), rtol=1e-12)
        hessian = run(plait.hessian(f, holomorphic=True))(Z)
        np.testing.assert_allclose(hessian, np.diag(np.exp(Z) * (2 + Z)), rtol=1e-12)
    w = Z[:, None] * Z + 1j
    for jacobian in (plait.jacfwd, plait.jacrev):
        blocks = jacobian(lambda z: pnp.exp(z) @ w, holomorphic=True)(Z)
        np.testing.assert_allclose(blocks, w.T * np.exp(Z), rtol=1e-12)
        by_row = plait.vmap(jacobian(lambda z: z**2, holomorphic=True))(np.stack([Z, 2 * Z]))
        np.testing.assert_allclose(by_row[1], np.diag(4 * Z), rtol=1e-12)
    cube = plait.grad(plait.grad(lambda z: z**3, holomorphic=True), holomorphic=True)
    np.testing.assert_allclose(cube(1 + 2j), 6 + 12j)
    # JAX takes such a function at its word.
    conj = plait.grad(lambda z: (pnp.conj(z) * z).sum(), holomorphic=True)
    np.testing.assert_allclose(conj(Z), 2 * Z.conj())


def test_jacobians_between_real_and_complex():
    forward = plait.jacfwd(lambda x: pnp.exp(1j * x))(X)
    np.testing.assert_allclose(forward, np.diag(1j * np.exp(1j * X)), rtol=1e-12)
    backward = plait.jacrev(lambda z: abs(z) ** 2)(Z)
    np.testing.assert_allclose(backward, np.diag(2 * Z.conj()), rtol=1e-12)


def test_what_has_no_complex_derivative_is_refused():
    for transform, function, at, options, text in (
        (plait.grad, lambda z: z, 1j, {}, "the function returns complex128, of which only holo"),
        (plait.jacrev, lambda z: z, 1j, {}, "jacrev: the output has dtype complex128"),
        (plait.jacfwd, lambda z: abs(z), 1j, {}, "jacfwd: argument 0 has dtype complex128, by"),
        (plait.hessian, lambda z: abs(z), 1j, {}, "argument 0 has dtype complex128"),
        (plait.grad, lambda x: x, 1.0, {"holomorphic": True}, "of complex arguments"),
        (plait.jacfwd, lambda x: x, 1.0, {"holomorphic": True}, "of complex arguments"),
        (plait.grad, lambda z: abs(z), 1j, {"holomorphic": True}, "complex values"),
        (plait.jacrev, lambda z: abs(z), 1j, {"holomorphic": True}, "complex values"),
    ):
        with pytest.raises(plait.DtypeError, match=text):
            transform(function, **options)(at)


def test_hvp_and_hessian():
    def loss(x, y):
        return (pnp.sin(x) * y).sum() + (y**3).sum()

    y, v, u = X * 2, np.float64([1, 2, 3]), np.float64([-1, 0, 1])
    blocks = plait.hessian(loss, argnums=(0, 1))(X, y)
    few = plait.hessian(loss, argnums=(0, 1), chunk=1)(X, y)
    np.testing.assert_allclose(few[0][1], blocks[0][1], rtol=1e-12)
    product = plait.hvp(loss, (X, y), (v, u))
    for row in range(2):
        expected = np.asarray(blocks[row][0]) @ v + np.asarray(blocks[row][1]) @ u
        np.testing.assert_allclose(product[row], expected, rtol=1e-6)
    np.testing.assert_allclose(blocks[0][0], np.diag(-np.sin(X) * y), rtol=1e-6)


def test_linear_transpose():
    a = np.arange(6.0).reshape(2, 3)

    def g(p):
        return {"y": a @ p["x"] + p["s"]}

    types = {
        "x": plait.ShapeDtypeStruct((3,), np.float64),
        "s": plait.ShapeDtypeStruct((), np.float64),
    }
    pulled = plait.linear_transpose(g, types)({"y": np.float64([1, 2])})[0]
    np.testing.assert_allclose(pulled["x"], a.T @ [1, 2])
    assert float(pulled["s"]) == 3
    with pytest.raises(plait.Error, match="sin"):
        plait.linear_transpose(pnp.sin, X)(X)
    with pytest.raises(plait.DtypeError, match="the output of .* has dtype int64, of which there"):
        plait.linear_transpose(lambda n: 2 * n, 1)


def test_eval_shape_runs_no_numbers():
    shape = plait.ShapeDtypeStruct((1000, 1_000_000), np.float32)
    result = plait.eval_shape(lambda p, *, k: {"y": p["x"] @ p["x"].T, "k": k}, {"x": shape}, k=2)
    assert result["y"].shape == (1000, 1000) and result["y"].dtype == np.float32
    assert result["k"].shape == ()
    assert "1000" in repr(result["y"])
    jaxpr, types = plait.make_jaxpr(lambda x: {"y": x.sum(0)}, return_shape=True)("n 3")
    assert types["y"].shape == (3,) and "lambda n" in str(jaxpr)


def test_checkpoint():
    def g(x, n, scale=1.0):
        for _ in range(n):
            x = pnp.sin(x) * scale
        return x.sum()

    expected = plait.grad(lambda x: g(x, 3))(X)
    for policy in (
        None,
        plait.checkpoint_policies.everything_saveable,
        plait.checkpoint_policies.nothing_saveable,
        plait.checkpoint_policies.dots_saveable,
        plait.checkpoint_policies.save_only_these_names("a"),
        lambda name: name == "sin",
    ):
        remat = plait.checkpoint(g, policy=policy, static_argnums=1)
        np.testing.assert_allclose(plait.grad(lambda x: remat(x, 3))(X), expected, rtol=1e-12)
        np.testing.assert_allclose(
            plait.jit(plait.grad(lambda x: remat(x, 3, scale=1.0)))(X), expected, rtol=1e-12
        )

    def recomputed_sines(policy):
        """How many of three sines a linear function computes again; two of them have names."""

        def f(x):
            for name in "ab":
                x = _plait.bind("tag", pnp.sin(x), name=name)
            return pnp.sin(x)

        linear = plait.linearize(plait.checkpoint(f, policy=policy), pnp.asarray(2.0))[1]
        return str(plait.make_jaxpr(linear)(1.0)).count("= sin")

    policies = plait.checkpoint_policies
    for policy, count in (
        (None, 2),
        (policies.save_only_these_names("a"), 1),
        (policies.save_any_names_but_these("b"), 1),
        (policies.save_anything_except_these_names("a"), 0),
        (
            policies.save_from_both_policies(
                policies.dots_saveable, policies.save_only_these_names("a")
            ),
            1,
        ),
    ):
        assert recomputed_sines(policy) == count, policy

    @plait.checkpoint(policy=plait.checkpoint_policies.dots_saveable)
    def h(x):
        return (x * x).sum()

    np.testing.assert_allclose(plait.grad(h)(X), 2 * X)
    with pytest.raises(plait.TreeError, match="checkpoint: argument 2 is"):
        remat(X, 3, "three")


# --- Second derivatives where a formula divides by zero ----------------------------------------------


def second_of_prod(x):
    return np.array(
        [
            [0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(len(x))]
            for i in range(len(x))
        ]
    )


TWICE = {
    "hessian": plait.hessian,
    "jacrev of jacrev": lambda f: plait.jacrev(plait.jacrev(f)),
    "jacrev of jacfwd": lambda f: plait.jacrev(plait.jacfwd(f)),
    "jacfwd of jacfwd": lambda f: plait.jacfwd(plait.jacfwd(f)),
}


@pytest.mark.parametrize("x", [[2.0, 0, 3, 4], [2.0, 0, 0, 4], [0.0, 0, 0, 4], [0.0, 0, 0, 0]])
@pytest.mark.parametrize("twice", TWICE.values(), ids=TWICE)
def test_second_derivatives_of_products_with_zeros(twice, x):
    x = np.array(x)
    padded = np.append(x, [np.nan, np.nan])
    weights = np.arange(1.0, 5.0)
    sums = np.zeros((4, 4))
    for count, weight in enumerate(weights, 1):
        sums[:count, :count] += weight * second_of_prod(x[:count])
    for f, expected in (
        (pnp.prod, second_of_prod(x)),
        (lambda x: (pnp.cumprod(x) * pnp.arange(1, x.shape[0] + 1)).sum(), sums),
        (lambda x: pnp.prod(x.reshape(2, -1), axis=1).prod(), second_of_prod(x)),
    ):
        second = twice(f)
        np.testing.assert_allclose(second(x), expected)
        np.testing.assert_allclose(plait.jit(second)(x), expected)
        np.testing.assert_allclose(plait.vmap(second)(np.stack([x, x]))[1], expected)
        if f(padded).shape == () and x.shape[0] == 4:
            masked = plait.mask(f, "n", constraints=["n % 2 == 0"])
            block = np.asarray(twice(lambda x, m=masked: m(x, n=4))(padded))
            np.testing.assert_allclose(block[:4, :4], expected)
            assert not block[4:].any() and not block[:, 4:].any()


def test_second_derivatives_of_sinc_and_power_at_zero():
    # sinc'' = -pi^2 / 3 at 0, and its fourth derivative pi^4 / 5.
    second = plait.grad(plait.grad(pnp.sinc))
    np.testing.assert_allclose(second(np.float64(0)), -(np.pi**2) / 3, rtol=1e-12)
    fourth = plait.grad(plait.grad(second))
    np.testing.assert_allclose(fourth(np.float64(0)), np.pi**4 / 5, rtol=1e-12)
    np.testing.assert_allclose(
        plait.vmap(second)(np.array([0.0, 1.0])), [-(np.pi**2) / 3, 2.0], rtol=1e-9
    )
    # d/dy (y x^(y-1)) = 1/x at y = 0.
    hessian = plait.hessian(lambda p: p[0] ** p[1])(np.array([2.0, 0.0]))
    np.testing.assert_allclose(hessian, [[0, 0.5], [0.5, np.log(2) ** 2]], rtol=1e-12)
    np.testing.assert_allclose(plait.grad(lambda p: p[0] ** p[1])(np.zeros(2)), [0, 0])


def test_slopes_where_parts_of_a_rule_overflow():
    for dtype, far in (("float32", 1e11), ("float16", 100.0), ("float64", 1e160)):
        slope = plait.grad(pnp.sinc)(pnp.asarray(far, dtype))
        assert abs(float(slope)) <= 2 / far * np.pi, (dtype, slope)
    tiny = pnp.asarray(np.float32(1e-39))
    assert float(plait.grad(lambda x: x**0.0)(tiny)) == 0
    assert float(plait.grad(lambda x, y: x**y)(tiny, np.float32(0))) == 0
    mixed = plait.grad(plait.grad(lambda x, y: x**y), argnums=1)(np.float64(3), np.float64(0))
    assert float(mixed) == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["multiply", "min", "max"])
@pytest.mark.parametrize(
    "index, mode", [(2, None), (-1, None), (9, "fill"), (9, "clip"), ((slice(None), 1), None)]
)
def test_updates_of_elements_that_no_other_update_shares(kind, index, mode):
    """By finite differences; several derivatives of a product, also where factors are zero."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 3))
    x[2, 1] = 0.0
    index_shape = np.zeros((4, 3))[index if mode is None else 2].shape
    v = rng.standard_normal(index_shape)

    def f(x, v):
        return pnp.sum(
            pnp.sin(getattr(x.at[index], kind)(v, mode=mode)) * pnp.arange(12.0).reshape(4, 3)
        )

    for argument in (0, 1):
        got = np.asarray(plait.grad(f, argnums=argument)(pnp.asarray(x), pnp.asarray(v)))
        given = [x, v]
        for at in np.ndindex(given[argument].shape):
            ends = []
            for step in (-1e-6, 1e-6):
                moved = [a.copy() for a in given]
                moved[argument][at] += step
                ends.append(float(f(*map(pnp.asarray, moved))))
            np.testing.assert_allclose(got[at], (ends[1] - ends[0]) / 2e-6, rtol=1e-6, atol=1e-6)
    if kind == "multiply" and mode is None:
        second = plait.jacfwd(plait.grad(f, argnums=0), argnums=1)(pnp.asarray(x), pnp.asarray(v))
        backward = plait.jacrev(plait.grad(f, argnums=1), argnums=0)(pnp.asarray(x), pnp.asarray(v))
        axes = tuple(range(v.ndim, v.ndim + 2)) + tuple(range(v.ndim))
        np.testing.assert_allclose(second, np.transpose(np.asarray(backward), axes), rtol=1e-12)


@pytest.mark.parametrize("kind", ["multiply", "min", "max"])
def test_equal_ones_share_the_gradient_of_the_least(kind):
    x, v = pnp.asarray([2.0, 1.0, 3.0]), pnp.asarray(1.0)
    dx, dv = plait.grad(lambda x, v: pnp.sum(getattr(x.at[1], kind)(v)), argnums=(0, 1))(x, v)
    assert (dx.tolist(), dv.item()) == (
        ([1, 1, 1], 1) if kind == "multiply" else ([1, 0.5, 1], 0.5)
    )


def test_a_loop_that_updates_elements_keeps_numbers_for_its_gradient():
    def f(x):
        return pnp.sum(plait.lax.fori_loop(1, 32, lambda i, x: x.at[i].min(x[i - 1] * 1.5), x))

    assert "f32[31,32]" not in str(plait.make_jaxpr(plait.grad(f))(pnp.ones(32)))
