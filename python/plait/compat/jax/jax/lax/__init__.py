"""jax.lax over plait's.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401, F811

import typing

import numpy as np

import plait
from plait import lax as _lax
from plait.lax import *  # noqa: F403
from plait.lax import Precision

from jax import _doors
from jax._dtypes import canonical, converted, creating
from jax.lax._control import cond, fori_loop, scan, switch, while_loop

_doors.load(__name__, "linalg")  # in the place of plait's
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


def dtype(x, *, canonicalize=False):
    """The dtype of a value."""
    return converted(x).dtype


def broadcast_to_rank(x, rank):
    """x with axes of size 1 before its own."""
    return x.reshape((1,) * max(0, rank - x.ndim) + x.shape)


def broadcast_like(x, like):
    return plait.numpy.broadcast_to(x, like.shape)


def with_sharding_constraint(x, shardings):
    """x, which lies on the only device."""
    return x


def optimization_barrier(operand):
    """operand: what is computed does not depend on the order of computation here."""
    return operand


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
    if padding == "VALID":
        return [(0, 0)] * len(in_shape)
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        low = total // 2 if padding == "SAME" else total - total // 2
        pads.append((low, total - low))
    return pads


def conv_transpose(
    lhs,
    rhs,
    strides,
    padding,
    rhs_dilation=None,
    dimension_numbers=None,
    transpose_kernel=False,
    precision=None,
    preferred_element_type=None,
    use_consistent_padding=False,
):
    """A convolution of fractional stride: the gradient of one with these strides, whose kernel is not flipped."""
    rank = lhs.ndim - 2
    if dimension_numbers is None:
        spatial = "DHW"[3 - rank :] if rank <= 3 else "".join(map(str, range(rank)))
        dimension_numbers = ("N" + spatial + "C", spatial + "IO", "N" + spatial + "C")
    numbers = _lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    sizes = np.take(rhs.shape, numbers.rhs_spec)[2:]
    dilation = rhs_dilation or (1,) * rank
    window = [(size - 1) * step + 1 for size, step in zip(sizes, dilation)]
    if isinstance(padding, str):
        padding = [_transposed_padding(k, s, padding) for k, s in zip(window, strides)]
    elif use_consistent_padding:
        padding = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, padding)]
    if transpose_kernel:
        rhs = plait.numpy.flip(rhs, tuple(numbers.rhs_spec[2:]))
        rhs = plait.numpy.swapaxes(rhs, numbers.rhs_spec[0], numbers.rhs_spec[1])
    return _lax.conv_general_dilated(
        lhs,
        rhs,
        (1,) * rank,
        padding,
        lhs_dilation=tuple(strides),
        rhs_dilation=tuple(dilation),
        dimension_numbers=numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_padding(window, stride, padding):
    """The padding whose result has stride times the size ("SAME"), or covers every product ("VALID")."""
    if padding == "SAME":
        total = window + stride - 2
        low = window - 1 if stride > window - 1 else -(-total // 2)
    else:
        total = window + stride - 2 + max(window - stride, 0)
        low = window - 1
    return low, total - low


def axis_size(axis_name):
    _no_axis("axis_size", axis_name)


def _collective(name):
    def function(*args, **kwargs):
        _no_axis(
            name, args[1] if len(args) > 1 else kwargs.get("axis_name", args[0] if args else None)
        )

    function.__name__ = name
    function.__doc__ = "A sum or exchange along a named axis of vmap: not in plait's drop-in."
    return function


def _no_axis(name, axis_name):
    # JAX's own error for an axis that no transform around the call binds; here none binds one.
    raise NameError(
        f"jax.lax.{name}: unbound axis name: {axis_name}; plait's vmap binds no axis names"
    )


for _name in (
    "all_gather all_to_all axis_index pbroadcast pcast pmax pmean pmin ppermute pshuffle psum psum_scatter pswapaxes"
).split():
    globals().setdefault(_name, _collective(_name))

_doors.take(
    globals(),
    plait.scipy.special,
    "bessel_i0e=i0e bessel_i1e=i1e betainc igamma=gammainc igammac=gammaincc zeta",
)
_doors.take(globals(), plait.scipy.special, "polygamma erfc")
_lacking = _doors.lacking(__name__)


def __getattr__(name):
    if name.endswith("_p"):
        from jax._primitives import existing

        found = existing(name[:-2])
        if found is not None:
            return found
    return _lacking(name)
