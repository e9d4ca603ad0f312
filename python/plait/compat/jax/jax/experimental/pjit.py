"""jax.experimental.pjit: jit on one device.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors
from jax._transforms import jit as pjit

__getattr__ = _doors.lacking(__name__)
__all__ = ["pjit"]
