"""The private home of jax.custom_derivatives.

SPDX-License-Identifier: Apache-2.0
"""

from jax.custom_derivatives import *  # noqa: F403
