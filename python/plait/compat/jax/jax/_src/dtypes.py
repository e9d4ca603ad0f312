"""The private names of jax.dtypes.

SPDX-License-Identifier: Apache-2.0
"""

from jax.dtypes import *  # noqa: F403
from jax.dtypes import (
    TypePromotionError as TypePromotionError,
    canonicalize_dtype as canonicalize_dtype,
)
