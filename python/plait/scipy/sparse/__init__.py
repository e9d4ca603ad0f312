"""Solvers of linear systems that are given by products, under SciPy's names.

SPDX-License-Identifier: Apache-2.0
"""

from plait.scipy.sparse import linalg

__all__ = ["linalg"]
