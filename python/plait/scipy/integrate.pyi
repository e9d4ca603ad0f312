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

def trapezoid(y: _ArrayLike, x: _ArrayLike | None = ..., dx: _ArrayLike = ..., axis: int | Any = ...) -> _Array: ...
