"""Shapes of windows and convolutions as tuples, and other functions of lax that are Python's.

SPDX-License-Identifier: Apache-2.0
"""

import typing
from collections.abc import Sequence

from plait import _plait

DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
PrecisionLike = typing.Union[None, str, tuple]


def dtype(x):
    """The dtype of an array or number, or one itself."""
    from plait import numpy

    return numpy.result_type(x)


def shape_as_value(shape):
    """A shape as a vector of int32, whose sizes may be named."""
    from plait import numpy

    sizes = [numpy.asarray(size).astype(numpy.int32) for size in shape]
    return numpy.stack(sizes) if sizes else numpy.zeros((0,), numpy.int32)


def platform_dependent(*args, default=None, **per_platform):
    """The function of this platform, cpu or cuda, of *args; default for others. ValueError where there is none."""
    platform = _plait.current_device().partition(":")[0]
    names = {"cpu": ("cpu",), "cuda": ("cuda", "gpu")}.get(platform, (platform,))
    for name in names:
        if per_platform.get(name) is not None:
            return per_platform[name](*args)
    if default is None:
        _plait.fail(
            "ValueError",
            f"platform_dependent: there is no function for {platform!r}",
            "give one under that name, or a default",
        )
    return default(*args)


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """[(before, after)] for each axis of the padding "SAME", "SAME_LOWER" or "VALID"."""
    word = str(padding).upper()
    if word == "VALID":
        return [(0, 0)] * len(in_shape)
    if word not in ("SAME", "SAME_LOWER"):
        _plait.fail(
            "ValueError",
            f"padtype_to_pads: padding is {padding!r}",
            "choose 'SAME', 'SAME_LOWER' or 'VALID'",
        )
    pads = []
    for size, window, stride in zip(in_shape, window_shape, window_strides):
        total = max((-(-size // stride) - 1) * stride + window - size, 0)
        less, more = total // 2, total - total // 2
        pads.append((less, more) if word == "SAME" else (more, less))
    return pads


def _shape_of(function, *shapes):
    from plait import ShapeDtypeStruct, eval_shape

    return tuple(
        eval_shape(function, *(ShapeDtypeStruct(tuple(s), "float32") for s in shapes)).shape
    )


def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape that conv_general_dilated gives."""
    from plait import lax

    return _shape_of(
        lambda lhs, rhs: lax.conv_general_dilated(
            lhs, rhs, window_strides, padding, dimension_numbers=dimension_numbers
        ),
        lhs_shape,
        rhs_shape,
    )


def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1):
    """The shape that a convolution in NCHW and OIHW gives."""
    from plait import lax

    return _shape_of(
        lambda lhs, rhs: lax.conv_general_dilated(
            lhs, rhs, strides, pads, batch_group_count=batch_group_count
        ),
        lhs_shape,
        rhs_shape,
    )


def conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape that conv_transpose gives."""
    from plait import lax

    return _shape_of(
        lambda lhs, rhs: lax.conv_transpose(
            lhs, rhs, window_strides, padding, dimension_numbers=dimension_numbers
        ),
        lhs_shape,
        rhs_shape,
    )


def reduce_window_shape_tuple(
    operand_shape,
    window_dimensions,
    window_strides,
    padding,
    base_dilation=None,
    window_dilation=None,
):
    """The shape that reduce_window gives."""
    from plait import lax

    return _shape_of(
        lambda x: lax.reduce_window_sum(
            x, window_dimensions, window_strides, padding, base_dilation, window_dilation
        ),
        operand_shape,
    )


def conv_general_permutations(dimension_numbers):
    """The permutations that bring operands and result of ("NHWC", "HWIO", "NHWC") to NCHW and OIHW."""
    from plait import lax

    return tuple(
        tuple(spec) for spec in lax.conv_dimension_numbers((1,) * len(dimension_numbers[0]),
                                                           (1,) * len(dimension_numbers[0]), dimension_numbers)
    )  # fmt: skip
