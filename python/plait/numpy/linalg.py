"""Norms, systems of equations and decompositions of matrices.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

from typing import NamedTuple as _NamedTuple

from plait import _names
from plait._plait import Array as _Array
from plait._plait import catalogue as _catalogue
from plait._plait import name_results as _name_results

globals().update(_catalogue("numpy.linalg"))
__all__ = sorted(_catalogue("numpy.linalg"))


class EighResult(_NamedTuple):
    """Eigenvalues, least first, and eigenvectors as columns."""

    eigenvalues: _Array
    eigenvectors: _Array


class QRResult(_NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: _Array
    R: _Array


class SlogdetResult(_NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: _Array
    logabsdet: _Array


class SVDResult(_NamedTuple):
    """Singular vectors as columns, singular values, largest first, and singular vectors as rows."""

    U: _Array
    S: _Array
    Vh: _Array


for _name, _result in {
    "eigh": EighResult,
    "qr": QRResult,
    "slogdet": SlogdetResult,
    "svd": SVDResult,
}.items():
    _name_results(globals()[_name], _result)


_missing = _names.missing(__name__, globals())


def __getattr__(name):
    if name in ("eig", "eigvals"):
        raise AttributeError(
            f"module 'plait.numpy.linalg' has no attribute {name!r}: it needs the eigenvalues of matrices that are "
            "not Hermitian, which plait does not compute; eigh and eigvalsh are those of Hermitian ones"
        )
    _missing(name)
