"""Functions of jax.numpy that take more than plait's: types, and tolerances that are arrays.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy

import plait
import plait.numpy as np


def of_type(function):
    """shape, ndim or size, also of what only has a shape, and of None, which is as a number."""

    @functools.wraps(function)
    def call(a, *args, **options):
        if isinstance(a, plait.ShapeDtypeStruct):
            a = numpy.broadcast_to(False, a.shape)
        return function(False if a is None else a, *args, **options)

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
