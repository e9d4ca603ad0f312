"""distrax: densities, samples and statistics of distributions, bijectors, mixtures, gradients.

SPDX-License-Identifier: Apache-2.0
"""

import distrax
import jax
import jax.numpy as jnp

from report import attempt

key = jax.random.PRNGKey(0)
x = jnp.array([0.1, 0.5, 0.9])
distributions = {
    "normal": distrax.Normal(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 2.0, 0.5])),
    "uniform": distrax.Uniform(0.0, 2.0),
    "laplace": distrax.Laplace(0.0, 1.0),
    "logistic": distrax.Logistic(0.0, 1.0),
    "gumbel": distrax.Gumbel(0.0, 1.0),
    "lognormal": distrax.LogStddevNormal(jnp.zeros(3), jnp.zeros(3)),
    "beta": distrax.Beta(2.0, 3.0),
    "gamma": distrax.Gamma(2.0, 3.0),
    "vonmises": distrax.VonMises(0.0, 1.0),
}
for name, d in distributions.items():
    try:
        attempt(name, lambda: (d.log_prob(x), d.mean(), d.variance()))
    except NotImplementedError:
        attempt(name, lambda: d.log_prob(x))
for name in ("normal", "uniform", "laplace", "logistic", "gumbel"):
    attempt(
        f"{name}_sample",
        lambda: (
            distributions[name].sample(seed=key, sample_shape=(5,)),
            distributions[name].entropy(),
        ),
    )
categorical = distrax.Categorical(logits=jnp.array([[0.1, 0.7, 0.3], [2.0, 0.0, -1.0]]))
attempt(
    "categorical",
    lambda: (
        categorical.sample(seed=key, sample_shape=(6,)),
        categorical.log_prob(jnp.array([1, 0])),
        categorical.entropy(),
    ),
)
attempt(
    "bernoulli",
    lambda: (
        distrax.Bernoulli(probs=x).log_prob(jnp.array([0, 1, 1])),
        distrax.Bernoulli(probs=x).sample(seed=key, sample_shape=4),
    ),
)
attempt(
    "multivariate",
    lambda: distrax.MultivariateNormalDiag(jnp.zeros(3), jnp.ones(3) * 2).log_prob(x),
)
full = distrax.MultivariateNormalFullCovariance(jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]]))
attempt(
    "full", lambda: (full.log_prob(jnp.array([0.5, -0.5])), full.sample(seed=key, sample_shape=3))
)
attempt(
    "kl", lambda: distributions["normal"].kl_divergence(distrax.Normal(jnp.zeros(3), jnp.ones(3)))
)
mixture = distrax.MixtureSameFamily(
    distrax.Categorical(probs=jnp.array([0.3, 0.7])),
    distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 1.0])),
)
attempt(
    "mixture",
    lambda: (mixture.log_prob(x), mixture.mean(), mixture.sample(seed=key, sample_shape=4)),
)
flow = distrax.Transformed(
    distrax.Normal(0.0, 1.0), distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.1, 0.5)])
)
attempt("flow", lambda: (flow.log_prob(x * 0.5), flow.sample(seed=key, sample_shape=4)))
attempt(
    "exp",
    lambda: distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Lambda(jnp.exp)).log_prob(x),
)
attempt("sigmoid", lambda: (distrax.Sigmoid().forward_and_log_det(x), distrax.Sigmoid().inverse(x)))
attempt("grad", lambda: jax.grad(lambda s: distrax.Normal(0.0, s).log_prob(0.3))(1.5))
attempt("jit", lambda: jax.jit(lambda d, v: d.log_prob(v))(distributions["normal"], x))
attempt("independent", lambda: distrax.Independent(distributions["normal"], 1).log_prob(x))
