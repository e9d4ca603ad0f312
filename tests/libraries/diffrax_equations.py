"""diffrax: ordinary differential equations with adaptive steps, dense output, events, derivatives, and noise.

SPDX-License-Identifier: Apache-2.0
"""

import diffrax
import jax
import jax.numpy as jnp
import jax.random as jr

from report import attempt


def lotka_volterra(t, y, args):
    prey, predator = y
    a, b, c, d = args
    return jnp.stack([a * prey - b * prey * predator, c * prey * predator - d * predator])


args = (0.6, 0.3, 0.2, 0.5)
start = jnp.array([2.0, 1.0])
term = diffrax.ODETerm(lotka_volterra)
for solver in (
    diffrax.Euler(),
    diffrax.Heun(),
    diffrax.Tsit5(),
    diffrax.Dopri5(),
    diffrax.Dopri8(),
):
    solution = diffrax.diffeqsolve(term, solver, 0.0, 5.0, 0.05, start, args=args)
    attempt(type(solver).__name__, lambda: solution.ys)
adaptive = diffrax.diffeqsolve(
    term, diffrax.Tsit5(), 0.0, 10.0, 0.1, start, args=args,
    saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 10.0, 11)),
    stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
)  # fmt: skip
attempt("adaptive", lambda: adaptive.ys)
attempt("steps", lambda: adaptive.stats["num_steps"])
dense = diffrax.diffeqsolve(
    term, diffrax.Tsit5(), 0.0, 2.0, 0.05, start, args=args, saveat=diffrax.SaveAt(dense=True)
)
attempt("dense", lambda: dense.evaluate(0.77))


def final(a, adjoint):
    solution = diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, 2.0, 0.1, start, args=(a, 0.3, 0.2, 0.5), adjoint=adjoint,
        stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
    )  # fmt: skip
    return jnp.sum(solution.ys)


for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.BacksolveAdjoint()):
    attempt(type(adjoint).__name__, lambda: jax.grad(final)(0.6, adjoint))
attempt("direct", lambda: jax.jvp(lambda a: final(a, diffrax.DirectAdjoint()), (0.6,), (1.0,)))
attempt(
    "vmap",
    lambda: jax.vmap(
        lambda y: diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.05, y, args=args).ys
    )(jnp.stack([start, start * 2])),
)


def implicit():
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, a: -50.0 * (y - jnp.cos(t))),
        diffrax.Kvaerno3(), 0.0, 1.0, 0.05, jnp.array([0.0]),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-5),
    ).ys  # fmt: skip


attempt("implicit", implicit)
path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (), jr.PRNGKey(0))
noisy = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, a: -y), diffrax.ControlTerm(lambda t, y, a: 0.1, path)
)
attempt(
    "noise", lambda: diffrax.diffeqsolve(noisy, diffrax.Euler(), 0.0, 1.0, 0.05, jnp.array(1.0)).ys
)
