"""jax.ops: plait's reductions of segments.

SPDX-License-Identifier: Apache-2.0
"""

import functools as _functools

import plait.numpy as _numpy
import plait.ops as _ops
from plait._plait import catalogue as _catalogue

from jax import _doors
from jax._narrow import narrowing as _narrowing


def _of_scalars(function):
    """A reduction of segments, whose data may be one number for all."""

    @_functools.wraps(function)
    def reduce(data, segment_ids, *args, **options):
        if _numpy.ndim(data) == 0:
            data = _numpy.broadcast_to(data, _numpy.shape(segment_ids))
        return function(data, segment_ids, *args, **options)

    return reduce


for _name in _catalogue("ops"):
    globals()[_name] = _of_scalars(_narrowing(getattr(_ops, _name)))
__getattr__ = _doors.lacking(__name__)
