"""jax.scipy.sparse.linalg over plait's.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import door

__getattr__ = door(globals(), "plait.scipy.sparse.linalg")
