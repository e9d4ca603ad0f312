"""Images of another size, under JAX's names.

Every function is C++ and comes from the catalogue, with its documentation.

SPDX-License-Identifier: Apache-2.0
"""

import enum as _enum

from plait import _names
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("image"))


class ResizeMethod(str, _enum.Enum):
    """How images are resampled; its members may stand for their words."""

    NEAREST = "nearest"
    LINEAR = "linear"
    CUBIC = "cubic"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"

    __str__ = str.__str__

    @classmethod
    def from_string(cls, s):
        """The method of a word, JAX's other ones included; KeyError for none."""
        words = {"bilinear": "linear", "trilinear": "linear", "triangle": "linear", "bicubic": "cubic", "tricubic": "cubic"}  # fmt: skip
        found = {method.value: method for method in cls}
        return found[words.get(s, s)]


__getattr__ = _names.missing(__name__, globals())
__all__ = sorted([*_catalogue("image"), "ResizeMethod"])
