"""jax.lax over plait's.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401, F811

import enum
import functools
import typing

import plait
import plait.numpy as _numpy
from plait import lax as _lax
from plait._plait import catalogue as _catalogue
from plait.lax import *  # noqa: F403
from plait.lax import Precision, RoundingMethod

from jax import _doors
from jax._dtypes import canonical, converted, creating, dtype_of
from jax._indexing import indexing
from jax._narrow import narrowing, promoting
from jax.lax._control import (
    cond,
    custom_linear_solve,
    custom_root,
    fori_loop,
    scan,
    switch,
    while_loop,
)

_PROMOTING = set("add sub mul div rem pow max min atan2 nextafter clamp complex".split())
for _name, _function in _catalogue("lax").items():
    globals()[_name] = (promoting if _name in _PROMOTING else narrowing)(getattr(_lax, _name))


_mul = globals()["mul"]


def mul(x, y, *, out_dtype=None):
    """x * y; of a dtype into which both are converted, where one is given."""
    if out_dtype is None:
        return _mul(x, y)
    return _mul(convert_element_type(x, out_dtype), convert_element_type(y, out_dtype))


def _over_axis(function):
    """A sum or exchange along a named axis of vmap; NameError where no transform around the call binds it."""

    @functools.wraps(function)
    def collective(*args, **options):
        try:
            return function(*args, **options)
        except plait.ValueError as error:
            if "is unbound here" not in str(error):
                raise
            raise NameError(f"unbound axis name: {error}") from None

    return collective


for _name in (
    "all_gather all_to_all axis_index axis_size pcast pmax pmean pmin ppermute pshuffle psum psum_scatter "
    "pswapaxes pvary"
).split():
    globals()[_name] = _over_axis(globals()[_name])
_doors.load(__name__, "linalg")  # in the place of plait's
for _name in (
    "gather scatter scatter_add scatter_apply scatter_max scatter_min scatter_mul scatter_sub"
).split():
    globals()[_name] = indexing(globals()[_name])
PrecisionLike = typing.Any
DotDimensionNumbers = ConvGeneralDilatedDimensionNumbers = typing.Any
stop_gradient = plait.stop_gradient
top_k, split = _doors.listed(_lax.top_k), _doors.listed(_lax.split)
full, iota = creating(_lax.full), _lax.iota


def convert_element_type(operand, new_dtype=None, weak_type=False):
    """operand as an array of a dtype."""
    return _lax.convert_element_type(
        converted(operand), canonical(operand.dtype if new_dtype is None else new_dtype)
    )


class FftType(enum.IntEnum):
    """The transforms of fft."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest whole numbers."""
    return _lax.round(converted(x), RoundingMethod(rounding_method))


def fft(x, fft_type, fft_lengths):
    """A discrete Fourier transform over the last axes."""
    name = fft_type.name if isinstance(fft_type, FftType) else fft_type
    return _lax.fft(x, name, fft_lengths)


def composite(decomposition, name, version=0):
    """The decomposition: no other implementation is looked for under a name."""
    return functools.wraps(decomposition)(lambda *args, **options: decomposition(*args, **options))


def dtype(x, *, canonicalize=False):
    """The dtype of a value."""
    return dtype_of(x)


def broadcast_shapes(*shapes):
    """The shape to which shapes broadcast."""
    from jax.numpy import broadcast_shapes

    return broadcast_shapes(*shapes)


def with_sharding_constraint(x, shardings):
    """x, which lies on the only device."""
    return x


def platform_dependent(*args, default=None, **per_platform):
    """The function for this platform, applied."""
    from jax._arrays import default_backend

    function = per_platform.get(default_backend(), default)
    if function is None:
        _doors.refuse(
            "jax.lax.platform_dependent", f"there is no function for {default_backend()!r}"
        )
    return function(*args)


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """The (low, high) padding of each axis for "SAME", "SAME_LOWER" or "VALID"."""
    in_shape, window_shape, window_strides = (
        [int(size) for size in sizes] for sizes in (in_shape, window_shape, window_strides)
    )
    if padding == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides):
        total = -(-size // stride) * stride - stride + window - size
        total = 0 if total < 0 else total
        low = total // 2 if padding == "SAME" else total - total // 2
        pads.append((low, total - low))
    return pads


_lacking = _doors.lacking(__name__)


def __getattr__(name):
    if name.endswith("_p"):
        from jax._primitives import existing

        found = existing(name[:-2])
        if found is not None:
            return found
    return _lacking(name)
