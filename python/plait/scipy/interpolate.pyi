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

class RegularGridInterpolator:
    def __init__(self, *args: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
def interpn(points: Sequence[_ArrayLike], values: _ArrayLike, xi: _ArrayLike, method: str = ..., bounds_error: _builtins.bool = ..., fill_value: _ArrayLike | None = ...) -> _Array: ...
