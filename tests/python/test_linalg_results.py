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


# --- Derivatives of decompositions -----------------------------------------------------------------

A = np.array([[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]])
C = A + 1j * A[::-1].T


def real_gradient(f, x, step=1e-6):
    """df/dx, or df/dx - i df/dy, by central differences."""
    result = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        for direction, factor in ((1, 1), (1j, -1j))[: 2 if np.iscomplexobj(x) else 1]:
            ahead, behind = x.copy(), x.copy()
            ahead[i] += step * direction
            behind[i] -= step * direction
            result[i] += factor * (float(f(ahead)) - float(f(behind))) / (2 * step)
    return result


def weights_like(a):
    rows, columns = a.shape[-2:]
    return pnp.arange(rows * columns).reshape(rows, columns)


def of_svd(a):
    u, s, vh = pl.svd(a)
    weighted = pnp.abs(u) ** 4 * weights_like(u) + pnp.abs(vh) ** 4 * weights_like(vh).T
    return weighted.sum() + (s**3).sum()


def rebuilt(a):
    u, s, vh = pl.svd(a)
    return (pnp.abs((u * pnp.sin(s)[..., None, :]) @ vh) ** 2 * weights_like(a)).sum()


def of_complete_qr(a):
    q, r = pl.qr(a, mode="complete")
    return (pnp.abs(q) ** 4 * weights_like(q)).sum() + (pnp.abs(r) ** 3).sum()


# JAX's figures.
FIGURES = {
    of_svd: (
        [
            [17.4564670856897, -1.2434721994851718, -8.930734433600758],
            [-2.5064790144232476, 2.851971400786849, 5.342709091174167],
            [9.56043417393309, -3.668142034815401, 30.465669614291183],
        ],
        [
            [
                22.24114905104031 - 10.633511593526869j,
                4.014937113250669 - 3.509516027831995j,
                -10.727975443340519 - 21.232848758297802j,
            ],
            [
                4.644889018222289 + 4.506968557230129j,
                8.894255362398688 - 8.598330262948634j,
                6.9605584308627515 - 3.6379526597371434j,
            ],
            [
                13.99867191576542 - 41.77443924147924j,
                -6.831282289725548 - 10.861195607444792j,
                40.526857988263664 + 13.332715132006125j,
            ],
        ],
    ),
    of_complete_qr: (
        [
            [18.078522396986244, -5.591352238319105, -12.604568784268514],
            [-4.048620051920239, 13.31818488617015, 11.07711499985884],
            [-0.9730147809924286, 8.873991588429003, 24.320067151905647],
        ],
        None,
    ),
    rebuilt: (
        [
            [-0.2812896714538201, -0.5942720268491376, -1.0548448030295152],
            [-0.6223800397181625, -0.034176498994321146, 0.9878114153167705],
            [0.265611972808816, -0.271649174239413, 1.9852126321137957],
        ],
        None,
    ),
}


