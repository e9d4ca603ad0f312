"""Fourier transforms beside NumPy's and SciPy's: every length, axis and norm, derivatives, ragged axes, bad input.

SPDX-License-Identifier: Apache-2.0
"""

import itertools

import numpy as np
import plait
import plait.numpy as pnp
import pytest
import scipy.fft
from plait import grad, jit, jvp, lax, mask, vmap
from plait.scipy import fft as psf

pytestmark = pytest.mark.isa

# Every radix, products of them, and lengths with large primes; from a few numbers to matrices of matrices.
LENGTHS = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    11,
    13,
    16,
    17,
    19,
    25,
    30,
    49,
    64,
    65,
    68,
    97,
    121,
    128,
    169,
    210,
    256,
    509,
    1000,
]
LONG = [1009, 4096, 8192, 10007, 30030, 65536]
LIMITS = {"c8": 3e-6, "c16": 1e-14}


def signal(shape, dtype="c16", seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=shape) + 1j * generator.normal(size=shape)
    return (x if np.dtype(dtype).kind == "c" else x.real).astype(dtype)


def check(actual, expected, limit=1e-13, dtype=None):
    actual = np.asarray(actual)
    assert actual.shape == expected.shape
    assert dtype is None or actual.dtype == dtype
    assert np.abs(actual - expected).max(initial=0) <= limit * max(
        1, np.abs(expected).max(initial=0)
    )


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_lengths(rows, dtype):
    real = np.dtype(dtype).type(0).real.dtype
    for n in LENGTHS + (LONG if rows < 9 else []):
        x = signal((rows, n), dtype, seed=n)
        wide = x.astype("c16")
        check(pnp.fft.fft(x), np.fft.fft(wide), LIMITS[dtype], dtype)
        check(pnp.fft.ifft(x), np.fft.ifft(wide), LIMITS[dtype], dtype)
        check(pnp.fft.rfft(x.real), np.fft.rfft(wide.real), LIMITS[dtype], dtype)
        half = x[:, : n // 2 + 1]
        check(pnp.fft.irfft(half, n), np.fft.irfft(half.astype("c16"), n), LIMITS[dtype], real)
    assert pnp.fft.fft(np.zeros((0, 5))).shape == (0, 5)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_axes_points_and_norms(name):
    x = signal((5, 6, 4), "f8" if name in ("rfft", "ihfft") else "c16")
    for axis, n, norm in itertools.product(
        (0, 1, -1), (None, 3, 8), (None, "backward", "ortho", "forward")
    ):
        expected = getattr(np.fft, name)(x, n, axis, norm)
        check(getattr(pnp.fft, name)(x, n, axis, norm), expected)
    strided = pnp.asarray(x)[::2, ::-1].transpose(2, 0, 1)
    check(getattr(pnp.fft, name)(strided), getattr(np.fft, name)(np.asarray(strided)))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_several_axes(name):
    x = signal((5, 6, 4), "f8" if name == "rfft" else "c16")
    for form in ("2", "n"):
        actual, expected = getattr(pnp.fft, name + form), getattr(np.fft, name + form)
        check(actual(x), expected(x))
        check(actual(x, axes=(0, 2), norm="ortho"), expected(x, axes=(0, 2), norm="ortho"))
        check(actual(x, s=(3, 7), axes=(2, 0)), expected(x, s=(3, 7), axes=(2, 0)))
    lengths = (6, 6) if name == "irfft" else (6, 4)
    check(lax.fft(x, name.upper(), lengths), getattr(np.fft, name + "2")(x))


def test_dtypes():
    for dtype, result in [("i4", "c8"), ("?", "c8"), ("f2", "c8"), ("f4", "c8"), ("f8", "c16")]:
        assert pnp.fft.fft(np.ones(4, dtype)).dtype == result
        assert pnp.fft.rfft(np.ones(4, dtype)).dtype == result
    assert pnp.fft.irfft(np.ones(3, "c8")).dtype == "f4" and pnp.fft.hfft(np.ones(3)).dtype == "f8"


def test_frequencies_and_shifts():
    for n in (1, 2, 7, 8):
        check(pnp.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1), 1e-6, "f4")
        check(pnp.fft.rfftfreq(n, d=2.0, dtype="float64"), np.fft.rfftfreq(n, 2.0), 1e-15, "f8")
        x = np.arange(n * 3).reshape(n, 3)
        for axes in (None, 0, (1,), (0, 1)):
            assert (np.asarray(pnp.fft.fftshift(x, axes)) == np.fft.fftshift(x, axes)).all()
            assert (np.asarray(pnp.fft.ifftshift(x, axes)) == np.fft.ifftshift(x, axes)).all()


def differences(f, x, step=1e-6):
    """The gradient of a real f as jax has it: of complex x, df/d(real) - i df/d(imag)."""
    result = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(*x.shape):
        for part in (1, 1j) if x.dtype.kind == "c" else (1,):
            moved = np.zeros(x.shape, x.dtype)
            moved[at] = part * step
            slope = (float(f(x + moved)) - float(f(x - moved))) / (2 * step)
            result[at] += slope if part == 1 else -1j * slope
    return result


