"""The Python array API standard: special values, results and arguments that its text states.

The conformance suite itself is run by `./dev conformance`.

SPDX-License-Identifier: Apache-2.0
"""

import math

import numpy as np
import pytest

import plait
import plait.numpy as xp

INF, NAN, PI = math.inf, math.nan, math.pi
C = complex

# (function, arguments, result) of "Special cases"; a NaN part of a result is any NaN, zeros have their signs.
SPECIAL = """
acos: C(0, NAN) -> C(PI/2, NAN);  C(2, INF) -> C(PI/2, -INF);  C(-INF, 1) -> C(PI, -INF);  C(INF, 1) -> C(0, -INF)
acos: C(-INF, INF) -> C(3*PI/4, -INF);  C(INF, INF) -> C(PI/4, -INF);  C(NAN, INF) -> C(NAN, -INF);  C(NAN, 1) -> C(NAN, NAN)
acosh: C(0, 0) -> C(0, PI/2);  C(2, INF) -> C(INF, PI/2);  C(0, NAN) -> C(NAN, PI/2);  C(-INF, 1) -> C(INF, PI)
acosh: C(INF, 1) -> C(INF, 0);  C(-INF, INF) -> C(INF, 3*PI/4);  C(INF, NAN) -> C(INF, NAN);  C(NAN, INF) -> C(INF, NAN)
asinh: C(0, 0) -> C(0, 0);  C(2, INF) -> C(INF, PI/2);  C(INF, 1) -> C(INF, 0);  C(INF, INF) -> C(INF, PI/4)
asinh: C(INF, NAN) -> C(INF, NAN);  C(NAN, 0) -> C(NAN, 0);  C(NAN, 1) -> C(NAN, NAN);  C(-INF, -1) -> C(-INF, -0.0)
asin: C(0, INF) -> C(0, INF);  C(INF, INF) -> C(PI/4, INF);  C(0, NAN) -> C(0, NAN);  C(-2, 0.0) -> C(-PI/2, math.acosh(2))
atanh: C(0, 0) -> C(0, 0);  C(0, NAN) -> C(0, NAN);  C(1, 0) -> C(INF, 0);  C(2, INF) -> C(0, PI/2);  C(INF, 1) -> C(0, PI/2)
atanh: C(INF, NAN) -> C(0, NAN);  C(NAN, 1) -> C(NAN, NAN)
atan: C(INF, 1) -> C(PI/2, 0);  C(0, INF) -> C(PI/2, 0)
cosh: C(0, 0) -> C(1, 0);  C(0, INF) -> C(NAN, 0);  C(INF, 0) -> C(INF, 0);  C(INF, INF) -> C(INF, NAN)
sinh: C(0, INF) -> C(0, NAN);  C(INF, 0) -> C(INF, 0);  C(INF, INF) -> C(INF, NAN);  C(NAN, 0) -> C(NAN, 0)
tanh: C(INF, 8e15) -> C(1, 0);  C(-INF, 2) -> C(-1, 0);  C(NAN, 0) -> C(NAN, 0)
exp: C(-INF, INF) -> C(0, 0);  C(INF, NAN) -> C(INF, NAN);  C(NAN, 0) -> C(NAN, 0);  C(INF, 0) -> C(INF, 0)
expm1: C(-0.0, 0) -> C(0, 0);  C(INF, 0) -> C(INF, 0);  C(-INF, INF) -> C(-1, 0);  C(INF, INF) -> C(INF, NAN);  C(-INF, NAN) -> C(-1, 0)
log1p: C(-1, 0) -> C(-INF, 0);  C(1, INF) -> C(INF, PI/2);  C(INF, NAN) -> C(INF, NAN);  C(-INF, 1) -> C(INF, PI)
sqrt: C(0, 0) -> C(0, 0);  C(1, INF) -> C(INF, INF);  C(-INF, 1) -> C(0, INF);  C(INF, NAN) -> C(INF, NAN)
sign: C(-0.0, -0.0) -> C(0, 0);  C(3, 4) -> C(0.6, 0.8);  C(NAN, 1) -> C(NAN, NAN)
floor_divide: -0.0, 1.0 -> -0.0;  -0.0, -1.0 -> 0.0;  1.0, -INF -> -0.0;  -1.0, INF -> -0.0;  -1.0, -INF -> 0.0;  -1.0, -3.0 -> 0.0
floor_divide: INF, 2.0 -> INF;  INF, -2.0 -> -INF;  INF, INF -> NAN;  0.0, 0.0 -> NAN;  1.0, 0.0 -> INF;  -7.0, 2.0 -> -4.0
remainder: 1.0, -INF -> -INF;  -1.0, INF -> INF;  -1.0, -INF -> -1.0;  -0.0, 1.0 -> 0.0;  0.0, -1.0 -> -0.0;  INF, 1.0 -> NAN
maximum: NAN, 1.0 -> NAN;  1.0, NAN -> NAN
minimum: NAN, 1.0 -> NAN;  INF, NAN -> NAN
hypot: INF, NAN -> INF;  NAN, -INF -> INF;  0.0, -0.0 -> 0.0
nextafter: 1.0, 1.0 -> 1.0;  -0.0, 0.0 -> 0.0;  NAN, 1.0 -> NAN
trunc: -0.5 -> -0.0;  INF -> INF
"""
CASES = [
    (line.partition(":")[0], *case.split("->"))
    for line in SPECIAL.strip().splitlines()
    for case in line.partition(":")[2].split(";")
]
WIDTHS = [(np.float32, np.complex64, 2.0**-23), (np.float64, np.complex128, 2.0**-52)]


