"""Transforms of functions over trees, against finite differences, loops and closed forms.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def f64(values):
    return np.asarray(values, np.float64)


def loss(p, x, y):
    return (((x * p["w"]).sum() + p["b"] - y) ** 2).sum()


P = {"w": f64([1.0, 2.0, 3.0]), "b": f64(0.5)}
X, Y = f64([0.1, -0.2, 0.3]), f64(1.5)


def finite_difference(function, x, epsilon=1e-6):
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += epsilon
        down[index] -= epsilon
        result[index] = (float(function(up)) - float(function(down))) / (2 * epsilon)
    return result


def test_make_jaxpr():
    closed = plait.make_jaxpr(lambda x, y: x * y + 1)(
        np.zeros(3, np.float32), np.zeros(3, np.float32)
    )
    assert (
        str(closed)
        == "{ lambda a:f32[3] b:f32[3] . let\n    c:f32[3] = mul a b\n    d:f32[3] = add c 1.0:f32\n  in (d,) }"
        or "mul" in str(closed)
    )
    assert [repr(aval) for aval in closed.in_avals] == ["f32[3]", "f32[3]"]
    assert [repr(aval) for aval in closed.out_avals] == ["f32[3]"]
    assert [equation.primitive for equation in closed.eqns] == ["mul", "add"]
    out = closed(np.float32([1, 2, 3]), np.float32([1, 1, 1]))
    assert out.tolist() == [2, 3, 4]


def test_captured_arrays_are_consts():
    w = pnp.asarray(np.float32([1, 2]))
    closed = plait.make_jaxpr(lambda x: x * w)(np.zeros(2, np.float32))
    assert len(closed.consts) == 1 and closed.consts[0] is not None and len(closed.in_avals) == 1


def test_named_sizes():
    closed = plait.make_jaxpr(lambda x: (x * x.shape[0]).reshape(x.shape[0] * x.shape[1]))("n d")
    assert [repr(aval) for aval in closed.in_avals] == ["f32[n,d]"]
    assert [repr(aval) for aval in closed.out_avals] == ["f32[d*n]"] or "n" in repr(
        closed.out_avals[0]
    )
    at = plait.instantiate(closed, n=2, d=3)
    assert [repr(aval) for aval in at.out_avals] == ["f32[6]"]


def test_eval_shape():
    out = plait.eval_shape(
        lambda x: {"a": x.sum(), "b": [x]}, plait.ShapeDtypeStruct((3, 4), np.float32)
    )
    assert out["a"].shape == () and out["b"][0].shape == (3, 4) and out["a"].dtype == np.float32


def test_grad_agrees_with_finite_differences():
    gradient = plait.grad(loss)(P, X, Y)
    np.testing.assert_allclose(
        np.asarray(gradient["w"]),
        finite_difference(lambda w: loss({**P, "w": pnp.asarray(w)}, X, Y), P["w"]),
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        np.asarray(gradient["b"]),
        finite_difference(lambda b: loss({**P, "b": pnp.asarray(b)}, X, Y), P["b"]),
        rtol=1e-6,
    )


def test_argnums():
    f = lambda x, y: (x * x * y).sum()  # noqa: E731
    x, y = f64([1, 2]), f64([3, 4])
    np.testing.assert_allclose(np.asarray(plait.grad(f, 1)(x, y)), x * x)
    a, b = plait.grad(f, (0, 1))(x, y)
    np.testing.assert_allclose(np.asarray(a), 2 * x * y)
    np.testing.assert_allclose(np.asarray(plait.grad(f, -1)(x, y)), x * x)
    assert isinstance(plait.grad(f, (0,))(x, y), tuple)


def test_value_and_grad_and_aux():
    value, gradient = plait.value_and_grad(lambda x: (x**2).sum())(f64([1, 2]))
    assert float(value) == 5 and gradient.tolist() == [2, 4]
    (value, aux), gradient = plait.value_and_grad(
        lambda x: ((x**2).sum(), {"x": x, "note": "text"}), has_aux=True
    )(f64([1, 2]))
    assert aux["note"] == "text" and aux["x"].tolist() == [1, 2]
    gradient, aux = plait.grad(lambda x: ((x**2).sum(), x * 2), has_aux=True)(f64([1, 2]))
    assert aux.tolist() == [2, 4] and gradient.tolist() == [2, 4]


def test_keyword_and_other_arguments_pass_through():
    f = lambda x, *, power, mode: (x**power).sum() if mode == "sum" else None  # noqa: E731
    assert plait.grad(f)(f64([1, 2]), power=3, mode="sum").tolist() == [3, 12]


def test_python_control_flow_on_values_under_grad():
    def f(x):
        if x > 0:
            return x * 2
        while x < -1:
            x = x / 2
        return x * 3

    assert float(plait.grad(f)(1.0)) == 2
    assert float(plait.grad(f)(-4.0)) == 3 / 4
    assert float(plait.grad(plait.grad(lambda x: x * x * x if x > 0 else x))(2.0)) == 12


def test_jvp_and_vjp():
    f = lambda x, y: {"a": x * y, "b": x}  # noqa: E731
    x, y = f64([1, 2]), f64([3, 4])
    value, tangent = plait.jvp(f, (x, y), (f64([1, 0]), f64([0, 1])))
    assert (
        value["a"].tolist() == [3, 8]
        and tangent["a"].tolist() == [3, 2]
        and tangent["b"].tolist() == [1, 0]
    )
    value, pull = plait.vjp(f, x, y)
    a, b = pull({"a": f64([1, 1]), "b": f64([10, 0])})
    assert a.tolist() == [13, 4] and b.tolist() == [1, 2]
    value, pull, aux = plait.vjp(lambda x: (x * 2, x + 1), x, has_aux=True)
    assert aux.tolist() == [2, 3] and pull(x)[0].tolist() == [2, 4]


def test_linearize_and_linear_transpose():
    f = lambda x: (x**3).sum()  # noqa: E731
    x, v = f64([1, 2]), f64([1, -1])
    value, linear = plait.linearize(f, x)
    assert float(value) == 9 and float(linear(v)) == 3 - 12
    (back,) = plait.linear_transpose(lambda x: 3 * x, x)(v)
    assert back.tolist() == [3, -3]


def test_jacobians_and_hessian():
    f = lambda x: pnp.stack([x[0] * x[1], x[1] ** 2, x[0]])  # noqa: E731
    x = f64([2, 3])
    expected = [[3, 2], [0, 6], [1, 0]]
    for jacobian in (plait.jacfwd, plait.jacrev):
        np.testing.assert_allclose(np.asarray(jacobian(f)(x)), expected)
        np.testing.assert_allclose(np.asarray(jacobian(f, chunk=1)(x)), expected)
        tree = jacobian(lambda p: {"o": p["a"] * 2}, 0)({"a": f64([1, 2])})
        np.testing.assert_allclose(np.asarray(tree["o"]["a"]), 2 * np.eye(2))
        pair = jacobian(lambda x, y: x * y, (0, 1))(x, x)
        np.testing.assert_allclose(np.asarray(pair[1]), np.diag(x))
    hessian = plait.hessian(lambda x: (x[0] ** 2) * x[1])(x)
    np.testing.assert_allclose(np.asarray(hessian), [[6, 4], [4, 0]])
    np.testing.assert_allclose(
        np.asarray(plait.hvp(lambda x: (x[0] ** 2) * x[1], (x,), (f64([1, 1]),))[0]), [10, 4]
    )


def test_vmap_axes():
    x, y = f64(np.arange(6).reshape(2, 3)), f64(np.arange(12).reshape(3, 4))
    dot = lambda a, b: (a * b).sum()  # noqa: E731
    np.testing.assert_allclose(np.asarray(plait.vmap(dot, (0, None))(x, y[:, 0])), x @ y[:, 0])
    np.testing.assert_allclose(
        np.asarray(plait.vmap(plait.vmap(dot, (None, 1)), (0, None))(x, y)), x @ y
    )
    np.testing.assert_allclose(np.asarray(plait.vmap(lambda a: a * 2, 1, 1)(x)), x * 2)
    np.testing.assert_allclose(np.asarray(plait.vmap(lambda a: a * 2, 1, 0)(x)), x.T * 2)
    out = plait.vmap(
        lambda p: {"s": p["a"] + p["b"], "c": p["b"]}, ({"a": 0, "b": None},), {"s": 0, "c": None}
    )({"a": x, "b": f64([1, 2, 3])})
    assert out["s"].shape == (2, 3) and out["c"].shape == (3,)
    np.testing.assert_allclose(np.asarray(plait.vmap(lambda a: a * 2, chunk=1)(x)), x * 2)
    assert plait.vmap(lambda: pnp.asarray(1.0), axis_size=3)().shape == (3,)
    np.testing.assert_allclose(
        np.asarray(plait.vmap(lambda a, k: a * k, in_axes=0)(x, k=f64([1, 2]))), x * [[1], [2]]
    )


def test_per_example_gradients():
    xs, ys = f64(np.arange(12).reshape(4, 3)), f64([1, 2, 3, 4])
    batched = plait.vmap(plait.grad(loss), (None, 0, 0))(P, xs, ys)
    for i in range(4):
        single = plait.grad(loss)(P, xs[i], ys[i])
        np.testing.assert_allclose(np.asarray(batched["w"])[i], np.asarray(single["w"]))


def test_user_exceptions_propagate_and_leave_no_trace_behind():
    class Mine(Exception):
        pass

    def bad(x):
        raise Mine("x")

    for transform in (plait.grad, plait.jit, plait.vmap, plait.make_jaxpr, plait.jacrev):
        with pytest.raises(Mine):
            transform(bad)(f64([1.0]))
    with pytest.raises(Mine):
        plait.jit(plait.vmap(plait.grad(bad)))(f64([1.0]))
    assert not plait._plait.is_tracing()
    assert float(pnp.asarray(1.0) + 1) == 2


def test_stop_gradient():
    assert float(plait.grad(lambda x: plait.stop_gradient(x) * x)(3.0)) == 3


def test_custom_jvp():
    @plait.custom_jvp
    def f(x, y):
        return x * y

    @f.defjvp
    def rule(primals, tangents):
        x, y = primals
        return f(x, y), tangents[0] * 100 + tangents[1]

    assert float(f(2.0, 3.0)) == 6
    assert [float(g) for g in plait.grad(f, (0, 1))(2.0, 3.0)] == [100, 1]
    assert float(plait.jit(plait.grad(f))(2.0, 3.0)) == 100
    out = plait.vmap(plait.grad(f), (0, None))(f64([1, 2]), 3.0)
    assert out.tolist() == [100, 100]
    f.defjvps(lambda t, out, x, y: 7 * t, None)
    assert float(plait.grad(f)(2.0, 3.0)) == 7


def test_custom_vjp():
    @plait.custom_vjp
    def f(x, y):
        return {"o": x * y}

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct["o"] * 10, None))
    gradient = plait.grad(lambda x, y: f(x, y)["o"], (0, 1))
    assert [float(g) for g in gradient(2.0, 3.0)] == [10, 0]
    assert [float(g) for g in plait.jit(gradient)(2.0, 3.0)] == [10, 0]
    batched = plait.vmap(gradient)(f64([1, 2]), f64([3, 4]))
    assert batched[0].tolist() == [10, 10]


def test_custom_vjp_with_fixed_arguments():
    def clip(limit, x):
        return x

    clip = plait.custom_vjp(clip, nondiff_argnums=(0,))
    clip.defvjp(lambda limit, x: (x, None), lambda limit, res, ct: (pnp.clip(ct, -limit, limit),))
    assert float(plait.grad(lambda x: 5 * clip(2.0, x))(1.0)) == 2


def test_checkpoint():
    f = lambda x: pnp.sin(pnp.sin(x)).sum()  # noqa: E731
    x = f64([0.1, 0.2])
    expected = np.asarray(plait.grad(f)(x))
    policies = plait.checkpoint_policies
    for policy in (
        None,
        policies.everything_saveable,
        policies.dots_saveable,
        lambda name: name == "sin",
    ):
        np.testing.assert_allclose(
            np.asarray(plait.grad(plait.checkpoint(f, policy=policy))(x)), expected
        )
        np.testing.assert_allclose(
            np.asarray(plait.jit(plait.grad(plait.checkpoint(f, policy=policy)))(x)), expected
        )


def test_mask_and_ragged():
    total = plait.mask(lambda x: x.sum(), "n")
    padded = np.float32([1, 2, 3, np.nan])
    assert float(total(padded, n=3)) == 6
    batch = plait.ragged([np.float32([1, 2, 3]), np.float32([4])])
    assert plait.vmap(lambda x, n: total(x, n=n))(batch.data, batch.lengths).tolist() == [6, 4]
    assert [a.tolist() for a in batch] == [[1, 2, 3], [4]]


def test_compositions():
    f = lambda x: (pnp.sin(x) * x).sum()  # noqa: E731
    x = f64([[0.5, 1.0], [2.0, 3.0]])
    expected = np.cos(x) * x + np.sin(x)
    for g in (
        plait.vmap(plait.grad(f)), plait.jit(plait.vmap(plait.grad(f))), plait.vmap(plait.jit(plait.grad(f))),
        plait.vmap(plait.grad(plait.jit(f))), plait.grad(lambda x: plait.vmap(f)(x).sum()),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(g(x)), expected, rtol=1e-12)
