"""scipy.signal beside SciPy's: convolutions in every mode, trends, spectra, their inverses, derivatives, bad input.

SPDX-License-Identifier: Apache-2.0
"""

import itertools

import numpy as np
import plait
import plait.numpy as pnp
import pytest
import scipy.signal
from plait import grad, jit, jvp, mask, vmap
from plait.scipy import signal as pss

pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in ("nperseg", "NOLA", "Input data is complex")
]
DTYPES = {"f4": 2e-5, "f8": 1e-12, "c8": 2e-5, "c16": 1e-12}
RANDOM = np.random.default_rng(0)


def made(shape, dtype="f8"):
    x = RANDOM.normal(size=shape)
    return (x + 1j * RANDOM.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def check(got, expected, limit=1e-12):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    scale = max(1, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(got, expected, rtol=limit, atol=limit * scale)


def slope_by_differences(f, x, tangent, step=1e-6):
    return (np.asarray(f(x + step * tangent)) - np.asarray(f(x - step * tangent))) / (2 * step)


def check_derivatives(f, x, limit=1e-7):
    """Both modes of f, real numbers of one array, beside finite differences; and vmap, jit."""
    tangent = made(x.shape)
    expected = slope_by_differences(f, x, tangent)
    _, slope = jvp(f, (x,), (tangent,))
    check(slope, expected, limit)
    weights = made(expected.shape)
    gradient = grad(lambda x: pnp.sum(f(x) * weights))(x)
    np.testing.assert_allclose(
        np.sum(np.asarray(gradient) * tangent), np.sum(expected * weights), rtol=limit, atol=limit
    )
    check(vmap(f)(np.stack([x, tangent])), [f(x), f(tangent)], 1e-11)
    check(jit(f)(x), f(x), 1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_every_size(mode, dtype):
    limit = DTYPES[dtype]
    for n, m in itertools.product((1, 2, 5, 8), (1, 3, 4)):
        a, b = made(n, dtype), made(m, dtype)
        for name in ("convolve", "correlate"):
            expected = getattr(scipy.signal, name)(a, b, mode, "direct")
            for method in ("auto", "direct", "fft"):
                result = getattr(pss, name)(a, b, mode, method)
                assert result.dtype == a.dtype
                check(result, expected, limit)
        check(pss.fftconvolve(a, b, mode), scipy.signal.fftconvolve(a, b, mode), limit)
    a, b = made((6, 5, 4), dtype), made((3, 2, 4), dtype)
    for x, y in ((a, b), (b, a)):
        for name in ("convolve", "correlate"):
            check(
                getattr(pss, name)(x, y, mode),
                getattr(scipy.signal, name)(x, y, mode, "direct"),
                limit,
            )
    check(pss.fftconvolve(a, b[:1], mode, axes=[1]), scipy.signal.fftconvolve(a, b[:1, :, :4], mode, axes=[1]), limit)  # fmt: skip


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_matrices_and_what_lies_around(mode):
    for shape, kernel in (((7, 6), (3, 4)), ((5, 5), (2, 2)), ((2, 3), (4, 5))):
        for dtype in ("f8", "c16"):
            a, b = made(shape, dtype), made(kernel, dtype)
            for name, boundary in itertools.product(
                ("convolve2d", "correlate2d"), ("fill", "wrap", "symm")
            ):
                for fill in (0, 1.5) if boundary == "fill" else (0,):
                    expected = getattr(scipy.signal, name)(a, b, mode, boundary, fill)
                    if name == "correlate2d" and mode == "valid":  # SciPy's lacks a conjugate
                        expected = scipy.signal.correlate(a, b, mode)
                    check(getattr(pss, name)(a, b, mode, boundary, fill), expected)


def test_convolutions_of_integers_large_arrays_and_scalars():
    a, b = RANDOM.integers(-9, 9, 40), RANDOM.integers(-9, 9, 7)
    for method in ("auto", "fft"):
        result = pss.convolve(a, b, method=method)
        assert result.dtype == np.int64 and (np.asarray(result) == np.convolve(a, b)).all()
    assert pss.fftconvolve(a.astype("i4"), b.astype("i4")).dtype == np.float32
    assert pss.convolve(np.ones(3, bool), np.ones(3, bool)).tolist() == [1, 2, 3, 2, 1]
    assert pss.convolve(2.0, 3.0).item() == 6 and pss.fftconvolve(2.0, 3.0).item() == 6
    a, b = made(4000), made(1500)
    check(pss.convolve(a, b, "same"), scipy.signal.convolve(a, b, "same"), 1e-11)


def test_derivatives_of_convolutions():
    b, image = made(4), made((3, 2))
    for mode, method in itertools.product(("full", "same", "valid"), ("direct", "fft")):
        check_derivatives(lambda x: pss.convolve(x, b, mode, method), made(9))
        check_derivatives(lambda x: pss.correlate(b, x, mode, method), made(9))
    for boundary in ("fill", "wrap", "symm"):
        check_derivatives(lambda x: pss.convolve2d(x, image, "same", boundary, 2.0), made((4, 5)))
    fill = grad(lambda v: pnp.sum(pss.convolve2d(np.ones((2, 2)), image, fillvalue=v)))(0.0)
    check(fill, 8 * image.sum(), 1e-6)  # of 12 places of the kernel, 4 lie on ones: 2 of 3 by 2


def test_a_ragged_signal_is_convolved_as_it_is_alone():
    kernel = made(3)
    ragged = mask(lambda x: pss.convolve(x, kernel, "full", "direct"), "n")
    padded = np.full(9, np.nan)
    padded[:6] = made(6)
    check(ragged(padded, n=6)[:8], np.convolve(padded[:6], kernel))


@pytest.mark.parametrize("dtype", DTYPES)
def test_trends(dtype):
    x = made((3, 20, 2), dtype) + np.arange(20)[:, None].astype("f4")
    limit = 10 * DTYPES[dtype]
    for kind, bp in itertools.product(("linear", "constant"), (0, [5], [7, 13, 14])):
        got = pss.detrend(x, 1, kind, bp)
        check(got, scipy.signal.detrend(x, 1, kind, bp), limit)
    assert pss.detrend(np.arange(4)).dtype == np.float32
    check_derivatives(lambda x: pss.detrend(x, bp=[3]), made(8))


WINDOWS = [
    "hann", "hamming", "blackman", "bartlett", "boxcar", "triang", "cosine", "nuttall", "blackmanharris", "flattop",
    "bohman", "parzen", "tukey", ("tukey", 0.25), ("tukey", 0.0), ("kaiser", 5.0), ("gaussian", 3.0), "exponential",
    ("general_hamming", 0.6), ("general_gaussian", 1.5, 4.0), ("exponential", None, 3.0),
]  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_windows(window):
    x = made(100)
    for size in (16, 15):
        for got, expected in zip(
            pss.welch(x, 2.0, window, size), scipy.signal.welch(x, 2.0, window, size)
        ):
            check(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_power_spectra(dtype):
    x, y, limit = made((2, 130, 3), dtype), made((2, 100, 3), dtype), 5 * DTYPES[dtype]
    options = [
        {}, {"fs": 10.0, "nperseg": 32, "scaling": "spectrum"}, {"nperseg": 33, "noverlap": 10, "nfft": 50},
        {"nperseg": 32, "detrend": "linear", "average": "median"}, {"nperseg": 30, "noverlap": 0, "detrend": False},
        {"nperseg": 16, "return_onesided": False}, {"window": np.hanning(40), "noverlap": 39},
    ]  # fmt: skip
    for option in options:
        for got, expected in (
            (pss.welch(x, axis=1, **option), scipy.signal.welch(x, axis=1, **option)),
            (pss.csd(x, y, axis=1, **option), scipy.signal.csd(x, y, axis=1, **option)),
        ):
            check(got[0], expected[0], limit)
            check(got[1], expected[1], limit)
            assert got[1].dtype.itemsize <= np.dtype(dtype).itemsize * (1 + (got[1].dtype.kind == "c"))  # fmt: skip
    assert pss.csd(x.real)[1].dtype == x.real.dtype
    check(pss.csd(x, x[:, :, :1], axis=1)[1], scipy.signal.csd(x, x[:, :, :1], axis=1)[1], limit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_spectra_of_segments_and_their_inverse(dtype):
    x, limit = made((2, 97, 3), dtype), 5 * DTYPES[dtype]
    options = [
        {}, {"nperseg": 16}, {"nperseg": 17, "noverlap": 12, "nfft": 20}, {"nperseg": 30, "noverlap": 15, "padded": False},
        {"nperseg": 16, "noverlap": 15, "fs": 4.0, "window": "hamming"}, {"nperseg": 77, "noverlap": 76},
    ]  # fmt: skip
    for option in options:
        for boundary in ("zeros", "even", "odd", "constant", None):
            got = pss.stft(x, axis=1, boundary=boundary, **option)
            expected = scipy.signal.stft(x, axis=1, boundary=boundary, **option)
            for ours, theirs in zip(got, expected):
                check(ours, theirs, limit)
        option = {k: v for k, v in option.items() if k != "padded"}
        one_sided = dtype[0] == "f"
        back = pss.istft(got[2], input_onesided=one_sided, boundary=False, freq_axis=1, **option)
        theirs = scipy.signal.istft(expected[2], input_onesided=one_sided, boundary=False, freq_axis=1, **option)  # fmt: skip
        check(back[0], np.arange(back[1].shape[-1]) / option.get("fs", 1.0), limit)
        check(back[1], theirs[1], 50 * limit)
    frequencies, times, spectra = pss.stft(x, nperseg=20, noverlap=15, axis=1)
    _, again = pss.istft(spectra, nperseg=20, noverlap=15, input_onesided=dtype[0] == "f", freq_axis=1)  # fmt: skip
    check(np.moveaxis(np.asarray(again), -1, 1)[:, :97], x, limit)


def test_derivatives_of_spectra():
    x = made(40)
    for noverlap in (None, 5, 7):
        check_derivatives(lambda x: pss.welch(x, nperseg=8, noverlap=noverlap)[1], x, 1e-6)
        check_derivatives(lambda x: pnp.abs(pss.stft(x, nperseg=8, noverlap=noverlap)[2]) ** 2, x, 1e-6)  # fmt: skip
    check_derivatives(
        lambda x: pss.welch(x, nperseg=67, noverlap=66)[1], made(90), 1e-6
    )  # by indices
    check_derivatives(
        lambda x: pss.istft(pss.stft(x, nperseg=8)[2] * 2.0, nperseg=8)[1][:40], x, 1e-6
    )


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: pss.convolve([], [1.0]), r"convolve: arrays of shapes \(0\) and \(1\)"),
        (lambda: pss.fftconvolve(np.ones((2, 2)), np.ones(2)), "as many axes"),
        (lambda: pss.convolve([1.0], [1.0], "some"), "mode is 'some'"),
        (lambda: pss.convolve([1.0], [1.0], method="quick"), "method is 'quick'"),
        (lambda: pss.convolve(np.ones((5, 2)), np.ones((2, 5)), "valid"), "mode 'valid' for arrays of shapes"),
        (lambda: pss.fftconvolve(np.ones((5, 2)), np.ones((2, 5)), axes=0), "do not broadcast along axis 1"),
        (lambda: pss.convolve2d(np.ones(3), np.ones(3)), "give two matrices"),
        (lambda: pss.convolve2d(np.ones((3, 3)), np.ones((2, 2)), boundary="x"), "boundary is 'x'"),
        (lambda: pss.detrend(np.ones(5), type="cubic"), "the trend 'cubic'"),
        (lambda: pss.detrend(np.ones(5), bp=[5]), "the break point 5 for 5 points"),
        (lambda: pss.welch(np.ones(50), window="hat"), "the window 'hat' is not known"),
        (lambda: pss.welch(np.ones(50), window="kaiser"), r"\('kaiser', 5.0\)"),
        (lambda: pss.welch(np.ones(5), window=np.ones(9)), "not longer than the signal"),
        (lambda: pss.welch(np.ones(50), window=np.ones(9), nperseg=8), "leave out nperseg"),
        (lambda: pss.welch(np.ones(50), nperseg=8, noverlap=8), "noverlap is 8"),
        (lambda: pss.welch(np.ones(50), nperseg=8, nfft=4), "nfft is 4"),
        (lambda: pss.welch(np.ones(50), nperseg=0), "nperseg is 0"),
        (lambda: pss.welch(np.ones(50), average="most"), "average is 'most'"),
        (lambda: pss.csd(np.ones(50), scaling="log"), "scaling is 'log'"),
        (lambda: pss.welch(np.ones(0)), "a signal of 0 points"),
        (lambda: pss.stft(np.ones(50), boundary="soft"), "boundary is 'soft'"),
        (lambda: pss.stft(np.ones(50), detrend=True), "detrend"),
        (lambda: pss.istft(np.ones(5)), "an axis of frequencies"),
        (lambda: pss.istft(np.ones((5, 5)), freq_axis=-1), "are both 1"),
    ],
)  # fmt: skip
def test_errors(call, text):
    with pytest.raises(plait.Error, match=text):
        call()
