"""jax.example_libraries: small networks and optimisers.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking

__getattr__ = lacking(__name__, ["optimizers", "stax"])
