"""jax.numpy over plait's.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

import numpy as _np

import plait.lax as _lax
import plait.numpy as _pnp
from plait._key_dtype import KeyDType as _KeyDType
from plait import ShapeError as _ShapeError, _scalars
from plait._plait import catalogue as _catalogue
from plait.numpy import *  # noqa: F403

from jax import _doors
from jax._dtypes import (
    canonical as _canonical,
    captured as _captured,
    converted as _converted,
    creating as _creating,
    creating_like as _creating_like,
    default_float as _default_float,
    placed as _placed,
    result_type,
    weak as _weak,
)
from jax._indexing import indexing as _indexing
from jax._narrow import narrowing as _narrowing, promoting as _promoting
from jax.numpy import _wider

for _name in _catalogue("numpy"):
    _ufunc = getattr(_np, _name, None)
    _is_binary = isinstance(_ufunc, _np.ufunc) and _ufunc.nin > 1 and not _ufunc.signature
    _door = _promoting if _is_binary else _narrowing
    globals()[_name] = _door(getattr(_pnp, _name))
where = _promoting(_pnp.where, 1)
shape, ndim, size = map(_wider.of_type, (shape, ndim, size))  # noqa: F405
isclose = _wider.tolerant(isclose)  # noqa: F405
allclose = _wider.tolerant(allclose)  # noqa: F405


def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast."""
    try:
        return _pnp.broadcast_shapes(*shapes)
    except _ShapeError as error:
        raise ValueError(f"Incompatible shapes for broadcasting: {shapes}: {error}") from None


_doors.load(__name__, "fft", "linalg")  # in the place of plait's

# Arrays made without a dtype are of the default float.
zeros, ones, empty, eye, identity, tri = (
    _creating(getattr(_pnp, _name), _default_float)
    for _name in ("zeros", "ones", "empty", "eye", "identity", "tri")
)
zeros_like, ones_like, empty_like = (
    _creating_like(getattr(_pnp, _name)) for _name in ("zeros_like", "ones_like", "empty_like")
)
_full_like = _creating_like(_pnp.full_like, 1)


def full_like(a, fill_value, dtype=None, shape=None, *, device=None, out_sharding=None):
    """An array of one value, like another."""
    if isinstance(getattr(fill_value, "dtype", None), _KeyDType):
        return full(a.shape if shape is None else shape, fill_value, device=device)
    options = {"dtype": dtype, "shape": shape, "device": device}
    return _full_like(a, fill_value, **{k: v for k, v in options.items() if v is not None})


def array(object, dtype=None, copy=True, order="K", ndmin=0, *, device=None, out_sharding=None):
    """object as an array of at least ndmin axes; numbers are of JAX's default dtypes."""
    result = _captured(object, dtype, copy or None)
    if result.ndim < ndmin:
        result = result.reshape((1,) * (ndmin - result.ndim) + result.shape)
    return _placed(result, device)


def asarray(a, dtype=None, order=None, *, copy=None, device=None, out_sharding=None):
    """a as an array; numbers are of JAX's default dtypes."""
    return _placed(_captured(a, dtype, copy), device)


def full(shape, fill_value, dtype=None, *, device=None, out_sharding=None):
    """An array of one value, in the dtype of the value."""
    fill_value = _converted(fill_value)
    if isinstance(fill_value.dtype, _KeyDType):
        return _placed(_pnp.broadcast_to(fill_value, shape), device)
    made = _pnp.full(shape, fill_value, fill_value.dtype if dtype is None else _canonical(dtype))
    return _placed(_weak(made) if dtype is None and fill_value.weak_type else made, device)


def arange(start, stop=None, step=None, dtype=None, *, device=None, out_sharding=None):
    """Numbers from start to stop, in the dtype of these numbers."""
    given = [value for value in (start, stop, step) if value is not None]
    dtype = result_type(*given) if dtype is None else _canonical(dtype)
    if stop is None:
        start, stop = 0, start
    return _placed(_pnp.arange(start, stop, 1 if step is None else step, dtype=dtype), device)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """num numbers from start to stop."""
    start, stop = _converted(start), _converted(stop)
    dtype = result_type(start, stop, _default_float()) if dtype is None else _canonical(dtype)
    options = {} if axis == 0 else {"axis": axis}
    return _placed(_pnp.linspace(start, stop, num, endpoint, retstep, dtype, **options), device)


