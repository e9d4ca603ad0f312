"""What the array-API standard asks a namespace: __array_namespace_info__, limits of dtypes, named results.

SPDX-License-Identifier: Apache-2.0
"""

from typing import NamedTuple as _NamedTuple

import numpy as _np

from plait import _plait, _scalars
from plait._plait import Array as _Array

_KINDS = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class Info:
    """What this namespace offers, by the array-API standard's questions."""

    def capabilities(self):
        """Whether indexing by masks and results whose size depends on values exist (outside jit), and the ranks."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """The device of new arrays."""
        return _plait.current_device()

    def devices(self):
        """The devices there are."""
        return tuple(_plait.devices())

    def default_dtypes(self, *, device=None):
        """The dtypes of new arrays that name none; plait.default_dtypes chooses others."""
        real, integral = _plait.default_dtypes()
        return {
            "real floating": real,
            "complex floating": _np.dtype("complex64" if real == "float32" else "complex128"),
            "integral": integral,
            "indexing": integral,
        }

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of a kind ("integral", ...), of several, or all, by name. float16 and bfloat16 exist besides."""
        kinds = (
            ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        )
        return {name: _np.dtype(name) for each in kinds for name in _KINDS[each]}


def source_of(dtype):
    """The module that knows a dtype's limits: NumPy, or ml_dtypes."""
    if dtype.name not in _scalars.ON_DEMAND:
        return _np
    import ml_dtypes

    return ml_dtypes


class FloatInfo:
    """Limits of a floating dtype: bits, eps, max, min, smallest_normal, dtype, and what else NumPy's finfo has."""

    def __init__(self, dtype):
        self._info = source_of(dtype).finfo(dtype)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._info, name)
        return float(value) if isinstance(value, _np.generic) or name == "tiny" else value

    def __repr__(self):
        return repr(self._info)


class UniqueAllResult(_NamedTuple):
    """The distinct elements in order, where each is first, for every element the place of its own, and how many."""

    values: _Array
    indices: _Array
    inverse_indices: _Array
    counts: _Array


class UniqueCountsResult(_NamedTuple):
    """The distinct elements in order, and how many of each there are."""

    values: _Array
    counts: _Array


class UniqueInverseResult(_NamedTuple):
    """The distinct elements in order, and for every element the place of its own."""

    values: _Array
    inverse_indices: _Array


def name_results(functions):
    """Lets the functions of sets (of a namespace, a dict) give named results."""
    _plait.name_results(functions["unique_all"], UniqueAllResult)
    _plait.name_results(functions["unique_counts"], UniqueCountsResult)
    _plait.name_results(functions["unique_inverse"], UniqueInverseResult)
