"""Loops over small matrices: factors, solves and gathers in one generated kernel, against NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

pytestmark = pytest.mark.skipif(
    "llvm" not in plait.jit(lambda x: jnp.exp(x) + 1, wait=True).explain(jnp.ones(100)),
    reason="no libLLVM here",
)


def kalman_step(np, inverse, constants, x, P, z):
    F, H, Q, R = constants
    x = F @ x
    P = F @ P @ F.T + Q
    S = H @ P @ H.T + R
    K = P @ H.T @ inverse(S)
    return x + K @ (z - H @ x), (np.eye(2, dtype=P.dtype) - K @ H) @ P


def constants(dtype):
    return [
        np.array(matrix, dtype)
        for matrix in (
            [[1, 0.1], [0, 1]],
            [[1, 0], [0.3, 1]],
            [[0.01, 0], [0, 0.02]],
            [[0.5, 0.1], [0.1, 0.4]],
        )
    ]


def filtered(zs):
    x, P, out = np.zeros(2), np.eye(2), []
    for z in zs:
        x, P = kalman_step(np, np.linalg.inv, constants(np.float64), x, P, z)
        out.append(x)
    return np.array(out)


def kalman(zs):
    matrices = [jnp.asarray(matrix) for matrix in constants(zs.dtype)]

    def step(carry, z):
        x, P = kalman_step(jnp, jnp.linalg.inv, matrices, *carry, z)
        return (x, P), x

    start = (jnp.zeros(2, zs.dtype), jnp.eye(2, dtype=zs.dtype))
    return lax.scan(step, start, zs)[1]


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_a_kalman_filter_in_a_scan_is_one_kernel_and_right(dtype, tolerance):
    zs = np.random.default_rng(0).normal(size=(300, 2))
    f = plait.jit(kalman, wait=True)
    x = jnp.asarray(zs.astype(dtype))
    assert "one loop program" in f.explain(x)
    np.testing.assert_allclose(np.asarray(f(x)), filtered(zs), rtol=tolerance, atol=tolerance)


def test_the_gradient_of_a_kalman_filter_is_one_kernel_each_way_and_right():
    zs = np.random.default_rng(2).normal(size=(60, 2))

    def loss(inverse, np, matrices, scan):
        def step(carry, z):
            x, P = kalman_step(np, inverse, matrices, *carry, z)
            return (x, P), x

        dtype = matrices[0].dtype
        return (scan(step, (np.zeros(2, dtype), np.eye(2, dtype=dtype)), zs) ** 2).sum()

    def loop(step, carry, zs):
        out = []
        for z in zs:
            carry, x = step(carry, z)
            out.append(x)
        return np.array(out)

    def traced(*matrices):
        return loss(jnp.linalg.inv, jnp, matrices, lambda *all: lax.scan(*all)[1])

    f = plait.jit(plait.grad(traced, argnums=(0, 1, 2, 3)), wait=True)
    given = constants(np.float64)
    gradients = f(*map(jnp.asarray, given))
    text = f.explain(*map(jnp.asarray, given))
    assert text.count("scan") == text.count("scan  [one loop program]") == 2, text
    assert "dot_general" not in text and "sort" not in text, text
    for i in range(4):
        for at in np.ndindex(2, 2):
            values = []
            for sign in (1, -1):
                moved = [matrix.copy() for matrix in given]
                moved[i][at] += sign * 1e-6
                values.append(loss(np.linalg.inv, np, moved, loop))
            wanted = (values[0] - values[1]) / 2e-6
            np.testing.assert_allclose(np.asarray(gradients[i])[at], wanted, rtol=1e-5, atol=1e-6)


def test_many_kalman_filters_are_one_kernel_and_right():
    zs = np.random.default_rng(1).normal(size=(50, 40, 2))
    f = plait.jit(plait.vmap(kalman), wait=True)
    x = jnp.asarray(zs.astype(np.float32))
    assert "one loop program" in f.explain(x)
    wanted = np.stack([filtered(z) for z in zs])
    np.testing.assert_allclose(np.asarray(f(x)), wanted, rtol=1e-4, atol=1e-4)


def matrices(n, count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, n, n))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("wait", [False, True])
def test_systems_solved_in_a_loop_are_those_of_numpy(n, wait):
    a = matrices(n, 20)
    b = np.random.default_rng(1).normal(size=(20, n))

    def f(a, b):
        return lax.map(lambda ab: jnp.linalg.solve(*ab), (a, b))

    x = plait.jit(f, wait=wait)(jnp.asarray(a), jnp.asarray(b))
    wanted = np.linalg.solve(a, b[..., None])[..., 0]
    np.testing.assert_allclose(np.asarray(x), wanted, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n", [1, 3, 8, 16])
def test_cholesky_factors_in_a_loop_are_those_of_numpy(n):
    a = matrices(n, 10)
    a = a @ a.transpose(0, 2, 1) + n * np.eye(n)
    f = plait.jit(lambda a: lax.map(jnp.linalg.cholesky, a), wait=True)
    if n < 16:
        text = f.explain(jnp.asarray(a))
        assert "one loop program" in text
    np.testing.assert_allclose(np.asarray(f(jnp.asarray(a))), np.linalg.cholesky(a), atol=1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 2), (2, 5), (8, 8), (9, 9)])
def test_lu_of_small_matrices_gives_the_matrix_back(shape):
    m, n = shape
    a = np.random.default_rng(2).normal(size=(7, m, n))
    a[0] = 0
    a[1, 0] = a[1, -1]
    lu, pivots, permutation = map(np.asarray, lax.linalg.lu(jnp.asarray(a)))
    k = min(m, n)
    lower = np.tril(lu[..., :k], -1) + np.eye(m, k)
    upper = np.triu(lu[:, :k])
    for i in range(7):
        np.testing.assert_allclose((lower @ upper)[i], a[i][permutation[i]], atol=1e-12)
        order = np.arange(m)
        for row, pivot in enumerate(pivots[i]):
            order[[row, pivot]] = order[[pivot, row]]
        assert order.tolist() == permutation[i].tolist()
    assert np.abs(lower).max() <= 1


def test_a_matrix_has_the_same_factors_alone_among_others_and_in_a_loop():
    a = matrices(3, 9).astype(np.float32)
    together = [np.asarray(x) for x in lax.linalg.lu(jnp.asarray(a))]
    alone = [lax.linalg.lu(jnp.asarray(x)) for x in a]
    looped = plait.jit(lambda a: lax.map(lax.linalg.lu, a), wait=True)(jnp.asarray(a))
    for part in range(3):
        assert np.array_equal(together[part], np.stack([np.asarray(x[part]) for x in alone]))
        assert np.array_equal(together[part], np.asarray(looped[part]))


def test_nan_in_a_matrix_reaches_its_factors_only():
    a = matrices(3, 4)
    a[2, 1, 1] = np.nan
    lu = np.asarray(lax.linalg.lu(jnp.asarray(a))[0])
    assert np.isnan(lu).any(axis=(1, 2)).tolist() == [False, False, True, False]


def test_an_index_of_each_example_that_lies_outside_is_an_error_in_a_generated_loop():
    table = jnp.asarray(np.arange(12, dtype=np.float32).reshape(4, 3))

    def f(starts):
        def step(c, _):
            return c + jnp.take_along_axis(table, starts, axis=1, mode="raise").sum(), None

        return lax.scan(step, jnp.zeros(()), None, length=5)[0]

    inside = jnp.asarray(np.array([[0], [1], [2], [0]], np.int32))
    outside = jnp.asarray(np.array([[0], [1], [3], [0]], np.int32))
    g = plait.jit(f, wait=True)
    assert float(g(inside)) == 5 * (0 + 4 + 8 + 9)
    with pytest.raises(IndexError):
        g(outside)
