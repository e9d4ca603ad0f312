"""The private home of jax.tree_util.

SPDX-License-Identifier: Apache-2.0
"""

from jax.tree_util import *  # noqa: F403
