"""jax.experimental.shard_map: jax.shard_map with its older arguments.

SPDX-License-Identifier: Apache-2.0
"""

import jax
from jax import _doors


def shard_map(f, mesh, in_specs, out_specs, check_rep=True, auto=frozenset()):
    """jax.shard_map over the axes of a mesh that are not in auto."""
    names = frozenset(mesh.axis_names) - auto
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=names)


__getattr__ = _doors.lacking(__name__)
