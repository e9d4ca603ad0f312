"""Results and tolerances of linear algebra as NumPy has them.

SPDX-License-Identifier: Apache-2.0
"""

import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp

pl = pnp.linalg


def test_results_have_the_names_of_numpy():
    x = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    for name in ("eigh", "qr", "slogdet", "svd"):
        ours, numpys = getattr(pl, name)(x), getattr(np.linalg, name)(x)
        assert type(ours).__name__ == type(numpys).__name__ and ours._fields == numpys._fields
        assert type(ours) is getattr(pl, type(ours).__name__) and isinstance(ours, tuple)
        assert type(plait.jit(getattr(pl, name))(x)) is type(ours)
        assert pickle.loads(pickle.dumps(type(ours))) is type(ours)
    np.testing.assert_allclose(pl.eigh(x).eigenvalues, np.linalg.eigh(x).eigenvalues)
    assert isinstance(pl.qr(x, "r"), plait.Array) and isinstance(
        pl.svd(x, compute_uv=False), plait.Array
    )
    slope = plait.grad(lambda x: pl.slogdet(x).logabsdet)(pnp.asarray(x))
    np.testing.assert_allclose(slope, np.linalg.inv(x).T, rtol=1e-10)


def test_tolerances_may_be_arrays():
    rng = np.random.default_rng(3)
    u, _, vh = np.linalg.svd(rng.normal(size=(5, 4, 3)), full_matrices=False)
    x = u * np.array([1.0, 1e-2, 1e-4]) @ vh
    rtol = np.array([1e-5, 1e-3, 1e-1, 1e-3, 1e-5])
    expected = np.linalg.matrix_rank(x, rtol=rtol)
    assert expected.tolist() == [3, 2, 1, 2, 3]
    for run in (lambda f: f, plait.jit):
        assert run(lambda x, r: pl.matrix_rank(x, rtol=r))(x, rtol).tolist() == expected.tolist()
        assert run(lambda x, r: pl.matrix_rank(x, tol=r))(x, rtol).tolist() == expected.tolist()
        ours = run(lambda x: pl.pinv(x, rtol))(x)
        np.testing.assert_allclose(ours, np.linalg.pinv(x, rtol), rtol=1e-8, atol=1e-10)
    each = [
        plait.grad(lambda a, r=r: pnp.sum(pl.pinv(a, float(r)) ** 2))(pnp.asarray(a))
        for a, r in zip(x, rtol)
    ]
    both = plait.grad(lambda x: pnp.sum(pl.pinv(x, rtol) ** 2))(pnp.asarray(x))
    np.testing.assert_allclose(both, np.stack(each), rtol=1e-10)
    with pytest.raises(plait.ShapeError, match="pinv: .* batch shape"):
        pl.pinv(x, np.ones((2, 5)))
    with pytest.raises(plait.ShapeError, match="matrix_rank: .* batch shape"):
        pl.matrix_rank(x, np.ones((2, 5)))
    with pytest.raises(plait.TracerError):
        plait.jit(pl.pinv)(x, rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [3, 8, 9])
def test_stacks_of_small_systems_lie_in_memory_in_any_order(dtype, n):
    """Matrices are solved several at a time: a stack that ends within such a block, sides beyond
    eight, and rows or columns that are contiguous."""
    rng = np.random.default_rng(n)
    matrices = np.tril(rng.normal(size=(9, n, n))) + 4 * np.eye(n)
    for m in (1, 11):
        sides = rng.normal(size=(9, n, m))
        wanted = np.linalg.solve(matrices, sides)
        # The same values, each way: as they are, and as transposes of what lies there.
        lower = [pnp.asarray(matrices.astype(dtype))]
        lower.append(pnp.swapaxes(np.swapaxes(matrices, 1, 2).astype(dtype).copy(), 1, 2))
        right = [pnp.asarray(sides.astype(dtype))]
        right.append(pnp.swapaxes(np.swapaxes(sides, 1, 2).astype(dtype).copy(), 1, 2))
        for a in lower:
            for b in right:
                x = plait.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
                turned = plait.lax.linalg.triangular_solve(
                    a, pnp.swapaxes(b, 1, 2), left_side=False, lower=True, transpose_a=True
                )
                limit = 1e-4 if dtype == np.float32 else 1e-12
                np.testing.assert_allclose(x, wanted, rtol=limit, atol=limit)
                np.testing.assert_array_equal(np.swapaxes(turned, 1, 2), x)
