"""jax.lax.linalg over plait's.

SPDX-License-Identifier: Apache-2.0
"""

import enum

from plait.lax import linalg as _linalg

from jax._doors import door
from jax._narrow import narrowing


class SvdAlgorithm(enum.Enum):
    """JAX's algorithms of svd, which all mean plait's."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_svd = narrowing(_linalg.svd)


def svd(x, *, algorithm=None, **options):
    """The singular value decomposition."""
    return _svd(x, **options)


__getattr__ = door(globals(), "plait.lax.linalg")
