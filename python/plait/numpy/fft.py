"""Discrete Fourier transforms.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("numpy.fft"))
__all__ = sorted(_catalogue("numpy.fft"))

__getattr__ = _names.missing(__name__, globals())
