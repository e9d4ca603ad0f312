"""The primitives under JAX's names: exact shapes and dtypes, no promotion.

Functions of arrays are C++ and come from the catalogue, with their documentation; those of functions are in _control.py
and _implicit.py; here are the types of JAX's arguments.

SPDX-License-Identifier: Apache-2.0
"""

import enum as _enum
import typing as _typing

from plait import _names
from plait import _plait
from plait._control import associative_scan as associative_scan
from plait._control import cond as cond
from plait._control import fori_loop as fori_loop
from plait._control import map as map
from plait._control import scan as scan
from plait._control import switch as switch
from plait._control import while_loop as while_loop
from plait._implicit import custom_linear_solve as custom_linear_solve
from plait._implicit import custom_root as custom_root
from plait._plait import catalogue as _catalogue
from plait.lax import linalg as linalg
from plait.lax._shapes import DotDimensionNumbers as DotDimensionNumbers
from plait.lax._shapes import PrecisionLike as PrecisionLike
from plait.lax._shapes import conv_general_permutations as conv_general_permutations
from plait.lax._shapes import conv_general_shape_tuple as conv_general_shape_tuple
from plait.lax._shapes import conv_shape_tuple as conv_shape_tuple
from plait.lax._shapes import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from plait.lax._shapes import dtype as dtype
from plait.lax._shapes import padtype_to_pads as padtype_to_pads
from plait.lax._shapes import platform_dependent as platform_dependent
from plait.lax._shapes import reduce_window_shape_tuple as reduce_window_shape_tuple
from plait.lax._shapes import shape_as_value as shape_as_value

linear_solve = custom_linear_solve

globals().update(_catalogue("lax"))


class GatherDimensionNumbers(_typing.NamedTuple):
    """What the axes of gather's operand, start indices and result mean, as in JAX."""

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(_typing.NamedTuple):
    """What the axes of scatter's operand, indices and updates mean, as in JAX."""

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


class ConvDimensionNumbers(_typing.NamedTuple):
    """Where a convolution keeps batch (or out feature), feature (or in feature) and spatial axes."""

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


class RaggedDotDimensionNumbers(_typing.NamedTuple):
    """What the axes of ragged_dot_general's operands mean, as in JAX."""

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: tuple[int, ...]
    rhs_group_dimensions: tuple[int, ...]


class RoundingMethod(_enum.IntEnum):
    """Where round takes halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class RandomAlgorithm(_enum.IntEnum):
    """JAX's algorithms of rng_bit_generator, which all mean plait's generator."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


class GatherScatterMode(str, _enum.Enum):
    """What becomes of windows outside the array; its members may stand for their words."""

    CLIP = "clip"
    FILL_OR_DROP = "fill"
    PROMISE_IN_BOUNDS = "promise_in_bounds"

    __str__ = str.__str__


class Precision(str, _enum.Enum):
    """JAX's say about the precision of products. float32 means float32 here, so that all are equal."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

    __str__ = str.__str__


ConvGeneralDilatedDimensionNumbers = _typing.Union[None, tuple[str, str, str], ConvDimensionNumbers]


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """ConvDimensionNumbers of ("NCHW", "OIHW", "NCHW"), of a triple of axes, or of None, which stands for that order.

    N is the batch, C the feature, O and I the kernel's features, any other character a spatial axis. ValueError for
    strings that do not name the axes of the shapes so.
    """
    rank = len(lhs_shape)
    if len(rhs_shape) != rank:
        _plait.fail(
            "ShapeError",
            f"conv_dimension_numbers: shapes {tuple(lhs_shape)} and {tuple(rhs_shape)} of {rank} and {len(rhs_shape)} axes",
            "give as many axes of both",
        )
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(rank))] * 3)
    if not isinstance(dimension_numbers[0], str):
        return ConvDimensionNumbers(*map(tuple, dimension_numbers))
    specs = _plait.conv_dimension_numbers(*dimension_numbers)
    if any(len(spec) != rank for spec in specs):
        _plait.fail(
            "ValueError",
            f"conv_dimension_numbers: {tuple(dimension_numbers)} for arrays of {rank} axes",
            "give a character for each axis",
        )
    return ConvDimensionNumbers(*specs)


__getattr__ = _names.missing(__name__, globals())
__all__ = sorted(name for name in globals() if not name.startswith("_"))
