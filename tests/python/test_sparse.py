"""plait.sparse: arrays by coordinates against the dense arrays that they stand for.

SPDX-License-Identifier: Apache-2.0
"""

import sys

import numpy as np
import pytest
from processes import run

import plait
import plait.numpy as pnp
from plait import grad, jit, sparse, vmap

rng = np.random.default_rng(2)
DENSE = rng.normal(size=(5, 7)) * (rng.random((5, 7)) < 0.4)
A = sparse.BCOO.fromdense(DENSE)
# The same with duplicates and padding.
B = sparse.BCOO(
    (np.r_[A.data, A.data, [np.nan, 9.0]] * 0.5, np.r_[A.indices, A.indices, [[5, 0], [1, 7]]]),
    shape=(5, 7),
)


def check(result, expected):
    result = result.todense() if isinstance(result, sparse.BCOO) else result
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-12)


def test_to_dense_and_back():
    assert A.nse == np.count_nonzero(DENSE) and A.dtype == np.float64 and A.size == 35
    assert repr(A) == f"BCOO(float64[5, 7], nse={A.nse})"
    check(A, DENSE)
    check(B, DENSE)
    check(jit(lambda x: sparse.bcoo_fromdense(x, 20))(DENSE), DENSE)
    rows = sparse.BCOO.fromdense(DENSE * (np.arange(5) < 2)[:, None], n_dense=1)
    assert (rows.nse, rows.n_sparse, rows.n_dense) == (DENSE[:2].any(1).sum(), 1, 1)
    check(rows, DENSE * (np.arange(5) < 2)[:, None])
    check(sparse.BCOO.empty((3, 4)), np.zeros((3, 4)))
    for n, m, k in ((3, None, 0), (3, 5, 1), (4, 2, -2), (2, 2, 4)):
        check(sparse.eye(n, m, k), np.eye(n, m, k))


@pytest.mark.parametrize("mat", [A, B], ids=["plain", "padded"])
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_products_are_those_of_the_dense_array(mat, wrap):
    v, m, u = rng.normal(size=7), rng.normal(size=(7, 3)), rng.normal(size=(4, 5))
    product = wrap(lambda a, b: a @ b)
    check(product(mat, v), DENSE @ v)
    check(product(mat, m), DENSE @ m)
    check(product(u, mat), u @ DENSE)
    check(product(pnp.asarray(u[0]), mat), u[0] @ DENSE)
    check(product(mat.T, u.T), DENSE.T @ u.T)
    check(wrap(lambda a, b: 2 * a * b / 4)(mat, m.T[0]), DENSE * m.T[0] / 2)
    check(wrap(lambda a, b: a * b)(mat, u.T[:, :1]), DENSE * u.T[:, :1])
    check(wrap(lambda a: -a + a - 3 * a)(mat), -3 * DENSE)
    for axis in (0, 1, -1, None, (0, 1)):
        check(wrap(lambda a, axis=axis: a.sum(axis))(mat), DENSE.sum(axis))
    unique = wrap(lambda a: a.sum_duplicates())(mat)
    check(unique, DENSE)
    kept = np.asarray(unique.indices)[: A.nse]
    assert (kept == np.argwhere(DENSE)).all()
    check(mat.astype("float32").astype("float64") @ np.eye(7), DENSE.astype("f4"))


def test_three_axes_and_dense_ones():
    dense = rng.normal(size=(3, 4, 5)) * (rng.random((3, 4, 5)) < 0.5)
    mat, x = sparse.BCOO.fromdense(dense), rng.normal(size=(5, 3, 2))
    numbers = ((0, 2), (1, 0)), ((), ())
    check(
        sparse.bcoo_dot_general(mat, x, dimension_numbers=numbers),
        np.einsum("ijk,kil->jl", dense, x),
    )
    numbers = ((1, 0), (0, 2)), ((), ())
    check(
        sparse.bcoo_dot_general(x, mat, dimension_numbers=numbers),
        np.einsum("kil,ijk->lj", x, dense),
    )
    outer = ((), ()), ((), ())
    check(sparse.bcoo_dot_general(A, x[0, 0], dimension_numbers=outer), DENSE[..., None] * x[0, 0])
    check(mat.transpose((1, 2, 0)), dense.transpose(1, 2, 0))
    rows = sparse.BCOO.fromdense(dense, n_dense=1)
    check(rows.transpose((1, 0, 2)), dense.transpose(1, 0, 2))
    check(rows.sum((1, 2)), dense.sum((1, 2)))
    check(rows * x[:, 0, 0], dense * x[:, 0, 0])
    check(rows.sum_duplicates(), dense)
    with pytest.raises(ValueError, match="permute sparse axes among themselves"):
        rows.transpose((2, 0, 1))


