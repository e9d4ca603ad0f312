"""jax.dlpack: exchange of memory.

SPDX-License-Identifier: Apache-2.0
"""

import plait

from jax import _doors


def from_dlpack(external_array, device=None, copy=None):
    """An array that shares the memory of another library's."""
    made = plait.from_dlpack(external_array)
    return made.copy() if copy else made


__getattr__ = _doors.lacking(__name__)
