"""jax.flatten_util.

SPDX-License-Identifier: Apache-2.0
"""

from plait.flatten_util import ravel_pytree as _ravel_pytree

from jax._doors import lacking
from jax._narrow import entered


def ravel_pytree(pytree):
    """A tree's arrays as one vector, and the function back."""
    return _ravel_pytree(entered(pytree))


__getattr__ = lacking(__name__)
__all__ = ["ravel_pytree"]