def astype(x, dtype, /, *, copy=False, device=None):
    """x in a dtype."""
    return _placed(_converted(x).astype(_canonical(dtype)), device)


def copy(a, order=None):
    """a under a handle of its own."""
    return _converted(a, copy=True)


def iscomplexobj(x):
    """Whether x is complex, whatever its values are."""
    return _np.issubdtype(getattr(x, "dtype", None) or type(x), _np.complexfloating)


def isrealobj(x):
    return not iscomplexobj(x)


take, take_along_axis = _indexing(take), _indexing(take_along_axis)  # noqa: F405


def unravel_index(indices, shape):
    """Places in a row as indices of each axis; places outside are clipped."""
    size, place = _np.prod(shape, dtype=int), _converted(indices)
    place = _pnp.clip(where(place < 0, place + size, place), 0, _np.maximum(size - 1, 0))  # noqa: F405
    return _pnp.unravel_index(place, shape)


for (
    _name
) in "hsplit vsplit dsplit meshgrid broadcast_arrays atleast_1d atleast_2d atleast_3d".split():
    globals()[_name] = _doors.listed(globals()[_name])


def _splitting(function):
    def split(ary, indices_or_sections, axis=0):
        if isinstance(indices_or_sections, _np.ndarray):
            indices_or_sections = indices_or_sections.tolist()
        return list(function(_converted(ary), indices_or_sections, axis))

    split.__name__, split.__doc__ = function.__name__, function.__doc__
    return split


split, array_split = _splitting(_pnp.split), _splitting(_pnp.array_split)


def finfo(dtype):
    """Limits of a floating dtype, as numbers of it."""
    dtype = _canonical(getattr(dtype, "dtype", dtype) if not isinstance(dtype, type) else dtype)
    if dtype.kind in "fc":
        return _np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


# Dtypes and classes of them.
int_, uint, float_, complex_ = _pnp.int64, _pnp.uint64, _pnp.float64, _pnp.complex128
single, double, csingle, cdouble = _pnp.float32, _pnp.float64, _pnp.complex64, _pnp.complex128
character, flexible, object_, generic = _np.character, _np.flexible, _np.object_, _np.generic
ComplexWarning = _np.exceptions.ComplexWarning
printoptions, set_printoptions, get_printoptions = (
    _np.printoptions,
    _np.set_printoptions,
    _np.get_printoptions,
)
iterable = _np.iterable


@_narrowing
def einsum(
    subscripts,
    *operands,
    out=None,
    optimize="auto",
    precision=None,
    preferred_element_type=None,
    **options,
):
    """plait.numpy.einsum; a function that contracts, or a sharding, is not taken."""
    contract = options.pop("_dot_general", None)
    if contract is not None and getattr(contract, "__wrapped__", contract) is not _lax.dot_general:
        _doors.refuse(
            "jax.numpy.einsum",
            "_dot_general is another function than jax.lax.dot_general",
            "leave it out",
        )
    return _pnp.einsum(
        subscripts,
        *operands,
        out=out,
        optimize=optimize,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# Functions of the host, on files and text.
array_repr, array_str, save, savez = _np.array_repr, _np.array_str, _np.save, _np.savez


class ufunc:
    """The type of functions with methods reduce, at and outer."""


_lacking = _doors.lacking(__name__)
_EXTRA_DTYPES = (
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn "
    "float6_e2m3fn float6_e3m2fn int2 uint2"
).split()


def __getattr__(name):
    if name in _scalars.ON_DEMAND:
        return _scalars.on_demand(name)
    if name in _EXTRA_DTYPES:  # as dtypes to compare with: no array is of one
        import ml_dtypes

        return getattr(ml_dtypes, name)
    return _lacking(name)


__all__ = _doors.public(globals())
