"""vmap: axes of trees, keywords, sizes, chunks, against loops over examples.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import re

import numpy as np
import pytest

import plait
import plait.numpy as pnp

RNG = np.random.default_rng(0)
Pair = collections.namedtuple("Pair", "a b")


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def f(p, x, scale=1.0):
    return {"y": pnp.tanh(p["w"] @ x + p["b"]) * scale, "n": x.sum()}


def test_axes_of_trees_against_a_loop():
    p, x = {"w": normal(3, 4), "b": normal(3, 5)}, normal(4, 5)
    for chunk in (None, 1, 2, 5, 9):
        batched = plait.vmap(
            f, in_axes=({"w": None, "b": 1}, -1), out_axes={"y": 1, "n": 0}, chunk=chunk
        )
        result = batched(p, x)
        assert result["y"].shape == (3, 5) and result["n"].shape == (5,)
        for i in range(5):
            one = f({"w": p["w"], "b": p["b"][:, i]}, x[:, i])
            np.testing.assert_allclose(result["y"][:, i], one["y"], rtol=1e-5)
            np.testing.assert_allclose(result["n"][i], one["n"], rtol=1e-5)
    np.testing.assert_allclose(plait.jit(batched)(p, x)["y"], result["y"], rtol=1e-6)


def test_prefixes_lists_and_namedtuples():
    pair = Pair(normal(5, 2), {"c": normal(5), "d": [normal(5, 3)]})
    total = plait.vmap(lambda p: p.a.sum() + p.b["c"] + p.b["d"][0].sum())(pair)
    expected = pair.a.sum(1) + pair.b["c"] + pair.b["d"][0].sum(1)
    np.testing.assert_allclose(total, expected, rtol=1e-5)
    total = plait.vmap(lambda p, k: p.a.sum() * k, in_axes=[Pair(0, None), None])(pair, 2.0)
    np.testing.assert_allclose(total, 2 * pair.a.sum(1), rtol=1e-5)
    outputs = plait.vmap(lambda x: (x, [x, x * 2]), out_axes=(0, [1, -1]))(normal(5, 2))
    assert outputs[0].shape == (5, 2) and outputs[1][0].shape == (2, 5) == outputs[1][1].shape


def test_keywords_are_mapped_over_axis_0():
    p, x, scale = {"w": normal(3, 4), "b": normal(3)}, normal(5, 4), normal(5)
    result = plait.vmap(f, in_axes=(None, 0))(p, x, scale=scale)["y"]
    for i in range(5):
        np.testing.assert_allclose(result[i], f(p, x[i], scale[i])["y"], rtol=1e-5)


def test_nothing_mapped_and_outputs_that_do_not_depend_on_the_batch():
    x = normal(3)
    result = plait.vmap(lambda x: x * 2, in_axes=None, axis_size=4)(x)
    np.testing.assert_allclose(result, np.stack([2 * x] * 4))
    one, many = plait.vmap(lambda w, x: (w * 2, w * x), in_axes=(None, 0), out_axes=(None, 0))(
        3.0, x
    )
    assert float(one) == 6 and many.shape == (3,)
    both = plait.vmap(lambda x: (x, 1.0, np.arange(2)))(x)
    assert both[1].shape == (3,) and both[2].shape == (3, 2)


def test_unmapped_values_are_known():
    def g(x, flag):
        return x * 2 if flag > 0 else x

    x = normal(3)
    np.testing.assert_allclose(plait.vmap(g, in_axes=(0, None))(x, 1.0), 2 * x)
    with pytest.raises(plait.TracerError, match="a value for each of the 3 examples"):
        plait.vmap(g)(x, x)


def test_nested_and_composed():
    a, b = normal(4, 3), normal(5, 3)
    gram = plait.vmap(lambda x: plait.vmap(lambda y: x @ y)(b))(a)
    np.testing.assert_allclose(gram, a @ b.T, rtol=1e-5)
    outer = plait.vmap(plait.vmap(pnp.multiply, in_axes=(None, 0)), in_axes=(0, None))(
        a[:, 0], b[:, 0]
    )
    np.testing.assert_allclose(outer, np.outer(a[:, 0], b[:, 0]), rtol=1e-6)
    w = normal(3)
    gradients = plait.vmap(plait.grad(lambda w, x: (w @ x) ** 2), in_axes=(None, 0))(w, a)
    np.testing.assert_allclose(gradients, 2 * (a @ w)[:, None] * a, rtol=1e-4)
    total = plait.grad(lambda w: plait.vmap(lambda x: (w @ x) ** 2, chunk=3)(a).sum())(w)
    np.testing.assert_allclose(total, (2 * (a @ w)[:, None] * a).sum(0), rtol=1e-4)


def test_names_of_arguments_in_errors():
    x, y = np.ones(3), np.ones(4)
    cases = (
        (
            lambda: plait.vmap(f)({"w": x, "b": y}, x),
            plait.ShapeError,
            r"argument 0\['b'\] has 4, argument 0\['w'\] has 3",
        ),
        (
            lambda: plait.vmap(lambda x, s: x)(x, s=y),
            plait.ShapeError,
            "argument 0 has 3, argument s has 4",
        ),
        (lambda: plait.vmap(lambda x, s: x)(x, s=1.0), plait.ValueError, "argument s is a scalar"),
        (
            lambda: plait.vmap(f, in_axes=(0, 0))(x),
            plait.TreeError,
            "in_axes has 2 entries, and `f` was called with 1 positional argument",
        ),
        (lambda: plait.vmap(lambda x: x, out_axes=1.5)(x), plait.DtypeError, "out_axes holds 1.5"),
        (lambda: plait.vmap(lambda x: x, in_axes=True)(x), plait.DtypeError, "in_axes holds True"),
        (lambda: plait.vmap(lambda x: {"a": x}, out_axes={"b": 0})(x), plait.TreeError, "out_axes"),
    )
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("through_jit", [False, True])
def test_errors_name_every_transform_of_the_function(through_jit):
    def loss(w, x):
        return pnp.sum(w * x)

    gradients = plait.grad(loss)
    gradients = plait.vmap(plait.jit(gradients) if through_jit else gradients)
    path = "vmap(jit(grad(loss)))" if through_jit else "vmap(grad(loss))"
    with pytest.raises(plait.ShapeError, match=re.escape(f"while applying {path}\n")):
        gradients(pnp.ones((3, 2)), pnp.ones((4, 2)))
