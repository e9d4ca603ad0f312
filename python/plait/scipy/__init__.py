"""SciPy's names: cosine transforms, linear algebra, special functions and the normal distribution.

SPDX-License-Identifier: Apache-2.0
"""

from plait.scipy import fft, linalg, special, stats

__all__ = ["fft", "linalg", "special", "stats"]
