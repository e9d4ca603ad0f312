"""jax.flatten_util.

SPDX-License-Identifier: Apache-2.0
"""

from plait.flatten_util import ravel_pytree

from jax._doors import lacking

__getattr__ = lacking(__name__)
__all__ = ["ravel_pytree"]
