"""Made by python/make_stubs.py from the catalogue.

SPDX-License-Identifier: Apache-2.0
"""
# fmt: off
# ruff: noqa

import builtins as _builtins
import enum as _enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from typing import overload as _overload

import numpy as _np
import numpy.typing as _npt

from plait._plait import Array

_Array = Array
_ArrayLike = Any
_DType = _npt.DTypeLike
_Ints = int | Sequence[int] | Any

class ResizeMethod(str, _enum.Enum):
    NEAREST = 'nearest'
    LINEAR = 'linear'
    CUBIC = 'cubic'
    LANCZOS3 = 'lanczos3'
    LANCZOS5 = 'lanczos5'
def resize(image: _ArrayLike, shape: _Ints, method: str, antialias: _builtins.bool = ..., precision: Any = ...) -> _Array: ...
def scale_and_translate(image: _ArrayLike, shape: _Ints, spatial_dims: _Ints, scale: _ArrayLike, translation: _ArrayLike, method: str, antialias: _builtins.bool = ..., precision: Any = ...) -> _Array: ...
