"""Images at places between their pixels, under SciPy's names.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("scipy.ndimage"))
__getattr__ = _names.missing(__name__, globals())
__all__ = sorted(_catalogue("scipy.ndimage"))
