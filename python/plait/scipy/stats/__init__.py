"""Distributions, a module each.

SPDX-License-Identifier: Apache-2.0
"""

from plait.scipy.stats import norm

__all__ = ["norm"]
