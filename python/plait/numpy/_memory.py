"""Arrays from memory, files and iterators, and as text: NumPy's own functions, with arrays of plait.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _plait


def _typed(make, dtype):
    """make(dtype) as an array: the types of Python are read as C's, and become the default dtypes."""
    result = make(
        _np.dtype(dtype if dtype in (bool, int, float, complex) else _plait.as_dtype(dtype))
    )
    return _plait.asarray(result, _plait.as_dtype(dtype), True)


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    """A vector of the elements in a buffer of bytes, by default C doubles, which become float32."""
    return _typed(lambda read: _np.frombuffer(buffer, read, count, offset), dtype)


def fromfile(file, dtype=float, count=-1, sep="", offset=0):
    """A vector of the elements in a file: bytes, or numbers as text where sep is not empty."""
    return _typed(lambda read: _np.fromfile(file, read, count, sep, offset), dtype)


def fromiter(iter, dtype, count=-1):
    """A vector of what an iterator yields, of a dtype."""
    return _typed(lambda read: _np.fromiter(iter, read, count), dtype)


def fromstring(string, dtype=float, count=-1, *, sep):
    """A vector of the numbers in a text, between which sep stands."""
    return _typed(lambda read: _np.fromstring(string, read, count, sep=sep), dtype)


def load(file, *args, **kwargs):
    """The array in a file of NumPy's format .npy; of .npz, NumPy's mapping of names to its arrays."""
    result = _np.load(file, *args, **kwargs)
    if not isinstance(result, _np.ndarray):
        return result
    if result.dtype == _np.dtype("V2"):  # NumPy does not write bfloat16's name
        import ml_dtypes

        result = result.view(ml_dtypes.bfloat16)
    return _plait.asarray(result, None, True)


def save(file, arr, allow_pickle=True):
    """Writes an array to a file in NumPy's format .npy."""
    _np.save(file, _np.asarray(arr), allow_pickle=allow_pickle)


def savez(file, *args, allow_pickle=True, **kwds):
    """Writes several arrays to a file in NumPy's format .npz, by name or as arr_0, arr_1, ..."""
    arrays = {f"arr_{number}": _np.asarray(each) for number, each in enumerate(args)}
    arrays |= {name: _np.asarray(each) for name, each in kwds.items()}
    _np.savez(file, allow_pickle=allow_pickle, **arrays)


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """The text of an array's value with its dtype, as NumPy writes it."""
    return _np.array_repr(_np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The text of an array's value, as NumPy writes it."""
    return _np.array_str(_np.asarray(a), max_line_width, precision, suppress_small)


def iterable(y):
    """Whether iter(y) succeeds; it does for arrays of one or more axes."""
    return _np.iterable(y)


get_printoptions, set_printoptions = _np.get_printoptions, _np.set_printoptions
printoptions = _np.printoptions
