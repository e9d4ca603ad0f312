"""Weak dtypes: where they come from, that operations on weak operands alone keep them, and what narrowing refuses.

Expected dtypes are written out; sums, means and products are NumPy's.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.lax as lax
import plait.numpy as pnp
import pytest
from plait import _plait, jit

WIDE = ("float64", "int64", "complex128")


def weak(*numbers):
    """A weak vector of numbers of Python."""
    return pnp.stack([pnp.asarray(number) for number in numbers])


def type_of(x):
    return str(x.dtype) + ("*" if x.weak_type else "")


# Where weakness comes from.


@pytest.mark.parametrize(
    "number, expected",
    [
        (2.0, "float64*"),
        (2, "int64*"),
        (2j, "complex128*"),
        (True, "bool"),
        (np.float64(2), "float64*"),
        (np.int64(2), "int64*"),
        (np.longlong(2), "int64*"),
        (np.complex128(2j), "complex128*"),
        (np.bool_(True), "bool"),
        (np.float32(2), "float32"),
        (np.float16(2), "float16"),
        (np.int8(2), "int8"),
        (np.uint64(2), "uint64"),
        (np.complex64(2j), "complex64"),
        (np.array(2.0), "float64"),
        (np.array(2), "int64"),
        (np.array(True), "bool"),
    ],
    ids=lambda value: f"{type(value).__name__}" if not isinstance(value, str) else "",
)
def test_numbers_and_scalars_of_their_types_are_weak_and_all_else_is_strong(number, expected):
    assert type_of(pnp.asarray(number)) == expected
    assert type_of(jit(lambda x: x)(number)) == expected
    assert str(plait.make_jaxpr(lambda x: x)(number).jaxpr.in_avals[0].dtype) == expected.strip("*")
    assert plait.make_jaxpr(lambda x: x)(number).jaxpr.in_avals[0].weak_type == ("*" in expected)


@pytest.mark.parametrize("scalar", [np.float64(4), np.int64(4), 4.0, 4], ids=repr)
def test_a_weak_scalar_keeps_float32_on_either_side_of_every_operator(scalar):
    x = pnp.ones(3, np.float32)
    for result in (x / np.sqrt(scalar), x * scalar, scalar * x, x**scalar, scalar - x, pnp.maximum(scalar, x),
                   pnp.where(x > 0, x, scalar), x.at[0].set(scalar), lax.add(x, scalar)):  # fmt: skip
        assert type_of(result) == "float32"
    assert type_of(jit(lambda x, s: x / s)(x, scalar)) == "float32"


def test_a_jitted_function_has_one_trace_for_a_float_and_for_its_scalar():
    f = jit(lambda x: x + 1)
    f(2.0), f(np.float64(3)), f(np.float64(4))
    assert len(f.cache) == 1


@pytest.mark.parametrize(
    "numbers, expected",
    [
        ([1.0, 2.0], "float32"),
        ([1, 2], "int32"),
        ([1, 2.5], "float32"),
        ([True, False], "bool"),
        ([True, 2], "int32"),
        ([True, 2.0], "float32"),
        ([1j, 2.0], "complex64"),
        ([[1.0, 2.0], [3, 4]], "float32"),
        ((1.0, 2.0), "float32"),
        ([], "float32"),
        (range(3), "int32"),
        ([np.float64(1), 2], "float32"),
        ([np.int64(1), 2], "int32"),
        ([np.float32(1), 2.0], "float32"),
        ([np.float16(1), 2.0], "float16"),
        ([np.int8(1), 2], "int8"),
        ([np.array(1.0), 2.0], "float64"),
        ([np.array([1.0]), [2.0]], "float64"),
    ],
    ids=repr,
)
def test_lists_are_strong_and_of_the_default_dtype_unless_something_in_them_is_strong(
    numbers, expected
):
    assert type_of(pnp.array(numbers)) == expected
    assert np.array_equal(np.asarray(pnp.array(numbers)), np.array(numbers, dtype=expected))


def test_lists_of_weak_arrays_have_the_default_dtype_and_those_of_strong_ones_theirs():
    w, x = pnp.asarray(2.0), pnp.asarray(np.array(3.0))
    assert type_of(pnp.array([w, w])) == type_of(pnp.array([w, 1])) == "float32"
    assert type_of(pnp.array([[w, 1.0], [2.0, 3.0]])) == "float32"
    assert type_of(pnp.array([w, x])) == type_of(pnp.array([x, 1])) == "float64"
    assert type_of(jit(lambda a, b: pnp.array([a, b, 1]))(1.0, 2.0)) == "float32"
    assert type_of(jit(lambda a: pnp.array([a, 1]))(1)) == "int32"


def test_a_list_keeps_all_its_digits_where_it_is_asked_for_them():
    assert pnp.array([0.1, 1e-300], dtype=np.float64).tolist() == [0.1, 1e-300]
    assert pnp.array([2**40, 1], dtype=np.int64).tolist() == [2**40, 1]
    x = pnp.asarray(np.array([1.0, 2.0]))
    assert pnp.array([x, [0.1, 0.2]]).tolist() == [[1.0, 2.0], [0.1, 0.2]]


def test_a_list_is_a_strong_operand_too():
    assert type_of(pnp.ones(2, np.float16) * [1.0, 2.0]) == "float32"
    assert type_of(pnp.ones(2, np.int8) + [1, 2]) == "int32"
    assert type_of([1.0, 2.0] + pnp.asarray(1.0)) == "float32"
    assert type_of(pnp.asarray(np.ones(2)) + [1.0, 2.0]) == "float64"
    assert type_of(pnp.array([1.0, 2.0, 3.0]).mean()) == "float32"
    assert type_of(pnp.mean([1.0, 2.0, 3.0])) == "float32"


def test_lists_as_indices_have_64_bits():
    x = pnp.arange(5)
    assert x[[0, 4]].tolist() == [0, 4]
    with pytest.raises(plait.IndexError, match="4294967296"):
        x[[0, 2**32]]
    assert "i64" in str(plait.make_jaxpr(lambda x: x[[0, 4]])(x))


@pytest.mark.parametrize(
    "make",
    [
        lambda: pnp.array([2**31, 1]),
        lambda: pnp.ones(2, np.int32) + [2**40, 1],
        lambda: pnp.array([300, 1], dtype=np.int8),
        lambda: pnp.array([np.int8(1), 300]),
        lambda: pnp.array([-1, 1], dtype=np.uint8),
        lambda: pnp.array([2**70, 1]),
        lambda: pnp.array(range(2**31, 2**31 + 2)),
        lambda: pnp.sum([2**31, 1]),
    ],
)
def test_an_integer_of_a_list_that_does_not_fit_is_an_error(make):
    with pytest.raises(plait.ValueError, match="does not fit"):
        make()


# Operations on weak operands alone.

# Functions that make arrays of a dtype of their own: the default one, or what is asked for.
MAKERS = set(
    "array asarray astype full linspace logspace geomspace one_hot convert_element_type bitcast_convert_type "
    "frombuffer full_like fft ifft rfft irfft fft2 ifft2 fftn ifftn histogram histogram2d histogramdd "
    "histogram_bin_edges float_power from_dlpack nextafter view".split()
)


def operands():
    matrix = pnp.stack([weak(4.0, 1.0, 0.5), weak(1.0, 3.0, 0.25), weak(0.5, 0.25, 2.0)])
    vector, scalar = weak(0.25, 0.5, 0.75), pnp.asarray(0.5)
    return [matrix, vector, scalar]


def calls(function):
    """Results of a function for weak operands of some shapes, where it takes them."""
    kinds = {"array", "sequence of arrays"}
    info = {
        name: parameters for name, parameters in PARAMETERS[function.__module__, function.__name__]
    }
    required = [name for name, (kind, needed) in info.items() if needed]
    if not required or not all(info[name][0] in kinds for name in required):
        return
    for operand in operands():
        arguments = [
            [operand, operand] if info[name][0] == "sequence of arrays" else operand
            for name in required
        ]
        try:
            yield function(*arguments)
        except (plait.Error, TypeError, ValueError):
            continue


PARAMETERS = {}
for _module, _name, _, _, _, _parameters in _plait.catalogue_info():
    PARAMETERS[f"plait.{_module}", _name] = [
        (name, (kind, fallback == "" and not variadic))
        for name, kind, _, variadic, fallback, _ in _parameters
    ]


def catalogued():
    for module in (
        "numpy",
        "numpy.linalg",
        "lax",
        "lax.linalg",
        "nn",
        "scipy.special",
        "scipy.linalg",
    ):
        for name, function in sorted(_plait.catalogue(module).items()):
            if name not in MAKERS:
                yield pytest.param(function, id=f"{module}.{name}")


@pytest.mark.parametrize("function", list(catalogued()))
def test_a_function_of_weak_operands_alone_is_weak(function):
    for result in calls(function):
        for leaf in plait.tree.leaves(result):
            if isinstance(leaf, plait.Array) and str(leaf.dtype) in WIDE:
                assert leaf.weak_type, type_of(leaf)


def test_reductions_running_sums_and_updates_stay_weak():
    x = weak(1.0, 2.0, 3.0)
    for result in (x.sum(), x.mean(), x.var(), x.std(), x.max(), x.cumsum(), x.cumprod(), x[0], x[1:], x.at[0].set(5.0),
                   x.at[pnp.arange(2)].add(1.0), pnp.sort(x), x @ x, pnp.where(x > 1, x, 0.0), -x, x.reshape(3, 1)):  # fmt: skip
        assert type_of(result) == "float64*"
    assert type_of(weak(1, 2).sum()) == type_of(weak(1, 2).at[0].set(5)) == "int64*"
    assert type_of(weak(1, 2).mean()) == "float64*"


def test_the_gradient_of_a_weak_number_is_weak():
    x = weak(0.3, 0.2, 0.5)
    for f in (pnp.max, pnp.prod, lambda x: abs(x).sum(), lambda x: x[1], lambda x: pnp.sort(x)[0],
              lambda x: pnp.linalg.solve(pnp.diag(x), x).sum()):  # fmt: skip
        for gradient in (plait.grad(f), jit(plait.grad(f)), plait.jacrev(f)):
            assert type_of(gradient(x)) == "float64*"
    assert type_of(plait.vmap(plait.grad(abs))(x)) == "float64*"


def test_tangents_of_weak_numbers_are_weak():
    x = weak(0.3, 0.2, 0.5)
    for f in (pnp.max, pnp.prod, lambda x: pnp.maximum(x, 0.25), lambda x: pnp.sort(x)[0]):  # fmt: skip
        assert type_of(plait.jacfwd(f)(x)) == "float64*"
        for g in (f, jit(f)):
            assert type_of(plait.jvp(g, (x,), (weak(1.0, 0.0, 0.0),))[1]) == "float64*"
            assert type_of(plait.linearize(g, x)[1](weak(1.0, 0.0, 0.0))) == "float64*"
        taped = plait.variable(x)
        f(taped).sum().backward()
        assert type_of(taped.grad) == "float64*"


def test_a_dtype_that_is_asked_for_is_strong():
    x = weak(1.0, 2.0)
    for result in (x.sum(dtype=np.float64), x.mean(dtype=np.float64), x.cumsum(dtype=np.float64),
                   x.var(dtype=np.float64), x.astype(np.float64), pnp.asarray(1.0, np.float64)):  # fmt: skip
        assert type_of(result) == "float64"


def test_weak_with_strong_is_strong_whichever_comes_first():
    x, w = pnp.ones(2, np.float32), weak(1.0, 2.0)
    for result in (x + w, w + x, pnp.concatenate([w, x]), pnp.where(x > 0, w, x), x.at[0].set(w[0]), w.at[0].set(x[0]),
                   pnp.stack([w, x]), pnp.dot(w, x), w.at[:1].add(x[:1])):  # fmt: skip
        assert type_of(result) == "float32"


def test_loops_and_branches_of_weak_values_stay_weak():
    def step(carry, _):
        return carry * 0.5, carry + 1.0

    carry, ys = lax.scan(step, 1.0, None, length=3)
    assert (type_of(carry), type_of(ys)) == ("float64*", "float64*")
    assert type_of(lax.fori_loop(0, 3, lambda i, x: x * 2.0, 1.0)) == "float64*"
    assert type_of(lax.while_loop(lambda x: x < 9.0, lambda x: x * 2.0, 1.0)) == "float64*"
    assert type_of(lax.cond(True, lambda x: x, lambda x: -x, 1.0)) == "float64*"
    assert type_of(lax.map(lambda x: x * 2.0, weak(1.0, 2.0))) == "float64*"
    assert type_of(jit(lambda x: x * 2.0)(1.0)) == "float64*"
    assert type_of(plait.grad(lambda x: x * x)(3.0)) == "float64*"
    assert type_of(plait.vmap(lambda x: x * 2.0)(weak(1.0, 2.0))) == "float64*"


# Narrowing.


@pytest.mark.parametrize(
    "dtype, number", [(np.int8, 300), (np.int32, 2**40), (np.uint8, -1), (np.int16, -40000)]
)
def test_narrowing_an_integer_that_a_trace_does_not_know_is_checked_when_it_runs(dtype, number):
    x = pnp.ones(2, dtype)
    f = jit(lambda x, n: x + n)
    assert f(x, 7).tolist() == [8, 8] and f(x, 7).dtype == dtype
    with pytest.raises(
        plait.ValueError, match=f"add: the integer {number} does not fit {np.dtype(dtype)}"
    ):
        f(x, number)
    with pytest.raises(plait.ValueError, match="does not fit"):
        x + weak(number).sum()
    assert f(x, 7).tolist() == [8, 8]


def test_narrowing_is_checked_under_transforms_and_in_loops():
    x = pnp.ones(3, np.int8)
    good, bad = weak(1, 2, 3), weak(1, 300, 3)
    f = lambda x, n: x + n  # noqa: E731
    for transform in (plait.vmap, lambda f: jit(plait.vmap(f))):
        assert transform(f)(x, good).tolist() == [2, 3, 4]
        with pytest.raises(plait.ValueError, match="300 does not fit int8"):
            transform(f)(x, bad)

    @jit
    def total(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 100, c[1] + c[0]), (0, x))[1]

    assert total(np.int8(1), 200).tolist() == 101
    with pytest.raises(plait.ValueError, match="200 does not fit int8"):
        total(np.int8(1), 300)
    branch = jit(plait.vmap(lambda p, x, n: lax.cond(p, lambda: x + n, lambda: x)))
    assert branch(pnp.array([True, False, True]), x, bad).tolist() == [2, 1, 4]


def test_comparing_with_an_integer_that_does_not_fit_needs_no_narrowing():
    x = pnp.asarray(np.int8([1, 100]))
    f = jit(lambda x, n: (x < n, x == n, n >= x))
    assert [r.tolist() for r in f(x, 300)] == [[True, True], [False, False], [True, True]]
    assert [r.tolist() for r in f(x, 100)] == [[True, False], [False, True], [True, True]]


def test_astype_wraps_as_it_is_asked_to_and_indices_are_not_narrowed():
    assert jit(lambda n: n.astype(np.int8))(300).tolist() == 44
    with pytest.raises(plait.IndexError, match="4294967297"):
        jit(lambda x, n: x[n])(pnp.arange(3), 2**32 + 1)
    with pytest.raises(plait.ValueError, match="300 does not fit int8"):
        jit(lambda x, n: x.at[0].set(n))(pnp.ones(3, np.int8), 300)
    with pytest.raises(plait.ValueError, match="does not fit int32"):
        jit(lambda n: lax.fori_loop(0, n, lambda i, x: x + 1, 0))(2**40)


# Where 64 bits come from.


def test_an_error_of_dtypes_names_the_line_where_the_wider_one_came_in():
    wide = pnp.asarray(np.ones(2))

    def step(x, _):
        y = x * 2
        y = y * wide  # here
        return y + 1, None

    with pytest.raises(
        plait.DtypeError, match=r"float64 comes in at .*test_weak.py:\d+ in step:  y = y \* wide"
    ):
        lax.scan(step, pnp.ones(2), None, length=3)

    def widened(x):
        return pnp.sin(x) * wide

    with pytest.raises(plait.DtypeError, match=r"float64 comes in at .* in widened"):
        lax.cond(True, widened, lambda x: x, pnp.ones(2))


def test_explain_and_summary_name_the_lines_where_32_bits_become_64():
    wide = pnp.asarray(np.ones(2))

    def f(x):
        return x * wide

    def g(x):
        return x * 2.0

    x = pnp.ones(2)
    assert "float32 becomes float64 at" in str(plait.explain(f, x)) and "in f:" in str(
        plait.explain(f, x)
    )
    assert "float32 becomes float64 at" in str(plait.summary(f, x))
    assert "becomes" not in str(plait.explain(g, x)) and "becomes" not in str(plait.summary(g, x))
