"""jax.scipy.sparse over plait's.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking, load

load(__name__, "linalg")
__getattr__ = lacking(__name__)
