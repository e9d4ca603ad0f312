"""Array: construction, operators, subscripts, conversions, against NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import gc
import json
import operator
import pickle
import weakref

import numpy as np
import pytest

import plait
import plait.numpy as pnp

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
rng = np.random.default_rng(0)


def sample(dtype, shape=(3, 4)):
    values = rng.normal(size=shape) * 3
    if dtype.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return np.abs(values).astype(dtype) if dtype.startswith("uint") else values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_arrays_keep_dtype_and_values(dtype):
    values = sample(dtype)
    array = pnp.asarray(values)
    assert array.dtype == values.dtype and array.shape == values.shape
    assert not array.weak_type
    np.testing.assert_array_equal(np.asarray(array), values)


def test_bfloat16_goes_both_ways():
    import ml_dtypes

    values = np.arange(5).astype(ml_dtypes.bfloat16)
    array = pnp.asarray(values)
    assert array.dtype == ml_dtypes.bfloat16 == plait.bfloat16
    back = np.asarray(array)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back.astype(float), values.astype(float))


@pytest.mark.parametrize(
    "values",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12)[::-2],
        np.arange(24).reshape(2, 3, 4)[:, ::2, 1:],
    ],
)
def test_strided_numpy_arrays(values):
    np.testing.assert_array_equal(np.asarray(pnp.asarray(values)), values)


def test_big_endian_and_unaligned_arrays():
    np.testing.assert_array_equal(np.asarray(pnp.asarray(np.arange(4, dtype=">f4"))), np.arange(4))
    raw = np.zeros(17, np.uint8)
    unaligned = raw[1:].view(np.float32)
    unaligned[:] = [1, 2, 3, 4]
    np.testing.assert_array_equal(np.asarray(pnp.asarray(unaligned)), [1, 2, 3, 4])


def test_python_numbers_are_weak_and_yield():
    x = pnp.asarray(1.0)
    assert x.weak_type and x.dtype == np.float64
    strong = pnp.asarray(np.float32([1, 2]))
    assert (strong + 1.5).dtype == np.float32
    assert (strong + x).dtype == np.float32
    assert (pnp.asarray(np.int32(1)) + 1).dtype == np.int32
    assert (1 + pnp.asarray(np.int8([1]))).dtype == np.int8


def test_a_numpy_array_that_changes_later_does_not_change_the_array():
    values = np.ones(10000)
    array = pnp.asarray(values)
    values[:] = 2
    assert float(array[0]) == 1
    view = np.ones(10000)
    read_only = view[:]
    read_only.flags.writeable = False
    array = pnp.asarray(read_only)
    view[:] = 2
    assert float(array[0]) == 1


def test_memory_is_shared_where_nobody_can_write():
    array = pnp.asarray(np.arange(10000.0))
    view = np.asarray(array)
    assert not view.flags.writeable
    again = pnp.asarray(view)
    assert np.shares_memory(np.asarray(again), view)


@pytest.mark.parametrize(
    "name",
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "eq", "ne", "gt", "ge"],
)
@pytest.mark.parametrize(
    "other",
    [
        2.5,
        2,
        np.float32(1.5),
        np.float32([[1, 2, 3, 4]]),
        [1, 2, 3, 4],
        (1.5, 2, 3, 4),
        [[1], [2], [3]],
    ],
    ids=str,
)
def test_operators_agree_with_numpy(name, other):
    x = np.abs(sample("float32")) + 1
    function = getattr(operator, name)
    for left, right in ((pnp.asarray(x), other), (other, pnp.asarray(x))):
        result = function(left, right)
        expected = function(
            x if isinstance(left, plait.Array) else left,
            x if isinstance(right, plait.Array) else right,
        )
        assert isinstance(result, plait.Array)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_bit_operators(name):
    x, y = np.int32([1, 6, 12]), np.int32([3, 2, 1])
    function = getattr(operator, name)
    np.testing.assert_array_equal(np.asarray(function(pnp.asarray(x), y)), function(x, y))
    np.testing.assert_array_equal(np.asarray(function(x, pnp.asarray(y))), function(x, y))


def test_unary_operators():
    x = sample("float32")
    for function in (operator.neg, operator.pos, operator.abs):
        np.testing.assert_array_equal(np.asarray(function(pnp.asarray(x))), function(x))
    np.testing.assert_array_equal(np.asarray(~pnp.asarray(x > 0)), ~(x > 0))
    quotient, rest = divmod(pnp.asarray(np.int32([7, -7])), 3)
    np.testing.assert_array_equal(np.asarray(quotient), [2, -3])
    np.testing.assert_array_equal(np.asarray(rest), [1, 2])


def test_matrix_product():
    x, y = sample("float32", (3, 4)), sample("float32", (4, 5))
    np.testing.assert_allclose(np.asarray(pnp.asarray(x) @ y), x @ y, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(x @ pnp.asarray(y)), x @ y, rtol=1e-5)


def test_other_operands_are_left_to_python():
    x = pnp.asarray(np.float32([1, 2]))
    with pytest.raises(TypeError):
        x + "a"
    assert (x == None) is False  # noqa: E711
    assert x != None  # noqa: E711


def test_numbers():
    x = pnp.asarray(np.float32(2.5))
    assert float(x) == 2.5 and int(x) == 2 and bool(x) and x.item() == 2.5 and complex(x) == 2.5
    assert [10, 20, 30][pnp.asarray(np.int32(1))] == 20
    assert f"{x:.2f}" == "2.50"
    assert int(pnp.asarray(np.uint64(2**64 - 1))) == 2**64 - 1
    assert pnp.asarray(np.complex64(1 + 2j)).item() == 1 + 2j


def test_len_iter_contains():
    x = pnp.asarray(np.arange(6).reshape(2, 3))
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    a, b = x
    assert a.shape == (3,)


INDICES = [
    0, -1, slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(3, 0, -2), slice(10, 20), slice(-2, None),
    (0, 1), (slice(None), 1), (Ellipsis, 0), (None, 0), (0, None, Ellipsis), (slice(1, None), slice(None, -1), 2), Ellipsis, None,
    ([0, 2],), ([0, 2], [1, 3]), (slice(None), [0, 2, 1]), ([0, 1], slice(None), [1, 2]), (slice(None), [[0, 1], [2, 3]]),
    (0, [1, 2]), (slice(None), 1, [0, 2]), (np.array([0, 2]), None, 1), (slice(0, 4, 2), [1, 0]), (slice(None), slice(3, None, -1), [0, 1]),
    (np.array([-1, -3]),), np.array([[True, False, True, False]] * 4), (slice(None), np.array([True, False, True, True])),
    (np.arange(4)[:, None], np.arange(4)), (True,), ([],),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_getitem_agrees_with_numpy(index):
    x = np.arange(4 * 4 * 3).reshape(4, 4, 3).astype(np.float32)
    empty = isinstance(index, tuple) and isinstance(index[0], list) and not index[0]
    x_expected = x[np.array([], int)] if empty else x[index]
    result = pnp.asarray(x)[index]
    assert result.shape == x_expected.shape
    np.testing.assert_array_equal(np.asarray(result), x_expected)


UPDATES = [
    0, -1, slice(1, 3), slice(None, None, 2), (0, 1), (slice(None), 1), ([0, 2],), ([0, 2], [1, 3]), (slice(None), [0, 2, 1]),
    (slice(0, 4, 2), [1, 0]), (slice(None, None, -1), 0), (np.array([-1, -3]),), (Ellipsis, 0), ([0, 1], slice(None), [1, 2]),
]  # fmt: skip


@pytest.mark.parametrize("index", UPDATES, ids=str)
def test_at_agrees_with_numpy(index):
    x = np.arange(4 * 4 * 3).reshape(4, 4, 3).astype(np.float32)
    array = pnp.asarray(x)
    values = rng.normal(size=x[index].shape).astype(np.float32)
    expected = x.copy()
    expected[index] = values
    np.testing.assert_array_equal(np.asarray(array.at[index].set(values)), expected)
    expected = x.copy()
    np.add.at(expected, index, values)
    np.testing.assert_allclose(np.asarray(array.at[index].add(values)), expected, rtol=1e-6)
    expected = x.copy()
    expected[index] = 7
    np.testing.assert_array_equal(np.asarray(array.at[index].set(7)), expected)
    expected = x.copy()
    np.maximum.at(expected, index, values * 20)
    np.testing.assert_allclose(np.asarray(array.at[index].max(values * 20)), expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(array), x)


def test_at_arithmetic():
    x = pnp.asarray(np.float32([1, 2, 3, 4]))
    assert x.at[1].subtract(5).tolist() == [1, -3, 3, 4]
    assert x.at[1].multiply(5).tolist() == [1, 10, 3, 4]
    assert x.at[1].divide(2).tolist() == [1, 1, 3, 4]
    assert x.at[1].power(3).tolist() == [1, 8, 3, 4]
    assert x.at[1].min(0).tolist() == [1, 0, 3, 4]
    assert x.at[1].apply(lambda v: v * 10).tolist() == [1, 20, 3, 4]
    assert x.at[np.array([7])].get(mode="fill", fill_value=-1.0).tolist() == [-1]
    assert x.at[np.array([7])].get(mode="clip").tolist() == [4]
    assert x.at[np.array([7])].set(9, mode="drop").tolist() == [1, 2, 3, 4]
    assert x.at[np.array([1, 1])].add(1).tolist() == [1, 4, 3, 4]


def test_properties():
    x = pnp.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    assert (x.ndim, x.size, x.nbytes, x.itemsize) == (3, 24, 96, 4)
    assert x.T.shape == (4, 3, 2) and x.mT.shape == (2, 4, 3)
    z = pnp.asarray(np.complex64([1 + 2j]))
    assert z.real.tolist() == [1] and z.imag.tolist() == [2]
    assert x.real is not None and x.imag.tolist() == np.zeros((2, 3, 4)).tolist()
    assert x.device == "cpu:0"
    assert x.__array_namespace__() is pnp


def test_text():
    assert repr(pnp.asarray(np.float32([1, 2]))) == "Array([1., 2.], dtype=float32)"
    assert str(pnp.asarray(np.float32([1, 2]))) == "[1. 2.]"
    assert repr(pnp.asarray(np.zeros((0, 3), np.int32))) == "Array([], dtype=int32, shape=(0,3))"
    seen = []
    plait.make_jaxpr(lambda x: seen.append(repr(x)) or x)(np.zeros((3, 2), np.float32))
    assert seen == ["Traced<f32[3,2] in make_jaxpr>"]


def test_arrays_are_not_hashable_and_have_no_constructor():
    x = pnp.asarray(np.float32([1, 2]))
    with pytest.raises(TypeError):
        hash(x)
    with pytest.raises(TypeError):
        plait.Array()


def test_pickle_and_copy():
    x = pnp.asarray(np.float32([[1, 2], [3, 4]]))
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == x.dtype and y.tolist() == x.tolist()
    for y in (copy.copy(x), copy.deepcopy(x)):
        assert y is not x and y.dtype == x.dtype and y.tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(pnp.asarray(2.0))).weak_type


def test_weak_references():
    x = pnp.asarray(np.float32([1]))
    reference = weakref.ref(x)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None


def test_lists():
    x = pnp.asarray([[1, 2], [3, 4]])
    assert x.dtype == np.int32 and not x.weak_type
    assert pnp.asarray([np.float32(1), 2]).dtype == np.float32
    x = pnp.asarray(np.float32(3))
    assert pnp.asarray([x, 1.0]).tolist() == [3, 1]
    assert pnp.asarray([x, 1.0]).dtype == np.float32
    assert pnp.asarray([]).dtype == np.float32
    assert pnp.asarray([True, False]).dtype == np.bool_


@pytest.mark.parametrize(
    "values", [(1.5, 2), (1,), (), ((1, 2), (3, 4)), [(1, 2), [3, 4]], (True, False)]
)
def test_tuples_are_arrays_as_lists_are(values):
    as_lists = json.loads(json.dumps(values))
    for function in (pnp.asarray, pnp.array):
        x, expected = function(values), function(as_lists)
        assert (x.dtype, x.weak_type, x.tolist()) == (expected.dtype, expected.weak_type, as_lists)
    assert pnp.sum(values).tolist() == np.sum(values)
    assert (
        plait.jit(lambda x: x + pnp.asarray(values))(1.0).tolist()
        == (1 + np.array(values)).tolist()
    )


@pytest.mark.parametrize(
    "value",
    [
        "text",
        ["a"],
        np.array(["a"]),
        np.array([object()]),
        object(),
        {"a": 1},
        None,
        np.array(["2020-01-01"], "M8[D]"),
    ],
)
def test_what_is_no_array_is_refused(value):
    with pytest.raises(plait.DtypeError):
        pnp.asarray(np.float32(1)) if value is None and pnp.sum(None) else pnp.sum(value)


def test_ragged_lists_are_refused():
    with pytest.raises(plait.ShapeError):
        pnp.asarray([[1, 2], [3]])


METHODS = {
    "sum": [((), {}), ((0,), {}), ((), {"axis": 1, "keepdims": True})], "mean": [((), {}), ((1,), {})], "prod": [((), {})],
    "max": [((), {}), ((0,), {})], "min": [((), {})], "any": [((), {})], "all": [((0,), {})], "argmax": [((), {}), ((1,), {})],
    "argmin": [((0,), {})], "argsort": [((), {}), ((0,), {})], "sort": [((0,), {})], "cumsum": [((0,), {})], "cumprod": [((1,), {})],
    "reshape": [((4, 3), {}), (((2, 6),), {}), ((-1,), {})], "transpose": [((), {}), ((1, 0), {})], "flatten": [((), {})],
    "ravel": [((), {})], "squeeze": [((), {})], "clip": [((-1, 1), {})], "conj": [((), {})], "dot": [((np.ones((4, 2), np.float32),), {})],
    "std": [((), {})], "var": [((0,), {})], "ptp": [((), {})], "round": [((), {}), ((1,), {})], "repeat": [((2, 1), {})],
    "take": [(([0, 1], 1), {})], "trace": [((), {})], "diagonal": [((), {})], "swapaxes": [((0, 1), {})], "nonzero": [((), {})],
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_agree_with_numpy(name):
    x = sample("float32")
    for args, kwargs in METHODS[name]:
        # NumPy's sort works in place, and ptp is no method there.
        reference = (
            getattr(np, name)(x, *args)
            if name in ("ptp", "sort")
            else getattr(x, name)(*args, **kwargs)
        )
        result = getattr(pnp.asarray(x), name)(*args, **kwargs)
        for part, expected in (
            zip(result, reference) if isinstance(reference, tuple) else [(result, reference)]
        ):
            np.testing.assert_allclose(np.asarray(part), expected, rtol=1e-5, atol=1e-6)


def test_astype_and_tolist():
    x = pnp.asarray(np.float32([1.7, -2.2]))
    assert x.astype(np.int32).tolist() == [1, -2]
    assert x.astype("float64").dtype == np.float64 and x.astype(float).dtype == np.float32
    assert x.astype(dtype=bool).tolist() == [True, True]


def test_nothing_leaks():
    import tracemalloc

    x = pnp.asarray(np.float32([1, 2, 3]))

    def work():
        y = x + 1
        y = y[0] * 2 - x
        return y.at[0].set(3).tolist(), repr(y), y.shape, y.dtype

    for _ in range(20):
        work()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    for _ in range(500):
        work()
    gc.collect()
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    assert sum(stat.size_diff for stat in after.compare_to(before, "filename")) < 60_000


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit])
@pytest.mark.parametrize("index", [10, -10, np.int64(10)], ids=repr)
def test_modes_hold_for_integers_too(wrap, index):
    x = pnp.asarray(np.arange(5, dtype=np.float32))
    nearest = 4 if index > 0 else 0
    read = lambda mode, **options: wrap(lambda x: x.at[index].get(mode=mode, **options))(x)  # noqa: E731
    assert np.isnan(read("fill")) and read("fill", fill_value=7.0).tolist() == 7
    assert wrap(lambda x: x.at[index].get(fill_value=7.0))(x).tolist() == 7
    assert read("clip").tolist() == nearest
    assert wrap(lambda x: x.at[index].set(9.0, mode="drop"))(x).tolist() == [0, 1, 2, 3, 4]
    assert wrap(lambda x: x.at[index].add(9.0, mode="fill"))(x).tolist() == [0, 1, 2, 3, 4]
    clipped = wrap(lambda x: x.at[index].set(9.0, mode="clip"))(x)
    assert [i for i in range(5) if clipped[i] != x[i]] == [nearest]
    for mode in (None, "raise"):
        with pytest.raises(plait.IndexError):
            wrap(lambda x: x.at[index].set(9.0, mode=mode))(x)
    rows = pnp.asarray(np.arange(6.0).reshape(2, 3))
    assert wrap(lambda x: x.at[index, 1:].set(9.0, mode="drop"))(rows).tolist() == rows.tolist()
    assert np.isnan(wrap(lambda x: x.at[:, index].get(mode="fill"))(rows)).all()


def test_an_index_in_parentheses_is_told_to_be_in_brackets():
    with pytest.raises(plait.DtypeError, match=r"x.at\(0\): x.at takes an index in brackets"):
        pnp.ones(3).at(0)


def test_an_attribute_that_is_not_there_is_an_error_that_names_the_one_that_is_meant():
    with pytest.raises(AttributeError, match="no attribute 'transpos'; did you mean 'transpose'?"):
        pnp.ones(3).transpos  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'sahpe'; did you mean 'shape'?"):
        pnp.ones(3).sahpe  # noqa: B018
    assert not hasattr(pnp.ones(3), "__fancy_protocol__") and not hasattr(pnp.ones(3), "zzz")