FUNCTIONS = {
    "fft": lambda x: pnp.fft.fft(x, 7, norm="ortho"),
    "ifft": lambda x: pnp.fft.ifft(x, axis=0),
    "rfft": lambda x: pnp.fft.rfft(x.real),
    "rfft odd": lambda x: pnp.fft.rfft(x.real, 5),
    "irfft": lambda x: pnp.fft.irfft(x),
    "irfft odd": lambda x: pnp.fft.irfft(x, 7),
    "hfft": lambda x: pnp.fft.hfft(x),
    "fft2": lambda x: pnp.fft.fft2(x),
    "irfftn": lambda x: pnp.fft.irfftn(x),
    "dct": lambda x: psf.dct(x.real),
    "dctn": lambda x: psf.dctn(x.imag, norm="ortho"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    f = FUNCTIONS[name]
    x, weights = signal((3, 4)), signal(f(signal((3, 4))).shape, seed=1)

    def loss(x):
        return pnp.sum(pnp.real(f(x) * weights) ** 2)

    gradient = np.asarray(grad(loss)(x))
    np.testing.assert_allclose(gradient, differences(loss, x), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.asarray(jit(grad(loss))(x)), gradient, rtol=1e-12, atol=1e-12)
    tangent = signal((3, 4), seed=2)
    _, slope = jvp(f, (x,), (tangent,))
    check(slope, np.asarray(f(tangent)))  # it is linear
    check(vmap(f)(np.stack([x, tangent])), np.stack([np.asarray(f(x)), np.asarray(f(tangent))]))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_ragged_axes(name):
    """A length of each example's own, behind which lie NaN: values and gradients as on the example alone."""
    f = getattr(pnp.fft, name)
    ragged = mask(lambda x: (f(x, axis=0), pnp.sum(pnp.abs(f(x, axis=0)) ** 4)), "n _")
    lengths = [5, 8, 2, 3]
    examples = [signal((n, 2), "f8" if name == "rfft" else "c16", seed=n) for n in lengths]
    batch = np.full((4, 8, 2), np.nan, examples[0].dtype)
    for row, x in zip(batch, examples):
        row[: len(x)] = x
    results, _ = vmap(ragged)(batch, n=np.array(lengths))
    gradients = vmap(grad(lambda x, n: ragged(x, n=n)[1]))(batch, np.array(lengths))
    for x, result, gradient in zip(examples, results, gradients):
        expected = getattr(np.fft, name)(x, axis=0)
        check(result[: len(expected)], expected)
        alone = np.asarray(grad(lambda x: pnp.sum(pnp.abs(f(x, axis=0)) ** 4))(x))
        check(gradient[: len(x)], alone, 1e-12)


def test_cosine_transforms():
    for n in (1, 2, 5, 8, 30):
        x = signal((3, n), "f8", seed=n)
        for type_, norm in itertools.product((2, 3), (None, "ortho", "forward")):
            for name in ("dct", "idct"):
                expected = getattr(scipy.fft, name)(x, type_, norm=norm)
                check(getattr(psf, name)(x, type_, norm=norm), expected)
    x = signal((4, 6), "f8")
    for name in ("dctn", "idctn"):
        check(getattr(psf, name)(x, axes=0, s=3), getattr(scipy.fft, name)(x, axes=0, s=3))
        check(getattr(psf, name)(x), getattr(scipy.fft, name)(x))
    check(psf.dct(x, n=4, axis=1), scipy.fft.dct(x, n=4, axis=1))
    with pytest.raises(ValueError, match="(?s)dct: type 1.*use type 2"):
        psf.dct(x, 1)


def test_a_convolution_of_a_long_signal():
    """As programs write it: by transforms, jitted, of a batch."""
    kernel, x = signal((33,), "f8"), signal((2, 2000), "f8", seed=1)

    @jit
    def filtered(x, kernel):
        n = x.shape[-1] + kernel.shape[0] - 1
        return pnp.fft.irfft(pnp.fft.rfft(x, n) * pnp.fft.rfft(kernel, n), n)

    check(filtered(x, kernel), np.stack([np.convolve(row, kernel) for row in x]), 1e-12)


def test_errors():
    x = signal((3, 4))
    for call, words in [
        (lambda: pnp.fft.fft(x, 0), "fft: 0 points"),
        (lambda: pnp.fft.fft(x, norm="orthogonal"), "(?s)norm is 'orthogonal'.*choose 'backward'"),
        (lambda: pnp.fft.rfft(x), "rfft"),
        (lambda: pnp.fft.fft(x, axis=2), "axis 2"),
        (lambda: pnp.fft.fft(1.0), "axis -1"),
        (lambda: pnp.fft.fftn(x, s=(3,), axes=(0, 1)), "1 sizes for 2 axes"),
        (lambda: pnp.fft.irfft(signal((1,))), "(?s)irfft: 0 points.*give the number of points"),
        (lambda: lax.fft(x, "fft", (5,)), "(?s)does not have 5 elements"),
        (lambda: lax.fft(x, "dft", (4,)), "(?s)no transform 'dft'"),
        (lambda: lax.fft(x, "fft", (1, 3, 4)), "3 lengths for an array of 2 axes"),
        (lambda: pnp.fft.fftfreq(0), "0 points"),
    ]:
        with pytest.raises(plait.Error, match=words):
            call()
