"""NumPy's functions over plait arrays: what the array-API standard names, and what NumPy users expect.

Every function is C++ and comes from the catalogue, with its documentation. Dtypes and constants are
NumPy's own, so that they compare equal.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _plait
from plait._plait import Array as ndarray
from plait._plait import catalogue as _catalogue
from plait._plait import from_dlpack

globals().update(_catalogue("numpy"))

pi, e, inf, nan, newaxis, euler_gamma = _np.pi, _np.e, _np.inf, _np.nan, None, _np.euler_gamma
bool_, int8, int16, int32, int64 = _np.bool_, _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
complex64, complex128 = _np.complex64, _np.complex128
integer, floating, inexact, number = _np.integer, _np.floating, _np.inexact, _np.number
signedinteger, unsignedinteger, complexfloating = _np.signedinteger, _np.unsignedinteger, _np.complexfloating
dtype, iinfo = _np.dtype, _np.iinfo


def finfo(type):
    """Limits of a floating dtype, bfloat16 included."""
    type = _plait.as_dtype(type)
    if type.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(type)
    return _np.finfo(type)


def issubdtype(arg1, arg2):
    """Whether one dtype lies below another in NumPy's tree; bfloat16 is a floating dtype."""
    if getattr(arg1, "name", getattr(arg1, "__name__", arg1)) == "bfloat16":
        return arg2 in (_np.floating, _np.inexact, _np.number, _np.generic) or arg2 is arg1
    return _np.issubdtype(arg1, arg2)


def __getattr__(name):
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    raise AttributeError(f"module 'plait.numpy' has no attribute {name!r}")


# Functions of one or more arrays that are methods of Array too.
_METHODS = {
    name: name
    for name in (
        "all any argmax argmin argpartition argsort clip compress conj conjugate cumprod cumsum diagonal dot max mean "
        "min nonzero partition prod ptp ravel repeat reshape round searchsorted sort squeeze std sum swapaxes take "
        "trace transpose var"
    ).split()
} | {"flatten": "ravel", "__round__": "round"}
_plait.add_methods(_METHODS)

__all__ = sorted(name for name in globals() if not name.startswith("_"))
