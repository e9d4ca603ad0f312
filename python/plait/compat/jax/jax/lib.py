"""jax.lib: jaxlib's parts are not here.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

__getattr__ = _doors.lacking(__name__)
