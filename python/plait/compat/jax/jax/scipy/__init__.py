"""jax.scipy over plait's.

SPDX-License-Identifier: Apache-2.0
"""

from jax._doors import lacking

__getattr__ = lacking(
    __name__,
    "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats".split(),
)
