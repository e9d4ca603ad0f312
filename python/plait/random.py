"""Random numbers from splittable keys: key, split, fold_in, and distributions; Generator, which keeps its key.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names
from plait._generator import Generator  # noqa: F401
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("random"))
__getattr__ = _names.missing(__name__, globals())
__all__ = sorted([*_catalogue("random"), "Generator"])
