"""jax.experimental.layout: how arrays lie in memory: in row-major order.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors


class Layout:
    """An order of axes in memory."""

    def __init__(self, major_to_minor=None, **kwargs):
        self.major_to_minor = major_to_minor


class Format:
    """A layout and a sharding."""

    def __init__(self, layout=None, sharding=None):
        self.layout, self.sharding = layout, sharding


__getattr__ = _doors.lacking(__name__)
