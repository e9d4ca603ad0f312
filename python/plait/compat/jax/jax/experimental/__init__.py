"""jax.experimental: its parts that plait has.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors
from jax._config import enable_x64 as enable_x64
from jax._transforms import io_callback as io_callback

__getattr__ = _doors.lacking(
    __name__,
    [
        "checkify",
        "compilation_cache",
        "hijax",
        "jax2tf",
        "layout",
        "mesh_utils",
        "multihost_utils",
        "pallas",
        "pjit",
        "shard_map",
        "sparse",
    ],
)
