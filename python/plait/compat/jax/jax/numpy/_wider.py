"""Functions of jax.numpy that take more than plait's: orders of complex numbers, types, tolerances that are arrays.

Complex numbers are in order of the real part, then of the imaginary one.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy

import plait
import plait.lax as lax
import plait.numpy as np


def _is_complex(x):
    return isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c"


def of_two(function, larger):
    """maximum or minimum, also of complex numbers; a NaN is the result."""

    @functools.wraps(function)
    def extremum(x, y, /, *args, **options):
        if not (_is_complex(x) or _is_complex(y)):
            return function(x, y, *args, **options)
        x, y = np.broadcast_arrays(*map(np.asarray, (x, y)))
        dtype = np.result_type(x, y)
        x, y = x.astype(dtype), y.astype(dtype)
        one, other = (x, y) if larger else (y, x)
        ahead = (one.real > other.real) | ((one.real == other.real) & (one.imag >= other.imag))
        return np.where((ahead & ~np.isnan(y)) | np.isnan(x), x, y)

    return extremum


def over_axes(function, larger):
    """max or min, also of complex numbers; a NaN is the result."""
    lowest = -np.inf if larger else np.inf

    @functools.wraps(function)
    def extremum(a, axis=None, out=None, keepdims=False, initial=None, where=None):
        options = {"axis": axis, "keepdims": keepdims}
        if initial is not None:
            options["initial"] = initial
        if where is not None:
            options["where"] = where
        if not _is_complex(a) or initial is not None or where is not None:
            return function(a, **options)
        real = function(a.real, axis=axis, keepdims=True)
        imag = function(np.where(a.real == real, a.imag, lowest), axis=axis, keepdims=True)
        bad = np.any(np.isnan(a), axis=axis, keepdims=True)
        found = np.where(bad, complex(np.nan, 0), lax.complex(real, imag)).astype(a.dtype)
        return (
            found
            if keepdims
            else np.squeeze(found, tuple(range(found.ndim)) if axis is None else axis)
        )

    return extremum


def of_type(function):
    """shape, ndim or size, also of what only has a shape."""

    @functools.wraps(function)
    def call(a, *args, **options):
        if isinstance(a, plait.ShapeDtypeStruct):
            a = numpy.broadcast_to(False, a.shape)
        return function(a, *args, **options)

    return call


def tolerant(function):
    """isclose or allclose, whose tolerances may be arrays."""

    @functools.wraps(function)
    def call(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
        if not hasattr(rtol, "dtype") and not hasattr(atol, "dtype"):
            return function(a, b, rtol, atol, equal_nan)
        near = (np.abs(np.subtract(a, b)) <= atol + rtol * np.abs(b)) & np.isfinite(b)
        near = near | np.equal(a, b)
        if equal_nan:
            near = near | (np.isnan(a) & np.isnan(b))
        return np.all(near) if function.__name__ == "allclose" else near

    return call


def listing(function):
    """pad, whose widths may be an array."""

    @functools.wraps(function)
    def pad(array, pad_width, *args, **options):
        if isinstance(pad_width, numpy.ndarray):
            pad_width = pad_width.tolist()
        return function(array, pad_width, *args, **options)

    return pad


def polynomials(function):
    """polyval, also of several polynomials: p has the coefficients of each along its first axis."""

    @functools.wraps(function)
    def polyval(p, x, *, unroll=16):
        if np.ndim(p) < 2:
            return function(p, x)
        value = np.zeros(np.broadcast_shapes(np.shape(p)[1:], np.shape(x)), np.result_type(p, x))
        for coefficients in p:
            value = value * x + coefficients
        return value

    return polyval
