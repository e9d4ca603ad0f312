"""jax.lib: of jaxlib's parts, the bridge to devices.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors
from jax._src import xla_bridge as xla_bridge

__getattr__ = _doors.lacking(__name__)