@pytest.mark.parametrize("function", FIGURES)
def test_decompositions_of_square_matrices_have_gradients(function):
    for x, figures in zip((A, C), FIGURES[function]):
        expected = real_gradient(function, x)
        if figures is not None:
            np.testing.assert_allclose(expected, figures, rtol=1e-6, atol=1e-8)
        for run in (lambda f: f, plait.jit):
            np.testing.assert_allclose(run(plait.grad(function))(x), expected, rtol=1e-6, atol=1e-8)
        stacked = plait.vmap(plait.grad(function))(np.stack([x, x.T]))
        np.testing.assert_allclose(stacked[0], expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(stacked[1], real_gradient(function, x.T), rtol=1e-6, atol=1e-8)
    batch = plait.grad(lambda x: function(x) if x.ndim == 2 else rebuilt(x))(np.stack([A, A.T]))
    np.testing.assert_allclose(batch[1], real_gradient(rebuilt, A.T), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", FIGURES)
def test_decompositions_of_square_matrices_have_second_derivatives(function):
    hessian = np.asarray(plait.hessian(function)(A))
    for i, j in ((0, 0), (1, 2), (2, 0)):
        gradient = plait.grad(function)
        step = np.zeros((3, 3))
        step[i, j] = 1e-6
        wanted = (np.asarray(gradient(A + step)) - np.asarray(gradient(A - step))) / 2e-6
        np.testing.assert_allclose(hessian[i, j], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [of_svd, of_complete_qr])
def test_masked_decompositions_of_square_matrices_have_gradients(function):
    padded = np.full((5, 5), np.nan)
    padded[:3, :3] = A
    masked = plait.mask(function, "n n")
    gradient = plait.grad(lambda x: masked(x, n=3))(padded)
    np.testing.assert_allclose(gradient[:3, :3], real_gradient(function, A), rtol=1e-6, atol=1e-8)
    assert not np.asarray(gradient)[3:].any() and not np.asarray(gradient)[:, 3:].any()


def test_singular_values_have_gradients_for_every_shape():
    def total(x, **options):
        s = pl.svd(x, **options)
        return ((s if options else s[1]) ** 3).sum()

    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3)):
        x = np.random.default_rng(1).normal(size=shape)
        expected = real_gradient(lambda x: total(x, compute_uv=False), x)
        gradient = plait.grad(lambda x: total(x, compute_uv=False))
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6, atol=1e-8)
        if shape[-1] == shape[-2]:
            np.testing.assert_allclose(plait.grad(total)(x), expected, rtol=1e-6, atol=1e-8)
    for x in (np.diag([2.0, 2.0, 1.0]), np.diag([2.0, 1.0, 0.0]), np.eye(3)):
        # Equal values and zeros: as JAX has them, u and v as they come.
        for function in (
            lambda x: pl.svd(x, compute_uv=False).sum(),
            lambda x: pl.svd(x)[1].sum(),
        ):
            np.testing.assert_allclose(plait.grad(function)(x), np.eye(3), atol=1e-12)
    with pytest.raises(plait.MissingRuleError, match=r"svd: .* x has shape \(4,2\)"):
        plait.grad(total)(np.ones((4, 2)))


def test_complete_qr_of_wide_matrices_has_a_gradient():
    x = np.random.default_rng(2).normal(size=(2, 4))
    for value in (x, x + 1j * x[:, ::-1]):
        np.testing.assert_allclose(
            plait.grad(of_complete_qr)(value),
            real_gradient(of_complete_qr, value),
            rtol=1e-6,
            atol=1e-8,
        )


def cofactors(a):
    n = len(a)
    return np.array(
        [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)]
            for i in range(n)
        ]
    )


@pytest.mark.parametrize(
    "a",
    [
        [[0.0, 2.0], [0.0, 1.0]],
        [[0.0, 1.0], [0.0, 0.0]],
        np.diag([0.0, 2.0, 3.0]),
        [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]],
        np.diag([0.0, 2.0, 3.0, 4.0]),
        np.diag([2.0, 0.0, 3.0, 4.0]),
        np.diag([2.0, 3.0, 4.0, 0.0]),
        np.diag([0.0, 0.0, 3.0, 4.0]),
        [[0.0, 1, 2, 3], [0, 4, 5, 1], [0, 7, 9, 2], [0, 1, 1, 5]],
        [[1.0, 2, 3, 4], [2, 4, 7, 1], [3, 6, 1, 2], [4, 8, 2, 9]],
    ],
)
def test_the_gradient_of_the_determinant_of_a_singular_matrix_is_its_cofactors(a):
    a = np.array(a)
    expected = cofactors(a)
    for run in (lambda f: f, plait.jit):
        np.testing.assert_allclose(run(plait.grad(pl.det))(a), expected, atol=1e-9)
    stacked = plait.vmap(plait.grad(pl.det))(np.stack([a, a + np.eye(len(a))]))
    np.testing.assert_allclose(stacked[0], expected, atol=1e-9)
    np.testing.assert_allclose(stacked[1], cofactors(a + np.eye(len(a))), atol=1e-9)


def test_second_derivatives_of_determinants_of_three_rows_are_right_for_every_rank():
    for a in (np.zeros((3, 3)), np.diag([0.0, 2.0, 0.0]), np.diag([0.0, 2.0, 3.0]), A):
        hessian = np.asarray(plait.hessian(pl.det)(a))
        for i, j in np.ndindex(3, 3):
            step = np.zeros((3, 3))
            step[i, j] = 1.0  # cofactors are of second order
            wanted = (cofactors(a + step) - cofactors(a - step)) / 2
            np.testing.assert_allclose(hessian[i, j], wanted, atol=1e-9)
