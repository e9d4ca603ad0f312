"""Dtypes: their promotion and their hierarchy. They are NumPy's, ml_dtypes' for bfloat16 and what is for storage
alone, and that of random keys.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _names, _plait, _scalars
from plait import numpy as _numpy
from plait._key_dtype import extended, prng_key
from plait.numpy import finfo, iinfo, isdtype, promote_types

__all__ = [
    "canonicalize_dtype", "extended", "finfo", "iinfo", "isdtype", "issubdtype", "prng_key", "promote_types",
    "result_type",
]  # fmt: skip


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    """dtype as a NumPy dtype. plait never narrows: float64 stays float64. DtypeError for anything else."""
    return _plait.as_dtype(dtype)


def issubdtype(a, b):
    """Whether a dtype is below another in NumPy's hierarchy, like numpy.issubdtype; that of keys is below prng_key."""
    return _numpy.issubdtype(a, b)


def result_type(*args, return_weak_type_flag=False):
    """The dtype of an operation on arrays, numbers and dtypes; with a flag for weakness if requested."""
    dtype = _plait.result_type(*args)
    if not return_weak_type_flag:
        return dtype
    weak = all(not _is_dtype(arg) and _plait.aval_of(arg).weak_type for arg in args)
    return dtype, weak


def _is_dtype(value):
    return isinstance(value, (type, str, _np.dtype))


_missing = _names.missing(__name__, globals(), list(_scalars.ON_DEMAND))


def __getattr__(name):
    return _scalars.on_demand(name) if name in _scalars.ON_DEMAND else _missing(name)
