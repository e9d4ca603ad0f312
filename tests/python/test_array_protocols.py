"""Array among others: NumPy's functions, DLPack, buffers, pickling, Python's operators and conversions.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import math
import operator
import pickle

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
).split()
VALUES = np.arange(12.0, dtype=np.float32).reshape(3, 4)
X = pnp.asarray(VALUES)


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


CALLS = {
    "sum": {"axis": 0, "keepdims": True}, "prod": {"axis": 1}, "mean": {"axis": (0, 1)}, "std": {"ddof": 1}, "var": {"axis": -1},
    "max": {"axis": 0}, "min": {}, "any": {"axis": 1}, "all": {}, "argmax": {"axis": 1}, "argmin": {}, "cumsum": {"axis": 1},
    "cumprod": {}, "ptp": {"axis": 0}, "round": {"decimals": 1}, "clip": {"a_min": 2, "a_max": 5}, "sort": {"axis": 0},
    "argsort": {"axis": 0}, "nonzero": {}, "repeat": {"repeats": 2, "axis": 1}, "reshape": {"shape": (4, 3)}, "squeeze": {},
    "swapaxes": {"axis1": 0, "axis2": 1}, "take": {"indices": [0, 2], "axis": 0}, "trace": {}, "transpose": {"axes": (1, 0)},
    "ravel": {}, "diagonal": {}, "copy": {}, "shape": {}, "size": {}, "ndim": {}, "real": {}, "imag": {}, "conj": {},
    "median": {}, "exp": {}, "negative": {}, "isnan": {}, "flip": {}, "moveaxis": {"source": 0, "destination": 1},
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numpy_take_arrays(name):
    function = getattr(np, name)
    result, expected = function(X, **CALLS[name]), function(VALUES, **CALLS[name])
    if isinstance(expected, tuple) and isinstance(result, tuple):
        result, expected = np.stack(result), np.stack(expected)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


def test_functions_of_numpy_with_several_arrays():
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(np.compress(mask, X, axis=0), VALUES[mask])
    np.testing.assert_array_equal(np.searchsorted(X[0], 1.5), 2)
    for function in (np.concatenate, np.stack, np.vstack):
        np.testing.assert_array_equal(function([X, X]), function([VALUES, VALUES]))
    np.testing.assert_allclose(np.dot(X, X.T), VALUES @ VALUES.T)
    np.testing.assert_array_equal(np.where(X > 3, X, 0), np.where(VALUES > 3, VALUES, 0))
    np.testing.assert_array_equal(np.add(X, 1), VALUES + 1)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "eq", "ge"]
)
def test_operators_with_numpy_arrays_give_arrays(name):
    function = getattr(operator, name)
    other = np.full((4, 4) if name == "matmul" else (3, 4), 2, np.float32)
    for left, right in (
        (X, other),
        (other if name != "matmul" else np.ones((2, 3), np.float32), X),
    ):
        result = function(left, right)
        assert isinstance(result, plait.Array)
        expected = function(np.asarray(left), np.asarray(right))
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)
    for scalar in (np.float32(2), np.float64(2), np.int8(2)):
        if name != "matmul":
            assert isinstance(function(scalar, X), plait.Array) and isinstance(
                function(X, scalar), plait.Array
            )


def test_bools_add_as_or_and_multiply_as_and():
    x, y = np.array([True, True, False]), np.array([True, False, False])
    for function in (operator.add, operator.mul, operator.and_, operator.or_, operator.xor):
        result = function(pnp.asarray(x), pnp.asarray(y))
        assert result.dtype == bool
        np.testing.assert_array_equal(np.asarray(result), function(x, y))
    with pytest.raises(plait.DtypeError):
        pnp.asarray(x) - pnp.asarray(y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_shared_with_numpy_and_through_dlpack(dtype):
    values = VALUES.astype(dtype_of(dtype))
    array = pnp.asarray(values)
    view = np.asarray(array)
    assert not view.flags.writeable and np.shares_memory(view, np.asarray(array))
    with pytest.raises(ValueError):
        view[0, 0] = 1
    again = plait.from_dlpack(array)
    assert again is array
    capsule = plait.from_dlpack(array.__dlpack__(max_version=(1, 0)))
    assert capsule.dtype == array.dtype and np.shares_memory(np.asarray(capsule), view)
    if dtype == "bfloat16":
        return  # NumPy's DLPack does not know it
    taken = np.from_dlpack(array)
    assert np.shares_memory(taken, view) and not taken.flags.writeable
    np.testing.assert_array_equal(taken, values)
    for made in (values[::-1, ::2], values.T, values[:0], values[1, 1]):
        made = np.asarray(made).copy(order="K") if made.ndim == 0 else made
        back = plait.from_dlpack(made)
        assert np.shares_memory(np.asarray(back), made) or made.size == 0
        np.testing.assert_array_equal(np.asarray(back), made)
    np.testing.assert_array_equal(np.from_dlpack(array.T), values.T)


def test_dlpack_protocol():
    assert X.__dlpack_device__() == (1, 0)
    copied = np.from_dlpack(X, copy=True)
    assert not np.shares_memory(copied, np.asarray(X)) and copied.flags.writeable
    with pytest.raises(plait.BackendError):
        X.__dlpack__(dl_device=(2, 0))
    with pytest.raises(plait.ValueError):
        X.__dlpack__(stream=1)
    capsule = X.__dlpack__()
    plait.from_dlpack(capsule)
    with pytest.raises(plait.DtypeError, match="used before"):
        plait.from_dlpack(capsule)
    with pytest.raises(plait.TracerError):
        plait.jit(lambda x: np.from_dlpack(x))(X)


@pytest.mark.parametrize("dtype", DTYPES)
def test_buffers(dtype):
    array = pnp.asarray(VALUES.astype(dtype_of(dtype)))
    if dtype == "bfloat16":
        with pytest.raises(BufferError):
            memoryview(array)
        return
    view = memoryview(array.T)
    assert view.readonly and view.shape == (4, 3) and view.itemsize == array.itemsize
    np.testing.assert_array_equal(np.asarray(view), VALUES.astype(dtype).T)
    assert bytes(array.T) == VALUES.astype(dtype).T.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_copies_and_pickles(dtype):
    array = pnp.asarray(VALUES.astype(dtype_of(dtype)))
    for copied in (copy.copy(array), copy.deepcopy([array])[0], array.copy()):
        assert copied is not array and copied.dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(copied), np.asarray(array))
    for value in (array, array.T, array[::2, 1:], array[:0], array[1, 1]):
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
            back = pickle.loads(pickle.dumps(value, protocol))
            assert back.dtype == value.dtype and back.shape == value.shape and not back.weak_type
            np.testing.assert_array_equal(np.asarray(back), np.asarray(value))
    assert pickle.loads(pickle.dumps(pnp.asarray(1.5))).weak_type
    with pytest.raises(plait.TracerError):
        plait.jit(lambda x: pickle.dumps(x))(array)


def test_hashing_is_refused():
    with pytest.raises(TypeError, match="unhashable"):
        hash(X)
    with pytest.raises(TypeError, match="unhashable"):
        {X: 1}


def test_iteration_and_membership():
    assert [row.tolist() for row in X] == VALUES.tolist()
    assert [row.tolist() for row in reversed(X)] == VALUES[::-1].tolist()
    assert len(X) == 3 and len(X[:0]) == 0 and list(X[:0]) == []
    for scalar in (X[0, 0], X.sum()):
        with pytest.raises(TypeError):
            len(scalar)
        with pytest.raises(TypeError):
            iter(scalar)
    assert 5.0 in X and 99 not in X and X[0] in X and "text" not in X
    a, *rest = X
    assert a.shape == (4,) and len(rest) == 2
    assert plait.jit(lambda x: sum(row[0] for row in x))(X) == VALUES[:, 0].sum()


def test_conversions_to_numbers():
    for dtype in DTYPES:
        one = pnp.asarray(np.ones((1, 1), dtype_of(dtype)))
        assert bool(one) is True and complex(one) == 1
        if not dtype.startswith("complex"):
            assert (
                int(one) == 1
                and type(int(one)) is int
                and float(one) == 1.0
                and type(float(one)) is float
            )
    assert int(pnp.asarray(-2.7)) == -2 and float(pnp.asarray(np.inf)) == math.inf
    assert int(pnp.asarray(np.uint64(2**64 - 1))) == 2**64 - 1 and int(
        pnp.asarray(np.int64(-(2**63)))
    ) == -(2**63)
    assert operator.index(pnp.asarray(np.int16(3))) == 3 and list(
        range(pnp.asarray(np.uint8(2)))
    ) == [0, 1]
    assert complex(pnp.asarray(np.complex64(1 - 2j))) == 1 - 2j
    refused = [
        (bool, X, "ambiguous"), (bool, X[:0], "ambiguous"), (int, X, "one element"), (float, X, "one element"),
        (float, pnp.asarray(1j), "complex"), (int, pnp.asarray(1j), "complex"), (operator.index, X[0, 0], "integer"),
        (operator.index, pnp.asarray([1, 2]), "rank 0"), (int, pnp.asarray(np.nan), "NaN"), (int, pnp.asarray(np.inf), "infinity"),
    ]  # fmt: skip
    for convert, array, text in refused:
        with pytest.raises((TypeError, ValueError, OverflowError), match=text):
            convert(array)
    for convert in (bool, int, float, complex, operator.index):
        with pytest.raises(plait.TracerError):
            plait.jit(lambda x: convert(x))(np.int32(1))


def test_text():
    assert (
        f"{X[0, 1]:.3f}" == "1.000"
        and f"{pnp.asarray(7):04d}" == "0007"
        and f"{X[0]}" == str(VALUES[0])
    )
    assert format(pnp.asarray(1 + 2j), ".1f") == "1.0+2.0j"
    with pytest.raises(TypeError):
        format(X, ".2f")
    assert repr(X[0]) == "Array([0., 1., 2., 3.], dtype=float32)"
    assert repr(X[:0]) == "Array([], dtype=float32, shape=(0, 4))" or "shape=(0,4)" in repr(
        X[:0]
    ).replace(" ", "")


@pytest.mark.parametrize(
    "name", ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"]
)
def test_in_place_operators_give_a_new_array_to_their_name(name):
    before = VALUES.copy()
    x = y = pnp.asarray(before)
    copied, memory = x.copy(), np.asarray(x)
    other = np.eye(4, dtype=np.float32) if name == "imatmul" else 2
    x = getattr(operator, name)(x, other)
    assert x is not y and isinstance(x, plait.Array)
    np.testing.assert_array_equal(np.asarray(y), before)
    np.testing.assert_array_equal(np.asarray(copied), before)
    np.testing.assert_array_equal(memory, before)
    np.testing.assert_allclose(
        np.asarray(x), getattr(operator, name.replace("i", "", 1))(before, other), rtol=1e-6
    )


def test_what_cannot_be_written_is_refused():
    for write in (
        lambda: operator.setitem(X, 0, np.ones(7)),
        lambda: operator.setitem(X, 0, "text"),
        lambda: operator.delitem(X, 0),
        lambda: setattr(X, "shape", (12,)),
        lambda: setattr(X, "T", X),
    ):
        with pytest.raises((TypeError, AttributeError)):
            write()
    numpy = np.ones((3, 4), np.float32)
    numpy += np.asarray(X)
    np.testing.assert_array_equal(numpy, VALUES + 1)


def test_items():
    assert X.item(5) == 5.0 and X.item(1, 2) == 6.0 and X.item((1, 2)) == 6.0 and X.item(-1) == 11.0
    assert X[0].item(2) == 2.0 and X[0, 0].item() == 0.0 and type(X.item(0)) is float
    assert type(pnp.asarray([1]).item()) is int and type(pnp.asarray([True]).item()) is bool
    with pytest.raises(IndexError):
        X.item(12)
    with pytest.raises((TypeError, ValueError)):
        X.item()
    assert X.tolist() == VALUES.tolist() and X[0, 0].tolist() == 0.0


def test_methods_take_numpys_arguments():
    np.testing.assert_array_equal(
        np.asarray(X.reshape((4, 3), order="F")), VALUES.reshape((4, 3), order="F")
    )
    np.testing.assert_array_equal(np.asarray(X.flatten("F")), VALUES.flatten("F"))
    assert (
        X.reshape(2, -1).shape == (2, 6)
        and X.reshape([6, 2]).shape == (6, 2)
        and X.transpose(1, 0).shape == (4, 3)
    )
    assert (
        X.sum(0).shape == (4,)
        and X.sum(axis=0, dtype=np.float64, out=None, keepdims=True).dtype == np.float64
    )
    assert (
        X.max(initial=100.0) == 100
        and X.std(ddof=1).shape == ()
        and X.astype(np.int8, copy=False).dtype == np.int8
    )
    with pytest.raises(plait.ValueError, match="out"):
        X.sum(out=np.zeros(()))
    assert X.to_device("cpu") is X and X.to_device(X.device) is X
    with pytest.raises(plait.BackendError):
        X.to_device("gpu")


def test_array_namespace():
    assert X.__array_namespace__() is pnp and X.__array_namespace__(api_version="2023.12") is pnp
    with pytest.raises(plait.ValueError):
        X.__array_namespace__(api_version="1999.01")
