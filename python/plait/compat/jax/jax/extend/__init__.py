"""jax.extend: what libraries that extend JAX use.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

from jax.extend import backend, core, linear_util, source_info_util
from jax._doors import lacking

__getattr__ = lacking(__name__, ["random", "sharding"])
