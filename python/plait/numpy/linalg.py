"""Norms, systems of equations and decompositions of matrices.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

from plait._plait import catalogue as _catalogue

globals().update(_catalogue("numpy.linalg"))
__all__ = sorted(_catalogue("numpy.linalg"))


def __getattr__(name):
    if name in ("eig", "eigvals"):
        raise AttributeError(
            f"module 'plait.numpy.linalg' has no attribute {name!r}: it needs the eigenvalues of matrices that are "
            "not Hermitian, which plait does not compute; eigh and eigvalsh are those of Hermitian ones"
        )
    raise AttributeError(f"module 'plait.numpy.linalg' has no attribute {name!r}")
