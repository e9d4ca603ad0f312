"""jax.dtypes: dtypes of NumPy and ml_dtypes; keys are arrays of uint32, so that no dtype is extended.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
from plait.dtypes import finfo, iinfo, prng_key

from jax import _doors
from jax._dtypes import canonicalize_dtype, issubdtype, result_type, scalar_type_of
from jax.errors import TypePromotionError

float0 = np.dtype([("float0", np.void, 0)])


class extended(np.generic):
    """The kind of dtypes that are not NumPy's, of which there are none here."""


def itemsize_bits(dtype):
    """The bits of an element."""
    return canonicalize_dtype(dtype).itemsize * 8


_lacking = _doors.lacking(__name__)


def __getattr__(name):
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return _lacking(name)


__all__ = [
    "TypePromotionError", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype", "itemsize_bits",
    "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip
