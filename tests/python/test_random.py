"""plait.random: numbers of JAX 0.10 for the same keys (random_goldens.json), and distributions.

SPDX-License-Identifier: Apache-2.0
"""

import json
import math
import pathlib
import types

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import random
from plait._plait import catalogue

GOLDENS = json.loads((pathlib.Path(__file__).parent / "random_goldens.json").read_text())
KEY = random.key(42)


def check_bits(name, result):
    """Equal, to the bit."""
    expected = np.asarray(GOLDENS[name])
    np.testing.assert_array_equal(np.asarray(result).astype(expected.dtype).ravel(), expected)


def check_close(name, result, tolerance=2e-6):
    np.testing.assert_allclose(
        np.asarray(result).astype(np.float64).ravel(), GOLDENS[name], rtol=tolerance, atol=tolerance
    )


def test_keys():
    for seed, words in GOLDENS["key"].items():
        np.testing.assert_array_equal(random.key_data(random.key(int(seed))), words)
        np.testing.assert_array_equal(np.asarray(random.PRNGKey(int(seed))), words)
    check_bits("key 2**40+5", random.PRNGKey(2**40 + 5))
    np.testing.assert_array_equal(random.key_data(random.key(np.int32(-1))), [0, 2**32 - 1])
    check_bits("split", random.key_data(random.split(KEY)))
    check_bits("split(5)", random.key_data(random.split(KEY, 5)))
    check_bits("split((2,3))", random.key_data(random.split(KEY, (2, 3))))
    for data, words in GOLDENS["fold_in"].items():
        np.testing.assert_array_equal(random.key_data(random.fold_in(KEY, int(data))), words)
    with pytest.raises(ValueError, match="vmap over an array of keys"):
        random.uniform(random.split(KEY))


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits(width):
    check_bits(f"bits uint{width}", random.bits(KEY, (5 if width == 64 else 7,), f"uint{width}"))
    check_bits("bits (3,5)", random.bits(KEY, (3, 5)))


def test_uniform_numbers_are_exact():
    import ml_dtypes

    check_bits("uniform float32", random.uniform(KEY, (3, 4)))
    check_bits("uniform float16", random.uniform(KEY, (7,), "float16"))
    check_bits("uniform bfloat16", random.uniform(KEY, (7,), ml_dtypes.bfloat16))
    check_bits("uniform float64", random.uniform(KEY, (5,), "float64"))
    check_close("uniform(-2,5)", random.uniform(KEY, (6,), minval=-2, maxval=5), 1e-6)
    check_bits(
        "vmap uniform", plait.vmap(lambda key: random.uniform(key, (3,)))(random.split(KEY, 4))
    )
    check_bits("uniform float32", plait.jit(lambda key: random.uniform(key, (3, 4)))(KEY))


def test_randint_is_exact():
    for name, expected in GOLDENS["randint"].items():
        low, high, dtype = name.split()
        result = random.randint(KEY, (8,), int(low), int(high), dtype)
        assert result.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(np.asarray(result), expected, err_msg=name)
    check_bits(
        "randint arrays",
        random.randint(
            KEY, (3, 4), np.array([0, 10, 20, 30], np.int32), np.array([10, 20, 30, 31], np.int32)
        ),
    )
    check_bits("randint int64", random.randint(KEY, (6,), -(10**12), 10**12, "int64"))


def test_shuffles_are_exact():
    check_bits("permutation(10)", random.permutation(KEY, 10))
    check_bits("permutation(1000)", random.permutation(KEY, 1000))
    check_bits("permutation(3000)", random.permutation(KEY, 3000)[:50])
    x = pnp.arange(12).reshape(4, 3)
    check_bits("permutation matrix", random.permutation(KEY, x))
    check_bits("permutation axis 1", random.permutation(KEY, x, axis=1))
    check_bits("permutation independent", random.permutation(KEY, x, axis=1, independent=True))
    check_bits("choice", random.choice(KEY, 10, (6,)))
    check_bits("choice without", random.choice(KEY, 10, (6,), replace=False))
    check_bits("choice rows", random.choice(KEY, x, (2,), axis=0))
    p = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    check_bits("choice p", random.choice(KEY, 4, (10,), p=p))
    check_bits("choice p without", random.choice(KEY, 4, (3,), replace=False, p=p))
    with pytest.raises(ValueError, match="without replacement"):
        random.choice(KEY, 3, (4,), replace=False)


