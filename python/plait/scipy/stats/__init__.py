"""Distributions, a module each; ranks, modes, standard errors, densities of samples.

SPDX-License-Identifier: Apache-2.0
"""

from typing import NamedTuple as _NamedTuple

from plait import _names
from plait._density import gaussian_kde
from plait._plait import Array as _Array
from plait._plait import catalogue as _catalogue
from plait._plait import name_results as _name_results
from plait.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)

globals().update(_catalogue("scipy.stats"))


class ModeResult(_NamedTuple):
    """The most frequent elements, and how often they occur."""

    mode: _Array
    count: _Array


_name_results(globals()["mode"], ModeResult)
__getattr__ = _names.missing(__name__, globals())
__all__ = [
    "ModeResult",
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]
