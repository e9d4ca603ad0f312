"""plait.numpy: creation, shapes, joining, splitting, indexing and contraction against NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

rng = np.random.default_rng(2)


def check(result, expected, tolerance=0.0):
    result, expected = np.asarray(result), np.asarray(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


def check_all(results, expected, tolerance=0.0):
    assert len(results) == len(expected)
    for result, value in zip(results, expected, strict=True):
        check(result, value, tolerance)


X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


# Creation.


def test_constant_arrays():
    for name in ("zeros", "ones"):
        assert getattr(pnp, name)((2, 3)).dtype == np.float32
        check(getattr(pnp, name)((2, 0)), getattr(np, name)((2, 0)))
        check(getattr(pnp, name)(3, dtype="int8"), getattr(np, name)(3, dtype="int8"))
        check(getattr(pnp, name + "_like")(X), getattr(np, name + "_like")(X))
    check(pnp.full((2, 2), 1.5), np.full((2, 2), 1.5))
    assert (
        pnp.full(2, 1.5).dtype == np.float32
        and pnp.full(2, 3).dtype == np.int32
        and pnp.full(2, np.array(3.0)).dtype == np.float64
    )
    check(pnp.full((2, 3), np.arange(3)), np.full((2, 3), np.arange(3)))
    check(pnp.full_like(X, 2, shape=(2,)), [2, 2])
    assert pnp.empty((3,)).shape == (3,)
    with pytest.raises(ValueError, match="negative"):
        pnp.zeros((2, -1))


@pytest.mark.parametrize(
    "arguments",
    [
        (5,),
        (2, 7),
        (2, 9, 3),
        (9, 2, -3),
        (0,),
        (5, 2),
        (0.5,),
        (1, 2, 0.1),
        (0.0, 1.0, 0.3),
        (3, 0, -0.5),
    ],
)
def test_arange(arguments):
    check(pnp.arange(*arguments), np.arange(*arguments), 1e-6)
    assert pnp.arange(*arguments).dtype == (
        np.float32 if any(isinstance(a, float) for a in arguments) else np.int32
    )


def test_arange_dtypes():
    for dtype in ("int8", "uint64", "float16", "float64", "complex64"):
        assert pnp.arange(3, dtype=dtype).dtype == np.dtype(dtype)
    assert pnp.arange(2**40, 2**40 + 3).dtype == np.int64
    check(pnp.arange(2**40, 2**40 + 3), np.arange(2**40, 2**40 + 3))
    with pytest.raises(ValueError, match="step"):
        pnp.arange(0, 5, 0)


def test_ranges():
    check(pnp.linspace(0, 1, 11), np.linspace(0, 1, 11).astype(np.float32))
    check(pnp.linspace(2.0, 3.0, 7, endpoint=False), np.linspace(2.0, 3.0, 7, endpoint=False), 1e-6)
    check(
        pnp.linspace(np.zeros(3), np.arange(3.0), 5, axis=-1),
        np.linspace(np.zeros(3), np.arange(3.0), 5, axis=-1),
        1e-15,
    )
    check(pnp.linspace(0, 10, 4, dtype=int), np.linspace(0, 10, 4, dtype=int))
    for num in (0, 1, 2):
        check(pnp.linspace(3, 5, num), np.linspace(3, 5, num))
    check(pnp.logspace(0, 3, 4), np.logspace(0, 3, 4), 1e-6)
    check(pnp.logspace(0, 3, 4, base=2), np.logspace(0, 3, 4, base=2), 1e-6)
    check(pnp.geomspace(1, 1000, 4), np.geomspace(1, 1000, 4), 1e-5)


@pytest.mark.parametrize("k", [-4, -2, -1, 0, 1, 2, 4])
def test_triangles_and_diagonals(k):
    check(pnp.eye(3, 4, k), np.eye(3, 4, k))
    check(pnp.tri(3, 4, k), np.tri(3, 4, k))
    check(pnp.tril(X, k), np.tril(X, k))
    check(pnp.triu(X, k), np.triu(X, k))
    check(pnp.diag(np.arange(1.0, 4), k), np.diag(np.arange(1.0, 4), k))
    check(pnp.diag(X[0], k), np.diag(X[0], k))
    check(pnp.diagonal(X, k, 2, 0), np.diagonal(X, k, 2, 0))
    check(pnp.trace(X, k), np.trace(X, k))
    check_all(pnp.tril_indices(4, k, 3), np.tril_indices(4, k, 3))
    check_all(pnp.triu_indices(4, k, 3), np.triu_indices(4, k, 3))


def test_grids():
    xi = [np.arange(3), np.arange(2.0), np.arange(4)]
    for indexing in ("xy", "ij"):
        for sparse in (False, True):
            check_all(
                pnp.meshgrid(*xi, indexing=indexing, sparse=sparse),
                np.meshgrid(*xi, indexing=indexing, sparse=sparse),
            )
    check(pnp.indices((2, 3)), np.indices((2, 3)))
    for name in ("hamming", "hanning", "blackman", "bartlett"):
        for count in (1, 2, 7):
            check(getattr(pnp, name)(count), getattr(np, name)(count), 1e-6)


# Shape.


def test_reshape_and_friends():
    check(pnp.reshape(X, (4, -1)), X.reshape(4, -1))
    check(pnp.reshape(X, -1), X.reshape(-1))
    check(pnp.ravel(X), X.ravel())
    check(pnp.transpose(X), X.T)
    check(pnp.transpose(X, (1, -1, 0)), X.transpose(1, 2, 0))
    check(pnp.matrix_transpose(X), np.swapaxes(X, -1, -2))
    check(pnp.swapaxes(X, 0, -1), np.swapaxes(X, 0, -1))
    check(pnp.moveaxis(X, 0, -1), np.moveaxis(X, 0, -1))
    check(pnp.moveaxis(X, (0, 1), (-1, 0)), np.moveaxis(X, (0, 1), (-1, 0)))
    for axis in range(3):
        for start in range(4):
            check(pnp.rollaxis(X, axis, start), np.rollaxis(X, axis, start))
    check(pnp.expand_dims(X, (0, -1)), np.expand_dims(X, (0, -1)))
    check(pnp.squeeze(X[:, :1, None]), np.squeeze(X[:, :1, None]))
    check(pnp.squeeze(X[:, :1], 1), np.squeeze(X[:, :1], 1))
    check(pnp.broadcast_to(X[0, 0], (5, 4)), np.broadcast_to(X[0, 0], (5, 4)))
    check_all(pnp.broadcast_arrays(X, X[0, :1]), np.broadcast_arrays(X, X[0, :1]))
    assert pnp.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert (
        pnp.shape(X) == (2, 3, 4) and pnp.size(X) == 24 and pnp.size(X, 1) == 3 and pnp.ndim(X) == 3
    )
    for rank in range(3):
        x = X[(0,) * (3 - rank)]
        for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
            check(getattr(pnp, name)(x), getattr(np, name)(x))
    check_all(pnp.atleast_2d(1.0, X), np.atleast_2d(1.0, X))


@pytest.mark.parametrize("call, error", [
    (lambda: pnp.reshape(X, (5, -1)), "does not divide"),
    (lambda: pnp.reshape(X, (-1, -1)), "two sizes open"),
    (lambda: pnp.reshape(X, (2, 2)), "24 elements"),
    (lambda: pnp.squeeze(X, 0), "axis 0"),
    (lambda: pnp.broadcast_to(X, (3, 4)), "does not broadcast"),
    (lambda: pnp.stack([X, X[0]]), "stack: arrays of shapes"),
    (lambda: pnp.concatenate([]), "no arrays"),
    (lambda: pnp.split(X, 2, axis=1), "does not split"),
    (lambda: pnp.moveaxis(X, (0, 1), (0,)), "moveaxis"),
    (lambda: pnp.transpose(X, (0, 0, 1)), "transpose"),
    (lambda: pnp.pad(X, 1, mode="magic"), "choose"),
    (lambda: pnp.pad(X, -1), "negative"),
    (lambda: pnp.matmul(X, X), "matmul"),
    (lambda: pnp.tensordot(X, X, 2), "tensordot"),
    (lambda: pnp.einsum("ij,jk", X, X), "labels"),
])  # fmt: skip
def test_errors(call, error):
    with pytest.raises(ValueError, match=error):
        call()


def test_joining():
    a, b = X[0], X[1].astype(np.float64)
    for axis in (0, 1, -1, None):
        check(pnp.concatenate([a, b], axis), np.concatenate([a, b], axis))
    assert pnp.concatenate([a, b]).dtype == np.float64
    for axis in (0, 1, -1):
        check(pnp.stack([a, b], axis), np.stack([a, b], axis))
    for name in ("vstack", "hstack", "dstack", "column_stack"):
        for parts in ([np.arange(3), np.arange(3.0)], [X[0], X[1]]):
            check(getattr(pnp, name)(parts), getattr(np, name)(parts))
    check(pnp.append(a, b, 0), np.append(a, b, 0))
    check(pnp.append(1, [2, 3]), np.append(1, [2, 3]))
    check_all(pnp.unstack(X, axis=1), [X[:, i] for i in range(3)])


@pytest.mark.parametrize("sections", [1, 2, 3, 4, [1, 2], [0, 3, 3], [2, 10], [-1]])
def test_splitting(sections):
    for axis in (0, 1, -1):
        check_all(pnp.array_split(X, sections, axis), np.array_split(X, sections, axis))
        if not isinstance(sections, int) or X.shape[axis] % sections == 0:
            check_all(pnp.split(X, sections, axis), np.split(X, sections, axis))
    check_all(pnp.hsplit(X, 3), np.hsplit(X, 3))
    check_all(pnp.vsplit(X, 2), np.vsplit(X, 2))
    check_all(pnp.dsplit(X, 2), np.dsplit(X, 2))


def test_repeating():
    for reps in (2, (2,), (2, 1), (1, 2, 3), (2, 1, 1, 2), 0):
        check(pnp.tile(X[0], reps), np.tile(X[0], reps))
    for axis in (None, 0, -1):
        for repeats in (0, 1, 3):
            check(pnp.repeat(X, repeats, axis), np.repeat(X, repeats, axis))


def test_rearranging():
    for axis in (None, 0, (0, -1)):
        check(pnp.flip(X, axis), np.flip(X, axis))
    check(pnp.flipud(X), np.flipud(X))
    check(pnp.fliplr(X), np.fliplr(X))
    for k in range(-3, 5):
        check(pnp.rot90(X, k), np.rot90(X, k))
        check(pnp.rot90(X, k, (2, 0)), np.rot90(X, k, (2, 0)))
    for shift, axis in [
        (2, None),
        (-5, None),
        (30, None),
        (1, 0),
        (-1, 1),
        ((1, 2), (0, 2)),
        (1, (0, 1)),
        ((1, 2), 1),
    ]:
        check(pnp.roll(X, shift, axis), np.roll(X, shift, axis))
    check(pnp.roll(np.zeros((0, 2)), 1, 0), np.zeros((0, 2)))


def test_rolling_by_traced_shifts():
    for shift in (-9, -1, 0, 2, 11):
        s = np.int32(shift)
        for call, wanted in (
            (lambda s: pnp.roll(X, s), np.roll(X, shift)),
            (lambda s: pnp.roll(X, s, 1), np.roll(X, shift, 1)),
            (lambda s: pnp.roll(X, (s, 1), (0, 1)), np.roll(X, (shift, 1), (0, 1))),
            (lambda s: pnp.roll(X, [2, s], (0, 1)), np.roll(X, (2, shift), (0, 1))),
            (lambda s: pnp.roll(X, s, (0, 1)), np.roll(X, shift, (0, 1))),
            (lambda s: pnp.roll(X, (s, -s), (0, 0)), X),
            (
                lambda s: pnp.roll(X, pnp.stack([s, 2 * s]), (0, 1)),
                np.roll(X, (shift, 2 * shift), (0, 1)),
            ),
        ):
            check(plait.jit(call)(s), wanted)
            check(plait.jit(call)(shift), wanted)
            check(plait.jit(call)(np.int8(shift)), wanted)
    shifts = np.arange(-2, 3)
    check(
        plait.vmap(lambda s: pnp.roll(X, (s, 1), (0, 1)))(shifts),
        np.stack([np.roll(X, (s, 1), (0, 1)) for s in shifts]),
    )
    weights = np.arange(X.size).reshape(X.shape)
    turned = plait.jit(lambda x, s: (pnp.roll(x, (s, 1), (0, 1)) * weights).sum())
    np.testing.assert_array_equal(
        plait.grad(turned)(X * 1.0, 2), np.roll(weights, (-2, -1), (0, 1))
    )
    check(plait.jit(lambda s: pnp.roll(np.zeros((0, 2)), s, 0))(1), np.zeros((0, 2)))
    with pytest.raises(plait.DtypeError, match="a shift of dtype float32"):
        plait.jit(lambda s: pnp.roll(X, s))(np.float32(1))
    with pytest.raises(plait.ValueError, match="3 shifts for 2 axes"):
        plait.jit(lambda s: pnp.roll(X, (s, s, s), (0, 1)))(1)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [2, (1, 2), ((1, 0), (0, 3), (7, 9))])
def test_pad(mode, width):
    width = width if not isinstance(width, tuple) or isinstance(width[0], tuple) else (width,)
    check(pnp.pad(X, width, mode), np.pad(X, width, mode))
    check(pnp.pad(X[:1, :, :1], width, mode), np.pad(X[:1, :, :1], width, mode))


def test_pad_with_a_value():
    check(pnp.pad(X, 1, constant_values=2.5), np.pad(X, 1, constant_values=2.5))
    check(
        pnp.pad(np.arange(3), (1, 2), constant_values=7),
        np.pad(np.arange(3), (1, 2), constant_values=7),
    )


# Indexing.


def test_take():
    indices = np.array([[0, 2], [1, -1]])
    for axis in (None, 0, 1, -1):
        limit = X.size if axis is None else X.shape[axis]
        for mode in ("wrap", "clip"):
            check(
                pnp.take(X, indices * 3, axis, mode=mode), np.take(X, indices * 3, axis, mode=mode)
            )
        inside = indices % limit
        check(pnp.take(X, inside, axis), np.take(X, inside, axis))
        check(pnp.take(X, inside - limit, axis), np.take(X, inside - limit, axis))
    assert np.isnan(np.asarray(pnp.take(X[0, 0], np.array([4, -5]), mode="fill"))).all()
    check(pnp.take(X[0, 0], np.array([4]), fill_value=7), [7])
    check(pnp.take(X, 1, axis=1), np.take(X, 1, axis=1))
    for dtype in ("uint8", "int64", "uint32"):
        check(pnp.take(X[0, 0], np.array([1, 3], dtype)), [1, 3])
    with pytest.raises(TypeError, match="take: indices"):
        pnp.take(X, np.array([0.5]))


def test_take_along_axis():
    for axis in (0, 1, -1):
        order = np.argsort(np.sin(X), axis)
        check(pnp.take_along_axis(X, order, axis), np.take_along_axis(X, order, axis))
    index = np.array([[[1], [0], [2]]])
    check(pnp.take_along_axis(X, index, 2), np.take_along_axis(X, index, 2))
    check(
        pnp.take_along_axis(X, np.array([3, 5]), None),
        np.take_along_axis(X, np.array([3, 5]), None),
    )


def test_nonzero_and_its_kin():
    x = np.array([[0, 1, 0], [2, 0, 3]])
    check_all(pnp.nonzero(x), np.nonzero(x))
    check_all(pnp.where(x > 1), np.where(x > 1))
    check(pnp.flatnonzero(x), np.flatnonzero(x))
    check(pnp.argwhere(x), np.argwhere(x))
    check_all(pnp.nonzero(x, size=5, fill_value=-1), [[0, 1, 1, -1, -1], [1, 0, 2, -1, -1]])
    check_all(pnp.nonzero(x, size=2), [[0, 1], [1, 0]])
    check_all(pnp.nonzero(np.zeros(0)), np.nonzero(np.zeros(0)))
    check(pnp.compress([True, False, True], X, axis=1), np.compress([True, False, True], X, axis=1))
    check_all(plait.jit(lambda a: pnp.nonzero(a, size=3))(pnp.asarray(x)), np.nonzero(x))


def test_unique():
    for x in (
        rng.integers(0, 5, (4, 5)),
        np.array([1.0, np.nan, -1, np.nan]),
        np.zeros(0),
        np.array([True, False, True]),
    ):
        check(pnp.unique(x), np.unique(x))
        results = pnp.unique(x, return_index=True, return_inverse=True, return_counts=True)
        expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        check(results[0], expected[0])
        check(results[1], expected[1])
        check(results[2], expected[2].reshape(x.shape))
        check(results[3], expected[3])
    check(pnp.unique(np.array([3, 1, 3]), size=4, fill_value=9), [1, 3, 9, 9])
    check(pnp.isin(X, [3, 5, 40]), np.isin(X, [3, 5, 40]))
    check(pnp.isin(X, []), np.isin(X, []))
    check(pnp.isin(X, [1, np.nan], invert=True), np.isin(X, [1, np.nan], invert=True))


def test_select_choose_unravel():
    x = np.arange(6)
    check(
        pnp.select([x < 2, x > 3], [x, x * 10], default=-1),
        np.select([x < 2, x > 3], [x, x * 10], default=-1),
    )
    check(pnp.choose(np.array([0, 1, 2]), [np.arange(3), 10 * np.arange(3), 100]), [0, 10, 100])
    check_all(
        pnp.unravel_index(np.array([0, 5, 23]), (2, 3, 4)),
        np.unravel_index(np.array([0, 5, 23]), (2, 3, 4)),
    )
    check(
        pnp.ravel_multi_index([np.array([1, 0]), np.array([2, 3])], (2, 4)),
        np.ravel_multi_index([[1, 0], [2, 3]], (2, 4)),
    )


# Contraction.

SHAPES = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
          ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)), ((1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 2)), ((5, 2, 3), (3,)),
          ((0, 2, 3), (3, 4)), ((2, 0), (0, 3))]  # fmt: skip


@pytest.mark.parametrize("a, b", SHAPES)
@pytest.mark.parametrize(
    "dtype", ["bool", "int32", "uint8", "float16", "float32", "float64", "complex128"]
)
def test_matmul(a, b, dtype):
    x, y = (
        (rng.normal(size=a) * 2).astype(dtype),
        (rng.normal(size=b) * 2).astype(dtype) if dtype != "uint8" else np.ones(b, dtype),
    )
    check(
        pnp.matmul(x, y),
        np.matmul(x, y),
        {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12, "complex128": 1e-12}.get(dtype, 0),
    )
    if len(b) <= 2:
        check(
            pnp.dot(x, y),
            np.dot(x, y),
            {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12, "complex128": 1e-12}.get(dtype, 0),
        )


def test_products():
    a, b = rng.normal(size=(2, 3, 4)), rng.normal(size=(4, 3, 2))
    check(pnp.dot(a, b[:, 0]), np.dot(a, b[:, 0]), 1e-12)
    check(pnp.dot(a, np.swapaxes(b, 0, 1)), np.dot(a, np.swapaxes(b, 0, 1)), 1e-12)
    check(pnp.tensordot(a, b, ((1, 2), (1, 0))), np.tensordot(a, b, ((1, 2), (1, 0))), 1e-12)
    check(pnp.tensordot(a, b, 1), np.tensordot(a, b, 1), 1e-12)
    check(pnp.tensordot(a, b, 0), np.tensordot(a, b, 0), 1e-12)
    check(pnp.inner(a, a[0]), np.inner(a, a[0]), 1e-12)
    check(pnp.outer(a, b[0]), np.outer(a, b[0]), 1e-12)
    z = a + 1j * np.sin(a)
    check(pnp.vdot(z, z * 2), np.vdot(z, z * 2), 1e-12)
    check(pnp.vecdot(z, z[0]), np.sum(np.conj(z) * z[0], -1), 1e-12)
    check(pnp.matvec(a, a[:, 0]), np.einsum("bij,bj->bi", a, a[:, 0]), 1e-12)
    check(pnp.vecmat(a[:, :, 0], a), np.einsum("bi,bij->bj", a[:, :, 0], a), 1e-12)
    check(pnp.kron(a[0], b[0]), np.kron(a[0], b[0]), 1e-12)
    check(pnp.kron(a, b[0]), np.kron(a, b[0]), 1e-12)
    u, v = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    check(pnp.cross(u, v), np.cross(u, v), 1e-12)
    check(pnp.cross(u.T, v.T, axis=0), np.cross(u, v).T, 1e-12)
    check(pnp.dot(2.0, a), 2 * a)
    assert (
        pnp.matmul(
            np.ones((2, 2), np.float16),
            np.ones((2, 2), np.float16),
            preferred_element_type="float32",
        ).dtype
        == np.float32
    )


@pytest.mark.parametrize("subscripts", [
    "ij,jk->ik", "ij,jk", "ij->ji", "ij->", "ij->i", "ij->j", "ij,ij->", "ij,kj->ikj", "i,j->ij", "bij,bjk->bik", "ij,jk,kl->il",
    "ij,jk,kl,lm->im", "...ij,...jk->...ik", "...i->...", "i...,i...->...", "ii", "ii->i", "iij->ij", "iii->i", "ij,ij,ij->ij", "ij,k->",
    "abc,cd,ae->bde", "ji", "ij , jk -> ik", "ab,bc,ca->",
])  # fmt: skip
def test_einsum(subscripts):
    sizes = dict(zip("abcdeijklm", [2, 3, 4, 2, 3, 3, 4, 2, 3, 2], strict=True))
    operands = [rng.normal(size=tuple([5] * ("..." in term) + [sizes[c] for c in term.replace("...", "").strip()]))
                if not term.strip().endswith("...") else rng.normal(size=tuple(sizes[c] for c in term.replace("...", "").strip()) + (5,))
                for term in subscripts.split("->")[0].split(",")]  # fmt: skip
    check(pnp.einsum(subscripts, *operands), np.einsum(subscripts, *operands), 1e-12)


def test_einsum_broadcasts_axes_of_size_one():
    a, b = rng.normal(size=(1, 3)), rng.normal(size=(3, 4))
    check(pnp.einsum("ij,jk->ik", a, b), np.einsum("ij,jk->ik", a, b), 1e-12)
    a, b = rng.normal(size=(1, 2, 3)), rng.normal(size=(5, 3, 4))
    check(pnp.einsum("...ij,...jk->...ik", a, b), np.einsum("...ij,...jk->...ik", a, b), 1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("n, m", [(5, 3), (3, 5), (4, 4), (6, 2), (1, 1), (7, 4)])
def test_convolve_and_correlate(mode, n, m):
    a, v = rng.normal(size=n), rng.normal(size=m)
    check(pnp.convolve(a, v, mode), np.convolve(a, v, mode), 1e-12)
    if n >= m:
        check(pnp.correlate(a, v, mode), np.correlate(a, v, mode), 1e-12)
    a, v = rng.integers(0, 5, n), rng.integers(0, 5, m)
    check(pnp.convolve(a, v, mode), np.convolve(a, v, mode))


def test_polynomials():
    p, x = rng.normal(size=4), rng.normal(size=(2, 3))
    check(pnp.polyval(p, x), np.polyval(p, x), 1e-12)
    check(pnp.vander(p, 3), np.vander(p, 3), 1e-12)
    check(pnp.vander(p, increasing=True), np.vander(p, increasing=True), 1e-12)


# Named sizes.


def test_functions_take_named_sizes():
    def f(x):
        n = x.shape[0]
        rows = pnp.reshape(x, (-1, 2))
        return (pnp.mean(x, 0), pnp.arange(n) + 1, pnp.concatenate([rows, pnp.zeros((n, 2))]), pnp.flip(x), pnp.roll(x, 1, 0),
                pnp.eye(n), pnp.stack([x, x]), pnp.tile(x, (2, 1)), pnp.cumsum(x, 0), pnp.einsum("ij,ik->jk", x, x))  # fmt: skip

    jaxpr = plait.make_jaxpr(f)("n 2")
    assert "n" in str(jaxpr)


@pytest.mark.parametrize("function", [
    lambda x: pnp.mean(x, 0), lambda x: pnp.var(x, 0), lambda x: pnp.sum(x), lambda x: pnp.max(x, 0), lambda x: pnp.argmax(x, 0),
    lambda x: pnp.cumsum(x, 0), lambda x: pnp.sort(x, 0), lambda x: pnp.argsort(x, 0), lambda x: pnp.median(x, 0), lambda x: pnp.flip(x, 0),
    lambda x: pnp.roll(x, 1, 0), lambda x: pnp.concatenate([x, 2 * x]), lambda x: pnp.stack([x, x]), lambda x: pnp.pad(x, ((1, 2), (0, 0))),
    lambda x: pnp.pad(x, ((1, 2), (0, 0)), "edge"), lambda x: pnp.pad(x, ((2, 0), (0, 0)), "reflect"), lambda x: x @ x.T,
    lambda x: pnp.einsum("ij,ik->jk", x, x), lambda x: pnp.arange(x.shape[0]) * 2, lambda x: pnp.eye(x.shape[0]),
    lambda x: pnp.tril(x @ x.T), lambda x: pnp.trace(x @ x.T), lambda x: pnp.diagonal(x @ x.T), lambda x: pnp.linspace(0, 1, x.shape[0]),
    lambda x: pnp.count_nonzero(x > 0), lambda x: pnp.all(x > -9), lambda x: pnp.where(x > 0, x, 0), lambda x: pnp.expand_dims(x, 0),
    lambda x: pnp.swapaxes(x, 0, 1), lambda x: pnp.take(x, np.array([0, -1]), 0), lambda x: pnp.diff(x, axis=0), lambda x: pnp.std(x),
    lambda x: pnp.average(x, 0, weights=pnp.arange(x.shape[0])), lambda x: pnp.searchsorted(pnp.sort(x[:, 0]), 0.1),
    lambda x: pnp.full((x.shape[0], 2), 3.0), lambda x: pnp.broadcast_to(x[0], (x.shape[0], 3)), lambda x: pnp.outer(x[:, 0], x[:, 1]),
    lambda x: pnp.meshgrid(x[:, 0], x[:, 1])[0], lambda x: pnp.vstack([x, x[:1]]), lambda x: pnp.logaddexp(x, 0.0),
])  # fmt: skip
def test_masked_functions_never_read_their_padding(function):
    x = rng.normal(size=(4, 3)).astype(np.float32)
    padded = np.full((6, 3), np.nan, np.float32)
    padded[:4] = x
    result = np.asarray(plait.mask(function, ["n d"])(padded, n=4))
    expected = np.asarray(function(pnp.asarray(x)))
    result = result[tuple(slice(0, size) for size in expected.shape)]
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6)
