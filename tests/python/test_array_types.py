"""The array types of examples/array_types.py against NumPy on the arrays that they stand for.

SPDX-License-Identifier: Apache-2.0
"""

import importlib.util
import pathlib
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import nn, random

PATH = pathlib.Path(__file__).parent.parent.parent / "examples" / "array_types.py"
spec = importlib.util.spec_from_file_location("array_types", PATH)
types = importlib.util.module_from_spec(spec)
spec.loader.exec_module(types)
rng = np.random.default_rng(3)


def call(model, x):
    return model(x)


def test_what_it_prints():
    run = subprocess.run([sys.executable, str(PATH)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "adapters change nothing at first: True",
        "552 of 5508 numbers trained: loss below 0.1: True",
        "weights in int8: error below 0.05: True",
        "energy: 4 kg m^2 s^-2",
        "refused: add of m and s",
    ]


def test_adapters_are_applied_without_their_product():
    w, a, b = rng.normal(size=(6, 4)), rng.normal(size=(6, 2)), rng.normal(size=(2, 4))
    x, y = rng.normal(size=(3, 6)), rng.normal(size=(3, 4))
    value = types.Lora(*map(pnp.asarray, (w, a, b)))
    for f, expected in ((lambda w: x @ w, x @ (w + a @ b)), (lambda w: y @ w.T, y @ (w + a @ b).T),
                        (lambda w: pnp.sin(w).sum(0), np.sin(w + a @ b).sum(0)),
                        (plait.jit(lambda w: plait.nn.relu(x @ w)), np.maximum(x @ (w + a @ b), 0))):  # fmt: skip
        np.testing.assert_allclose(np.asarray(types.lora(f)(value)), expected, rtol=1e-12)
    jaxpr = plait.make_jaxpr(types.lora(lambda w: x @ w))(value).jaxpr
    assert (6, 4) not in [tuple(aval.shape) for e in jaxpr.eqns for aval in e.out_avals]
    loss = types.lora(lambda w: pnp.sum((x @ w) ** 2))
    slope = plait.jit(plait.grad(loss))(value)
    outer = 2 * x.T @ (x @ (w + a @ b))
    for ours, expected in zip(slope, (outer, outer @ b.T, a.T @ outer)):
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-10)
    batch = types.Lora(value.weight, pnp.stack([value.a, 2 * value.a]), value.b)
    several = plait.vmap(types.lora(lambda w: x @ w), (types.Lora(None, 0, None),))(batch)
    np.testing.assert_allclose(np.asarray(several[1]), x @ (w + 2 * a @ b), rtol=1e-12)


def test_int8_weights_are_near_those_that_they_were_made_of():
    model = nn.MLP(8, 3, 32, 1, key=random.key(0))
    small = plait.tree.map(lambda leaf: types.quantized(leaf) if leaf.ndim == 2 else leaf, model)
    codes = small.layers[0].weight
    w = np.asarray(model.layers[0].weight)
    assert codes.codes.dtype == np.int8
    back = np.asarray(codes.codes, np.float32) * np.asarray(codes.scale)
    assert np.abs(back - w).max() <= np.abs(w).max(0).max() / 127
    x = rng.normal(size=(5, 8)).astype(np.float32)
    one = types.over_trees(types.int8, types.Int8, call)(nn.Linear(8, 32, key=random.key(0)).replace(weight=codes), x)  # fmt: skip
    np.testing.assert_allclose(np.asarray(one), x @ back, atol=1e-5)
    result = np.asarray(plait.jit(types.over_trees(types.int8, types.Int8, call))(small, x))
    assert np.abs(result - np.asarray(model(x))).max() < 0.1


def test_units_follow_the_numbers():
    m, s = (
        lambda value, u=u: types.Quantity(pnp.asarray(value), ((u, Fraction(1)),)) for u in "ms"
    )
    x = rng.random(4) + 1
    cases = [
        (lambda x, t: x / t**2, (m(x), s(2.0)), x / 4, {"m": 1, "s": -2}),
        (lambda x, t: pnp.sqrt(x * x) + pnp.max(x), (m(x), s(1.0)), x + x.max(), {"m": 1}),
        (lambda x, t: pnp.where(x > x.mean(), x, 2 * x), (m(x), s(1.0)), np.where(x > x.mean(), x, 2 * x), {"m": 1}),
        (lambda x, t: pnp.exp(-x / x[0]) @ x, (m(x), s(1.0)), np.exp(-x / x[0]) @ x, {"m": 1}),
        (plait.jit(lambda x, t: pnp.sqrt(x.sum()) / t), (m(x), s(2.0)), np.sqrt(x.sum()) / 2, {"m": Fraction(1, 2), "s": -1}),
    ]  # fmt: skip
    for f, inputs, value, unit in cases:
        result = types.units(f)(*inputs)
        np.testing.assert_allclose(np.asarray(result.value), value)
        assert dict(result.unit) == unit
    for f, message in ((lambda x, t: x + t, "add of m and s"), (lambda x, t: pnp.exp(x), "exp of m, which is no number"),
                       (lambda x, t: x > t, "cmp of"), (lambda x, t: x + 1.0, "add of m and 1")):  # fmt: skip
        with pytest.raises(TypeError, match=message):
            types.units(f)(m(x), s(1.0))
