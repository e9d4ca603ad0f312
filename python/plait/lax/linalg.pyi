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

def cholesky(x: _ArrayLike, symmetrize_input: _builtins.bool = ...) -> _Array: ...
def eigh(x: _ArrayLike, lower: _builtins.bool = ..., symmetrize_input: _builtins.bool = ...) -> tuple[Any, ...]: ...
def lu(x: _ArrayLike) -> tuple[Any, ...]: ...
def lu_pivots_to_permutation(pivots: _ArrayLike, permutation_size: int | Any) -> _Array: ...
def qr(x: _ArrayLike, full_matrices: _builtins.bool = ...) -> tuple[Any, ...]: ...
def svd(x: _ArrayLike, full_matrices: _builtins.bool = ..., compute_uv: _builtins.bool = ...) -> Any: ...
def triangular_solve(a: _ArrayLike, b: _ArrayLike, left_side: _builtins.bool = ..., lower: _builtins.bool = ..., transpose_a: _builtins.bool = ..., conjugate_a: _builtins.bool = ..., unit_diagonal: _builtins.bool = ...) -> _Array: ...
