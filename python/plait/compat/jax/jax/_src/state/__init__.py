"""Mutable references, of which there are none here.

SPDX-License-Identifier: Apache-2.0
"""

from jax._src.state.types import AbstractRef as AbstractRef