def is_same(value, expected, eps):
    """Whether two numbers are equal but for rounding, with the signs of zeros; any NaN is NaN."""
    value, expected = C(value), C(expected)
    return all(
        (math.isnan(a) and math.isnan(b))
        or (math.isclose(a, b, rel_tol=4 * eps) and math.copysign(1, a) == math.copysign(1, b))
        for a, b in ((value.real, expected.real), (value.imag, expected.imag))
    )


@pytest.mark.parametrize("name, args, result", CASES, ids=lambda text: text.strip())
def test_special_values(name, args, result):
    args, expected, function = eval(f"({args},)"), eval(result), getattr(xp, name)
    for real, complex_, eps in WIDTHS:
        dtype = complex_ if isinstance(args[0], C) else real
        value = function(*(xp.asarray([arg] * 3, dtype=dtype) for arg in args))
        assert value.dtype == dtype
        assert is_same(value[1].item(), expected, eps), f"{value[1]} is not {expected}"


def test_inverse_functions_of_large_numbers_do_not_overflow():
    for z, expected in (
        (1e200 + 1j, 1e-200 + 1j * PI / 2),
        (3 - 1e150j, 3e-300 - 1j * PI / 2),
        (-2e120 + 2e120j, -2.5e-121 + 1j * PI / 2),
    ):
        assert is_same(xp.atanh(np.array([z])).item(), expected, 1e-14)


def test_derivatives_of_complex_functions_are_those_of_the_plane():
    """Where nothing special happens, the choice among special values leaves derivatives alone."""
    z = np.array([0.5 + 0.25j, -1.5 + 2j, 2.0 - 3j, 1e-3 + 1e-3j])
    derivatives = {
        "asinh": lambda z: 1 / np.sqrt(1 + z * z),
        "asin": lambda z: 1 / np.sqrt(1 - z * z),
        "acos": lambda z: -1 / np.sqrt(1 - z * z),
        "acosh": lambda z: 1 / (np.sqrt(z - 1) * np.sqrt(z + 1)),
        "atanh": lambda z: 1 / (1 - z * z),
        "atan": lambda z: 1 / (1 + z * z),
        "sinh": np.cosh,
        "cosh": np.sinh,
        "tanh": lambda z: 1 / np.cosh(z) ** 2,
        "expm1": np.exp,
    }
    for name, derivative in derivatives.items():
        value, slope = plait.jvp(getattr(xp, name), (z,), (np.ones_like(z),))
        theirs = getattr(np, {"asinh": "arcsinh", "asin": "arcsin", "acos": "arccos", "acosh": "arccosh",
                              "atanh": "arctanh", "atan": "arctan"}.get(name, name))  # fmt: skip
        np.testing.assert_allclose(np.asarray(value), theirs(z), rtol=1e-13)
        np.testing.assert_allclose(np.asarray(slope), derivative(z), rtol=1e-10)


# --- What functions take and give -----------------------------------------------------------------


def test_results_with_names():
    x = xp.asarray([3, 1, 3, 2])
    everything = xp.unique_all(x)
    assert everything._fields == ("values", "indices", "inverse_indices", "counts")
    assert [part.tolist() for part in everything] == [[1, 2, 3], [1, 3, 0], [2, 0, 2, 1], [1, 1, 2]]
    assert xp.unique_counts(x)._fields == ("values", "counts")
    assert xp.unique_inverse(x).inverse_indices.tolist() == [2, 0, 2, 1]


