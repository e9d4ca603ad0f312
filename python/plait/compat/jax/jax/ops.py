"""jax.ops: reductions of segments, by scatters that drop what is out of bounds.

SPDX-License-Identifier: Apache-2.0
"""

import plait.numpy as _numpy

from jax import _doors
from jax._dtypes import converted as _converted


def _segment(name, method, start):
    def function(
        data,
        segment_ids,
        num_segments=None,
        indices_are_sorted=False,
        unique_indices=False,
        bucket_size=None,
        mode=None,
    ):
        data, segment_ids = _converted(data), _converted(segment_ids)
        if num_segments is None:
            num_segments = int(_numpy.max(segment_ids)) + 1 if segment_ids.size else 0
        segment_ids = _numpy.where(
            segment_ids < 0, num_segments, segment_ids
        )  # no count from the end
        result = _numpy.full((num_segments, *data.shape[1:]), start(data.dtype), data.dtype)
        return getattr(result.at[segment_ids], method)(data, mode=mode)

    function.__name__ = name
    function.__doc__ = (
        f"The {method} of the elements of each segment; segment_ids out of range are dropped."
    )
    return function


def _extreme(sign):
    def start(dtype):
        if dtype.kind == "b":
            return sign > 0
        if dtype.kind in "iu":
            info = _numpy.iinfo(dtype)
            return info.max if sign > 0 else info.min
        return sign * _numpy.inf

    return start


segment_sum = _segment("segment_sum", "add", lambda dtype: 0)
segment_prod = _segment("segment_prod", "multiply", lambda dtype: 1)
segment_min = _segment("segment_min", "min", _extreme(1))
segment_max = _segment("segment_max", "max", _extreme(-1))
__getattr__ = _doors.lacking(__name__)
