"""numpyro: distributions, a regression by NUTS, and variational inference.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density

from report import attempt

x = jnp.linspace(-1, 1, 20)
y = 0.5 + 2.0 * x + 0.1 * jax.random.normal(jax.random.PRNGKey(0), (20,))


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(a + b * x, sigma), obs=y)


attempt(
    "normal",
    lambda: (
        dist.Normal(0.0, 1.0).log_prob(x),
        dist.Normal(0.0, 1.0).sample(jax.random.PRNGKey(1), (4,)),
    ),
)
attempt("halfnormal", lambda: dist.HalfNormal(2.0).log_prob(jnp.abs(x)))
attempt(
    "dirichlet",
    lambda: dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])).log_prob(jnp.array([0.2, 0.3, 0.5])),
)
attempt(
    "mvn",
    lambda: dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]])).log_prob(
        jnp.array([0.1, 0.2])
    ),
)
attempt("density", lambda: log_density(model, (x, y), {}, {"a": 0.4, "b": 1.8, "sigma": 0.3})[0])
svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
result = svi.run(jax.random.PRNGKey(2), 300, x, y, progress_bar=False)
attempt("svi", lambda: (result.losses[:3], jnp.abs(result.params["b_auto_loc"] - 2.0) < 0.3))
mcmc = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)
mcmc.run(jax.random.PRNGKey(3), x, y)
samples = mcmc.get_samples()
attempt(
    "nuts",
    lambda: (jnp.abs(samples["b"].mean() - 2.0) < 0.2, jnp.abs(samples["a"].mean() - 0.5) < 0.2),
)
attempt("predictive", lambda: Predictive(model, samples)(jax.random.PRNGKey(4), x)["y"].shape)
