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

def dct(x: _ArrayLike, type: int | Any = ..., n: int | Any | None = ..., axis: int | Any = ..., norm: str | None = ...) -> _Array: ...
def dctn(x: _ArrayLike, type: int | Any = ..., s: _Ints | None = ..., axes: _Ints | None = ..., norm: str | None = ...) -> _Array: ...
def idct(x: _ArrayLike, type: int | Any = ..., n: int | Any | None = ..., axis: int | Any = ..., norm: str | None = ...) -> _Array: ...
def idctn(x: _ArrayLike, type: int | Any = ..., s: _Ints | None = ..., axes: _Ints | None = ..., norm: str | None = ...) -> _Array: ...
