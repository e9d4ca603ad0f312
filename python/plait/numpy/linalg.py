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


class EigResult(_NamedTuple):
    """Eigenvalues and eigenvectors as columns, both complex."""

    eigenvalues: _Array
    eigenvectors: _Array


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
    "eig": EigResult,
    "eigh": EighResult,
    "qr": QRResult,
    "slogdet": SlogdetResult,
    "svd": SVDResult,
}.items():
    _name_results(globals()[_name], _result)


__getattr__ = _names.missing(__name__, globals())
