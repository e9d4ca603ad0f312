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

from plait._bcoo import BCOO as BCOO
def bcoo_add(lhs: Any, rhs: Any) -> BCOO: ...
def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: Any = ...) -> _Array: ...
def bcoo_fromdense(mat: _ArrayLike, nse: int | Any | None = ..., n_dense: int | Any = ..., index_dtype: Any = ...) -> BCOO: ...
def bcoo_multiply_dense(sp_mat: Any, v: _ArrayLike) -> BCOO: ...
def bcoo_reduce_sum(mat: Any, axes: _Ints | None = ...) -> BCOO: ...
def bcoo_sum_duplicates(mat: Any, nse: int | Any | None = ...) -> BCOO: ...
def bcoo_todense(mat: Any) -> _Array: ...
def bcoo_transpose(mat: Any, permutation: _Ints) -> BCOO: ...
def eye(N: int | Any, M: int | Any | None = ..., k: int | Any = ..., dtype: _DType | None = ..., index_dtype: Any = ...) -> BCOO: ...
