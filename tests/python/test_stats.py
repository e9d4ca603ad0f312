"""plait.scipy.stats: each distribution's functions against SciPy's, and their derivatives.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import pytest
import scipy.stats
from plait.scipy import stats

rng = np.random.default_rng(0)
X = np.r_[rng.normal(size=40) * 3, 0, 1, -1, 2, np.inf, -np.inf, np.nan, 8, -8, 30]
U = np.r_[rng.uniform(size=30), 0, 1, -0.1, 1.1, np.nan, 1e-12]
K = np.r_[np.arange(-2, 12.0), 0.5, np.nan]
# Parameters, and whether loc and scale follow them.
SCALED = {
    "norm": [()], "uniform": [()], "expon": [()], "cauchy": [()], "laplace": [()], "logistic": [()], "gumbel_r": [()],
    "gumbel_l": [()], "pareto": [(2.5,)], "gamma": [(0.7,), (3.2,), (1.0,)], "chi2": [(3.0,), (2.0,)],
    "beta": [(0.5, 2.0), (1.0, 1.0), (3.0, 4.0)], "t": [(3.0,), (0.7,), (30.0,)],
    "truncnorm": [(-1.0, 2.0), (3.0, 5.0), (-6.0, -4.0)],
}  # fmt: skip
SHAPED = {
    "gennorm": [(1.3,), (3.0,)], "vonmises": [(2.0,)], "wrapcauchy": [(0.3,)], "bernoulli": [(0.3,)], "binom": [(7.0, 0.3)],
    "nbinom": [(4.0, 0.3)], "betabinom": [(7.0, 1.5, 2.5)], "geom": [(0.3,)], "poisson": [(2.5,), (30.0,)],
}  # fmt: skip
INTEGERS = {"bernoulli", "binom", "nbinom", "betabinom", "geom", "poisson"}


@pytest.mark.parametrize("name", [*SCALED, *SHAPED])
def test_distributions_are_scipys(name):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    for function in set(ours.__all__) - {"entropy"}:
        x = U if function in ("ppf", "isf") else K if name in INTEGERS else X
        x = x[np.isfinite(x)] if name in ("vonmises", "wrapcauchy") else x
        for parameters in SCALED.get(name) or SHAPED[name]:
            for placed in [{}, {"loc": 0.5, "scale": 2.0}] if name in SCALED else [{}]:
                result = getattr(ours, function)(x, *parameters, **placed)
                with np.errstate(all="ignore"):
                    expected = getattr(theirs, function)(x, *parameters, **placed)
                np.testing.assert_allclose(
                    np.asarray(result), expected, 2e-11, 1e-300, err_msg=f"{function} {parameters}"
                )
                narrow = getattr(ours, function)(x.astype(np.float32), *parameters, **placed)
                assert narrow.dtype == np.float32 and narrow.shape == x.shape


def test_distributions_of_vectors_are_scipys():
    alpha = np.array([1.5, 2.0, 0.7])
    x = rng.dirichlet(alpha, 5).T
    expected = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), expected, 1e-11)
    np.testing.assert_allclose(stats.dirichlet.pdf(x[:-1], alpha), np.exp(expected), 1e-11)
    assert stats.dirichlet.logpdf(x * 0.9, alpha)[0] == -np.inf
    counts, p = np.array([[1, 2, 3], [2, 2, 2], [1, 1, 1]]), np.array([0.2, 0.3, 0.5])
    expected = scipy.stats.multinomial.logpmf(counts, 6, p)
    np.testing.assert_allclose(stats.multinomial.logpmf(counts.astype(float), 6.0, p), expected)
    matrices = rng.normal(size=(4, 3, 3))
    matrices = matrices @ matrices.transpose(0, 2, 1) + np.eye(3)
    mean, x = rng.normal(size=3), rng.normal(size=(4, 3))
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, matrices[0])
    np.testing.assert_allclose(
        stats.multivariate_normal.logpdf(x, mean, matrices[0]), expected, 1e-11
    )
    np.testing.assert_allclose(
        stats.multivariate_normal.pdf(x, mean, matrices),
        [scipy.stats.multivariate_normal.pdf(a, mean, c) for a, c in zip(x, matrices)], 1e-11)  # fmt: skip
    with pytest.raises(ValueError, match="an n x n matrix"):
        stats.multivariate_normal.logpdf(x, mean, np.eye(2))


def test_entropy_of_poisson():
    def exact(mu):  # the sum, in many terms
        k = np.arange(0, 600.0)
        p = scipy.stats.poisson.pmf(k, mu)
        return -np.sum(scipy.special.xlogy(p, p))

    means = np.array([0.1, 1, 5, 20, 63.9, 64.1, 200])
    np.testing.assert_allclose(stats.poisson.entropy(means), [exact(mu) for mu in means], 1e-9)


def test_ranks_modes_and_standard_errors_are_scipys():
    x = rng.integers(0, 5, size=(6, 9)).astype(float)
    for method in ("average", "min", "max", "dense", "ordinal"):
        for axis in (None, 0, 1):
            expected = scipy.stats.rankdata(x, method, axis=axis)
            np.testing.assert_array_equal(stats.rankdata(x, method, axis=axis), expected.reshape(-1) if axis is None else expected)  # fmt: skip
    for axis, keepdims in ((0, False), (1, True), (None, False)):
        result, expected = stats.mode(x, axis, keepdims=keepdims), scipy.stats.mode(x, axis, keepdims=keepdims)  # fmt: skip
        np.testing.assert_array_equal(result.mode, expected.mode)
        np.testing.assert_array_equal(result.count, expected.count)
        np.testing.assert_allclose(stats.sem(x, axis), scipy.stats.sem(x, axis), 1e-13)
    for wrong in (lambda: stats.rankdata(x, "first"), lambda: stats.sem(x, nan_policy="omit")):
        with pytest.raises(ValueError, match="(?s)fix: "):
            wrong()


def test_densities_of_samples_are_scipys():
    points, weights, at = rng.normal(size=(2, 40)), rng.uniform(size=40), rng.normal(size=(2, 7))
    for bandwidth in (None, "silverman", 0.3, lambda kde: 0.5):
        ours = stats.gaussian_kde(points, bandwidth, weights)
        theirs = scipy.stats.gaussian_kde(points, bandwidth, weights)
        np.testing.assert_allclose(ours(at), theirs(at), 1e-12)
        np.testing.assert_allclose(ours.logpdf(at), theirs.logpdf(at), 1e-12)
        np.testing.assert_allclose(ours.integrate_gaussian([0.1, 0.2], np.eye(2)), theirs.integrate_gaussian([0.1, 0.2], np.eye(2)), 1e-12)  # fmt: skip
    ours, theirs = stats.gaussian_kde(points[0]), scipy.stats.gaussian_kde(points[0])
    other, their_other = stats.gaussian_kde(points[1]), scipy.stats.gaussian_kde(points[1])
    np.testing.assert_allclose(ours.integrate_box_1d(-1, 0.5), theirs.integrate_box_1d(-1, 0.5))
    np.testing.assert_allclose(ours.integrate_kde(other), theirs.integrate_kde(their_other))
    draws = np.asarray(ours.resample(plait.random.key(1), (20000,)))
    assert draws.shape == (1, 20000) and abs(draws.std() - points[0].std() * np.hypot(1, float(ours.factor))) < 0.05  # fmt: skip
    with pytest.raises(ValueError, match="points as columns"):
        stats.gaussian_kde(points)(np.zeros((3, 4)))


POINTS = {
    "norm.logcdf": ((), [-30.0, -1.0, 3.0]), "t.cdf": ((3.0,), [-2.0, 0.0, 5e-5, 1.0]), "gennorm.cdf": ((3.0,), [-1.0, 0.0, 0.5]),
    "truncnorm.logcdf": ((-1.0, 2.0), [-0.5, 1.0]), "truncnorm.logpdf": ((3.0, 5.0), [3.5]), "gumbel_r.logsf": ((), [-3.0, 4.0]),
    "beta.logpdf": ((1.0, 3.0), [0.1]), "gamma.cdf": ((2.5,), [0.1, 9.0]), "cauchy.ppf": ((), [0.1, 0.9]),
    "laplace.ppf": ((), [0.1, 0.5]), "logistic.logpdf": ((), [-40.0, 2.0]), "pareto.sf": ((2.5,), [1.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", POINTS)
def test_derivatives_are_differences(name):
    distribution, function = name.split(".")
    parameters, points = POINTS[name]
    f = lambda x: getattr(getattr(stats, distribution), function)(x, *parameters)  # noqa: E731
    for x in np.array(points):
        slope = (float(f(x + 1e-6)) - float(f(x - 1e-6))) / 2e-6
        assert abs(float(plait.grad(f)(x)) - slope) < 1e-6 * (1 + abs(slope))
    outside = plait.grad(lambda x: stats.gamma.logpdf(x, 2.0) + stats.beta.logpdf(x, 2.0, 3.0))
    assert outside(-1.0) == 0
