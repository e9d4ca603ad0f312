"""Indices out of bounds as in JAX: reads take the nearest element, writes are dropped. Arrays are immutable.

SPDX-License-Identifier: Apache-2.0
"""

import functools

from plait import _plait

Array, AtIndex = _plait.Array, _plait.AtIndex
_getitem, _get = Array.__getitem__, AtIndex.get
_STATIC = (int, slice, type(None), type(...))


def _is_static(index):
    return isinstance(index, _STATIC) or (
        type(index) is tuple and all(isinstance(each, _STATIC) for each in index)
    )


def _is_mask(index):
    dtype = getattr(index, "dtype", None)
    return dtype is not None and dtype.kind == "b"


def getitem(array, index):
    """array[index], with indices clipped to the array."""
    if _is_static(index):
        try:
            return _getitem(array, index)
        except IndexError:
            parts = index if type(index) is tuple else (index,)
            if len([part for part in parts if part is not None and part is not ...]) > array.ndim:
                raise
            return _get(array.at[index], mode="clip")
    index = getattr(type(index), "__jax_array__", lambda value: value)(index)
    if _is_mask(index) or (type(index) is tuple and any(map(_is_mask, index))):
        return _getitem(array, index)
    if isinstance(index, list):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use `arr[array(seq)]` instead "
            f"of `arr[seq]`, for {index!r:.60}"
        )
    return _get(array.at[index], mode="clip")


def _iter(array):
    """The rows, by indices that are in bounds."""
    if array.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (_getitem(array, row) for row in range(array.shape[0]))


def _setitem(array, index, value):
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
        "x = x.at[idx].set(y)"
    )


def mode_of(mode, default):
    """plait's word for one of JAX's modes."""
    if mode is None:
        return default
    word = getattr(mode, "value", mode)
    return {"drop": "fill", "one_hot": "fill", "promise_in_bounds": "promise"}.get(word, word)


def _defaulting(method, default):
    @functools.wraps(method)
    def call(at, *args, mode=None, out_sharding=None, **keywords):
        if keywords.get("fill_value", ...) is None:
            del keywords["fill_value"]
        return method(at, *args, mode=mode_of(mode, default), **keywords)

    return call


def indexing(function):
    """take and its relatives, lax.gather and lax.scatter: out of bounds they read NaN, and write nothing."""

    @functools.wraps(function)
    def call(*args, mode=None, fill_value=None, **keywords):
        options = {} if fill_value is None else {"fill_value": fill_value}
        return function(*args, mode=mode_of(mode, "fill"), **options, **keywords)

    return call


def add_indexing():
    """Gives plait's Array JAX's indices; part of `import jax`."""
    if Array.__getitem__ is getitem:
        return
    Array.__getitem__, Array.__setitem__, Array.__iter__ = getitem, _setitem, _iter
    AtIndex.get = _defaulting(AtIndex.get, "clip")
    for name in ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"):
        if hasattr(AtIndex, name):
            setattr(AtIndex, name, _defaulting(getattr(AtIndex, name), "fill"))


__all__ = ["add_indexing", "getitem", "indexing", "mode_of"]
