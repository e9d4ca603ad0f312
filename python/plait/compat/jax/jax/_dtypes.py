"""JAX's dtypes: without jax_enable_x64, what is made of 64 bits has 32.

This holds for arrays that jax.numpy, jax.random and jax.nn make and convert. Arithmetic is plait's: a float64 array that
came in otherwise stays one.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect

import numpy as np

from plait import _plait
from plait import numpy as pnp

from jax._config import config

_NARROW = {
    np.dtype(wide): np.dtype(narrow)
    for wide, narrow in (
        ("float64", "float32"),
        ("int64", "int32"),
        ("uint64", "uint32"),
        ("complex128", "complex64"),
    )
}
float0 = np.dtype([("float0", np.void, 0)])
_PYTHON = {
    float: np.dtype("float64"),
    int: np.dtype("int64"),
    complex: np.dtype("complex128"),
    bool: np.dtype("bool"),
}
_NAMES = {"float": float, "int": int, "complex": complex, "uint": np.uint64}


def canonical(dtype):
    """A dtype as JAX has it: narrow, unless 64 bits are enabled."""
    dtype = float if dtype is None else dtype
    if isinstance(dtype, str):
        dtype = _NAMES.get(dtype, dtype)
    wide = _PYTHON.get(dtype) if isinstance(dtype, type) else None
    dtype = _plait.as_dtype(dtype) if wide is None else wide
    return dtype if config.x64_enabled else _NARROW.get(dtype, dtype)


def default_float():
    return canonical(float)


def weak(x, kind=None):
    """A number, or an array of a weak dtype, as an array whose dtype is weak and as wide as JAX's numbers are.

    kind, float or complex, is the kind of number that the array is to be.
    """
    if type(x) is bool:
        return _plait.to_array(x)
    if not isinstance(x, _plait.Array):
        return _number(x, canonical(kind or type(x)), True)
    wide = _PYTHON[kind] if kind else x.dtype
    narrow = wide if config.x64_enabled else _NARROW.get(wide, wide)
    if x.dtype == narrow and x.weak_type:
        return x
    return _plait.bind("cast", x, dtype=narrow, weak=True)


def _number(x, dtype, weak=False, **options):
    """A number of Python as an array that is a constant in programs."""
    if isinstance(x, int) and dtype.kind in "iu" and x and not _fits(x, dtype):
        raise OverflowError(f"Python int {x} too large to convert to {dtype}")
    return _plait.scalar(x, dtype, weak, **options)


@functools.lru_cache(maxsize=None)
def _limits(dtype):
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _fits(x, dtype):
    low, high = _limits(dtype)
    return low <= x <= high


def captured(x, dtype=None, copy=None):
    """x as an array of JAX's dtype for it; programs capture what was a number of Python as other arrays."""
    if type(x) not in _PYTHON:
        return converted(x, dtype, copy)
    kind = canonical(type(x) if dtype is None else dtype)
    return _number(x, kind, dtype is None and type(x) is not bool, is_inline=False)


def converted(x, dtype=None, copy=None):
    """x as an array of JAX's dtype for it."""
    if dtype is not None:
        if type(x) in (int, float, bool):
            return _number(x, canonical(dtype))
        return _plait.asarray(_plain(x), canonical(dtype), copy)
    if isinstance(x, _plait.Array):
        return x.copy() if copy else x
    x = _plain(x)
    if isinstance(x, (np.ndarray, np.generic)):
        return _plait.asarray(x, canonical(x.dtype), copy)
    if isinstance(x, (bool, int, float, complex)):
        return weak(x)
    made = _plait.asarray(x, None, copy)
    narrow = canonical(made.dtype) if not config.x64_enabled else _widened(x, made)
    return made if narrow == made.dtype else _plait.asarray(x, narrow, copy)


def _plain(x):
    """x, or the array that it says it is."""
    convert = getattr(type(x), "__jax_array__", None)
    if convert is not None:
        return convert(x)
    if isinstance(x, (list, tuple)) and any(hasattr(type(each), "__jax_array__") for each in x):
        return type(x)(_plain(each) for each in x)
    return x


def _widened(x, made):
    """The dtype of a list with 64 bits enabled: numbers in it are of 64 bits."""
    found = _plait.flatten(x)[0]
    if all(isinstance(leaf, (bool, int, float, complex)) for leaf in found):
        return {"f": np.dtype("float64"), "i": np.dtype("int64"), "c": np.dtype("complex128")}.get(
            made.dtype.kind, made.dtype
        )
    return made.dtype


def _position(function, name):
    names = list(inspect.signature(function).parameters)
    return names.index(name) if name in names else None


def creating(function, default=None):
    """A function with a parameter dtype, whose dtype is JAX's; default() is that of a call without one."""
    place = _position(function, "dtype")

    @functools.wraps(function)
    def create(*args, **keywords):
        dtype = args[place] if place < len(args) else keywords.get("dtype")
        dtype = canonical(dtype) if dtype is not None else default() if default else None
        if dtype is not None and place < len(args):
            args = (*args[:place], dtype, *args[place + 1 :])
        elif dtype is not None:
            keywords["dtype"] = dtype
        keywords.pop("out_sharding", None)
        device = keywords.pop("device", None)
        return placed(function(*args, **keywords), device)

    return create


def placed(array, device):
    """array, on a device where one is given."""
    if device is None:
        return array
    from jax._arrays import device_put

    return device_put(array, device)


def creating_like(function, fill=0):
    """A function that makes an array like its first argument, which may be a type; fill is what follows it."""
    create = creating(function)

    @functools.wraps(function)
    def like(a, *args, **keywords):
        if isinstance(a, _plait.ShapeDtypeStruct):
            a = pnp.empty(a.shape, a.dtype)
        a = a if isinstance(a, _plait.Array) else converted(a)
        if len(args) <= fill and keywords.get("dtype") is None:
            keywords["dtype"] = a.dtype
        return create(a, *args, **keywords)

    return like


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    """A dtype as arrays made here have it."""
    return canonical(dtype)


def result_type(*args, return_weak_type_flag=False):
    """The dtype of an operation on arrays, numbers and dtypes."""
    args = [
        _PYTHON[arg].type if isinstance(arg, type) and arg in _PYTHON and len(args) == 1 else arg
        for arg in args
    ]
    dtype = canonical(_plait.result_type(*map(_typed, args)))
    if not return_weak_type_flag:
        return dtype
    return dtype, all(
        not isinstance(arg, (type, str, np.dtype)) and _plait.aval_of(arg).weak_type for arg in args
    )


_WEAK = {float: 0.0, int: 0, complex: 0j}


def _typed(value):
    """A type of Python stands for its numbers."""
    if isinstance(value, type) and value in _WEAK:
        return _WEAK[value]
    return _plain(value)


def dtype_of(value):
    """The dtype of a value, or of what is a dtype."""
    found = getattr(value, "dtype", None)
    return canonical(
        found if isinstance(found, np.dtype) else type(value) if np.isscalar(value) else value
    )


def scalar_type_of(value):
    """The type of Python's numbers to which a value belongs."""
    kind = dtype_of(value).kind
    return {"b": bool, "i": int, "u": int, "c": complex}.get(kind, float)
