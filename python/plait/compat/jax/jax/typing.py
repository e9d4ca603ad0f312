"""jax.typing: what a function of arrays takes.

SPDX-License-Identifier: Apache-2.0
"""

from typing import Any, Union

import numpy as np

from jax._arrays import Array

ArrayLike = Union[Array, np.ndarray, np.bool_, np.number, bool, int, float, complex]
DTypeLike = Union[str, type[Any], np.dtype]
__all__ = ["ArrayLike", "DTypeLike"]
