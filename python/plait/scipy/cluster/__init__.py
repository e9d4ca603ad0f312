"""Clusters of vectors, under SciPy's names.

SPDX-License-Identifier: Apache-2.0
"""

from plait.scipy.cluster import vq

__all__ = ["vq"]
