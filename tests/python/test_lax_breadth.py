"""plait.ops, plait.image and the less common functions of plait.lax and plait.tree_util.

Expected values are NumPy's, laws such as that of a transpose, or what JAX gives, written down.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import image, lax, ops

rng = np.random.default_rng(11)
V = rng.normal(size=7)
I = rng.integers(-9, 9, 8)  # noqa: E741
J = rng.integers(0, 6, 8)


def check(result, wanted, tolerance=1e-9):
    if isinstance(wanted, tuple):
        assert len(result) == len(wanted)
        for one, other in zip(result, wanted):
            check(one, other, tolerance)
        return
    assert np.shape(result) == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=tolerance, atol=tolerance)


def test_nodes_of_trees():
    @plait.tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str = plait.tree.static(default="relu")

    layer = Layer(V, "tanh")
    leaves, structure = plait.tree.flatten(layer)
    assert len(leaves) == 1 and plait.tree.unflatten(structure, [1.0]) == Layer(1.0, "tanh")
    assert plait.tree.structure(Layer(V)) != structure
    check(plait.grad(lambda layer: (layer.w**2).sum())(layer).w, 2 * V)
    scaled = plait.tree_util.Partial(pnp.multiply, 3.0)
    check(plait.jit(lambda f, x: f(x))(scaled, V), 3 * V)
    assert plait.tree_util.flatten_one_level({"b": [2], "a": 1})[0] == [1, [2]]
    assert plait.tree_util.flatten_one_level_with_keys((1, [2]))[0] == [
        (plait.tree_util.SequenceKey(0), 1),
        (plait.tree_util.SequenceKey(1), [2]),
    ]
    with pytest.raises(plait.TreeError, match="container"):
        plait.tree_util.flatten_one_level(3.0)


def test_segments():
    ids = np.array([0, 2, 0, -1, 5, 2, 1])
    for name, function, empty in [
        ("sum", np.sum, 0.0),
        ("prod", np.prod, 1.0),
        ("max", np.max, -np.inf),
        ("min", np.min, np.inf),
    ]:
        data = np.stack([V, 2 * V], 1)
        wanted = np.stack(
            [
                function(data[ids == s], axis=0) if (ids == s).any() else [empty] * 2
                for s in range(4)
            ]
        )
        segment = lambda data: getattr(ops, f"segment_{name}")(data, ids, num_segments=4)  # noqa: B023, E731
        check(segment(data), wanted)
        check(plait.jit(segment)(data), wanted)
        plait.grad_check(
            lambda data: pnp.where(pnp.isfinite(wanted), segment(data), 0),
            (pnp.asarray(data),),
            rtol=1e-4,
        )  # noqa: B023
        check(
            plait.vmap(getattr(ops, f"segment_{name}"), in_axes=(0, None, None))(
                data[None], ids, 4
            )[0],
            wanted,
        )
    assert ops.segment_max(J, J).shape == (J.max() + 1,)
    assert ops.segment_max(np.int8([3]), np.array([1]))[0] == -128
    with pytest.raises(plait.TracerError, match="num_segments"):
        plait.jit(ops.segment_sum)(V, ids)


# What jax.image 0.10 gives for this image, written down.
IMAGE = (np.arange(20.0) ** 2 % 7).reshape(4, 5)
RESIZED = {
    "nearest": [0, 1, 1, 4, 2, 2, 2, 2, 2, 2, 4, 1, 1, 0, 1, 4, 4, 2, 2, 2, 4],
    "linear": [1.2, 1.08571, 1.51429, 2.8, 2.01429, 2.08571, 2.6, 3.0, 2.14286, 1.64286, 2.0, 1.28571, 1.42857, 2.0, 1.3, 2.5, 3.17143, 2.6, 1.95714, 2.17143, 2.8],
    "cubic": [1.11231, 0.89103, 1.40634, 2.78261, 1.98496, 2.11174, 2.77963, 3.27774, 2.16555, 1.45245, 1.9296, 1.11327, 1.30356, 1.98785, 0.99116, 2.54839, 3.56512, 2.72311, 1.88811, 2.1419, 2.84259],
    "lanczos3": [1.21081, 0.83572, 1.40056, 2.60319, 1.93843, 2.18868, 3.05879, 3.48055, 2.20071, 1.30356, 1.875, 1.04116, 1.22264, 1.98042, 0.75267, 2.42552, 3.91692, 2.94399, 1.87912, 2.05378, 2.69922],
    "lanczos5": [1.2635, 0.78431, 1.47003, 2.50831, 1.87937, 2.23883, 3.23625, 3.5855, 2.18156, 1.25531, 1.85316, 1.10014, 1.12068, 2.00065, 0.64873, 2.30215, 4.09086, 3.07119, 1.83199, 2.08353, 2.58971],
}  # fmt: skip
MOVED = [0.19277, 1.96702, 3.84886, 1.91966, 2.49666, 0.82961, 0.94546, 1.31347, 2.01438, 2.99158, 3.0388, 1.20086]  # fmt: skip


def test_images():
    for method, wanted in RESIZED.items():
        resized = plait.jit(lambda x: image.resize(x, (3, 7), method))  # noqa: B023
        check(resized(IMAGE), np.reshape(wanted, (3, 7)), 1e-5)
        check(plait.vmap(resized)(np.stack([IMAGE, -IMAGE]))[1], -np.reshape(wanted, (3, 7)), 1e-5)
        plait.grad_check(resized, (pnp.asarray(IMAGE),), modes=("rev",), rtol=1e-4, most=4)
    blunt = image.resize(IMAGE, (2, 3), image.ResizeMethod.LINEAR, antialias=False)
    check(blunt, [[1.66667, 2.0, 2.5], [2.0, 3.0, 1.83333]], 1e-5)

    def moved(scale):
        by = np.array([0.3, -0.5])
        return image.scale_and_translate(IMAGE, (3, 4), (0, 1), scale, by, "cubic")

    check(plait.jit(moved)(np.array([0.8, 1.1])), np.reshape(MOVED, (3, 4)), 1e-5)
    plait.grad_check(moved, (pnp.array([0.83, 1.17], np.float64),), modes=("rev",), rtol=1e-4)
    assert image.resize(IMAGE.astype(np.uint8), (2, 2), "cubic").dtype == np.float32
    with pytest.raises(ValueError, match="lanczos3"):
        image.resize(IMAGE, (2, 2), "area")


def test_convolutions():
    lhs, rhs = (
        (np.arange(12.0) % 5).reshape(1, 3, 2, 2),
        (np.arange(24.0) % 7 - 3).reshape(2, 3, 2, 2),
    )
    # A transposed convolution is that of the transpose: <conv(y), x> = <y, conv_transpose(x)>.
    numbers = ("NHWC", "HWIO", "NHWC")
    for padding in ("SAME", "VALID"):
        y = rng.normal(
            size=lax.conv_transpose(lhs, rhs, (2, 3), padding, transpose_kernel=True).shape
        )
        forward = lax.conv_general_dilated(y, rhs, (2, 3), padding, dimension_numbers=numbers)
        backward = lax.conv_transpose(lhs, rhs, (2, 3), padding, transpose_kernel=True)
        np.testing.assert_allclose((forward * lhs).sum(), (backward * y).sum(), rtol=1e-10)
    # As jax.lax gives them.
    weigh = lambda x: float((x * np.cos(np.arange(x.size).reshape(x.shape))).sum())  # noqa: E731
    for padding, transposed, wanted in [
        ("SAME", False, 27.01425739105747),
        ("VALID", True, -0.5797543533795331),
        ([(1, 2), (0, 1)], False, -19.841626289823445),
    ]:
        np.testing.assert_allclose(
            weigh(lax.conv_transpose(lhs, rhs, (2, 3), padding, transpose_kernel=transposed)),
            wanted,
            rtol=1e-10,
        )
    x = rng.normal(size=(2, 3, 5, 6))
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), (2, 3))[:, :, ::2]
    wanted = windows.transpose(0, 1, 4, 5, 2, 3).reshape(2, 18, 2, 4)
    check(lax.conv_general_dilated_patches(x, (2, 3), (2, 1), "VALID"), wanted)
    kernels = rng.normal(size=(7, 18, 2, 4))
    check(
        lax.conv_general_dilated_local(x, kernels, (2, 1), "VALID", (2, 3)),
        np.einsum("ncij,ocij->noij", wanted, kernels),
    )
    last = lax.conv_general_dilated_local(
        x.transpose(0, 2, 3, 1),
        kernels.transpose(2, 3, 1, 0),
        (2, 1),
        "VALID",
        (2, 3),
        dimension_numbers=numbers,
    )
    check(last, np.einsum("ncij,ocij->nijo", wanted, kernels))
    assert lax.conv_transpose_shape_tuple((1, 5, 5, 2), (2, 2, 2, 3), (2, 2), "SAME", numbers) == (
        1,
        10,
        10,
        3,
    )
    assert lax.conv_general_shape_tuple((1, 5, 5, 2), (2, 2, 2, 3), (2, 2), "SAME", numbers) == (
        1,
        3,
        3,
        3,
    )
    assert lax.conv_shape_tuple((1, 2, 5, 5), (3, 2, 2, 2), (1, 1), [(0, 0), (1, 1)]) == (
        1,
        3,
        4,
        6,
    )
    assert lax.reduce_window_shape_tuple((5, 5), (2, 2), (2, 2), [(0, 0), (1, 1)]) == (2, 3)
    assert lax.conv_general_permutations(numbers) == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    assert lax.padtype_to_pads((4, 5), (3, 2), (2, 2), "SAME") == [(0, 1), (0, 1)]


def test_other_functions_of_lax():
    a, b = np.ones((4, 2)), np.arange(8.0).reshape(2, 2, 2)
    check(plait.jit(lax.ragged_dot)(a, b, np.array([1, 2])), [[2, 4], [10, 12], [10, 12], [0, 0]])
    check(lax.approx_min_k(np.array([3.0, 1.0, 2.0]), 2), ([1.0, 2.0], [1, 2]))
    check(lax.approx_max_k(np.array([3.0, 1.0, 2.0]), 2), ([3.0, 2.0], [0, 2]))
    x = np.arange(12.0).reshape(3, 4)
    check(lax.index_take(x, (np.array([0, 2, 5]), np.array([1, 3, 0])), (0, 1)), [1, 11, 8])
    check(lax.tile(x, (2, 1)), np.tile(x, (2, 1)))
    check(lax.stack([x, x], 1), np.stack([x, x], 1))
    check(lax.unstack(x, 1), tuple(x.T))
    check(lax.broadcast_to_rank(x, 3), x[None])
    check(lax.broadcast_like(np.array(2.0), x), np.full_like(x, 2))
    check(lax.empty((2,), np.float32), np.zeros(2, np.float32))
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    check(
        lax.scatter_sub(np.ones(3), np.array([[0], [2], [0]]), np.array([1.0, 2.0, 3.0]), numbers),
        [-3, 1, -1],
    )
    check(lax.shape_as_value((2, 3)), [2, 3])
    check(lax.dynamic_slice(x, (-1, 0), (1, 2)), x[2:, :2])
    check(lax.dynamic_slice(x, (-1, 0), (1, 2), allow_negative_indices=False), x[:1, :2])
    assert (
        lax.dtype(np.float32(1)) == np.float32
        and lax.platform_dependent(3, cpu=lambda x: x + 1) == 4
    )
    barred = lambda x: lax.optimization_barrier({"a": x, "b": 2 * x})["b"].sum()  # noqa: E731
    check(plait.jit(plait.grad(barred))(x), np.full_like(x, 2))


@pytest.mark.parametrize(
    "name, width",
    [("population_count", 8), ("population_count", 64), ("clz", 16), ("clz", 32), ("clz", 64)],
)
def test_bits_of_integers(name, width):
    values = [0, 1, 5, 2**15 - 1, 2 ** (width - 1) - 1, 37]
    x = np.array([v % 2**width for v in values], f"uint{width}")
    wanted = [
        bin(v).count("1") if name == "population_count" else width - int(v).bit_length()
        for v in x.tolist()
    ]
    for signed in (x, x.astype(f"int{width}")):
        result = getattr(lax, name)(signed)
        assert result.dtype == signed.dtype
        np.testing.assert_array_equal(result, np.array(wanted, signed.dtype))


def test_bits_of_floats():
    for dtype in ("int64", "uint64", "int16", "uint32"):
        info = np.iinfo(dtype)
        x, y = (
            np.array([info.max, info.min, 12345, info.max], dtype),
            np.array([info.max, info.max, 6789, 3], dtype),
        )
        wanted = [(int(a) * int(b)) >> info.bits for a, b in zip(x, y)]
        np.testing.assert_array_equal(lax.mulhi(x, y), np.array(wanted, dtype))
    x = np.array([1.0, 1.0009, -3.14159, 7e4, 1e-8, 3e-5, 0.0, -0.0, np.inf, np.nan], np.float32)
    with np.errstate(over="ignore"):
        halves = np.where(
            np.abs(x) < 6.1e-5, np.copysign(0, x), x.astype(np.float16).astype(np.float32)
        )
    np.testing.assert_array_equal(lax.reduce_precision(x, 5, 10), halves)
    np.testing.assert_array_equal(lax.reduce_precision(x, 8, 23), x)
    import ml_dtypes

    np.testing.assert_array_equal(
        lax.reduce_precision(x, 8, 7), x.astype(ml_dtypes.bfloat16).astype(np.float32)
    )
    np.testing.assert_array_equal(
        plait.grad(lambda x: lax.reduce_precision(x, 5, 10).sum())(x[:8]), [1, 1, 1, 0, 0, 0, 1, 1]
    )
    np.testing.assert_array_equal(
        lax.reduce_xor(I.reshape(2, 4), (1,)), np.bitwise_xor.reduce(I.reshape(2, 4), 1)
    )


# Associative functions that are no known reduction, and a loop over elements for each.
def geometric(x, y):
    return x + y + x * y


def second(x, y):
    return y


def affine(f, g):
    """f, then g, of functions a x + b."""
    return f[0] * g[0], f[1] * g[0] + g[1]


def folded(function, init, elements):
    for element in elements:
        init = function(init, element)
    return init


@pytest.mark.parametrize("function, init", [(geometric, 0.0), (geometric, 0.5), (second, 0.0)])
@pytest.mark.parametrize("shape, axes", [((5,), (0,)), ((3, 4), (1,)), ((2, 3, 4), (0, 2)), ((2, 0), (1,)),
                                         ((2, 0), (0,)), ((3,), ())])  # fmt: skip
def test_reduce_takes_any_associative_function(function, init, shape, axes):
    x = rng.normal(size=shape)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    count = int(np.prod([shape[axis] for axis in axes]))
    rows = np.transpose(x, (*axes, *kept)).reshape(count, *(shape[axis] for axis in kept))
    expected = folded(function, np.full(rows.shape[1:], init), rows)
    f = lambda x: lax.reduce(x, init, function, axes)  # noqa: E731
    check(f(x), expected)
    check(plait.jit(f)(x), expected)
    check(plait.vmap(f)(np.stack([x, x + 1]))[0], expected)
    if x.size:
        plait.grad_check(f, (x,))


def test_several_arrays_are_reduced_at_once():
    a, b = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    expected = folded(affine, (np.ones(3), np.zeros(3)), zip(a.T, b.T))
    f = lambda a, b: lax.reduce((a, b), (1.0, 0.0), affine, (1,))  # noqa: E731
    check(f(a, b), expected)
    check(plait.jit(f)(a, b), expected)
    plait.grad_check(lambda a, b: sum(each.sum() for each in f(a, b)), (a, b))
    with pytest.raises(plait.ValueError, match="2 operands and 1 initial"):
        lax.reduce((a, b), (1.0,), affine, (1,))
    with pytest.raises(plait.ShapeError, match="one shape"):
        lax.reduce((a, b[:2]), (1.0, 0.0), affine, (1,))
    with pytest.raises(plait.ValueError, match="gives 1 arrays where 2 are folded"):
        lax.reduce((a, b), (1.0, 0.0), lambda x, y: x[0], (1,))
    with pytest.raises(plait.DtypeError, match="gives bool"):
        lax.reduce(a, 0.0, lambda x, y: x < y, (1,))


def windows_of(x, init, window, strides, padding, base, dilation):
    """A window in row-major order for each place of the result."""
    spread = np.full([(n - 1) * d + 1 for n, d in zip(x.shape, base)], init)
    spread[tuple(slice(None, None, d) for d in base)] = x
    padded = np.pad(spread, padding, constant_values=init)
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(padded.shape, window, strides, dilation)]  # fmt: skip
    result = np.empty((*counts, int(np.prod(window))))
    for place in np.ndindex(*counts):
        cut = tuple(slice(p * s, p * s + (w - 1) * d + 1, d) for p, s, w, d in zip(place, strides, window, dilation))  # fmt: skip
        result[place] = padded[cut].ravel()
    return result


@pytest.mark.parametrize("function, init", [(geometric, 0.0), (geometric, 0.25), (second, 0.0)])
@pytest.mark.parametrize("window, strides, padding, base, dilation", [
    ((2, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    ((2, 2), (2, 1), ((1, 0), (1, 2)), (1, 1), (1, 1)),
    ((3, 2), (1, 2), ((0, 1), (0, 0)), (2, 1), (1, 2)),
    ((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
])  # fmt: skip
def test_reduce_window_takes_any_associative_function(
    function, init, window, strides, padding, base, dilation
):
    x = rng.normal(size=(4, 5))
    cut = windows_of(x, init, window, strides, padding, base, dilation)
    expected = folded(function, np.full(cut.shape[:-1], init), np.moveaxis(cut, -1, 0))
    f = lambda x: lax.reduce_window(x, init, function, window, strides, padding, base, dilation)  # noqa: E731
    check(f(x), expected)
    check(plait.jit(f)(x), expected)
    check(plait.vmap(f)(np.stack([x, x + 1]))[0], expected)
    plait.grad_check(f, (x,))


def test_windows_of_several_arrays_and_of_bits_of_integers():
    a, b = rng.normal(size=6), rng.normal(size=6)
    got = lax.reduce_window((a, b), (1.0, 0.0), affine, (3,), (1,), "VALID")
    expected = [folded(affine, (1.0, 0.0), list(zip(a, b))[i : i + 3]) for i in range(4)]
    check(got, tuple(np.transpose(expected)))
    x = np.array([1, 2, 4, 12], np.int32)
    assert lax.reduce_window(x, 0, lax.bitwise_or, (2,), (1,), "VALID").tolist() == [3, 6, 12]


def test_a_function_of_ones_own_needs_a_size_that_is_a_number():
    f = plait.mask(lambda x: lax.reduce(x, 0.0, geometric, (0,)), in_shapes="n", out_shapes="")
    with pytest.raises(plait.MissingRuleError, match="named|number"):
        f(np.ones(4), n=3)


# Products of groups of rows, against a loop over groups.


def test_ragged_products():
    sizes, ends = np.array([2, 0, 3]), np.cumsum([2, 0, 3])
    numbers = lax.RaggedDotDimensionNumbers
    # The ragged axis is of lhs alone, behind a batch axis of both.
    x, w = rng.normal(size=(2, 6, 4)), rng.normal(size=(2, 3, 4, 5))
    expected = np.zeros((2, 6, 5))
    for group, (size, end) in enumerate(zip(sizes, ends)):
        expected[:, end - size : end] = x[:, end - size : end] @ w[:, group]
    of_rows = numbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
    f = lambda x, w: lax.ragged_dot_general(x, w, sizes, of_rows)  # noqa: E731
    check(f(x, w), expected)
    check(plait.jit(f)(x, w), expected)
    plait.grad_check(f, (x, w))
    each = np.array([[2, 0, 3], [1, 4, 0]])
    check(lax.ragged_dot_general(x, w, each, of_rows)[0], expected[0])
    check(lax.ragged_dot_general(x, w, each, of_rows)[1, 1:5], x[1, 1:5] @ w[1, 1])
    # It is contracted.
    y = rng.normal(size=(6, 5))
    contracted = numbers((((0,), (0,)), ((), ())), (0,), ())
    expected = [x[0, e - s : e].T @ y[e - s : e] for s, e in zip(sizes, ends)]
    check(lax.ragged_dot_general(x[0], y, sizes, contracted), np.stack(expected))
    # It is a batch axis.
    batched = numbers((((1,), (1,)), ((0,), (0,))), (0,), ())
    expected = np.einsum("bk,bkn->bn", x[0], w[0, 0][None] * np.arange(6.0)[:, None, None])
    expected[5:] = 0
    matrices = w[0, 0][None] * np.arange(6.0)[:, None, None]
    check(lax.ragged_dot_general(x[0], matrices, sizes, batched), expected)
    with pytest.raises(plait.ShapeError, match="no axis of rhs for the groups"):
        lax.ragged_dot_general(x[0], w[0, 0], sizes, numbers((((1,), (0,)), ((), ())), (0,), ()))


def test_scatter_apply_applies_a_function_as_often_as_an_element_is_named():
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    x, rows = rng.normal(size=(4, 3)), np.array([[2], [0], [2]])
    expected = x.copy()
    for (row,) in rows:
        expected[row] = np.sin(expected[row])
    f = lambda x: lax.scatter_apply(x, rows, pnp.sin, numbers, update_shape=(3, 3))  # noqa: E731
    check(f(x), expected)
    check(plait.jit(f)(x), expected)
    check(plait.vmap(f)(x[None])[0], expected)

    def once(x):
        unique = {"update_shape": (2, 3), "unique_indices": True}
        return lax.scatter_apply(x, rows[:2], pnp.sin, numbers, **unique)

    plait.grad_check(once, (x,))


def test_round_takes_halves_to_either_side():
    x = np.array([-2.5, -1.5, -0.5, -0.0, 0.49999997, 0.5, 1.5, 2.5, 4503599627370497.0, np.inf])
    check(lax.round(x), np.round(x))
    away = lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)
    check(away, np.where(np.abs(x) < 2**52, np.copysign(np.floor(np.abs(x) + 0.5), x), x))
    assert np.signbit(np.asarray(away)[3])
    small = np.nextafter(np.float32(0.5), np.float32(0))
    assert float(lax.round(small, 0)) == 0.0


def test_rng_bit_generator_counts_the_elements_it_drew():
    key = np.array([3, 1, 4, 2], np.uint32)
    again, none = lax.rng_bit_generator(key, (0,))
    assert np.array_equal(again, key) and none.shape == (0,)
    next_key, bits = lax.rng_bit_generator(key, (5, 7))
    assert next_key.tolist() == [3, 1, 39, 2] and bits.dtype == np.uint32
    _, more = plait.jit(lambda key: lax.rng_bit_generator(key, (5, 7)))(next_key)
    assert not np.array_equal(bits, more)
    carried = lax.rng_bit_generator(np.array([0, 0, 2**32 - 1, 5], np.uint32), (2,))[0]
    assert carried.tolist() == [0, 0, 1, 6]
    wide = np.array([3 + (1 << 32), 4 + (2 << 32)], np.uint64)
    wide_key, same = lax.rng_bit_generator(wide, (5, 7))
    assert np.array_equal(same, bits) and wide_key.tolist() == [int(wide[0]), int(wide[1]) + 35]
    keys = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
    f = plait.vmap(plait.vmap(lambda key: lax.rng_bit_generator(key, (4,), np.uint8)))
    check(f(keys)[1][1, 2], lax.rng_bit_generator(keys[1, 2], (4,), np.uint8)[1])
    with pytest.raises(plait.DtypeError, match="uint32"):
        lax.rng_bit_generator(key[:2], (3,))
