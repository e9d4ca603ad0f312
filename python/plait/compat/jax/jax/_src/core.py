"""The private names of jax.core that libraries use.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait

from jax._doors import lacking
from jax.core import *  # noqa: F403
from jax.core import ShapedArray as ShapedArray, Tracer as Tracer, get_aval as get_aval


def trace_state_clean():
    """Whether no transform is under way."""
    return not _plait.is_tracing()


__getattr__ = lacking(__name__)
