"""Derivatives under JAX's names: auxiliary data, argument numbers, keywords, against finite differences.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
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
    with pytest.raises(plait.ValueError, match="holomorphic=True is not supported"):
        plait.grad(loss, holomorphic=True)
    with pytest.raises(plait.DtypeError, match="has no real derivative"):
        plait.grad(lambda z: abs(z))(1j)


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

    @plait.checkpoint(policy=plait.checkpoint_policies.dots_saveable)
    def h(x):
        return (x * x).sum()

    np.testing.assert_allclose(plait.grad(h)(X), 2 * X)
    with pytest.raises(plait.TreeError, match="checkpoint: argument 2 is"):
        remat(X, 3, "three")
