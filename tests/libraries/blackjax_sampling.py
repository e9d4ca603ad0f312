"""blackjax: Hamiltonian Monte Carlo, NUTS with window adaptation, random walk, MALA.

SPDX-License-Identifier: Apache-2.0
"""

import blackjax
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats

from report import report

observed = jnp.array([2.1, 3.4, 1.9, 2.8, 3.0, 2.2, 2.7])


def log_density(position):
    location, log_scale = position["location"], position["log_scale"]
    scale = jnp.exp(log_scale)
    return (
        jnp.sum(stats.norm.logpdf(observed, location, scale))
        + stats.norm.logpdf(location, 0.0, 10.0)
        - log_scale**2
    )


start = {"location": jnp.array(1.0), "log_scale": jnp.array(0.0)}


def run(kernel, state, key, steps):
    @jax.jit
    def one_step(state, key):
        state, info = kernel.step(key, state)
        return state, (state, info)

    _, (states, infos) = jax.lax.scan(one_step, state, jax.random.split(key, steps))
    return states, infos


hmc = blackjax.hmc(
    log_density, step_size=0.1, inverse_mass_matrix=jnp.ones(2), num_integration_steps=10
)
states, infos = run(hmc, hmc.init(start), jax.random.PRNGKey(0), 100)
report("hmc_first", jax.tree.map(lambda v: v[:5], states.position), infos.acceptance_rate[:5])
report(
    "hmc_mean",
    jnp.round(states.position["location"].mean(), 1),
    jnp.isfinite(states.logdensity).all(),
)
nuts = blackjax.nuts(log_density, step_size=0.2, inverse_mass_matrix=jnp.ones(2))
states, infos = run(nuts, nuts.init(start), jax.random.PRNGKey(1), 60)
report(
    "nuts_first", jax.tree.map(lambda v: v[:3], states.position), infos.num_integration_steps[:3]
)
report("nuts_mean", jnp.abs(states.position["location"].mean() - 2.58) < 0.5)
mala = blackjax.mala(log_density, 0.05)
states, _ = run(mala, mala.init(start), jax.random.PRNGKey(2), 50)
report("mala", jax.tree.map(lambda v: v[:5], states.position))
walk = blackjax.additive_step_random_walk(
    log_density, blackjax.mcmc.random_walk.normal(jnp.ones(2) * 0.1)
)
states, _ = run(walk, walk.init(start), jax.random.PRNGKey(3), 50)
report("walk", jax.tree.map(lambda v: v[:5], states.position))
adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = adaptation.run(jax.random.PRNGKey(4), start, num_steps=200)
report("adapted", jnp.isfinite(parameters["step_size"]), parameters["inverse_mass_matrix"].shape)
kernel = blackjax.nuts(log_density, **parameters)
states, _ = run(kernel, state, jax.random.PRNGKey(5), 200)
report("adapted_mean", jnp.abs(states.position["location"].mean() - 2.58) < 0.4)
