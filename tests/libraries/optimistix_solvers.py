"""optimistix: root finding, least squares, minimisation, fixed points, and their derivatives.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import optimistix as optx

from report import attempt


def equations(y, args):
    a, b = y
    return jnp.tanh(b) - args * a, a**2 - jnp.sinh(b + 1)


start = (jnp.array(0.0), jnp.array(0.0))
attempt(
    "newton",
    lambda: optx.root_find(equations, optx.Newton(rtol=1e-6, atol=1e-6), start, args=1.0).value,
)
attempt(
    "chord",
    lambda: optx.root_find(
        equations, optx.Chord(rtol=1e-6, atol=1e-6), start, args=1.0, throw=False
    ).value,
)
x = jnp.linspace(0, 1, 20)
data = jnp.exp(-1.3 * x) + 0.2


def residuals(y, args):
    return y["scale"] * jnp.exp(-y["rate"] * x) + y["offset"] - data


first = {"scale": jnp.array(0.5), "rate": jnp.array(1.0), "offset": jnp.array(0.0)}
for name, solver in {
    "levenberg": optx.LevenbergMarquardt(rtol=1e-6, atol=1e-6),
    "gauss": optx.GaussNewton(rtol=1e-6, atol=1e-6),
    "dogleg": optx.Dogleg(rtol=1e-6, atol=1e-6),
}.items():
    attempt(name, lambda: optx.least_squares(residuals, solver, first).value)
rosenbrock = lambda y, args: (1 - y[0]) ** 2 + 10 * (y[1] - y[0] ** 2) ** 2  # noqa: E731
for name, solver in {
    "bfgs": optx.BFGS(rtol=1e-5, atol=1e-6),
    "nelder": optx.NelderMead(rtol=1e-5, atol=1e-6),
}.items():
    attempt(
        name,
        lambda: jnp.round(
            optx.minimise(rosenbrock, solver, jnp.array([0.0, 0.0]), max_steps=500).value, 3
        ),
    )
solver = optx.FixedPointIteration(rtol=1e-6, atol=1e-6)
attempt(
    "fixed",
    lambda: optx.fixed_point(lambda y, a: jnp.cos(a * y), solver, jnp.array(0.5), args=0.9).value,
)


def root(a):
    return optx.root_find(
        lambda y, a: y**3 - a, optx.Newton(rtol=1e-6, atol=1e-6), jnp.array(1.0), args=a
    ).value


attempt(
    "derivative",
    lambda: (
        jax.grad(root)(2.0),
        jax.jit(jax.grad(root))(2.0),
        jax.vmap(root)(jnp.array([1.0, 2.0, 3.0])),
    ),
)
attempt(
    "bisection",
    lambda: optx.root_find(
        lambda y, a: y**2 - 2.0,
        optx.Bisection(rtol=1e-5, atol=1e-5),
        jnp.array(1.0),
        options={"lower": 0.0, "upper": 2.0},
    ).value,
)
