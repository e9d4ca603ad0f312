"""jax.experimental.mesh_utils: the devices of meshes.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from jax import _doors
from jax._arrays import devices as _devices


def create_device_mesh(mesh_shape, devices=None, **kwargs):
    """The devices of a mesh of this shape, row by row."""
    found = np.empty(int(np.prod(mesh_shape)), dtype=object)
    given = list(devices) if devices is not None else _devices()
    if len(found) != len(given):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape {tuple(mesh_shape)}"
        )
    found[:] = given
    return found.reshape(mesh_shape)


__getattr__ = _doors.lacking(__name__)
