"""SciPy's names: linear algebra, special functions and the normal distribution.

SPDX-License-Identifier: Apache-2.0
"""

from plait.scipy import linalg, special, stats

__all__ = ["linalg", "special", "stats"]
