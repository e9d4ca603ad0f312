"""The private names of jax.dtypes.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

from typing import Any

from jax.dtypes import *  # noqa: F403
from jax.dtypes import TypePromotionError, canonicalize_dtype, extended, finfo

DType = Any


class ExtendedDType:
    """The class of dtypes that are not NumPy's, of which no array is here."""


def supports_inf(dtype):
    """Whether a dtype has infinities."""
    return not str(dtype).endswith("fn") and "fnuz" not in str(dtype)
