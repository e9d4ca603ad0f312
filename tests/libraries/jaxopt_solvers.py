"""jaxopt: gradient descent, L-BFGS, projected and proximal gradient, fixed points, root finding, implicit derivatives.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np
from jaxopt import objective, projection, prox

from report import attempt

rng = np.random.RandomState(0)
features = jnp.asarray(rng.randn(40, 5), jnp.float32)
targets = features @ jnp.array([1.0, -2.0, 0.5, 0.0, 3.0]) + 0.05 * jnp.asarray(
    rng.randn(40), jnp.float32
)
data = (features, targets)


def ridge(w, l2, data):
    x, y = data
    return jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w**2)


attempt(
    "gradient",
    lambda: jaxopt.GradientDescent(ridge, maxiter=100).run(jnp.zeros(5), l2=0.1, data=data).params,
)
attempt(
    "lbfgs", lambda: jaxopt.LBFGS(ridge, maxiter=50).run(jnp.zeros(5), l2=0.1, data=data).params
)
attempt("bfgs", lambda: jaxopt.BFGS(ridge, maxiter=50).run(jnp.zeros(5), l2=0.1, data=data).params)
attempt(
    "ncg", lambda: jaxopt.NonlinearCG(ridge, maxiter=50).run(jnp.zeros(5), l2=0.1, data=data).params
)
attempt(
    "proximal",
    lambda: jaxopt.ProximalGradient(objective.least_squares, prox.prox_lasso, maxiter=200)
    .run(jnp.zeros(5), 0.1, data)
    .params,
)
attempt(
    "projected",
    lambda: jaxopt.ProjectedGradient(
        objective.least_squares, projection.projection_simplex, maxiter=200
    )
    .run(jnp.ones(5) / 5, data=data)
    .params,
)
attempt("simplex", lambda: projection.projection_simplex(jnp.array([0.5, 2.0, -1.0])))
attempt(
    "implicit",
    lambda: jax.jacobian(
        lambda l2: jaxopt.LBFGS(ridge, maxiter=50).run(jnp.zeros(5), l2=l2, data=data).params
    )(0.1),
)
attempt(
    "fixed",
    lambda: jaxopt.FixedPointIteration(lambda x, t: jnp.cos(x) * t, maxiter=100)
    .run(jnp.array(0.5), 0.9)
    .params,
)
attempt(
    "anderson",
    lambda: jaxopt.AndersonAcceleration(lambda x, t: jnp.cos(x) * t, maxiter=50)
    .run(jnp.array([0.5, 0.1]), 0.9)
    .params,
)
attempt(
    "bisection", lambda: jaxopt.Bisection(lambda x: x**3 - 2.0, lower=0.0, upper=2.0).run().params
)
attempt(
    "gauss_newton",
    lambda: jaxopt.GaussNewton(lambda w: features @ w - targets, maxiter=10)
    .run(jnp.zeros(5))
    .params,
)
attempt(
    "levenberg",
    lambda: jaxopt.LevenbergMarquardt(lambda w: features @ w - targets, maxiter=10)
    .run(jnp.zeros(5))
    .params,
)
attempt(
    "armijo",
    lambda: jaxopt.ArmijoSGD(ridge, maxiter=50).run(jnp.zeros(5), l2=0.1, data=data).params,
)
logistic = objective.multiclass_logreg
labels = jnp.asarray(rng.randint(0, 3, 40))
attempt(
    "logistic",
    lambda: jaxopt.LBFGS(logistic, maxiter=20)
    .run(jnp.zeros((5, 3)), (features, labels))
    .state.value,
)
attempt(
    "cg",
    lambda: jaxopt.linear_solve.solve_cg(lambda v: features.T @ (features @ v), targets @ features),
)
attempt("isotonic", lambda: jaxopt.isotonic.isotonic_l2_pav(jnp.array([3.0, 1.0, 2.0])))
