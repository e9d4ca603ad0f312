"""The private home of ravel_pytree.

SPDX-License-Identifier: Apache-2.0
"""

from jax.flatten_util import ravel_pytree as ravel_pytree
