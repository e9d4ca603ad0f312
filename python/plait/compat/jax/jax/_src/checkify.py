"""The private home of checkify.

SPDX-License-Identifier: Apache-2.0
"""

from jax.experimental.checkify import *  # noqa: F403