def test_discrete_distributions():
    check_bits("bernoulli", random.bernoulli(KEY, 0.3, (20,)))
    check_bits("rademacher", random.rademacher(KEY, (12,)))
    logits = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
    rows = np.stack([logits, logits[::-1]])
    check_bits("categorical", random.categorical(KEY, logits, shape=(10,)))
    check_bits("categorical rows", random.categorical(KEY, rows))
    check_bits("categorical axis 0", random.categorical(KEY, rows, axis=0))


def test_continuous_distributions():
    check_close("normal", random.normal(KEY, (3, 4)))
    check_close("normal float16", random.normal(KEY, (4,), "float16"), 2e-3)
    check_close("normal float64", random.normal(KEY, (5,), "float64"), 1e-12)
    z = np.asarray(random.normal(KEY, (3,), "complex64"))
    check_close("normal complex64", np.stack([z.real, z.imag]))
    check_close("truncated_normal", random.truncated_normal(KEY, -1.0, 0.5, (6,)))
    for name in ("gumbel", "exponential", "laplace", "logistic", "cauchy"):
        check_close(name, getattr(random, name)(KEY, (6,)), 1e-5)
    check_close("pareto", random.pareto(KEY, 2.0, (5,)))
    check_close("rayleigh", random.rayleigh(KEY, 2.0, (5,)))
    check_close("weibull_min", random.weibull_min(KEY, 2.0, 1.5, (5,)))
    check_close("lognormal", random.lognormal(KEY, 0.5, (5,)))


A = np.array([0.05, 0.5, 0.9, 1, 2.5, 7, 30, 400], np.float32)
MEANS = np.array([0, 0.3, 2, 9, 11, 40, 300, 5000], np.float32)
TRIALS = np.array([1, 5, 20, 100, 1000, 50, 40, 7], np.float32)
CHANCES = np.array([0.3, 0.5, 0.1, 0.9, 0.35, 0, 1, 0.8], np.float32)
OUTCOMES = np.array([[0.2, 0.3, 0.5], [0.1, 0, 0.9]], np.float32)
COV = np.array([[2, 0.5], [0.5, 1]], np.float32)


def test_distributions_by_rejection_are_jaxs():
    check_close("gamma", random.gamma(KEY, A), 1e-5)
    check_close("gamma (2,3)", random.gamma(KEY, 1.5, (2, 3)), 1e-5)
    check_close("loggamma", random.loggamma(KEY, A * np.float32(1e-3)), 1e-5)
    check_close("gamma", plait.jit(random.gamma)(KEY, A), 1e-5)
    check_close("gamma gradient", plait.grad(lambda a: random.gamma(KEY, a).sum())(A), 1e-4)
    check_close("beta", random.beta(KEY, A, 2.0), 1e-5)
    check_close("dirichlet", random.dirichlet(KEY, A[:3], (2,)), 1e-5)
    check_close("chisquare", random.chisquare(KEY, 3.0, (5,)), 1e-5)
    check_close("f", random.f(KEY, 3.0, 5.0, (5,)), 1e-5)
    check_close("t", random.t(KEY, 3.0, (5,)), 1e-5)
    check_close("generalized_normal", random.generalized_normal(KEY, 1.5, (5,)), 1e-5)
    check_close("ball", random.ball(KEY, 3, shape=(2,)), 1e-5)
    check_bits("poisson", random.poisson(KEY, MEANS))
    check_bits("binomial", random.binomial(KEY, TRIALS, CHANCES))
    check_bits("multinomial", random.multinomial(KEY, 50.0, OUTCOMES))
    check_bits("geometric", random.geometric(KEY, 0.2, (8,)))


