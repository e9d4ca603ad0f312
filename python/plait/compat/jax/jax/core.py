"""jax.core: types of values.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
from typing import Any

import numpy as np

import plait
from plait import _plait

from jax._arrays import ShapedArray as ShapedArray, Trace as Trace, Tracer as Tracer
from jax._doors import lacking
from jax._jaxprs import plain
from jax._transforms import ensure_compile_time_eval as ensure_compile_time_eval

AbstractValue = ShapedArray
Value = Any
ParamDict = dict
Atom = Any
# Types of values that libraries add to; plait asks values themselves.
pytype_aval_mappings: dict = {np.ndarray: _plait.aval_of}


def get_aval(x):
    """The type of a value."""
    return _plait.aval_of(x)


def eval_jaxpr(jaxpr, consts, *args, propagate_source_info=True):
    """The outputs of a jaxpr for these arguments."""
    jaxpr = plain(jaxpr)
    arrays = [_plait.to_array(x) for x in (*args, *consts)]
    # A number that was 32 bits wide in tracing is one of Python's now, or the reverse.
    arrays = [
        _plait.convert(array, aval.dtype) if array.dtype != aval.dtype else array
        for array, aval in zip(arrays, jaxpr.in_avals)
    ]
    return _plait.eval_jaxpr(jaxpr, arrays)


@contextlib.contextmanager
def eval_context():
    """A context in which known values are computed at once, as everywhere here."""
    yield


def max_dim(a, b):
    return (
        _plait.max_size(a, b)
        if isinstance(a, plait.Size) or isinstance(b, plait.Size)
        else max(a, b)
    )


def min_dim(a, b):
    return (
        _plait.min_size(a, b)
        if isinstance(a, plait.Size) or isinstance(b, plait.Size)
        else min(a, b)
    )


__getattr__ = lacking(__name__)
