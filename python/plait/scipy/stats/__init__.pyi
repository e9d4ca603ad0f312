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

class ModeResult(NamedTuple):
    mode: _Array
    count: _Array  # type: ignore[assignment]
from plait.scipy.stats import bernoulli as bernoulli
from plait.scipy.stats import beta as beta
from plait.scipy.stats import betabinom as betabinom
from plait.scipy.stats import binom as binom
from plait.scipy.stats import cauchy as cauchy
from plait.scipy.stats import chi2 as chi2
from plait.scipy.stats import dirichlet as dirichlet
from plait.scipy.stats import expon as expon
from plait.scipy.stats import gamma as gamma
from plait._density import gaussian_kde as gaussian_kde
from plait.scipy.stats import gennorm as gennorm
from plait.scipy.stats import geom as geom
from plait.scipy.stats import gumbel_l as gumbel_l
from plait.scipy.stats import gumbel_r as gumbel_r
from plait.scipy.stats import laplace as laplace
from plait.scipy.stats import logistic as logistic
def mode(a: _ArrayLike, axis: int | Any | None = ..., nan_policy: str = ..., keepdims: _builtins.bool = ...) -> ModeResult: ...
from plait.scipy.stats import multinomial as multinomial
from plait.scipy.stats import multivariate_normal as multivariate_normal
from plait.scipy.stats import nbinom as nbinom
from plait.scipy.stats import norm as norm
from plait.scipy.stats import pareto as pareto
from plait.scipy.stats import poisson as poisson
def rankdata(a: _ArrayLike, method: str = ..., *, axis: int | Any | None = ..., nan_policy: str = ...) -> _Array: ...
def sem(a: _ArrayLike, axis: int | Any | None = ..., ddof: int | Any = ..., nan_policy: str = ..., *, keepdims: _builtins.bool = ...) -> _Array: ...
from plait.scipy.stats import t as t
from plait.scipy.stats import truncnorm as truncnorm
from plait.scipy.stats import uniform as uniform
from plait.scipy.stats import vonmises as vonmises
from plait.scipy.stats import wrapcauchy as wrapcauchy
