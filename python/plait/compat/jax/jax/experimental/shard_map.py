"""jax.experimental.shard_map: programs run on one device here.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

shard_map = _doors.refused(
    "jax.experimental.shard_map.shard_map", "programs of plait's drop-in run on one device"
)
__getattr__ = _doors.lacking(__name__)
