"""What has kernels or ways of its own for known values gives what NumPy gives, at the sizes where a way begins or ends.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest

RNG = np.random.default_rng(7)
SIZES = [1, 7, 8, 9, 31, 33, 4095, 4096, 4097, 20000]


def same(a, b):
    """a is b: shape, elements, and the sign of zeros."""
    a = np.asarray(a)
    assert a.shape == np.shape(b)
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def close(a, b, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(a), b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_places_of_true_elements(n, share):
    mask, x = RNG.uniform(size=n) < share, RNG.standard_normal(n)
    flags = pnp.array(mask)
    same(pnp.flatnonzero(flags), np.flatnonzero(mask))
    same(pnp.where(flags[::-2])[0], np.where(mask[::-2])[0])
    same(pnp.count_nonzero(flags), np.count_nonzero(mask))
    same(pnp.array(x)[flags], x[mask])
    same(pnp.compress(flags, x), np.compress(mask, x))
    for order in ("big", "little"):
        packed = np.packbits(mask, bitorder=order)
        same(pnp.packbits(flags, bitorder=order), packed)
        same(pnp.unpackbits(pnp.array(packed), bitorder=order, count=n), mask)


def test_indices_of_places():
    for shape in ((7, 300), (5, 6, 7), (1, 9), (40, 1000), (3, 0)):
        for share in (0.003, 0.5, 1):
            mask = RNG.uniform(size=shape) < share
            for a, b in zip(pnp.nonzero(pnp.array(mask)), np.nonzero(mask), strict=True):
                same(a, b)
            same(pnp.argwhere(mask.T), np.argwhere(mask.T))
        if mask.size:
            places = RNG.integers(0, mask.size, (4, 5)).astype(np.int32)
            for a, b in zip(pnp.unravel_index(places, shape), np.unravel_index(places, shape)):
                same(a, b)
    for k in (-2, 0, 1):
        for a, b in zip(pnp.tril_indices(5, k, 7), np.tril_indices(5, k, 7)):
            same(a, b)
        for a, b in zip(pnp.triu_indices(6, k), np.triu_indices(6, k)):
            same(a, b)


@pytest.mark.parametrize("n", SIZES)
def test_distinct_elements(n):
    floats = RNG.integers(0, 50, n) / 4 - 5
    floats[RNG.uniform(size=n) < 0.1] = np.nan
    for x in (RNG.integers(0, 50, n), floats, RNG.uniform(size=n) < 0.5):
        for equal_nan in (True, False):
            options = dict(return_index=True, return_inverse=True, return_counts=True)
            expected = np.unique(x, **options, equal_nan=equal_nan)
            for a, b in zip(pnp.unique(x, **options, equal_nan=equal_nan), expected):
                same(a, b)
            same(pnp.unique(x, equal_nan=equal_nan), expected[0])


@pytest.mark.parametrize("n", [1, 1000, 300_000, 1_000_001])
def test_bools_end_where_they_are_decided(n):
    for place in {0, n // 2, n - 1}:
        one = np.zeros(n, bool)
        one[place] = True
        flags = pnp.array(one)
        assert pnp.any(flags) and not pnp.any(flags & False)
        assert not pnp.all(~flags) and pnp.all(flags | True)
    rows = RNG.uniform(size=(3, 5, n // 1000 + 1)) < 0.1
    for axis in (0, 1, 2, (0, 2), None):
        same(pnp.any(rows, axis), np.any(rows, axis))
        same(pnp.all(~rows, axis), np.all(~rows, axis))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.int64])
@pytest.mark.parametrize("shape", [(5,), (1024,), (5000,), (7, 1000), (7, 3000), (3, 100, 9)])
def test_extremes_and_sums_by_blocks(dtype, shape):
    x = (RNG.integers(-9, 9, shape) % 200).astype(dtype)
    if x.dtype.kind == "f":
        x *= np.where(RNG.uniform(size=shape) < 0.5, -1, 1).astype(dtype)  # -0.0 as well
    array = pnp.array(x)
    for name in ("max", "min", "sum", "argmax", "argmin"):
        for axis in (None, 0, len(shape) - 1):
            mine = getattr(pnp, name)
            np.testing.assert_array_equal(mine(array, axis), getattr(np, name)(x, axis))
            same(mine(array, axis), plait.jit(lambda a: mine(a, axis))(array))  # noqa: B023
    if x.dtype.kind == "f":
        x.flat[x.size // 2] = np.nan
        assert np.isnan(pnp.max(x)) and pnp.argmax(x) == x.size // 2
        same(pnp.nanmax(x, -1), np.nanmax(x, -1))
        same(pnp.nanmin(x), np.nanmin(x))
        assert np.isnan(pnp.nanmax(x * np.nan, 0)).all()


def test_the_first_of_equal_extremes_in_a_long_row():
    x = np.zeros(700_000, np.float32)
    x[[300_000, 650_000]] = 1
    assert pnp.argmax(x) == 300_000
    x[[600_000, 500_000]] = np.nan
    assert pnp.argmax(x) == pnp.argmin(x) == 500_000


@pytest.mark.parametrize("n", [17, 19, 31, 37, 61, 67, 2 * 29, 31 * 31, 37 * 54, 41 * 43 * 4])
def test_transforms_of_lengths_with_larger_primes(n):
    z = RNG.standard_normal((9, n)) + 1j * RNG.standard_normal((9, n))
    close(pnp.fft.fft(z), np.fft.fft(z), 1e-10)
    close(pnp.fft.ifft(z[0]), np.fft.ifft(z[0]), 1e-10)
    close(pnp.fft.rfft(z.real), np.fft.rfft(z.real), 1e-10)
    close(pnp.fft.irfft(z, axis=0), np.fft.irfft(z, axis=0), 1e-10)
    single = pnp.fft.fft(z.astype(np.complex64))
    np.testing.assert_allclose(single, np.fft.fft(z), rtol=1e-4, atol=1e-5 * n)


def test_parts_of_complex_numbers_and_pieces_are_views():
    z = RNG.standard_normal((6, 5)) + 1j * RNG.standard_normal((6, 5))
    array = pnp.array(z)
    for view, expected in ((array, z), (array.T, z.T), (array[::-2, 1:], z[::-2, 1:])):
        same(pnp.real(view), expected.real)
        same(pnp.imag(view) * 2, expected.imag * 2)
        close(pnp.sum(pnp.imag(view), 0), np.sum(expected.imag, 0))
        for mine, piece in zip(pnp.split(view, [1], 1), np.split(expected, [1], 1)):
            same(mine, piece)
    part, piece = pnp.real(array), pnp.split(array, 2)[1]
    part[0, 0] = 100.0  # a view that is written to, as NumPy's
    z.real[0, 0] = 100.0
    same(array, z)
    same(piece, z[3:])


def test_eigenvalues_alone_are_those_of_lapack():
    for n in (1, 2, 3, 30, 121):
        x = RNG.standard_normal((n, n))
        for scale in (1, 1e150, 1e-150):
            symmetric = (x + x.T) * scale
            close(pnp.linalg.eigvalsh(symmetric) / scale, np.linalg.eigvalsh(symmetric) / scale)
        low = x[:, :1] @ x[:, :1].T
        close(pnp.linalg.eigvalsh(low), np.linalg.eigvalsh(low), 1e-11)
    close(pnp.linalg.eigvalsh(np.zeros((4, 4))), np.zeros(4))
    close(pnp.linalg.eigvalsh(np.diag([3.0, 1, 2])), [1, 2, 3])


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
@pytest.mark.parametrize("widths", [0, 1, 3, (0, 2), (4, 0), 5, 9])
def test_padding_by_parts(mode, widths):
    for x in (np.arange(6.0), np.arange(12.0).reshape(3, 4)):
        same(pnp.pad(x, widths, mode=mode), np.pad(x, widths, mode=mode))
        jitted = plait.jit(lambda a: pnp.pad(a, widths, mode=mode))
        same(jitted(x), np.pad(x, widths, mode=mode))


def test_few_places_are_inserted_and_deleted():
    x = np.arange(24.0).reshape(4, 6)
    for place, values, axis in [(0, 1, None), (-1, [1, 2], None), (4, 5, 0), ([1, 3, 3], [7, 8, 9], None),
                                ([3, 1], 0, 1), (2, np.arange(4), 1), (slice(0, 4, 2), 1, 0), ([], [], None)]:  # fmt: skip
        expected = np.insert(x, place, values, axis)
        same(pnp.insert(x, place, values, axis), expected)
        same(plait.jit(lambda a: pnp.insert(a, place, values, axis))(x), expected)  # noqa: B023
    for place, axis in [(0, None), (-1, 1), ([0, 2, 2], 0), ([0, 1, 2, 3], 0), (slice(1, 3), 1), (list(range(20)), None)]:  # fmt: skip
        same(pnp.delete(x, place, axis), np.delete(x, place, axis))
    array = pnp.array(x)
    rest = pnp.delete(array, 0, 0)
    rest[0, 0] = 100.0
    same(array, x)


def test_diagonals_and_copies():
    for shape in ((3, 3), (3, 5), (5, 3), (0, 3), (1, 1)):
        for k in range(-5, 6):
            same(pnp.eye(*shape, k), np.eye(*shape, k))
            same(plait.jit(lambda: pnp.eye(*shape, k))(), np.eye(*shape, k))  # noqa: B023
    for k in (-2, 0, 3):
        same(pnp.diag(np.arange(4.0), k), np.diag(np.arange(4.0), k))
    x = np.arange(70_000.0)
    same(pnp.tile(x, 3), np.tile(x, 3))
    same(pnp.resize(x, (3, 50_001)), np.resize(x, (3, 50_001)))
    same(pnp.resize(x[:5], 3), np.resize(x[:5], 3))
    empty = pnp.empty((3, 4))
    empty[1] = 2.0
    assert pnp.sum(empty[1]) == 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_roots_and_powers_at_the_ends_of_the_range(dtype):
    info = np.finfo(dtype)
    ends = [info.max, info.tiny, info.smallest_subnormal, 3 * info.tiny, 0.0, np.inf]
    x = np.array([*ends, np.nan, 27, 1e-3, *(s for e in ends for s in (-e,))], dtype)
    np.testing.assert_allclose(pnp.cbrt(x), np.cbrt(x), rtol=4 * info.eps)
    whole = np.arange(-40, 40, dtype=dtype)
    same(pnp.cbrt(whole**3), whole)
    powers = np.array([info.minexp - 5, info.maxexp, info.maxexp - 0.5, 0.3, -7.9, np.inf, -np.inf, np.nan], dtype)  # fmt: skip
    np.testing.assert_allclose(pnp.exp2(powers), np.exp2(powers), rtol=4 * info.eps)
    same(pnp.exp2(whole), np.ldexp(dtype(1), whole.astype(int)))
    close(plait.grad(lambda y: pnp.exp2(y))(dtype(3)), 8 * np.log(2), 1e-6)