def test_vectors_and_transformed_numbers_are_jaxs():
    mean = np.array([1, -1], np.float32)
    check_close("multivariate_normal", random.multivariate_normal(KEY, mean, COV, (3,)), 1e-5)
    check_close("orthogonal", random.orthogonal(KEY, 3, (2,)), 1e-5)
    check_close("orthogonal m", random.orthogonal(KEY, 2, m=4), 1e-5)
    check_close("maxwell", random.maxwell(KEY, (5,)), 1e-5)
    check_close("double_sided_maxwell", random.double_sided_maxwell(KEY, 1.0, 2.0, (5,)), 1e-5)
    check_close("triangular", random.triangular(KEY, -1.0, 0.5, 2.0, (5,)), 1e-5)
    check_close("wald", random.wald(KEY, 2.0, (5,)), 1e-5)
    for method in ("eigh", "svd"):  # whose vectors have signs of their own
        z = np.asarray(random.multivariate_normal(KEY, mean, COV, (20000,), method=method))
        np.testing.assert_allclose(np.cov(z.T), COV, atol=0.06)
    unitary = np.asarray(random.orthogonal(KEY, 3, (4,), "complex128"))
    np.testing.assert_allclose(unitary @ unitary.conj().swapaxes(1, 2), np.eye(3) + np.zeros((4, 1, 1)), atol=1e-12)  # fmt: skip
    for wrong in (
        lambda: random.poisson(KEY, 2.0, dtype="float32"),
        lambda: random.multivariate_normal(KEY, mean, COV, method="lu"),
        lambda: random.dirichlet(KEY, 1.0),
        lambda: random.gamma(KEY, A, (3,)),
    ):
        with pytest.raises((TypeError, ValueError), match="(?s)fix: "):
            wrong()


def test_draws_follow_their_distributions():
    """Kolmogorov's and Smirnov's distance, whose 0.1 % quantile is 1.95 / sqrt(n)."""
    import scipy.stats as st

    n = 20_000
    for draws, cdf in [
        (random.gamma(KEY, 0.3, (n,), "float64"), st.gamma(0.3).cdf),
        (random.gamma(KEY, 4.0, (n,)), st.gamma(4.0).cdf),
        (random.beta(KEY, 0.5, 2.0, (n,)), st.beta(0.5, 2.0).cdf),
        (random.t(KEY, 3.0, (n,)), st.t(3.0).cdf),
        (random.f(KEY, 3.0, 5.0, (n,)), st.f(3.0, 5.0).cdf),
        (random.chisquare(KEY, 3.0, (n,)), st.chi2(3.0).cdf),
        (random.generalized_normal(KEY, 1.5, (n,)), st.gennorm(1.5).cdf),
        (random.wald(KEY, 2.0, (n,)), st.invgauss(2.0).cdf),
        (random.maxwell(KEY, (n,)), st.maxwell.cdf),
        (random.triangular(KEY, 0.0, 0.3, 1.0, (n,)), st.triang(0.3).cdf),
        ((random.ball(KEY, 3, shape=(n,)) ** 2).sum(-1) ** 1.5, st.uniform.cdf),
    ]:
        below = cdf(np.sort(np.asarray(draws, np.float64)))
        steps = np.arange(n + 1) / n
        distance = max((below - steps[:-1]).max(), (steps[1:] - below).max())
        assert distance < 1.95 / math.sqrt(n)
    for draws, pmf in [
        (random.poisson(KEY, 3.5, (n,)), st.poisson(3.5).pmf),
        (random.poisson(KEY, 25.0, (n,)), st.poisson(25.0).pmf),
        (random.binomial(KEY, 9.0, 0.3, (n,)), st.binom(9, 0.3).pmf),
        (random.binomial(KEY, 90.0, 0.7, (n,)), st.binom(90, 0.7).pmf),
        (random.geometric(KEY, 0.3, (n,)), st.geom(0.3).pmf),
    ]:
        counts = np.bincount(np.asarray(draws, np.int64), minlength=120)
        expected = n * pmf(np.arange(len(counts)))
        likely = expected > 10
        chi2 = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
        assert chi2 < st.chi2(likely.sum() - 1).isf(1e-3)


