"""Dtypes that can be called like NumPy's scalar types: float32(x) is x as a float32 array, traced or not.

As a dtype each is equal to NumPy's, with the same hash, and NumPy accepts it wherever it takes a dtype.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _plait


class ScalarType(type):
    """The type of float32, int32, ...: calling one converts, to a strong array."""

    def __call__(cls, x=0):
        return _plait.asarray(x, cls.dtype, None)

    def __eq__(cls, other):
        return cls is other or cls.dtype.type == other

    def __hash__(cls):
        return hash(cls.dtype.type)

    def __instancecheck__(cls, instance):
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls):
        return f"<dtype plait.numpy.{cls.__name__}>"


def scalar_type(name, dtype):
    """The scalar type of a dtype under this name of plait.numpy."""
    doc = f"The dtype {dtype.name}; {name}(x) is x, an array or a number, as a strong array of it."
    return ScalarType(name, (), {"dtype": dtype, "__module__": "plait.numpy", "__doc__": doc})


NAMES = (
    "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
).split()


def scalar_types():
    """All of them by name; those of ml_dtypes are made on demand."""
    return {name: scalar_type(name, _np.dtype(getattr(_np, name))) for name in NAMES}


# Dtypes that ml_dtypes gives NumPy, of numbers and for storage, and the kinds that they are of.
ON_DEMAND = {
    "bfloat16": _np.floating,
    "float8_e4m3fn": _np.floating,
    "float8_e5m2": _np.floating,
    "int4": _np.signedinteger,
    "uint4": _np.unsignedinteger,
}
_made: dict[str, type] = {}


def on_demand(name):
    """The scalar type of one of those."""
    if name not in _made:
        import ml_dtypes

        _made[name] = scalar_type(name, _np.dtype(getattr(ml_dtypes, name)))
    return _made[name]