def test_integers_of_64_bits():
    big = 2**63
    assert xp.arange(big, big + 5, 2, dtype=xp.uint64).tolist() == [big, big + 2, big + 4]
    assert xp.arange(big + 4, big, -3).tolist() == [big + 4, big + 1]
    assert xp.arange(0, step=2**62).tolist() == [] and xp.arange(5, step=2**62).tolist() == [0]
    assert xp.arange(-(2**63), 2**63 - 1, 2**62).tolist() == [-(2**63), -(2**62), 0, 2**62]
    assert xp.arange(2**63, 0.0, -(2.0**61)).tolist() == [2.0**63, 3 * 2.0**61, 2.0**62, 2.0**61]
    for wrong in ((0, 2**63, 1), (0, 5, 0)):
        with pytest.raises(plait.UserError):
            xp.arange(*wrong)
    assert xp.full((2,), 2**64 - 1, dtype=xp.uint64).tolist() == [2**64 - 1] * 2
    for k in (2**40, -(2**62), 2**31):
        assert xp.eye(3, k=k).tolist() == np.zeros((3, 3)).tolist()
        np.testing.assert_array_equal(xp.tril(xp.ones((2, 3)), k=k), np.tril(np.ones((2, 3)), k))
        np.testing.assert_array_equal(xp.triu(xp.ones((2, 3)), k=k), np.triu(np.ones((2, 3)), k))


def test_copies():
    x = xp.asarray(np.arange(3.0))
    assert xp.asarray(x, dtype=xp.float64) is x and xp.asarray(x, dtype=xp.float64, copy=False) is x
    copied = xp.asarray(x, dtype=xp.float64, copy=True)
    x[0] = 9
    assert copied[0] == 0
    with pytest.raises(ValueError, match="copy=False, and float64 becomes float32"):
        xp.asarray(x, dtype=xp.float32, copy=False)


def test_the_namespace():
    info = xp.__array_namespace_info__()
    assert isinstance(info.devices(), tuple) and info.default_device() in info.devices()
    x = xp.zeros(2)
    assert xp.__array_api_version__ == "2025.12"
    assert x.__array_namespace__(api_version="2025.12") is xp
    assert x.to_device(device=x.device, stream=None).tolist() == [0, 0]
    with pytest.raises(ValueError, match="stream"):
        x.to_device(x.device, stream=1)
    assert xp.isdtype(xp.int8, ("bool", "integral")) and not xp.isdtype(
        xp.int8, (xp.bool, "real floating")
    )
    for dtype in (xp.float16, xp.bfloat16, xp.float32, xp.complex64, xp.float64):
        limits = xp.finfo(dtype)
        for name in ("eps", "max", "min", "smallest_normal", "tiny"):
            assert type(getattr(limits, name)) is float
    assert xp.finfo(xp.complex64).dtype == np.float32 and xp.finfo(xp.float32).bits == 32
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(xp.linalg.tensordot(a, b), np.tensordot(a, b))


def test_arrays_without_axes():
    with pytest.raises(ValueError, match="nonzero"):
        xp.nonzero(xp.asarray(3.0))
    for value in (0, 5):
        assert xp.argwhere(value).shape == np.argwhere(value).shape


@pytest.mark.parametrize("wait", [False, True])
def test_qr_of_very_large_and_very_small_numbers(wait):
    values = np.array([[3.0, 1.0, 2.0], [4.0, -1.0, 1.0], [12.0, 2.0, 5.0]])
    for scale in (1e-320, 1e-160, 1e-290, 1e150, 1e200, 1e305):
        for kind in (values, values * (1 + 2j)):
            x = kind * scale
            for function in (xp.linalg.qr, plait.jit(lambda x: xp.linalg.qr(x), wait=wait)):
                q, r = (np.asarray(part) for part in function(xp.asarray(x)))
                rounding = 1e-3 if scale < 1e-307 else 1e-12  # subnormal numbers have few bits
                np.testing.assert_allclose(
                    q.conj().T @ q, np.eye(3), atol=1e-3 if scale < 1e-307 else 1e-14
                )
                np.testing.assert_allclose(
                    np.abs(r[0, 0]) / scale,
                    np.abs(kind[:, 0].conj() @ kind[:, 0]) ** 0.5,
                    rtol=rounding,
                )
    mixed = xp.linalg.qr(xp.asarray([[1e200, 1.0], [1e200, -1.0]], dtype=xp.float64)).R
    assert abs(abs(mixed[1, 1].item()) - math.sqrt(2)) < 1e-14
