"""plait.numpy: elementwise functions against NumPy, over dtypes, broadcasting and special values.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait.numpy as pnp

BOOL = ["bool"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = INTS + FLOATS
ALL = BOOL + REAL + COMPLEX
TOLERANCE = {
    "float16": 2e-3,
    "float32": 2e-6,
    "float64": 1e-13,
    "complex64": 4e-6,
    "complex128": 1e-13,
}
rng = np.random.default_rng(0)


def sample(dtype, shape=(3, 4), low=-3.0, high=3.0):
    values = rng.uniform(low, high, size=shape)
    if dtype.startswith("complex"):
        values = values + 1j * rng.uniform(low, high, size=shape)
    if dtype == "bool":
        return values > 0
    return np.abs(values).astype(dtype) if dtype.startswith("uint") else values.astype(dtype)


def check(result, expected, dtype=None, scale=1.0):
    result = np.asarray(result)
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    if dtype is not None:
        assert result.dtype == np.dtype(dtype)
    tolerance = scale * TOLERANCE.get(result.dtype.name, 0)
    with np.errstate(all="ignore"):
        if tolerance:
            wide = np.complex128 if np.iscomplexobj(expected) else np.float64
            np.testing.assert_allclose(
                result.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance
            )
        else:
            np.testing.assert_array_equal(result, expected)


def inexact(dtype):
    """The dtype of a function of real numbers: integers and bools count as float32."""
    return dtype if np.dtype(dtype).kind in "fc" else "float32"


# name: (dtypes, low, high)
UNARY_INEXACT = {
    "exp": (ALL, -3, 3), "exp2": (BOOL + REAL, -3, 3), "expm1": (BOOL + REAL, -3, 3), "log": (ALL, 0.5, 3),
    "log2": (ALL, 0.5, 3), "log10": (ALL, 0.5, 3), "log1p": (BOOL + REAL, 0, 3), "sqrt": (ALL, 0, 3), "sin": (ALL, -3, 3),
    "cos": (ALL, -3, 3), "tan": (BOOL + REAL, -1, 1), "arcsin": (FLOATS, -1, 1), "arccos": (FLOATS, -1, 1),
    "arctan": (BOOL + REAL, -3, 3), "sinh": (ALL, -3, 3), "cosh": (ALL, -3, 3), "tanh": (ALL, -3, 3),
    "arcsinh": (BOOL + REAL, -3, 3), "arccosh": (FLOATS, 1, 3), "arctanh": (FLOATS, -0.9, 0.9), "cbrt": (BOOL + REAL, -3, 3),
    "reciprocal": (FLOATS + COMPLEX, 0.5, 3), "degrees": (FLOATS, -3, 3), "radians": (FLOATS, -3, 3), "sinc": (FLOATS, -3, 3),
    "rint": (FLOATS + COMPLEX, -3, 3), "angle": (FLOATS, -3, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY_INEXACT)
def test_functions_of_real_numbers(name):
    dtypes, low, high = UNARY_INEXACT[name]
    for dtype in dtypes:
        x = sample(dtype, low=low, high=high)
        with np.errstate(all="ignore"):
            wide = x if np.dtype(dtype).kind == "c" else x.astype(np.float64)
            check(getattr(pnp, name)(x), getattr(np, name)(wide), inexact(dtype), scale=4)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tanh", "arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh",
                                  "cbrt", "expm1", "log1p", "exp2", "log2", "log10", "floor", "ceil", "trunc", "rint", "sign", "square",
                                  "abs", "fabs", "arcsin", "arccos", "isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf"])  # fmt: skip
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(name, dtype):
    x = np.array(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-4, -1e-4, 2.5, -2.5, 3.5], dtype
    )
    with np.errstate(all="ignore"):
        check(getattr(pnp, name)(x), getattr(np, name)(x.astype(np.float64)), scale=8)
    zero = np.asarray(getattr(pnp, name)(x))[:2]
    if zero.dtype.kind == "f" and name not in ("sign", "arccosh"):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(np.signbit(zero), np.signbit(getattr(np, name)(x))[:2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_and_small_arguments(dtype):
    limit = np.finfo(dtype)
    large = np.array([limit.max / 4, 1e30, 1e10], dtype)
    for name in ("arcsinh", "arccosh", "sqrt", "cbrt", "log", "arctan"):
        check(getattr(pnp, name)(large), getattr(np, name)(large), scale=4)
    check(pnp.hypot(large, large), np.hypot(large, large), scale=4)
    small = np.array([1e-30, 1e-10, -1e-20], dtype)
    for name in ("sinh", "arcsinh", "arctanh", "expm1", "log1p", "arcsin", "tan"):
        np.testing.assert_allclose(
            np.asarray(getattr(pnp, name)(small)),
            getattr(np, name)(small),
            rtol=TOLERANCE[dtype] * 4,
        )


SAME = {"negative": REAL + COMPLEX, "positive": REAL + COMPLEX, "square": REAL + COMPLEX, "floor": REAL, "ceil": REAL, "trunc": REAL,
        "conj": ALL, "bitwise_not": BOOL + INTS, "invert": BOOL + INTS}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_functions_that_keep_the_dtype(name):
    for dtype in SAME[name]:
        x = sample(dtype)
        check(getattr(pnp, name)(x), getattr(np, name)(x), dtype)


def test_abs_sign_real_imag():
    for dtype in REAL + COMPLEX:
        x = sample(dtype)
        check(pnp.abs(x), np.abs(x))
        check(pnp.real(x), np.real(x))
        check(pnp.imag(x), np.imag(x))
        if dtype not in COMPLEX:
            check(pnp.sign(x), np.sign(x), dtype)
    z = sample("complex128")
    check(pnp.sign(z), z / np.abs(z))
    check(pnp.angle(z), np.angle(z))
    check(pnp.angle(z, deg=True), np.angle(z, deg=True))
    assert pnp.iscomplexobj(pnp.asarray(z)) and pnp.isrealobj(pnp.ones(2))
    check(pnp.isreal(np.array([1, 1j])), [True, False])


BINARY = {
    "add": ALL, "subtract": REAL + COMPLEX, "multiply": ALL, "maximum": BOOL + REAL, "minimum": BOOL + REAL, "fmax": REAL, "fmin": REAL,
    "bitwise_and": BOOL + INTS, "bitwise_or": BOOL + INTS, "bitwise_xor": BOOL + INTS, "fmod": REAL, "remainder": REAL, "mod": REAL,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name):
    for dtype in BINARY[name]:
        x, y = sample(dtype), sample(dtype, (4,))
        with np.errstate(all="ignore"):
            check(getattr(pnp, name)(x, y), getattr(np, name)(x, y), dtype)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
                                  "logical_xor"])  # fmt: skip
def test_comparisons(name):
    for dtype in ALL:
        x, y = sample(dtype), sample(dtype, (3, 1))
        x[0, 0] = y[0, 0]
        check(getattr(pnp, name)(x, y), getattr(np, name)(x, y), "bool")


def test_operands_promote_and_broadcast():
    for a in REAL:
        for b in REAL:
            x, y = sample(a, (2, 1, 3)), sample(b, (4, 1))
            result = pnp.add(x, y)
            assert result.shape == (2, 4, 3)
            assert result.dtype == pnp.promote_types(a, b)
    assert pnp.add(np.float16([1]), 2.5).dtype == np.float16
    assert pnp.add(np.int8([1]), 2).dtype == np.int8
    assert pnp.add(np.int8([1]), 2.5).dtype == np.float32
    assert pnp.divide(np.int64([1]), 2).dtype == np.float32


@pytest.mark.parametrize("dtype", REAL)
def test_division(dtype):
    x, y = sample(dtype, (50,), -20, 20), sample(dtype, (50,), -5, 5)
    y[np.abs(y) < 0.5] = 3
    check(pnp.divide(x, y), x.astype(np.float64) / y.astype(np.float64), inexact(dtype), scale=2)
    check(pnp.floor_divide(x, y), np.floor_divide(x, y), dtype)
    check(pnp.remainder(x, y), np.remainder(x, y), dtype, scale=4)
    quotient, rest = pnp.divmod(x, y)
    check(quotient, np.floor_divide(x, y))
    check(rest, np.remainder(x, y), scale=4)


def test_floor_divide_follows_the_array_api_standard():
    inf, nan = np.inf, np.nan
    x = np.array([inf, -inf, 1, -1, 1, -1, 0.0, 1.0, inf, nan])
    y = np.array([1.0, 1, inf, inf, -inf, -inf, 0, 0, inf, 1])
    check(pnp.floor_divide(x, y), np.array([inf, -inf, 0, 0, 0, 0, nan, inf, nan, nan]))
    check(
        pnp.floor_divide(np.array([1, -7, 7], np.int32), np.array([0, 2, -2], np.int32)),
        [0, -4, -4],
    )


def test_remainder_of_special_values():
    x = np.array([5.0, -5.0, 5.0, -5.0, np.inf, 1.0, 1.0, -1.0])
    y = np.array([3.0, 3.0, -3.0, -3.0, 1.0, 0.0, np.inf, np.inf])
    with np.errstate(all="ignore"):
        check(pnp.remainder(x, y), np.remainder(x, y))
        check(pnp.fmod(x, y), np.fmod(x, y))


def test_power():
    for dtype in FLOATS + COMPLEX:
        x = sample(dtype, low=0.5, high=2)
        exponent = sample(dtype, (4,))
        check(pnp.power(x, exponent), np.power(x, exponent), dtype, scale=16)
        check(pnp.power(x, 3), x * x * x, dtype, scale=4)
        check(pnp.power(x, -2), 1 / (x * x), dtype, scale=8)
    x = np.array([-2, 3, 0], np.int32)
    check(pnp.power(x, 3), x**3, "int32")
    check(pnp.power(x, np.array([0, 2, 5], np.int32)), [1, 9, 0], "int32")
    check(pnp.power(x, 0.5), np.power(np.abs(x), 0.5) * np.array([np.nan, 1, 1]), "float32")
    with pytest.raises(ValueError, match="no negative powers"):
        pnp.power(x, -1)
    assert pnp.float_power(np.float32(2), 3).dtype == np.float64


def test_shifts():
    for dtype in INTS:
        x = np.array([1, 5, 100], dtype)
        check(pnp.left_shift(x, np.array(2, dtype)), np.left_shift(x, np.array(2, dtype)), dtype)
        check(pnp.right_shift(x, np.array(1, dtype)), np.right_shift(x, np.array(1, dtype)), dtype)
    check(pnp.right_shift(np.array([-8], np.int8), 1), [-4])
    check(pnp.right_shift(np.array([0x80], np.uint8), 1), [0x40])


def test_fmax_and_fmin_leave_nan_out():
    x, y = np.array([1, np.nan, np.nan, 2]), np.array([np.nan, 3, np.nan, 1])
    check(pnp.fmax(x, y), np.fmax(x, y))
    check(pnp.fmin(x, y), np.fmin(x, y))
    check(pnp.maximum(x, y), np.maximum(x, y))


def test_logaddexp_hypot_copysign_heaviside():
    x, y = sample("float64", (3, 4)), sample("float64", (4,))
    check(pnp.logaddexp(x, y), np.logaddexp(x, y))
    check(pnp.logaddexp2(x, y), np.logaddexp2(x, y))
    check(pnp.hypot(x, y), np.hypot(x, y))
    check(pnp.arctan2(x, y), np.arctan2(x, y))
    check(pnp.copysign(x, y), np.copysign(x, y))
    check(pnp.heaviside(np.array([-1, 0, 1, np.nan]), 0.5), [0, 0.5, 1, np.nan])
    inf = np.inf
    check(
        pnp.logaddexp(np.array([inf, -inf, inf, -inf]), np.array([inf, -inf, 0, 0])),
        [inf, -inf, inf, 0],
    )
    check(pnp.hypot(np.array([inf, np.nan, 0]), np.array([np.nan, 1, 0])), [inf, np.nan, 0])
    check(pnp.copysign(3.0, np.array([-0.0, 0.0])), [-3, 3])


@pytest.mark.parametrize("decimals", [0, 1, 2, -1, -2])
def test_round(decimals):
    for dtype in FLOATS + ["int32", "int64", "complex128"]:
        x = (sample(dtype) * 50).astype(dtype)
        check(pnp.round(x, decimals), np.round(x, decimals), dtype, scale=2)
    check(pnp.round(np.array([0.5, 1.5, 2.5, -0.5])), [0, 2, 2, -0.0])


def test_nextafter():
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3.0]
    for dtype in FLOATS:
        x = np.array(values, dtype)
        result = pnp.nextafter(x[:, None], x)
        expected = np.nextafter(x[:, None], x)
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(result), expected)


def test_clip_where_nan_to_num():
    x = sample("float32")
    check(pnp.clip(x, -1, 1), np.clip(x, -1, 1), "float32")
    check(pnp.clip(x, max=0.5), np.clip(x, None, 0.5), "float32")
    check(
        pnp.clip(x, min=np.zeros(4, np.float32)),
        np.clip(x, np.zeros(4, np.float32), None),
        "float32",
    )
    check(pnp.where(x > 0, x, 0), np.where(x > 0, x, 0), "float32")
    check(pnp.where(np.array([True, False]), np.int32(1), 2.5), [1, 2.5])
    check(pnp.where(np.array([0, 2, 0]), 1, 2), [2, 1, 2])
    special = np.array([np.nan, np.inf, -np.inf, 1.5])
    for dtype in FLOATS:
        check(pnp.nan_to_num(special.astype(dtype)), np.nan_to_num(special.astype(dtype)), dtype)
    check(pnp.nan_to_num(special, nan=1, posinf=2, neginf=3), [1, 2, 3, 1.5])
    with pytest.raises(ValueError):
        pnp.where(x > 0, x)


def test_isclose_allclose_array_equal():
    a = np.array([1.0, np.inf, -np.inf, np.nan, np.inf, 1e10])
    b = np.array([1 + 1e-9, np.inf, np.inf, np.nan, 1.0, 1e10 + 1])
    check(pnp.isclose(a, b), np.isclose(a, b))
    check(pnp.isclose(a, b, equal_nan=True), np.isclose(a, b, equal_nan=True))
    check(pnp.isclose(b, a, rtol=0.1, atol=0.1), np.isclose(b, a, rtol=0.1, atol=0.1))
    assert bool(pnp.allclose(a[:2], b[:2])) and not bool(pnp.allclose(a, b))
    assert bool(pnp.array_equal([1, 2], [1, 2])) and not bool(pnp.array_equal([1, 2], [1, 2, 3]))
    assert not bool(pnp.array_equal([np.nan], [np.nan])) and bool(
        pnp.array_equal([np.nan], [np.nan], equal_nan=True)
    )


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1, 1)])
def test_empty_arrays_and_scalars(shape):
    x = np.ones(shape, np.float32)
    for name in ("exp", "sinh", "arccosh", "floor", "sign", "isnan"):
        assert getattr(pnp, name)(x).shape == shape
    for name in ("add", "floor_divide", "hypot", "less"):
        assert getattr(pnp, name)(x, x).shape == shape


def test_errors_name_the_function():
    with pytest.raises(ValueError, match=r"add: shapes \(3\) and \(4\) do not broadcast"):
        pnp.add(np.ones(3), np.ones(4))
    with pytest.raises(TypeError, match="subtract: bools do not subtract"):
        pnp.subtract(True, np.array([False]))
    with pytest.raises(TypeError, match="cbrt"):
        pnp.cbrt(np.complex64(1))
