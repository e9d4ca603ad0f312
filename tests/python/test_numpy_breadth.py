"""The less common functions of plait.numpy against NumPy: one row for each call.

A row is a call of both libraries in the same words. Its values and dtypes are NumPy's (32 bits for those that NumPy
makes 64 bits wide by itself), eager and jitted; where functions are smooth, derivatives are compared with finite
differences, and where it makes sense, vmap with a loop.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest

rng = np.random.default_rng(11)
V = rng.normal(size=7)  # a vector, a matrix, positive numbers, integers, bools
M = rng.normal(size=(4, 5))
P = rng.uniform(0.5, 3, 6)
I = rng.integers(-9, 9, 8)  # noqa: E741
J = rng.integers(0, 6, 8)
B = rng.uniform(size=(3, 11)) > 0.5
BITS = rng.integers(0, 256, (2, 3)).astype(np.uint8)
Z = V[:4] + 1j * V[3:]
WEIGHTS = rng.uniform(1, 2, 5)
EDGES = np.array([-2.0, -0.5, 0.1, 0.7, 3.0])
SMALL = np.array([0.0, -0.0, 1.0, -1.5, 6.0, 1e-40, -3e38, np.inf, np.nan], np.float32)

# (name, arguments, keywords). The first group is differentiated in its first argument, and mapped over a batch.
SMOOTH = [
    ("gradient", (V,), {}), ("gradient", (V, 0.5), {"edge_order": 2}), ("gradient", (M[1], np.sort(M[2])), {}),
    ("gradient", (M[1], np.sort(M[2])), {"edge_order": 2}), ("ediff1d", (V,), {"to_begin": [0.5], "to_end": [1.0, 2.0]}),
    ("unwrap", (4 * V,), {}), ("unwrap", (4 * V,), {"discont": 4.0}), ("unwrap", (V,), {"period": 1.0}),
    ("poly", (V[:4],), {}), ("polyadd", (V, P), {}), ("polysub", (V[:3], P), {}), ("polymul", (V, P), {}),
    ("polyder", (V,), {"m": 2}), ("polyint", (V,), {"m": 2, "k": [0.5, 2.0]}), ("polyval", (V, 0.7), {}),
    ("polyfit", (P, V[:6], 2), {}), ("polyfit", (P, V[:6], 2), {"w": P}),
    ("i0", (10 * V,), {}), ("i0", (40 * V,), {}), ("ldexp", (V, [1, -2, 3, 0, 5, -6, 1]), {}), ("sinc", (V,), {}),
    ("cov", (M,), {}), ("cov", (M,), {"y": M[:2], "bias": True}), ("cov", (M,), {"rowvar": False, "aweights": WEIGHTS[:4]}),
    ("cov", (M,), {"fweights": [1, 2, 1, 3, 1], "aweights": WEIGHTS, "ddof": 2}), ("corrcoef", (M,), {}),
    ("corrcoef", (M, M[1:]), {}), ("interp", (4 * V, EDGES, P[:5]), {"period": 4.5}),
    ("pad", (M, ((1, 2), (0, 3))), {"mode": "reflect", "reflect_type": "odd"}),
    ("pad", (V, 9), {"mode": "symmetric", "reflect_type": "odd"}), ("pad", (V, (3, 5)), {"mode": "linear_ramp", "end_values": (1, -2)}),
    ("pad", (M, 2), {"mode": "mean"}), ("pad", (M, 2), {"mode": "median", "stat_length": 3}), ("pad", (V, 2), {"mode": "maximum", "stat_length": (2, 3)}),
    ("pad", (V, 2), {"mode": "minimum"}), ("pad", (M, 1), {"constant_values": ((1, 2), (3, 4))}),
    ("resize", (V, (3, 4)), {}), ("resize", (V, (2, 2)), {}), ("trapezoid", (V,), {}), ("delete", (V, [1, -1]), {}), ("delete", (M, slice(0, 4, 2), 0), {}),
    ("delete", (M, 2, 1), {}), ("insert", (V, 2, 1.5), {}), ("insert", (M, [0, 2], [[1.0], [2.0]]), {"axis": 0}),
    ("insert", (M, 1, M[:, 0]), {"axis": 1}), ("insert", (V, [3, 1, 3], [1.0, 2.0, 3.0]), {}), ("insert", (M, [-1], M[:2]), {"axis": 0}),
    ("vander", (V, 4), {}), ("heaviside", (V, 0.5), {}), ("float_power", (P, 1.5), {}), ("logaddexp2", (V, 0.5), {}),
    ("nanmedian", (M,), {"axis": 1}), ("nancumsum", (M,), {"axis": 0}), ("matvec", (M, V[:5]), {}), ("vecmat", (V[:4], M), {}),
]  # fmt: skip
# These are compared eagerly and, but for those in the second list, jitted.
OTHERS = [
    ("gradient", (M,), {}), ("gradient", (M, 0.5, 2.0), {}), ("gradient", (M,), {"axis": (1, 0)}), ("gradient", (J,), {}),
    ("gcd", (I, 12), {}), ("gcd", (I[:4, None], J), {}), ("lcm", (I, J), {}), ("gcd", (np.int8([-128, 6]), np.int8([6, 0])), {}),
    ("packbits", (B,), {}), ("packbits", (B,), {"axis": 1}), ("packbits", (B,), {"axis": 0, "bitorder": "little"}),
    ("unpackbits", (BITS,), {}), ("unpackbits", (BITS,), {"axis": 0}), ("unpackbits", (BITS,), {"axis": 1, "count": 10, "bitorder": "little"}),
    ("unpackbits", (BITS,), {"axis": 1, "count": -3}), ("modf", (SMALL[:-1],), {}), ("modf", (V,), {}), ("frexp", (SMALL,), {}), ("frexp", (V,), {}),
    ("frexp", (V.astype(np.float16),), {}), ("spacing", (V,), {}), ("spacing", (SMALL[:3],), {}), ("ldexp", (SMALL, 3), {}),
    ("sort_complex", (Z,), {}), ("tri", (3, 4, 1), {}), ("tril_indices", (4, -1), {}), ("triu_indices", (3, 1, 5), {}),
    ("tril_indices_from", (M, 1), {}), ("triu_indices_from", (M,), {}), ("diag_indices", (3,), {}), ("diag_indices", (2, 3), {}),
    ("diag_indices_from", (M[:, :4],), {}), ("kaiser", (7, 8.6), {}), ("kaiser", (1, 3.0), {}), ("hamming", (5,), {}),
    ("histogram_bin_edges", (V, 4), {}), ("histogram_bin_edges", (V,), {"bins": 3, "range": (-1.0, 2.0)}), ("histogram", (V, EDGES), {"weights": V, "density": True}),
    ("histogram2d", (M[0], M[1]), {"bins": 3}), ("histogram2d", (M[0], M[1]), {"bins": [2, EDGES], "weights": WEIGHTS}),
    ("histogram2d", (M[0], M[1], EDGES), {"density": True}),
    ("array_equiv", (M, M[:1]), {}), ("array_equiv", (np.ones((2, 3)), np.ones(3)), {}), ("array_equiv", (V, P), {}),
    ("einsum", (M, [0, 1], M, [2, 1], [2, 0]), {}), ("einsum", (M, [3, 1]), {}), ("einsum", ("ij,kj,kl,ml->im", M, M, M, M), {}),
    ("polydiv", ([1.0, 2.0, 3.0, 4.0], [1.0, 1.0]), {}), ("unwrap", (I * 3,), {"period": 5}), ("polyder", ([3, 2, 1],), {}),
    ("pad", (J, 3), {"mode": "mean"}), ("pad", (J, (2, 4)), {"mode": "linear_ramp", "end_values": 9}), ("pad", (J, 4), {"mode": "reflect", "reflect_type": "odd"}),
    ("bitwise_count", (I,), {}), ("bitwise_count", (np.array([0, 255], np.uint8),), {}), ("partition", (V, 3), {}), ("select", ([M > 0, M > -1], [M, -M], 7.0), {}),
    ("block", ([[np.ones((2, 2)), np.zeros((2, 1))], [np.arange(3.0)[None]]],), {}), ("ravel_multi_index", (([1, 2], [0, 3]), (3, 4)), {}),
    ("unravel_index", (J, (2, 3)), {}), ("fmod", (V, 0.7), {}), ("copysign", (V, -V[::-1]), {}), ("divmod", (V, 0.7), {}),
    ("choose", (J, [I, J, 2 * I]), {"mode": "clip"}), ("choose", (I, [I, J, 2 * I]), {"mode": "wrap"}), ("choose", (J % 3, [I, J, 7]), {}),
    ("ravel_multi_index", (([1, 7], [0, -3]), (3, 4)), {"mode": "wrap"}), ("ravel_multi_index", (([1, 7], [0, -3]), (3, 4)), {"mode": "clip", "order": "F"}),
    ("ravel_multi_index", ((np.array([9, 3], np.int32), np.array([5, 10**6 - 1], np.int32)), (10**6, 10**6)), {}), ("ravel_multi_index", (np.array([[99, 1], [5, 50]], np.int8), (100, 100)), {}),
    ("indices", ((2, 3),), {"sparse": True}), ("cross", (M[:3], M.T[:, :3]), {"axisa": 0, "axisc": 0}), ("cross", (M[:3], M[1:]), {"axis": 0}),
]  # fmt: skip
BY_VALUE = [
    ("union1d", (I, J), {}), ("intersect1d", (I, J), {}), ("intersect1d", (I, J), {"return_indices": True}), ("setdiff1d", (I, J), {}),
    ("setdiff1d", (I, J), {"assume_unique": True}), ("setxor1d", (I, J), {}), ("isin", (I, J), {}), ("trim_zeros", ([0, 0, 1, 0, 2, 0],), {}), ("trim_zeros", ([0, 0, 1, 0],), {"trim": "f"}),
    ("trim_zeros", ([0, 0],), {}), ("trim_zeros", (np.pad(M, ((1, 2), (0, 3))),), {}), ("trim_zeros", (np.pad(M, 1),), {"trim": "b", "axis": 1}), ("trim_zeros", (np.zeros((2, 3)),), {"axis": (0, -1)}), ("extract", (M > 0, M), {}), ("polymul", ([0, 1, 2], [0, 3]), {"trim_leading_zeros": True}), ("ix_", ([0, 2], [True, False, True]), {}),
    ("histogramdd", (M, 3), {}), ("histogramdd", (M[:, :2],), {"bins": [2, EDGES], "range": None}), ("histogramdd", (M[:, :2],), {"bins": 2, "range": [(-1, 1), (-2, 3)]}),
    ("iterable", (3,), {}), ("array_str", (V,), {}), ("apply_over_axes", (np.sum, M, [0, 1]), {}), ("mask_indices", (3, np.triu, 1), {}), ("unique", (np.array([[2, 1], [0, 3], [2, 1]]),), {"axis": 0}),
    ("unique", (np.array([[2, 1, 2], [0, 3, 0]]),), {"axis": 1, "return_index": True, "return_inverse": True, "return_counts": True}),
]  # fmt: skip


def ids(rows):
    return [f"{number}-{row[0]}" for number, row in enumerate(rows)]


def expected(name, args, kwargs):
    kwargs = {key: value for key, value in kwargs.items() if key != "trim_leading_zeros"}
    with np.errstate(all="ignore"):
        return getattr(np, name)(*args, **kwargs)


def check(result, wanted, tolerance=1e-9):
    if isinstance(wanted, (tuple, list)):
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted):
            check(one, other, tolerance)
        return
    wanted = np.asarray(wanted)
    assert np.shape(result) == wanted.shape
    if isinstance(result, plait.Array):
        assert not result.weak_type
    if wanted.dtype.kind in "fc" and np.asarray(result).dtype.itemsize < wanted.dtype.itemsize:
        tolerance = 3e-6
    if wanted.dtype == np.float16:
        tolerance = 2e-3
    np.testing.assert_allclose(
        np.asarray(result), wanted, rtol=tolerance, atol=tolerance, equal_nan=True
    )


def is_array(value):
    return isinstance(value, np.ndarray)


def jitted(name, args, kwargs):
    """The call under jit, its arrays traced, other arguments held."""
    places = [place for place, arg in enumerate(args) if is_array(arg)]

    def function(*arrays):
        call = list(args)
        for place, array in zip(places, arrays):
            call[place] = array
        return getattr(pnp, name)(*call, **kwargs)

    return plait.jit(function)(*(args[place] for place in places))


@pytest.mark.parametrize("row", SMOOTH + OTHERS, ids=ids(SMOOTH + OTHERS))
def test_values(row):
    name, args, kwargs = row
    wanted = expected(name, args, kwargs)
    if name == "polydiv":  # the remainder keeps the size of the dividend
        wanted = (wanted[0], np.pad(wanted[1], (4 - wanted[1].size, 0)))
    check(getattr(pnp, name)(*args, **kwargs), wanted)
    check(jitted(*row), wanted)


@pytest.mark.parametrize("row", BY_VALUE, ids=ids(BY_VALUE))
def test_values_that_decide_shapes(row):
    name, args, kwargs = row
    ours = [getattr(pnp, arg.__name__) if callable(arg) else arg for arg in args]
    result, wanted = getattr(pnp, name)(*ours, **kwargs), expected(name, args, kwargs)
    assert result == wanted if isinstance(wanted, (str, bool)) else True
    if not isinstance(wanted, (str, bool)):
        check(result, tuple(wanted) if isinstance(wanted, list) else wanted)


@pytest.mark.parametrize("row", SMOOTH, ids=ids(SMOOTH))
def test_derivatives_and_batches(row):
    name, (x, *rest), kwargs = row
    function = lambda x: getattr(pnp, name)(x, *rest, **kwargs)  # noqa: E731
    plait.grad_check(function, (pnp.asarray(x),), modes=("rev",), rtol=1e-4, atol=1e-5, most=8)
    batch = np.stack([x, x[::-1] if name != "polyfit" else x * 2])
    for result, one in zip(plait.vmap(function)(batch), batch):
        check(result, np.asarray(function(one)))


def test_named_sizes():
    for name, options in [
        ("gradient", {}), ("unwrap", {}), ("ediff1d", {}), ("polyint", {}), ("i0", {}), ("resize", {"new_shape": 4}), ("cov", {}),
        ("quantile", {"q": np.float64(0.3), "method": "hazen"}), ("pad", {"pad_width": 1, "mode": "mean"}), ("histogram_bin_edges", {"bins": 3}),
        ("pad", {"pad_width": 1, "mode": "reflect", "reflect_type": "odd"}), ("packbits", {}),
    ]:  # fmt: skip
        x = 5 * V if name != "packbits" else V > 0
        masked = plait.mask(lambda x: getattr(pnp, name)(x, **options), (f"{x.dtype}[t]",))  # noqa: B023
        wanted = getattr(np, name)(x[:4], **options)
        check(masked(x, t=4)[tuple(map(slice, wanted.shape))], wanted)


def test_replacement():
    a = np.arange(12.0).reshape(3, 4)

    def written(name, *args, target=a, **kwargs):
        copy = target.copy()
        getattr(np, name)(copy, *args, **kwargs)
        return copy

    for name, *args in [
        ("place", a > 4, [-1.0, -2.0]), ("put", [0, -1, 5], [7.0, 8.0]), ("put", [1, 2], 3.0), ("fill_diagonal", 9.0), ("fill_diagonal", [1.0, 2.0]),
        ("put_along_axis", np.array([[1], [3], [0]]), 5.0, 1), ("put_along_axis", np.array([[2, 0, 1, 2]]), a[:1], 0),
    ]:  # fmt: skip
        function = lambda a: getattr(pnp, name)(a, *args, inplace=False)  # noqa: B023, E731
        check(function(a), written(name, *args))
        check(plait.jit(function)(a), written(name, *args))
        check(plait.vmap(function)(np.stack([a, -a]))[0], written(name, *args))
        gradient = plait.grad(lambda a: (function(a) * a).sum())(a)  # noqa: B023
        kept = written(name, *args, target=np.full_like(a, np.nan))
        check(gradient, np.where(np.isnan(kept), 2 * a, kept))
        with pytest.raises(ValueError, match="inplace=False"):
            getattr(pnp, name)(a, *args)
    check(
        pnp.put(a, [50, -1], 0.5, mode="clip", inplace=False),
        written("put", [50, 0], 0.5, mode="clip"),
    )
    check(
        pnp.put(a, [50, -1], 0.5, mode="wrap", inplace=False),
        written("put", [50, -1], 0.5, mode="wrap"),
    )
    tall, cube = np.zeros((7, 2)), np.zeros((3, 3, 3))
    check(
        pnp.fill_diagonal(tall, 1, wrap=True, inplace=False),
        written("fill_diagonal", 1, wrap=True, target=tall),
    )
    check(pnp.fill_diagonal(cube, 1, inplace=False), written("fill_diagonal", 1, target=cube))


def test_sets_of_known_sizes_under_jit():
    a, b = np.array([5, 3, 3, 1]), np.array([3, 1, 7])
    table = [
        (pnp.union1d, {}, [1, 3, 5, 7, 1, 1]), (pnp.intersect1d, {}, [1, 3, 1, 1, 1, 1]), (pnp.setxor1d, {"fill_value": -1}, [5, 7, -1, -1, -1, -1]),
        (pnp.setdiff1d, {}, [5, 0, 0, 0, 0, 0]), (pnp.setdiff1d, {"assume_unique": True, "fill_value": 9}, [5, 9, 9, 9, 9, 9]),
    ]  # fmt: skip
    for function, options, wanted in table:
        np.testing.assert_array_equal(
            plait.jit(lambda a, b: function(a, b, size=6, **options))(a, b), wanted
        )  # noqa: B023
        options.pop("fill_value", None)
        np.testing.assert_array_equal(
            plait.jit(lambda a, b: function(a, b, **options))(a, b),  # noqa: B023
            getattr(np, function.__name__)(a, b, **options),
        )
    both = plait.jit(lambda a, b: pnp.intersect1d(a, b, size=3, return_indices=True))(a, b)
    np.testing.assert_array_equal(both, [[1, 3, 1], [3, 1, 4], [1, 0, 3]])
    rows = plait.jit(lambda x: pnp.unique(x, axis=0, size=3, fill_value=0))(
        np.array([[2, 1], [0, 3], [2, 1]])
    )
    np.testing.assert_array_equal(rows, [[0, 3], [2, 1], [0, 0]])
    for name in ("unique_values", "unique_counts", "unique_inverse", "unique_all"):
        values = plait.jit(lambda x: getattr(pnp, name)(x, size=4, fill_value=-1))(a)  # noqa: B023
        np.testing.assert_array_equal(
            values if name == "unique_values" else values[0], [1, 3, 5, -1]
        )


def test_indices_outside():
    for call in (
        lambda: pnp.choose(np.array([0, 2]), [V, V]), lambda: pnp.choose(np.array([-1]), [V, V]),
        lambda: plait.jit(pnp.choose)(np.array([3]), [V, V]), lambda: pnp.ravel_multi_index(([3], [0]), (3, 4)),
    ):  # fmt: skip
        with pytest.raises(IndexError):
            np.asarray(call())


def test_traced_indices():
    x = np.arange(6.0)
    check(plait.jit(pnp.delete)(x, np.array(-2)), np.delete(x, -2))
    check(
        plait.jit(lambda x, i: pnp.delete(x, i, assume_unique_indices=True))(
            x, np.array([5, 0, -3])
        ),
        np.delete(x, [5, 0, -3]),
    )
    check(
        plait.jit(pnp.insert)(x, np.array([4, 1, 4]), np.array([7.0, 8.0, 9.0])),
        np.insert(x, [4, 1, 4], [7.0, 8.0, 9.0]),
    )
    check(
        plait.vmap(lambda i: pnp.insert(x, i, 9.0))(np.arange(3)),
        np.stack([np.insert(x, i, 9.0) for i in range(3)]),
    )
    check(plait.jit(pnp.delete)(x, np.array([1, 1])), np.delete(x, [1, 1]))
    with pytest.raises(IndexError, match="outside"):
        pnp.insert(x, 7, 1.0)


def test_functions_of_functions():
    check(
        pnp.apply_along_axis(lambda row, k: pnp.stack([row.sum(), k * row[0]]), 0, M, 3),
        np.apply_along_axis(lambda row, k: np.stack([row.sum(), k * row[0]]), 0, M, 3),
    )
    check(
        pnp.apply_along_axis(pnp.outer, 1, M[:, :2], V[:3]),
        np.apply_along_axis(np.outer, 1, M[:, :2], V[:3]),
    )
    conditions = [V < -0.5, V > 0.5]
    wanted = np.piecewise(V, conditions, [np.exp, np.sqrt, 2.0])
    check(pnp.piecewise(V, conditions, [pnp.exp, pnp.sqrt, 2.0]), wanted)
    slope = plait.grad(lambda x: pnp.piecewise(x, [x > 0], [pnp.sqrt]).sum())(V)
    check(
        slope, np.where(V > 0, 0.5 / np.sqrt(np.abs(V)), 0)
    )  # no NaN from roots of negative numbers
    check(pnp.pad(M, 1, lambda row, widths, axis, keywords: row.at[0].set(axis + keywords["by"]), by=5),
          np.pad(M, 1, lambda row, widths, axis, keywords: row.__setitem__(0, axis + keywords["by"]), by=5))  # fmt: skip
    for key in ("0", "-1", "0,2", "1,2,0", "0,3,1", "0,2,0"):
        check(pnp.r_[key, [1, 2], [3, 4]], np.r_[key, [1, 2], [3, 4]])
    check(pnp.r_[1:7:2, 0.5, V], np.r_[1:7:2, 0.5, V])
    check(pnp.r_[0:1:5j], np.r_[0:1:5j])
    check(pnp.c_[M, V[:4]], np.c_[M, V[:4]])


@pytest.mark.parametrize(
    "method",
    "linear lower higher nearest midpoint hazen weibull median_unbiased normal_unbiased interpolated_inverted_cdf inverted_cdf averaged_inverted_cdf closest_observation".split(),
)
def test_methods_of_quantiles(method):
    q = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 1.0])
    gappy = np.where(M > 1, np.nan, M)
    for a, axis in [(M, None), (M, 0), (M[:3], 0), (V[:6], None)]:
        check(pnp.quantile(a, q, axis, method=method), np.quantile(a, q, axis, method=method))
    wanted = np.nanpercentile(gappy, 100 * q, 1, method=method)
    check(plait.jit(lambda a: pnp.nanpercentile(a, 100 * q, 1, method=method))(gappy), wanted)


def test_ufuncs_of_functions():
    ours, theirs = (
        pnp.frompyfunc(lambda x, y: 2 * x + y, 2, 1),
        np.frompyfunc(lambda x, y: 2 * x + y, 2, 1),
    )
    for options in {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": 1, "initial": 3.0}:
        check(ours.reduce(M, **options), theirs.reduce(M, **options).astype(float))
    check(ours(M, V[:5]), theirs(M, V[:5]).astype(float))
    check(ours.accumulate(M, 1), theirs.accumulate(M, 1).astype(float))
    check(ours.outer(M, V), theirs.outer(M, V).astype(float))
    check(
        ours.at(V[:3], [0, 0, 2], [1.0, 2.0, 3.0], inplace=False),
        [4 * V[0] + 4, V[1], 2 * V[2] + 3],
    )
    check(plait.grad(ours.reduce)(V[:4]), [8, 4, 2, 1])
    pair = pnp.frompyfunc(lambda x: (x, x * x), 1, 2)
    check(pair(V), (V, V * V))
    with pytest.raises(ValueError, match="two scalars"):
        pair.reduce(V)


def test_zeros_of_polynomials():
    for p in [1.0, -6.0, 11.0, -6.0], [0.0, 2.0, 0.0, 8.0, 0.0, 0.0], [3.0], [0.0, 0.0], V:
        p = np.array(p)
        assert pnp.roots(p).dtype == np.complex128
        check(np.sort_complex(pnp.roots(p)), np.sort_complex(np.roots(p)), 1e-6)
    strict = lambda p: pnp.roots(p, strip_zeros=False)  # noqa: E731
    check(np.sort_complex(plait.jit(strict)(V)), np.sort_complex(np.roots(V)), 1e-6)
    plait.grad_check(
        lambda p: pnp.abs(strict(p) ** 2).sum(), (pnp.asarray(V[:5]),), modes=("rev",), rtol=1e-3
    )
    check(pnp.poly(M[:, :4]), np.poly(M[:, :4]))


def test_memory_and_files(tmp_path):
    check(pnp.frombuffer(V.tobytes(), offset=8), V[1:])
    assert pnp.frombuffer(V.tobytes()).dtype == np.float32
    check(pnp.frombuffer(BITS.tobytes(), np.uint8, 4), BITS.ravel()[:4])
    check(pnp.fromiter((i * i for i in range(4)), int), [0, 1, 4, 9])
    check(pnp.fromstring("1 2 3", dtype=int, sep=" "), [1, 2, 3])
    V.tofile(tmp_path / "v")
    check(pnp.fromfile(tmp_path / "v", np.float64), V)
    for array in (pnp.asarray(M), pnp.ones(3, pnp.bfloat16)):
        pnp.save(tmp_path / "a.npy", array)
        back = pnp.load(tmp_path / "a.npy")
        assert back.dtype == array.dtype and pnp.array_equal(back, array)
    pnp.savez(tmp_path / "b.npz", pnp.asarray(V), w=pnp.asarray(M))
    check(pnp.load(tmp_path / "b.npz")["w"], M)


def test_einsum_path():
    a, b, c = np.ones((2, 30)), np.ones((30, 4)), np.ones((4, 5))
    for operands in ("ij,jk,kl->il", a, b, c), (a, [0, 1], b, [1, 2], c, [2, 3], [0, 3]):
        assert list(pnp.einsum_path(*operands)[0]) == np.einsum_path(*operands)[0]
    # The long side is contracted first, not from left to right.
    assert pnp.einsum_path("ij,jk,kl->il", np.ones((30, 4)), np.ones((4, 50)), np.ones((50, 2)))[0][
        1
    ] == (1, 2)
