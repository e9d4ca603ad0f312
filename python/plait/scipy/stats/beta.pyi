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

def cdf(x: _ArrayLike, a: _ArrayLike, b: _ArrayLike, loc: _ArrayLike = ..., scale: _ArrayLike = ...) -> _Array: ...
def logcdf(x: _ArrayLike, a: _ArrayLike, b: _ArrayLike, loc: _ArrayLike = ..., scale: _ArrayLike = ...) -> _Array: ...
def logpdf(x: _ArrayLike, a: _ArrayLike, b: _ArrayLike, loc: _ArrayLike = ..., scale: _ArrayLike = ...) -> _Array: ...
def logsf(x: _ArrayLike, a: _ArrayLike, b: _ArrayLike, loc: _ArrayLike = ..., scale: _ArrayLike = ...) -> _Array: ...
def pdf(x: _ArrayLike, a: _ArrayLike, b: _ArrayLike, loc: _ArrayLike = ..., scale: _ArrayLike = ...) -> _Array: ...
def sf(x: _ArrayLike, a: _ArrayLike, b: _ArrayLike, loc: _ArrayLike = ..., scale: _ArrayLike = ...) -> _Array: ...
