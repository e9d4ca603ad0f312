"""Norms, and what else of linear algebra needs no decomposition.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

from plait._plait import catalogue as _catalogue

globals().update(_catalogue("numpy.linalg"))
__all__ = sorted(_catalogue("numpy.linalg"))


def __getattr__(name):
    if (
        name
        in (
            "cholesky det eig eigh eigvals eigvalsh inv lstsq matrix_rank pinv qr slogdet solve svd svdvals"
        ).split()
    ):
        raise AttributeError(
            f"module 'plait.numpy.linalg' has no attribute {name!r}: it needs a matrix decomposition, which plait "
            "does not have yet"
        )
    raise AttributeError(f"module 'plait.numpy.linalg' has no attribute {name!r}")
