"""SciPy's names: special functions and the normal distribution.

SPDX-License-Identifier: Apache-2.0
"""

from plait.scipy import special, stats

__all__ = ["special", "stats"]
