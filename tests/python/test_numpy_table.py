"""plait.numpy over every dtype, view and special value, against NumPy: one table for each kind of function.

Expected values are NumPy's, in the dtype of the result for integers and in float64 (complex128) for others; expected
dtypes are those of design section 6: int and float give the float, sums of small integers are 32 bits wide, functions of
real numbers take integers as float32. Where the array-API standard differs from NumPy, it holds.

SPDX-License-Identifier: Apache-2.0
"""

import warnings

import ml_dtypes
import numpy as np
import plait
import plait.numpy as pnp
import pytest

pytestmark = pytest.mark.isa

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
REAL = INTS + FLOATS
ALL = ["bool", *REAL, *COMPLEX]
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 2e-6,
    "float64": 2e-13,
    "complex64": 4e-6,
    "complex128": 2e-13,
}
rng = np.random.default_rng(7)


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def kind_of(name):
    return "f" if name == "bfloat16" else np.dtype(name).kind


def sample(name, shape=(3, 4), low=-3.0, high=3.0):
    values = rng.uniform(low, high, size=shape)
    if kind_of(name) == "c":
        values = values + 1j * rng.uniform(low, high, size=shape)
    if name == "bool":
        return values > (low + high) / 2
    if kind_of(name) == "u":
        values = np.abs(values)
    return values.astype(dtype_of(name))


# Views that both libraries make in the same words: contiguous, transposed, reversed, strided, broadcast, empty, 0-d.
VIEWS = {
    "dense": lambda np, x: x,
    "transposed": lambda np, x: x.T,
    "reversed": lambda np, x: x[::-1, ::-2],
    "strided": lambda np, x: x[1:, ::3],
    "broadcast": lambda np, x: np.broadcast_to(x[:, None, :1], (3, 2, 4)),
    "empty": lambda np, x: x[:, 4:],
    "scalar": lambda np, x: x[1, 2],
}


