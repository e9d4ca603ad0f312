"""NumPy's functions over plait arrays: what the array-API standard names, and what NumPy users expect.

Every function is C++ and comes from the catalogue, with its documentation. Constants are NumPy's own, and
dtypes compare equal to NumPy's.

SPDX-License-Identifier: Apache-2.0
"""

# Most names come from the catalogue.
# ruff: noqa: F401, F821

import numpy as _np

from plait import _names, _plait, _scalars
from plait._key_dtype import KeyDType as _KeyDType
from plait._plait import Array as ndarray
from plait._plait import catalogue as _catalogue
from plait._plait import from_dlpack
from plait.numpy import _info, _ufuncs, fft, linalg
from plait.numpy._along_axes import apply_along_axis, apply_over_axes, piecewise
from plait.numpy._frompyfunc import frompyfunc, ufunc
from plait.numpy._indexing import block, c_, delete, insert, ix_, mask_indices, r_
from plait.numpy._memory import (
    array_repr,
    array_str,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
    get_printoptions,
    iterable,
    load,
    printoptions,
    save,
    savez,
    set_printoptions,
)
from plait.numpy._vectorize import vectorize

globals().update(_catalogue("numpy"))

pi, e, inf, nan, newaxis, euler_gamma = _np.pi, _np.e, _np.inf, _np.nan, None, _np.euler_gamma
globals().update(_scalars.scalar_types())
bool = bool_
integer, floating, inexact, number = _np.integer, _np.floating, _np.inexact, _np.number
signedinteger, unsignedinteger, complexfloating = (
    _np.signedinteger,
    _np.unsignedinteger,
    _np.complexfloating,
)
dtype, generic, flexible, character = _np.dtype, _np.generic, _np.flexible, _np.character
object_, ComplexWarning = _np.object_, _np.exceptions.ComplexWarning
# C's names of the dtypes, of which int_, uint, float_ and complex_ are the default ones.
int_, uint, float_, complex_ = int32, uint32, float32, complex64
single, double, csingle, cdouble = float32, float64, complex64, complex128


def asarray(a, dtype=None, order=None, *, copy=None, device=None):
    """a as an array; a NumPy array is copied unless it is read-only.

    Numbers of Python are weak, and so are scalars of NumPy whose dtype is float64, int64 or complex128. Lists are
    strong: float32, int32 or complex64, unless something in them has a strong dtype, or dtype is given. ValueError
    for an integer that does not fit. An array of plait is itself, or with copy=True its value under a handle of its
    own. device: where it lies, the host without one, or where it is already. A copy to a device is under way when this
    returns; nothing waits for it but what reads it.
    """
    if order is not None:
        _plait.check_order("asarray", order)
    if device is not None and dtype is None and copy is None and isinstance(a, _np.ndarray):
        return _plait.device_put(a, str(device))
    if type(a) is _plait.Array and _has_dtype(a, dtype):
        result = a.copy() if copy else a
    elif type(a) is _plait.Array and copy is False:
        _plait.fail(
            "ValueError",
            f"asarray: copy=False, and {a.dtype} becomes {_plait.as_dtype(dtype)} by a copy",
            "leave out copy=False",
        )
    else:
        result = _plait.asarray(a, dtype, copy)
    return result if device is None else _plait.device_put(result, str(device))


def _has_dtype(a, dtype):
    return dtype is None or (not a.weak_type and a.dtype == _plait.as_dtype(dtype))


def array(object, dtype=None, copy=True, order="K", ndmin=0):
    """object as an array with at least ndmin axes; with copy=False an array of plait may be itself."""
    result = asarray(object, dtype, order, copy=copy or None)
    return (
        result
        if result.ndim >= ndmin
        else result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    )


def promote_types(a, b):
    """The dtype of an operation on two dtypes."""
    return _plait.promote_types(a, b)


def result_type(*arrays_and_dtypes):
    """The dtype of an operation on arrays, numbers and dtypes; numbers yield to the others."""
    return _plait.result_type(*arrays_and_dtypes)


def isdtype(dtype, kind):
    """Whether a dtype is of a kind of the array-API standard ("real floating", "integral", ...)."""
    if isinstance(kind, tuple):
        return True in [isdtype(dtype, each) for each in kind]
    dtype = _plait.as_dtype(dtype)
    letters = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "fV",
               "complex floating": "c", "numeric": "iufcV"}  # fmt: skip
    if isinstance(kind, str):
        if kind not in letters:
            _plait.fail(
                "ValueError",
                f"isdtype: there is no kind {kind!r}",
                f"choose one of {', '.join(letters)}",
            )
        return dtype.kind in letters[kind]
    return dtype == _plait.as_dtype(kind)


def _dtype_in(value):
    """What names the dtype of a value: its own, or itself; a scalar type's attribute is neither."""
    return value if isinstance(value, type) else getattr(value, "dtype", value)


def can_cast(from_, to):
    """Whether every value of a dtype (or array) is one of another."""
    return _np.can_cast(_dtype_in(from_), to)


def isscalar(element):
    """Whether element is a number, or an array without axes."""
    return _np.isscalar(element) or getattr(element, "ndim", None) == 0


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """The array of function(i, j, ...) for all places of a shape."""
    return function(*indices(shape, dtype=dtype), **kwargs)


class _Grid:
    """mgrid and ogrid: coordinates from slices, mgrid[0:3, 0:2]."""

    def __init__(self, sparse):
        self._sparse = sparse

    def __getitem__(self, key):
        made = (_np.ogrid if self._sparse else _np.mgrid)[key]
        return (
            [asarray(part) for part in made] if isinstance(made, (list, tuple)) else asarray(made)
        )


mgrid, ogrid, s_, index_exp = _Grid(False), _Grid(True), _np.s_, _np.index_exp


_ufuncs.add_methods(globals(), _catalogue("lax"), _catalogue("nn"))
_info.name_results(globals())


def finfo(dtype):
    """Limits of a floating dtype, or of an array's, as Python floats: NumPy's finfo, ml_dtypes' for bfloat16.

    ValueError for integers.
    """
    return _info.FloatInfo(_plait.as_dtype(_dtype_in(dtype)))


def iinfo(int_type):
    """Limits of an integer dtype, or of an array's: NumPy's iinfo, ml_dtypes' for int4. ValueError for other dtypes."""
    dtype = _plait.as_dtype(_dtype_in(int_type))
    return _info.source_of(dtype).iinfo(dtype)


def __array_namespace_info__():
    """What the array-API standard asks a namespace: capabilities, devices and dtypes."""
    return _info.Info()


__array_api_version__ = "2025.12"


def issubdtype(arg1, arg2):
    """Whether one dtype lies below another in NumPy's tree, in which the dtypes of ml_dtypes are numbers and that of
    random keys is below plait.dtypes.prng_key.
    """
    name = getattr(arg1, "name", getattr(arg1, "__name__", arg1))
    if isinstance(arg1, _KeyDType):
        return arg2 is arg1 or (isinstance(arg2, type) and issubclass(arg1.type, arg2))
    if isinstance(arg2, _KeyDType):
        return False
    if name in _scalars.ON_DEMAND:
        return arg2 is arg1 or arg2 in _scalars.ON_DEMAND[name].__mro__[:-1]
    return _np.issubdtype(arg1, arg2)


_missing = _names.missing(__name__, globals(), list(_scalars.ON_DEMAND))


def __getattr__(name):
    return _scalars.on_demand(name) if name in _scalars.ON_DEMAND else _missing(name)


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
