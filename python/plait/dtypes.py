"""Dtypes: their promotion and their hierarchy. They are NumPy's, and ml_dtypes' for bfloat16.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _names, _plait
from plait import numpy as _numpy
from plait.numpy import finfo, iinfo, isdtype, promote_types

__all__ = [
    "canonicalize_dtype", "finfo", "iinfo", "isdtype", "issubdtype", "prng_key", "promote_types",
    "result_type",
]  # fmt: skip


class prng_key(_np.generic):
    """The kind of random-key dtypes in JAX. Keys are uint32[2] here, so no dtype is of this kind."""


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    """dtype as a NumPy dtype. plait never narrows: float64 stays float64. DtypeError for anything else."""
    return _plait.as_dtype(dtype)


def issubdtype(a, b):
    """Whether a dtype is below another in NumPy's hierarchy, like numpy.issubdtype; no dtype is below prng_key."""
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


_missing = _names.missing(__name__, globals(), ["bfloat16"])


def __getattr__(name):
    return _numpy.bfloat16 if name == "bfloat16" else _missing(name)