def wide(x):
    """Values in which an expectation is computed: floats in 64 bits."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x.astype(np.float64) if x.dtype.kind in "fV" else x


def expect(function, *args, **kwargs):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def check(result, expected, dtype, scale=1.0, label=""):
    assert isinstance(result, plait.Array), label
    assert not result.weak_type, label
    assert result.dtype == dtype_of(dtype), f"{label}: dtype {result.dtype}, expected {dtype}"
    expected = np.asarray(expected)
    assert result.shape == expected.shape, (
        f"{label}: shape {result.shape}, expected {expected.shape}"
    )
    values = wide(np.asarray(result))
    tolerance = TOLERANCE.get(dtype, 0) * scale
    if tolerance:
        with np.errstate(all="ignore"):
            expected = wide(expected.astype(dtype_of(dtype)))
            np.testing.assert_allclose(
                values, expected, rtol=tolerance, atol=tolerance, err_msg=label
            )
    else:
        np.testing.assert_array_equal(values, expected, err_msg=label)


def inexact(name):
    return name if kind_of(name) in "fc" else "float32"


def real_of(name):
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


def promoted(a, b):
    """The dtype of an operation on two, by the rules in words: kinds first, then sizes."""
    if a == b:
        return a
    kinds = [kind_of(a), kind_of(b)]
    order = "biufc"
    if kinds[0] == kinds[1]:
        if {a, b} == {"float16", "bfloat16"}:
            return "float32"
        return max(a, b, key=lambda name: (dtype_of(name).itemsize, name))
    low, high = sorted([a, b], key=lambda name: order.index(kind_of(name)))
    if {*kinds} == {"i", "u"}:
        signed, unsigned = low, high
        if dtype_of(signed).itemsize > dtype_of(unsigned).itemsize:
            return signed
        return {1: "int16", 2: "int32", 4: "int64", 8: "float64"}[dtype_of(unsigned).itemsize]
    if {*kinds} == {"f", "c"}:
        return "complex128" if "float64" in (a, b) or "complex128" in (a, b) else "complex64"
    return high


def views(name, low=-3.0, high=3.0):
    x = sample(name, low=low, high=high)
    p = pnp.asarray(x)
    for view, make in VIEWS.items():
        yield view, make(np, x), make(pnp, p)


@pytest.mark.parametrize("a", ALL)
def test_promotion(a):
    for b in ALL:
        assert pnp.promote_types(a, b) == dtype_of(promoted(a, b)), (a, b)
        x, y = pnp.ones(2, a), pnp.ones(2, b)
        assert (x + y).dtype == pnp.result_type(x, b) == dtype_of(promoted(a, b)), (a, b)
    # Python numbers are weak: they keep the dtype unless their kind is higher.
    x = pnp.ones(2, a)
    assert (x * 1).dtype == (dtype_of(a) if a != "bool" else np.int32)
    assert (x * 1.5).dtype == dtype_of(inexact(a))
    assert (x * 1j).dtype == dtype_of(
        {"float64": "complex128", "complex128": "complex128"}.get(a, "complex64")
    )
    assert (x + True).dtype == dtype_of(a)


# name: (dtypes, low, high); of real numbers, so that integers count as float32.
REAL_FUNCTIONS = {
    "exp": (ALL, -3, 3), "exp2": (ALL, -3, 3), "expm1": (ALL, -3, 3), "log": (ALL, 0.5, 3), "log2": (ALL, 0.5, 3),
    "log10": (ALL, 0.5, 3), "log1p": (ALL, 0, 3), "sqrt": (ALL, 0, 3), "cbrt": (["bool", *REAL], -3, 3), "sin": (ALL, -3, 3),
    "cos": (ALL, -3, 3), "tan": (ALL, -1, 1), "arcsin": (ALL, -0.9, 0.9), "arccos": (ALL, -0.9, 0.9),
    "arctan": (ALL, -0.9, 0.9), "sinh": (ALL, -3, 3), "cosh": (ALL, -3, 3), "tanh": (ALL, -3, 3), "arcsinh": (ALL, -3, 3),
    "arccosh": (ALL, 1, 3), "arctanh": (FLOATS + COMPLEX, -0.9, 0.9), "sinc": (ALL, -3, 3), "degrees": (["bool", *REAL], -3, 3),
    "radians": (["bool", *REAL], -3, 3), "deg2rad": (["bool", *REAL], -3, 3), "rad2deg": (["bool", *REAL], -3, 3),
    "asin": (ALL, -0.9, 0.9), "acos": (ALL, -0.9, 0.9), "atan": (ALL, -0.9, 0.9), "asinh": (ALL, -3, 3), "acosh": (ALL, 1, 3),
    "atanh": (FLOATS + COMPLEX, -0.9, 0.9), "reciprocal": (FLOATS + COMPLEX, 0.5, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", REAL_FUNCTIONS)
def test_functions_of_real_numbers(name):
    dtypes, low, high = REAL_FUNCTIONS[name]
    for dtype in dtypes:
        for view, x, p in views(dtype, low, high):
            values = wide(x) if kind_of(dtype) in "fc" else x.astype(np.float64)
            check(
                getattr(pnp, name)(p),
                expect(getattr(np, name), values),
                inexact(dtype),
                8,
                f"{name} {dtype} {view}",
            )


# name: (dtypes, dtype of the result from that of the operand)
SAME = lambda name: name  # noqa: E731
BOOL = lambda name: "bool"  # noqa: E731
KIND_KEEPING = {
    "negative": ([*REAL, *COMPLEX], SAME), "positive": ([*REAL, *COMPLEX], SAME), "abs": (ALL, real_of), "absolute": (ALL, real_of),
    "fabs": (FLOATS, SAME), "sign": ([*REAL, *COMPLEX], SAME), "square": (ALL[1:], SAME), "floor": (ALL[:-2], SAME), "ceil": (ALL[:-2], SAME),
    "trunc": (ALL[:-2], SAME), "rint": (FLOATS + COMPLEX, SAME), "round": (ALL[1:], SAME), "conj": (ALL[1:], SAME), "real": (ALL, real_of), "imag": (ALL, real_of),
    "angle": (FLOATS + COMPLEX, real_of), "isnan": (ALL, BOOL), "isinf": (ALL, BOOL), "isfinite": (ALL, BOOL),
    "isposinf": (ALL[:-2], BOOL), "isneginf": (ALL[:-2], BOOL), "signbit": (REAL, BOOL), "isreal": (ALL, BOOL), "iscomplex": (ALL, BOOL),
    "logical_not": (ALL, BOOL), "bitwise_not": (["bool", *INTS], SAME), "invert": (["bool", *INTS], SAME), "nan_to_num": (ALL, SAME),
    "fix": (FLOATS, SAME),
}  # fmt: skip


@pytest.mark.parametrize("name", KIND_KEEPING)
def test_functions_that_keep_the_kind(name):
    dtypes, result = KIND_KEEPING[name]
    for dtype in dtypes:
        for view, x, p in views(dtype):
            values = wide(x)
            check(
                getattr(pnp, name)(p),
                expect(getattr(np, name), values),
                result(dtype),
                1,
                f"{name} {dtype} {view}",
            )


ARITHMETIC = "add subtract multiply maximum minimum".split()
DIVISION = "floor_divide remainder mod fmod".split()
REAL_PAIRS = {
    "divide": COMPLEX,
    "true_divide": COMPLEX,
    "hypot": [],
    "arctan2": [],
    "logaddexp": [],
    "logaddexp2": [],
    "copysign": [],
}
COMPARISONS = "equal not_equal less less_equal greater greater_equal".split()
LOGIC = "logical_and logical_or logical_xor".split()


@pytest.mark.parametrize("name", [*ARITHMETIC, *DIVISION, "power", "fmax", "fmin"])
def test_arithmetic_of_pairs(name):
    for a in ALL:
        for b in ALL:
            result = promoted(a, b)
            if (
                name == "subtract"
                and result == "bool"
                or name in DIVISION
                and kind_of(result) in "bc"
            ):
                continue
            if name in ("maximum", "minimum", "fmax", "fmin") and kind_of(result) == "c":
                continue  # the array-API standard orders real numbers only
            if name == "power" and (kind_of(result) == "b" or kind_of(b) == "i"):
                continue
            low = 0.5 if name == "power" else -3
            x, y = sample(a, (2, 3), low, 3), sample(b, (3,), low, 3)
            if name in DIVISION:
                y = np.where(np.abs(y.astype(np.float64)) < 1, np.ones_like(y), y)
            left, right = (wide(v.astype(dtype_of(result))) for v in (x, y))
            expected = expect(getattr(np, name), left, right)
            check(getattr(pnp, name)(x, y), expected, result, 8, f"{name} {a} {b}")


@pytest.mark.parametrize("name", REAL_PAIRS)
def test_real_functions_of_pairs(name):
    dtypes = ["bool", *REAL, *REAL_PAIRS[name]]
    for a in dtypes:
        for b in dtypes:
            result = inexact(promoted(a, b))
            x, y = sample(a, (2, 3), 1, 3), sample(b, (3,), 1, 3)
            if name.endswith("divide"):
                y = np.where(y == 0, np.ones_like(y), y)
            left, right = (wide(v.astype(dtype_of(result))) for v in (x, y))
            check(
                getattr(pnp, name)(x, y),
                expect(getattr(np, name), left, right),
                result,
                8,
                f"{name} {a} {b}",
            )


@pytest.mark.parametrize("name", COMPARISONS + LOGIC)
def test_comparisons_of_pairs(name):
    for a in ALL:
        for b in ALL:
            if name not in ("equal", "not_equal", *LOGIC) and "c" in (kind_of(a), kind_of(b)):
                continue
            result = promoted(a, b)
            x, y = sample(a, (2, 3)), sample(b, (3,))
            y.flat[0] = x.flat[0].astype(y.dtype) if kind_of(a) != "c" or kind_of(b) == "c" else 1
            left, right = (
                (x, y) if name in LOGIC else (wide(v.astype(dtype_of(result))) for v in (x, y))
            )
            check(
                getattr(pnp, name)(x, y),
                expect(getattr(np, name), left, right),
                "bool",
                1,
                f"{name} {a} {b}",
            )


@pytest.mark.parametrize(
    "name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
)
def test_bits_of_pairs(name):
    for a in (["bool"] if "shift" not in name else []) + INTS:
        for b in (["bool"] if "shift" not in name else []) + INTS:
            result = promoted(a, b)
            if kind_of(result) == "f":
                continue
            x, y = sample(a, (2, 3), 0, 60), sample(b, (3,), 0, 7)
            expected = expect(getattr(np, name), x.astype(result), y.astype(result))
            check(getattr(pnp, name)(x, y), expected, result, 1, f"{name} {a} {b}")


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*ARITHMETIC, "fmax", "fmin", "divide", "remainder", "fmod", "power", "hypot", "arctan2", "logaddexp",
                                  "copysign", "heaviside", *COMPARISONS, *LOGIC, "isclose"])  # fmt: skip
def test_special_values_of_pairs(name, dtype):
    x, y = (v.astype(dtype_of(dtype)) for v in np.meshgrid(SPECIAL, SPECIAL))
    expected = expect(getattr(np, name), wide(x), wide(y))
    result = getattr(pnp, name)(x, y)
    check(result, expected, "bool" if expected.dtype == bool else dtype, 8, f"{name} {dtype}")
    if expected.dtype != bool and name not in (
        "maximum",
        "minimum",
        "fmax",
        "fmin",
    ):  # either zero will do
        zeros = (expected == 0) & ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(wide(np.asarray(result)))[zeros], np.signbit(expected)[zeros]
        )


def test_division_of_integers_by_zero_and_of_the_smallest():
    # Integers never trap. x // 0 and x % 0 are 0, as in NumPy; what overflows wraps.
    for dtype in INTS:
        info = np.iinfo(dtype)
        x = np.array([info.min, info.max, 0, 7], dtype)
        for y in (np.zeros(4, dtype), np.full(4, -1 if info.min else 1, dtype)):
            for name in ("floor_divide", "remainder", "fmod"):
                check(
                    getattr(pnp, name)(x, y),
                    expect(getattr(np, name), x, y),
                    dtype,
                    1,
                    f"{name} {dtype}",
                )
        check(pnp.abs(x), expect(np.abs, x), dtype)
        check(pnp.negative(x), expect(np.negative, x), dtype)
        check(pnp.multiply(x, x), expect(np.multiply, x, x), dtype)


def sum_dtype(name):
    if name in ("bool", "int8", "int16"):
        return "int32"
    return "uint32" if name in ("uint8", "uint16") else name


def mean_dtype(name):
    return inexact(name)


# Functions that move elements, in words that both libraries know; x is (3, 4).
MOVES = {
    "reshape": lambda np, x: np.reshape(x, (4, 3)), "reshape -1": lambda np, x: np.reshape(x, (2, -1)), "reshape F": lambda np, x: np.reshape(x, (2, 6), order="F"),
    "ravel": lambda np, x: np.ravel(x), "ravel F": lambda np, x: np.ravel(x, order="F"), "transpose": lambda np, x: np.transpose(x, (1, 0)),
    "swapaxes": lambda np, x: np.swapaxes(x, 0, -1), "moveaxis": lambda np, x: np.moveaxis(x, 0, 1), "expand_dims": lambda np, x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda np, x: np.squeeze(x[:1]), "broadcast_to": lambda np, x: np.broadcast_to(x, (2, 3, 4)), "concatenate": lambda np, x: np.concatenate([x, x[:, :1]], 1),
    "concatenate flat": lambda np, x: np.concatenate([x, x[0]], None), "stack": lambda np, x: np.stack([x, x], -1), "vstack": lambda np, x: np.vstack([x, x[0]]),
    "hstack": lambda np, x: np.hstack([x, x]), "dstack": lambda np, x: np.dstack([x, x]), "column_stack": lambda np, x: np.column_stack([x[:, 0], x]),
    "append": lambda np, x: np.append(x, x, 0), "tile": lambda np, x: np.tile(x, (2, 1, 2)), "repeat": lambda np, x: np.repeat(x, 2, 1), "repeat flat": lambda np, x: np.repeat(x, 3),
    "repeat each": lambda np, x: np.repeat(x, [2, 0, 3], 0), "flip": lambda np, x: np.flip(x), "flip one": lambda np, x: np.flip(x, 1), "fliplr": lambda np, x: np.fliplr(x),
    "flipud": lambda np, x: np.flipud(x), "rot90": lambda np, x: np.rot90(x, 3), "roll": lambda np, x: np.roll(x, 2), "roll axes": lambda np, x: np.roll(x, (1, -2), (0, 1)),
    "pad": lambda np, x: np.pad(x, ((1, 0), (2, 1))), "pad edge": lambda np, x: np.pad(x, 2, mode="edge"), "pad reflect": lambda np, x: np.pad(x, 1, mode="reflect"),
    "pad symmetric": lambda np, x: np.pad(x, 2, mode="symmetric"), "pad wrap": lambda np, x: np.pad(x, 1, mode="wrap"), "diag": lambda np, x: np.diag(x, 1), "diag of vector": lambda np, x: np.diag(x[0], -1),
    "diagonal": lambda np, x: np.diagonal(x, -1), "tril": lambda np, x: np.tril(x, 1), "triu": lambda np, x: np.triu(x, -1), "take": lambda np, x: np.take(x, [2, 0, -1], 0),
    "take flat": lambda np, x: np.take(x, [[5, 7], [0, -12]]), "take_along_axis": lambda np, x: np.take_along_axis(x, np.asarray([[0], [3], [1]]), 1),
    "where": lambda np, x: np.where(x[:, :1] == x, x, x[0]), "compress": lambda np, x: np.compress([True, False, True], x, 0), "select": lambda np, x: np.select([x == x[0], x == x[1]], [x, x[1]], x[2]),
    "extract": lambda np, x: x[x == x], "split": lambda np, x: np.split(x, 2, 1)[1], "array_split": lambda np, x: np.array_split(x, 3, 1)[0], "atleast_3d": lambda np, x: np.atleast_3d(x),
    "getitem": lambda np, x: x[1:, [0, 2]], "newaxis": lambda np, x: x[None, :, 1], "matrix_transpose": lambda np, x: np.matrix_transpose(x), "permute_dims": lambda np, x: np.permute_dims(x, (1, 0)),
    "unique": lambda np, x: np.unique(x.ravel()), "unstack": lambda np, x: np.unstack(x, axis=1)[2], "choose": lambda np, x: np.choose([0, 2, 1, 0], x), "diagflat": lambda np, x: np.diagflat(x[0]),
    "real of itself": lambda np, x: np.where(True, x, x), "full_like": lambda np, x: np.full_like(x, 1), "zeros_like": lambda np, x: np.zeros_like(x), "ones_like": lambda np, x: np.ones_like(x, shape=(2,)),
    "copy": lambda np, x: np.copy(x), "meshgrid": lambda np, x: np.meshgrid(x[0], x[1])[1], "kron": lambda np, x: np.kron(x[:1], x[:1] == x[:1]), "trim": lambda np, x: x[..., -1:],
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_moves_of_every_dtype(name):
    move = MOVES[name]
    for dtype in ALL:
        x = sample(dtype, (3, 4), 0, 9)
        for view in (lambda v: v, lambda v: v[::-1, ::-1], lambda v: v.T.reshape(4, 3).T):
            expected = expect(move, np, view(x))
            if name == "unique" and dtype == "bfloat16":
                expected = np.unique(view(x).astype(np.float32)).astype(x.dtype)
            result = move(pnp, view(pnp.asarray(x)))
            check(result, expected, dtype, 1, f"{name} {dtype}")


@pytest.mark.parametrize("dtype", ALL)
def test_products(dtype):
    a, b, c = (
        sample(dtype, (2, 3), -2, 2),
        sample(dtype, (3, 4), -2, 2),
        sample(dtype, (5, 3, 4), -2, 2),
    )
    products = {
        "matmul": lambda np, a, b, c: np.matmul(a, b), "matmul batch": lambda np, a, b, c: np.matmul(a, c), "matmul vector": lambda np, a, b, c: np.matmul(a, b[:, 0]),
        "matmul transposed": lambda np, a, b, c: np.matmul(b.T, a.T), "dot": lambda np, a, b, c: np.dot(a, b), "inner": lambda np, a, b, c: np.inner(a, b.T), "vdot": lambda np, a, b, c: np.vdot(a[0], b[:, 0]),
        "tensordot": lambda np, a, b, c: np.tensordot(a, c, ((1,), (1,))), "tensordot 2": lambda np, a, b, c: np.tensordot(c, b, 2), "outer": lambda np, a, b, c: np.outer(a, b), "trace": lambda np, a, b, c: np.trace(b, 1),
        "einsum": lambda np, a, b, c: np.einsum("ij,bjk->bik", a, c), "vecdot": lambda np, a, b, c: np.vecdot(b.T, a[0]),
    }  # fmt: skip
    for name, product in products.items():
        if dtype == "bool" and name == "trace":
            continue
        if dtype == "bool":
            expected = expect(product, np, *(v.astype(int) for v in (a, b, c))) > 0
            result = "bool"
        elif name == "trace":
            expected, result = expect(product, np, wide(a), wide(b), wide(c)), sum_dtype(dtype)
        else:
            expected, result = expect(product, np, wide(a), wide(b), wide(c)), dtype
        check(
            product(pnp, *(pnp.asarray(v) for v in (a, b, c))),
            expected,
            result,
            16,
            f"{name} {dtype}",
        )
