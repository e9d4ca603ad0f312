"""jax.debug over plait's.

SPDX-License-Identifier: Apache-2.0
"""

import plait.debug as _debug
from plait.debug import breakpoint

from jax._doors import lacking, refused


def callback(callback, *args, ordered=False, partitioned=False, **kwargs):
    """Calls callback(*args, **kwargs) each time the program runs."""
    _debug.callback(callback, *args, ordered=ordered, **kwargs)


def print(fmt, *args, ordered=False, partitioned=False, skip_format_check=False, **kwargs):
    """Prints fmt.format(*args, **kwargs) each time the program runs."""
    _debug.print(fmt, *args, ordered=ordered, **kwargs)


log = refused("jax.debug.log", "logging from programs; use jax.debug.print")
inspect_array_sharding = refused("jax.debug.inspect_array_sharding", "arrays lie on one device")
visualize_array_sharding = refused("jax.debug.visualize_array_sharding", "arrays lie on one device")
visualize_sharding = refused("jax.debug.visualize_sharding", "arrays lie on one device")
__getattr__ = lacking(__name__)
__all__ = ["breakpoint", "callback", "print"]
