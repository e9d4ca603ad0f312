"""jax.distributed: one process computes here.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

initialize = _doors.refused(
    "jax.distributed.initialize", "programs of plait's drop-in run in one process"
)


def shutdown():
    """Does nothing: nothing was started."""


def is_initialized():
    return False


__getattr__ = _doors.lacking(__name__)
