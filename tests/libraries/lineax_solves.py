"""lineax: linear solves and least squares with operators of several kinds, and their derivatives.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx

from report import attempt

matrix = jr.normal(jr.PRNGKey(0), (4, 4)) + 4 * jnp.eye(4)
vector = jr.normal(jr.PRNGKey(1), (4,))
operator = lx.MatrixLinearOperator(matrix)
attempt("auto", lambda: lx.linear_solve(operator, vector).value)
for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.GMRES(1e-6, 1e-6), lx.BiCGStab(1e-6, 1e-6)):
    attempt(type(solver).__name__, lambda: lx.linear_solve(operator, vector, solver=solver).value)
positive = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
attempt("cholesky", lambda: lx.linear_solve(positive, vector, solver=lx.Cholesky()).value)
attempt("cg", lambda: lx.linear_solve(positive, vector, solver=lx.CG(1e-5, 1e-5)).value)
attempt(
    "diagonal",
    lambda: lx.linear_solve(lx.DiagonalLinearOperator(jnp.arange(1.0, 5.0)), vector).value,
)
tridiagonal = lx.TridiagonalLinearOperator(jnp.ones(4) * 4, jnp.ones(3), jnp.ones(3))
attempt("tridiagonal", lambda: lx.linear_solve(tridiagonal, vector).value)
tall = lx.MatrixLinearOperator(jr.normal(jr.PRNGKey(2), (6, 3)))
attempt(
    "least_squares",
    lambda: lx.linear_solve(
        tall, jnp.arange(6.0), solver=lx.AutoLinearSolver(well_posed=None)
    ).value,
)
function = lx.FunctionLinearOperator(lambda x: matrix @ x, jax.eval_shape(lambda: vector))
attempt("function", lambda: (lx.linear_solve(function, vector).value, function.as_matrix()))
jacobian = lx.JacobianLinearOperator(lambda x, args: jnp.tanh(matrix @ x), vector)
attempt("jacobian", lambda: (jacobian.mv(vector), jacobian.as_matrix()))
attempt(
    "compose",
    lambda: (
        (operator + lx.IdentityLinearOperator(jax.eval_shape(lambda: vector))).mv(vector),
        (2 * operator).T.mv(vector),
    ),
)
solve = lambda m, v: lx.linear_solve(lx.MatrixLinearOperator(m), v).value  # noqa: E731
attempt("grad", lambda: jax.grad(lambda m: jnp.sum(solve(m, vector) ** 2))(matrix))
attempt("jvp", lambda: jax.jvp(solve, (matrix, vector), (jnp.ones((4, 4)), vector)))
attempt("vmap", lambda: jax.vmap(solve, (None, 0))(matrix, jr.normal(jr.PRNGKey(3), (3, 4))))
attempt("jit", lambda: jax.jit(solve)(matrix, vector))