def test_gamma_is_differentiable_and_batches():
    a = np.array([0.4, 2.0, 30.0])
    h = 1e-6
    draw = lambda a: random.gamma(KEY, a, dtype="float64")  # noqa: E731
    # The draw of equal probability: quantiles of neighbouring shapes.
    import scipy.special as sp

    level = sp.gammainc(a, np.asarray(draw(a)))
    slopes = (sp.gammaincinv(a + h, level) - sp.gammaincinv(a - h, level)) / (2 * h)
    np.testing.assert_allclose(plait.grad(lambda a: draw(a).sum())(a), slopes, 1e-6)
    log_draw = lambda a: random.loggamma(KEY, a, dtype="float64").sum()  # noqa: E731
    np.testing.assert_allclose(plait.grad(log_draw)(a), slopes / np.asarray(draw(a)), 1e-6)
    np.testing.assert_allclose(plait.jit(plait.grad(lambda a: draw(a).sum()))(a), slopes, 1e-6)
    keys = random.split(KEY, 3)
    rows = plait.vmap(lambda key, a: random.gamma(key, a, (2,)))(keys, A[:3])
    each = [np.asarray(random.gamma(key, a, (2,))) for key, a in zip(keys, A[:3])]
    np.testing.assert_allclose(rows, each, 1e-6)
    rows = plait.vmap(lambda key, m: random.poisson(key, m, (4,)))(keys, MEANS[3:6])
    each = [np.asarray(random.poisson(key, m, (4,))) for key, m in zip(keys, MEANS[3:6])]
    np.testing.assert_array_equal(rows, each)


def test_initializers():
    initializers = types.SimpleNamespace(**catalogue("nn.initializers"))
    for name in (
        "glorot_uniform",
        "glorot_normal",
        "he_uniform",
        "he_normal",
        "lecun_uniform",
        "lecun_normal",
    ):
        check_close(name, getattr(initializers, name)(KEY, (3, 4)))
    check_close("he_normal conv", initializers.he_normal(KEY, (2, 2, 2, 3)))
    check_close("truncated_normal init", initializers.truncated_normal(KEY, (5,), stddev=0.1))
    assert initializers.zeros(KEY, (2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="two axes"):
        initializers.he_normal(KEY, (3,))


def test_moments():
    count = 200_000
    u = np.asarray(random.uniform(KEY, (count,)), np.float64)
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 5 / math.sqrt(12 * count)
    x = np.asarray(random.normal(KEY, (count,)), np.float64)
    assert abs(x.mean()) < 5 / math.sqrt(count) and abs(x.var() - 1) < 5 * math.sqrt(2 / count)
    t = np.asarray(random.truncated_normal(KEY, -1.0, 2.0, (count,)))
    assert t.min() > -1 and t.max() < 2
    counts = np.bincount(np.asarray(random.randint(KEY, (count,), 0, 10)), minlength=10)
    assert abs(counts - count / 10).max() < 5 * math.sqrt(count * 0.09)


def test_parameters_broadcast_and_errors():
    assert random.uniform(KEY, (2, 3), minval=np.zeros(3), maxval=np.ones((2, 1))).shape == (2, 3)
    assert random.bernoulli(KEY, np.array([0.1, 0.9], np.float32)).shape == (2,)
    assert random.truncated_normal(KEY, np.zeros(3, np.float32), 1.0).shape == (3,)
    assert random.permutation(KEY, 0).shape == (0,)
    assert random.uniform(KEY, (0, 3)).shape == (0, 3)
    with pytest.raises(TypeError, match="not a float"):
        random.normal(KEY, (2,), "int32")
    with pytest.raises(TypeError, match="not an integer"):
        random.randint(KEY, (2,), 0, 3, "float32")
    with pytest.raises(ValueError, match="uniform"):
        random.uniform(KEY, (2,), minval=np.zeros(3))
    with pytest.raises(ValueError, match="parameter of shape"):
        random.uniform(KEY, (), minval=np.zeros(3))
