"""lineax: linear solves and least squares with operators of several kinds, and their derivatives.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import jax.random as jr
import lineax as lx

from report import report

matrix = jr.normal(jr.PRNGKey(0), (4, 4)) + 4 * jnp.eye(4)
vector = jr.normal(jr.PRNGKey(1), (4,))
operator = lx.MatrixLinearOperator(matrix)
report("auto", lx.linear_solve(operator, vector).value)
for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.GMRES(1e-6, 1e-6), lx.BiCGStab(1e-6, 1e-6)):
    report(type(solver).__name__, lx.linear_solve(operator, vector, solver=solver).value)
positive = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
report("cholesky", lx.linear_solve(positive, vector, solver=lx.Cholesky()).value)
report("cg", lx.linear_solve(positive, vector, solver=lx.CG(1e-5, 1e-5)).value)
report("diagonal", lx.linear_solve(lx.DiagonalLinearOperator(jnp.arange(1.0, 5.0)), vector).value)
tridiagonal = lx.TridiagonalLinearOperator(jnp.ones(4) * 4, jnp.ones(3), jnp.ones(3))
report("tridiagonal", lx.linear_solve(tridiagonal, vector).value)
tall = lx.MatrixLinearOperator(jr.normal(jr.PRNGKey(2), (6, 3)))
report(
    "least_squares",
    lx.linear_solve(tall, jnp.arange(6.0), solver=lx.AutoLinearSolver(well_posed=None)).value,
)
function = lx.FunctionLinearOperator(lambda x: matrix @ x, jax.eval_shape(lambda: vector))
report("function", lx.linear_solve(function, vector).value, function.as_matrix())
jacobian = lx.JacobianLinearOperator(lambda x, args: jnp.tanh(matrix @ x), vector)
report("jacobian", jacobian.mv(vector), jacobian.as_matrix())
report(
    "compose",
    (operator + lx.IdentityLinearOperator(jax.eval_shape(lambda: vector))).mv(vector),
    (2 * operator).T.mv(vector),
)
solve = lambda m, v: lx.linear_solve(lx.MatrixLinearOperator(m), v).value  # noqa: E731
report("grad", jax.grad(lambda m: jnp.sum(solve(m, vector) ** 2))(matrix))
report("jvp", jax.jvp(solve, (matrix, vector), (jnp.ones((4, 4)), vector)))
report("vmap", jax.vmap(solve, (None, 0))(matrix, jr.normal(jr.PRNGKey(3), (3, 4))))
report("jit", jax.jit(solve)(matrix, vector))