def test_gradients_with_respect_to_data_and_to_the_dense_factor():
    x = rng.normal(size=(7, 3))
    weights = rng.normal(size=(5, 3))

    def loss(data, x):
        return pnp.sum(weights * (sparse.BCOO((data, A.indices), shape=A.shape) @ x) ** 2)

    by_data, by_x = jit(grad(loss, (0, 1)))(A.data, x)
    outer = 2 * weights * (DENSE @ x)
    rows, columns = np.asarray(A.indices).T
    check(by_data, (outer @ x.T)[rows, columns])
    check(by_x, DENSE.T @ outer)
    whole = grad(lambda a: pnp.sum(weights * (a @ x) ** 2), allow_int=True)(A)
    check(whole.data, (outer @ x.T)[rows, columns])
    (value, aux), (slope, by_x) = jit(
        sparse.value_and_grad(
            lambda a, x: (pnp.sum(weights * (a["m"] @ x) ** 2), 3), (0, 1), has_aux=True
        )
    )({"m": A}, x)
    np.testing.assert_allclose(float(value), float(loss(A.data, x)))
    check(slope["m"], np.where(DENSE != 0, outer @ x.T, 0))
    check(
        sparse.grad(lambda a: pnp.sum(weights * (a @ x) ** 2))(A),
        np.where(DENSE != 0, outer @ x.T, 0),
    )
    of_dense = grad(lambda d: pnp.sum(weights * (sparse.bcoo_fromdense(d, A.nse) @ x) ** 2))(DENSE)
    check(of_dense, (outer @ x.T) * (DENSE != 0))
    assert plait.grad_check(lambda d: loss(d, x), (A.data,)) is None
    tangent = plait.jvp(lambda d: loss(d, x), (A.data,), (A.data,))[1]
    np.testing.assert_allclose(float(tangent), 2 * float(loss(A.data, x)))


def test_vmap_maps_batches_of_sparse_arrays():
    stack = np.stack([DENSE, 2 * DENSE, DENSE[::-1]])
    batch = vmap(lambda d: sparse.bcoo_fromdense(d, 20))(stack)
    x = rng.normal(size=(3, 7))
    check(vmap(lambda a, x: a @ x)(batch, x), np.einsum("bij,bj->bi", stack, x))
    check(vmap(lambda x: A @ x)(x), x @ DENSE.T)
    check(vmap(lambda a: a.T.sum_duplicates(20).todense())(batch), stack.transpose(0, 2, 1))


def test_a_sparse_matrix_is_the_weight_of_a_layer():
    layer = plait.nn.Linear(5, 7, key=plait.random.key(0)).replace(weight=A)
    check(jit(lambda layer, x: layer(x))(layer, np.ones((2, 5))), np.ones((2, 5)) @ DENSE)


def test_what_is_refused():
    with pytest.raises(
        ValueError, match=r"BCOO: data of shape \(2,\) and indices of shape \(2, 1\)"
    ):
        sparse.BCOO((np.ones(2), np.zeros((2, 1), int)), shape=(3, 3))
    with pytest.raises(TypeError, match="nse="):
        jit(sparse.BCOO.fromdense)(DENSE)
    with pytest.raises(ValueError, match="bcoo_dot_general: a sparse array of shape"):
        A @ np.ones(5)
    with pytest.raises(ValueError, match="map the product over them with vmap"):
        sparse.bcoo_dot_general(A, DENSE, dimension_numbers=(((1,), (1,)), ((0,), (0,))))
    with pytest.raises(TypeError, match="no sparse array"):
        sparse.bcoo_dot_general(DENSE, DENSE.T, dimension_numbers=(((1,), (0,)), ((), ())))
    with pytest.raises(ValueError, match="bcoo_multiply_dense"):
        A * np.ones(6)
    with pytest.raises(ValueError, match="bcoo_add"):
        A + A.T
    with pytest.raises(TypeError):
        A @ A
    with pytest.raises(TypeError, match="integers"):
        sparse.bcoo_todense(sparse.BCOO((np.ones(1), np.ones((1, 2))), shape=(2, 2)))


def test_programs_for_jax_have_it():
    program = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import sparse
M = jnp.array([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0]])
M_sp = sparse.BCOO.fromdense(M)
assert isinstance(M_sp, sparse.BCOO) and isinstance(M_sp, sparse.JAXSparse) and M_sp.nse == 4
y = jnp.array([3.0, 6.0, 5.0])
f = jax.jit(lambda m, y: jnp.sum((m.T @ y) ** 2))
assert np.allclose(f(M_sp, y), np.sum((np.asarray(M).T @ np.asarray(y)) ** 2))
wide = sparse.BCOO((np.ones(1), np.zeros((1, 2), int)), shape=(2, 2), unique_indices=True)
assert wide.dtype == jnp.float32 and sparse.eye(2).todense().sum() == 2
try:
    sparse.BCSR(1)
except ValueError as error:
    assert "use BCOO" in str(error)
assert not hasattr(jax.nn, "Linear")
"""
    run(sys.executable, "-m", "plait.jax", "-c", program)
