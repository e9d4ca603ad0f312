"""from_jax without JAX: its table on jaxprs made by hand, and its errors. tests/libraries/from_jax.py compares with JAX.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import sys
import types

import numpy as np
import plait
import plait.compat
import pytest
from plait import _from_jax, lax
from plait import numpy as pnp

JAX = types.SimpleNamespace(
    Array=(),
    extend=types.SimpleNamespace(
        source_info_util=types.SimpleNamespace(summarize=lambda info: info)
    ),
)


class Value:
    """A variable or, with val, a literal."""

    def __init__(self, dtype="float32", shape=(), val=None):
        self.aval = types.SimpleNamespace(shape=shape, dtype=dtype)
        if val is not None:
            self.val = val


def jaxpr(inputs, outputs, *equations):
    """A jaxpr of equations (primitive, inputs, outputs, parameters)."""
    eqns = [
        types.SimpleNamespace(
            primitive=types.SimpleNamespace(name=name),
            invars=invars,
            outvars=outvars,
            params=params,
            source_info="user.py:7 (f)",
        )
        for name, invars, outvars, params in equations
    ]
    return types.SimpleNamespace(invars=inputs, outvars=outputs, constvars=[], eqns=eqns)


def of_one(name, *inputs, out=None, **params):
    """The function of a single equation on operands of these types."""
    invars = [Value(str(x.dtype), x.shape) for x in map(np.asarray, inputs)]
    outs = [
        Value(*o)
        for o in (out or [(str(np.asarray(inputs[0]).dtype), np.asarray(inputs[0]).shape)])
    ]
    program = _from_jax.Program(JAX, jaxpr(invars, outs, (name, invars, outs, params)))
    return program(*[pnp.asarray(x) for x in inputs])


def test_a_program_runs_and_is_differentiated_batched_and_compiled():
    x, y, z, s = Value(shape=(3,)), Value(shape=(3,)), Value(shape=(3,)), Value()
    program = _from_jax.Program(
        JAX,
        jaxpr(
            [x],
            [s, y],
            ("sin", [x], [y], {"accuracy": None}),
            ("mul", [y, Value(val=np.float32(2))], [z], {"out_dtype": None}),
            ("reduce_sum", [z], [s], {"axes": (0,), "out_sharding": None}),
        ),
    )
    values = np.array([0.1, 0.2, 0.3], np.float32)
    total, sines = program(pnp.asarray(values))
    np.testing.assert_allclose(total, 2 * np.sin(values).sum(), rtol=1e-6)
    np.testing.assert_allclose(sines, np.sin(values), rtol=1e-6)
    gradient = plait.grad(lambda v: program(v)[0])(values)
    np.testing.assert_allclose(gradient, 2 * np.cos(values), rtol=1e-6)
    rows = np.stack([values, -values])
    found = plait.jit(plait.vmap(lambda v: program(v)[0]))(rows)
    np.testing.assert_allclose(found, 2 * np.sin(rows).sum(1), rtol=1e-6, atol=1e-7)


def test_axes_of_size_one_spread():
    (found,) = of_one("sub", np.ones((2, 3), np.float32), np.array([[1.0], [2.0]], np.float32))
    np.testing.assert_array_equal(found, [[0, 0, 0], [-1, -1, -1]])


def test_round_away_from_zero():
    x = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388609.0, np.nan], np.float32)
    (found,) = of_one("round", x, rounding_method=0)
    np.testing.assert_array_equal(found, [1, -1, 2, 3, -3, 0, 8388609, np.nan])


def test_the_total_order_of_floats():
    x = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], np.float32)
    (found,) = of_one("lt_to", x[:-1], x[1:], out=[("bool", (7,))])
    assert np.asarray(found).all()
    (found,) = of_one("le_to", x, x, out=[("bool", (8,))])
    assert np.asarray(found).all()


def test_threefry_gives_the_words_that_are_published():
    """Random123's known answers."""
    words = {
        (0, 0, 0, 0): (0x6B200159, 0x99BA4EFE),
        (0xFFFFFFFF,) * 4: (0x1CB996FC, 0xBB002BE7),
        (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3): (0xC4923A9C, 0x483DF7A0),
    }
    for given, expected in words.items():
        inputs = [np.uint32(word) for word in given]
        found = of_one("threefry2x32", *inputs, out=[("uint32", ())] * 2)
        assert tuple(map(int, found)) == expected


def test_keys_are_those_of_plait():
    key, out = Value("key<fry>"), Value("uint32", (3,))
    split = Value("key<fry>", (2,))
    program = _from_jax.Program(
        JAX,
        jaxpr(
            [key],
            [out, split],
            ("random_bits", [key], [out], {"bit_width": 32, "shape": (3,)}),
            ("random_split", [key], [split], {"shape": (2,)}),
        ),
    )
    mine = plait.random.key(7)
    bits, keys = program.of_users([mine])
    np.testing.assert_array_equal(bits, plait.random.bits(mine, (3,)))
    assert bool((keys == plait.random.split(mine)).all())


def test_a_fold_by_any_function():
    a, b, c, d, e = (Value() for _ in range(5))
    body = types.SimpleNamespace(
        jaxpr=jaxpr(
            [a, b],
            [e],
            ("mul", [a, b], [c], {"out_dtype": None}),
            ("add", [a, b], [d], {}),
            ("add", [c, d], [e], {}),
        ),
        consts=(),
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = of_one(
        "reduce", x, np.float32(1), out=[("float32", (2,))], jaxpr=body, dimensions=(1,)
    )
    np.testing.assert_allclose(found, [2 * 1 * 2 * 3 - 1, 2 * 4 * 5 * 6 - 1])


def test_what_is_missing_is_named_with_its_line():
    x = np.zeros(2, np.float32)
    with pytest.raises(plait.MissingRuleError, match=r"`rng_uniform` at user.py:7 \(f\)"):
        of_one("rng_uniform", x)
    with pytest.raises(plait.MissingRuleError, match="plait has no reverse_twice=True"):
        of_one("cumsum", x, axis=0, reverse=False, reverse_twice=True)
    with pytest.raises(plait.ShapeError) as caught:
        of_one("add", x, np.zeros((2, 1, 1), np.float32))
    assert "in JAX's `add` at user.py:7 (f)" in caught.value.__notes__


def test_without_jax_and_in_the_drop_in(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match="pip install jax"):
        plait.from_jax(lax.sin)
    ours = types.ModuleType("jax")
    ours.__file__ = str(pathlib.Path(plait.compat.jax_path()) / "jax" / "__init__.py")
    monkeypatch.setitem(sys.modules, "jax", ours)
    with pytest.raises(plait.ValueError, match="plait's drop-in"):
        plait.from_jax(lax.sin)
