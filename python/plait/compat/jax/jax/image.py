"""jax.image over plait's images, where it has them.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

__getattr__ = _doors.door(globals(), "plait.image")
