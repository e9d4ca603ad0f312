"""jax.extend.backend: the CPU and the devices beside it.

SPDX-License-Identifier: Apache-2.0
"""

from jax._arrays import default_backend, devices
from jax._doors import lacking


def backends():
    """The first device of each platform."""
    return {default_backend(): devices()[0].client}


def get_backend(platform=None):
    """The first device of a platform."""
    return devices(platform)[0].client


def clear_backends():
    """Does nothing: plait's devices stay."""


__getattr__ = lacking(__name__)
