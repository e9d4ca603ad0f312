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

def digamma(x: _ArrayLike) -> _Array: ...
def erf(x: _ArrayLike) -> _Array: ...
def erfinv(x: _ArrayLike) -> _Array: ...
def expit(x: _ArrayLike) -> _Array: ...
def gammaln(x: _ArrayLike) -> _Array: ...
def log_softmax(x: _ArrayLike, axis: _Ints | None = ...) -> _Array: ...
def logit(x: _ArrayLike) -> _Array: ...
def logsumexp(a: _ArrayLike, axis: _Ints | None = ..., b: _ArrayLike | None = ..., keepdims: _builtins.bool = ..., return_sign: _builtins.bool = ..., where: _ArrayLike | None = ...) -> Any: ...
def softmax(x: _ArrayLike, axis: _Ints | None = ...) -> _Array: ...
