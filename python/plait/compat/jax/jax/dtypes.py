"""jax.dtypes: dtypes of NumPy and ml_dtypes, and that of keys.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _scalars
from plait.dtypes import extended, finfo, iinfo, issubdtype, prng_key

from jax import _doors
from jax._dtypes import canonicalize_dtype, float0, result_type, scalar_type_of
from jax.errors import TypePromotionError


def itemsize_bits(dtype):
    """The bits of an element."""
    return canonicalize_dtype(dtype).itemsize * 8


_lacking = _doors.lacking(__name__)


def __getattr__(name):
    return _scalars.on_demand(name).dtype.type if name in _scalars.ON_DEMAND else _lacking(name)


__all__ = [
    "TypePromotionError", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo", "issubdtype", "itemsize_bits",
    "prng_key", "result_type", "scalar_type_of",
]  # fmt: skip
