"""__array_namespace_info__ of the array-API standard.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _plait

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
        return _plait.devices()

    def default_dtypes(self, *, device=None):
        """The dtypes of new arrays that name none."""
        names = {
            "real floating": "float32",
            "complex floating": "complex64",
            "integral": "int32",
            "indexing": "int32",
        }
        return {kind: _np.dtype(name) for kind, name in names.items()}

    def dtypes(self, *, device=None, kind=None):
        """The dtypes of a kind ("integral", ...), of several, or all, by name. float16 and bfloat16 exist besides."""
        kinds = (
            ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        )
        return {name: _np.dtype(name) for each in kinds for name in _KINDS[each]}
