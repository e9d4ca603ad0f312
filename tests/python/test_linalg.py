"""Linear algebra beside NumPy's and SciPy's: values on every dtype and batch, gradients by differences, bad input.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
import scipy.linalg
from plait import grad, jit, lax, mask, vmap
from plait.scipy import linalg as psl

pytestmark = pytest.mark.isa

pl = pnp.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
BATCHES = [(), (3,), (2, 0), (2, 3)]


def tolerance(dtype):
    return (
        2e-4
        if np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1) == 4
        else 1e-10
    )


def random(shape, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * generator.normal(size=shape)
    return x.astype(dtype)


def hermitian(x):
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def definite(x):
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(x.shape[-1], dtype=x.dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def check(actual, expected, limit=1e-10):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (
        actual.dtype,
        expected.dtype,
    )
    np.testing.assert_allclose(actual, expected, rtol=limit, atol=limit)


def check_gradient(f, *arguments, limit=1e-6):
    """The gradient of a sum of f's results with random weights against central differences in float64."""

    def scalar(*xs):
        total = 0.0
        for i, leaf in enumerate(plait.tree.leaves(f(*xs))):
            weights = np.random.default_rng(50 + i).normal(size=leaf.shape)
            total = total + pnp.sum(
                pnp.abs(leaf) ** 2 * weights if leaf.dtype.kind == "c" else leaf * weights
            )
        return total

    gradients = grad(scalar, argnums=tuple(range(len(arguments))))(*arguments)
    for index, (x, gradient) in enumerate(zip(arguments, gradients)):
        numeric = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            step = np.zeros(x.shape)
            step[place] = 1e-6
            high, low = (
                scalar(*[v + sign * step if i == index else v for i, v in enumerate(arguments)])
                for sign in (1, -1)
            )
            numeric[place] = (float(high) - float(low)) / 2e-6
        np.testing.assert_allclose(np.asarray(gradient), numeric, rtol=limit, atol=limit)


def check_complex_gradient(f, x, limit=1e-6):
    """The same by the real and the imaginary parts."""
    check_gradient(lambda re, im: f(re + 1j * im), x.real, x.imag, limit=limit)


# --- Values ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_decompositions_of_square_matrices(dtype, batch):
    limit = tolerance(dtype)
    for n in (0, 1, 4):
        x = random((*batch, n, n), dtype)
        a, h = definite(x), hermitian(x)
        check(pl.cholesky(a), np.linalg.cholesky(a), limit)
        check(pl.cholesky(a, upper=True), adjoint(np.linalg.cholesky(a)), limit)
        if dtype[:2] == "fl" or n < 2:
            check(pl.det(x), np.linalg.det(x), limit)
        w, v = map(np.asarray, pl.eigh(h))
        check(w, np.linalg.eigvalsh(h), limit)
        check(pl.eigvalsh(h), w, limit)
        check(v @ (w[..., None] * adjoint(v)), h, limit)
        check(adjoint(v) @ v, np.broadcast_to(np.eye(n, dtype=dtype), v.shape), limit)
        check(pl.inv(a), np.linalg.inv(a), limit)
        for got, expected in zip(pl.slogdet(x), np.linalg.slogdet(x)):
            check(got, expected, limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("m, n", [(4, 4), (5, 2), (2, 5), (1, 3), (0, 3), (3, 0)])
def test_decompositions_of_any_matrices(dtype, batch, m, n):
    limit, x = tolerance(dtype), random((*batch, m, n), dtype)
    for mode in ("reduced", "complete"):
        q, r = map(np.asarray, pl.qr(x, mode))
        expected_q, expected_r = np.linalg.qr(x, mode)
        check(q, expected_q, limit)
        check(r, expected_r, limit)
    check(pl.qr(x, "r"), r[..., : min(m, n), :], limit)
    for full in (True, False):
        u, s, vh = map(np.asarray, pl.svd(x, full))
        shapes = [part.shape for part in np.linalg.svd(x, full)]
        assert [part.shape for part in (u, s, vh)] == shapes
        check(s, np.linalg.svd(x, compute_uv=False), limit)
        k = min(m, n)
        check((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, limit)
        for part in (u, adjoint(vh)):
            check(
                adjoint(part) @ part,
                np.broadcast_to(
                    np.eye(part.shape[-1], dtype=dtype), (*batch, part.shape[-1], part.shape[-1])
                ),
                limit,
            )
    check(pl.svdvals(x), s, limit)
    lu, pivots, permutation = map(np.asarray, lax.linalg.lu(x))
    k = min(m, n)
    lower = np.tril(lu[..., :k], -1) + np.eye(m, k, dtype=dtype)
    moved = np.take_along_axis(x, permutation[..., None].astype(int), -2)
    check(lower @ np.triu(lu[..., :k, :]), moved, limit)
    check(lax.linalg.lu_pivots_to_permutation(pivots, m), permutation)
    if m and n:
        check(pl.pinv(x), np.linalg.pinv(x), limit)


# Matrices whose halves have singular values in common, none that differ, or hardly any.
KINDS = {
    "random": lambda x: x,
    "rank deficient": lambda x: x[:, : min(x.shape) // 3] @ x[: min(x.shape) // 3],
    "graded columns": lambda x: x * 10.0 ** -np.linspace(0, 300, x.shape[1]),
    "graded rows": lambda x: x * 10.0 ** -np.linspace(0, 20, x.shape[0])[:, None],
    "zeros": lambda x: 0 * x,
    "ones": lambda x: 0 * x + 1,
    "identity": lambda x: np.eye(*x.shape, dtype=x.dtype),
    "projection": lambda x: np.linalg.qr(x)[0][:, :20] @ np.linalg.qr(x.T)[0][:, :20].T,
    "bidiagonal": lambda x: np.eye(*x.shape) - np.eye(*x.shape, 1),
    "small beside": lambda x: np.eye(*x.shape) * 0.1 ** (np.arange(x.shape[1]) % 17) + 1e-9 * np.eye(*x.shape, 1),
    "tiny": lambda x: 1e-300 * x,
    "huge": lambda x: 1e300 * x,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(33, 33), (67, 67), (64, 40), (40, 130), (150, 149)])
@pytest.mark.parametrize("kind", KINDS)
def test_singular_vectors_of_many_rows(dtype, shape, kind):
    x = KINDS[kind](random(shape, dtype)).astype(dtype)
    size = np.abs(x).max() or 1.0
    u, s, vh = map(np.asarray, pl.svd(x, full_matrices=True))
    k = len(s)
    limit = 2e-15 * (shape[0] * shape[1]) ** 0.5
    check(u[:, :k] * (s / size) @ vh[:k], x / size, limit)
    check(adjoint(u) @ u, np.eye(len(u), dtype=dtype), 1e-13)
    check(vh @ adjoint(vh), np.eye(len(vh), dtype=dtype), 1e-13)
    assert (s >= 0).all() and (np.diff(s) <= 0).all()
    check(s / size, np.linalg.svd(x / size, compute_uv=False), 4 * limit)
    check(np.asarray(pl.svdvals(x)) / size, s / size, 4 * limit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solve(dtype):
    limit = tolerance(dtype)
    for left in (True, False):
        a = random((2, 4, 4), dtype) + 3 * np.eye(4, dtype=dtype)
        b = random((2, 4, 3) if left else (2, 3, 4), dtype, 1)
        for lower in (True, False):
            for transpose in (True, False):
                for conjugate in (True, False):
                    for unit in (True, False):
                        t = np.tril(a) if lower else np.triu(a)
                        if unit:
                            t = t * (1 - np.eye(4, dtype=dtype)) + np.eye(4, dtype=dtype)
                        t = np.swapaxes(t, -1, -2) if transpose else t
                        t = np.conj(t) if conjugate else t
                        x = np.asarray(
                            lax.linalg.triangular_solve(
                                a, b, left, lower, transpose, conjugate, unit
                            )
                        )
                        check(t @ x if left else x @ t, b, limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [17, 24, 61])
def test_each_right_hand_side_is_solved_as_if_alone(dtype, n):
    a = random((n, n), dtype) + n * np.eye(n, dtype=dtype)
    b = random((n, 37), dtype, seed=1)
    for left in (True, False):
        sides = b if left else b.T
        for lower in (True, False):
            solve = jit(
                lambda a, b, left=left, lower=lower: lax.linalg.triangular_solve(
                    a, b, left_side=left, lower=lower
                )
            )
            together = np.asarray(solve(a, sides))
            some = np.asarray(solve(a, sides[:, 5:23] if left else sides[5:23]))
            assert (some == (together[:, 5:23] if left else together[5:23])).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(9, 9), (30, 61), (61, 30), (3, 40, 40)])
def test_complex_factors_have_the_pivots_of_lapack(dtype, shape):
    x = random(shape, dtype)
    lu, pivots, order = map(np.asarray, lax.linalg.lu(x))
    k = min(shape[-2:])
    for at in np.ndindex(shape[:-2]):
        lower = np.tril(lu[at][:, :k], -1) + np.eye(shape[-2], k, dtype=dtype)
        np.testing.assert_allclose(
            lower @ np.triu(lu[at][:k]), x[at][order[at]], atol=10 * tolerance(dtype)
        )
        if shape[-2] == shape[-1]:
            assert (scipy.linalg.lu_factor(x[at])[1] == pivots[at]).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("m, k, n", [(4, 4, 4), (61, 300, 17), (200, 30, 515), (5, 7, 1030)])
def test_complex_products_do_not_depend_on_what_is_beside(dtype, m, k, n):
    x, y = random((m, k), dtype), random((k, n), dtype, seed=1)
    product = np.asarray(pnp.matmul(x, y))
    np.testing.assert_allclose(product, x @ y, atol=k * tolerance(dtype))
    some = np.asarray(pnp.matmul(x[1:], y[:, : n - 1]))
    if m > 4 and n > 4:
        assert (some == product[1:, : n - 1]).all()
    transposed = np.asarray(jit(lambda x, y: pnp.matmul(x.T, y.T))(x.T.copy(), y.T.copy()))
    assert (transposed == product).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_broadcasts_as_numpy(dtype):
    limit = tolerance(dtype)
    for shape, rhs in [((4, 4), (4,)), ((4, 4), (4, 2)), ((3, 4, 4), (4,)), ((3, 4, 4), (3, 4, 2)), ((4, 4), (2, 3, 4, 2)),
                       ((2, 1, 4, 4), (3, 4, 1)), ((1, 1), (1,)), ((0, 0), (0, 2)), ((3, 4, 4), (4, 0))]:  # fmt: skip
        a, b = random(shape, dtype) + 2 * np.eye(shape[-1], dtype=dtype), random(rhs, dtype, 1)
        check(pl.solve(a, b), np.linalg.solve(a, b), limit)
        check(jit(pl.solve)(a, b), np.linalg.solve(a, b), limit)


def test_integers_and_numbers_promote():
    a = np.array([[2, 1], [1, 3]], np.int32)
    for function in (pl.det, pl.inv, pl.cholesky, pl.svdvals, pl.eigvalsh, pl.pinv):
        assert function(a).dtype == np.float32
    check(pl.solve(a, np.array([1.0, 2.0])), np.linalg.solve(a, [1.0, 2.0]))
    with pytest.raises(TypeError, match="float16"):
        pl.inv(a.astype(np.float16))


def test_conditions_and_ranks():
    x = random((3, 4, 4))
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        check(pl.cond(x, p), np.linalg.cond(x, p), 1e-8)
    low = np.stack([random((4, 2), seed=i) @ random((2, 5), seed=9 + i) for i in range(3)])
    assert (
        np.asarray(pl.matrix_rank(low)).tolist() == [2, 2, 2] == np.linalg.matrix_rank(low).tolist()
    )
    assert int(pl.matrix_rank(x[0], tol=1e6)) == 0 and int(pl.matrix_rank(np.zeros(3))) == 0
    assert int(pl.matrix_rank(hermitian(x[0]), hermitian=True)) == 4
    check(pl.pinv(low[0], rtol=1e-9), np.linalg.pinv(low[0], rcond=1e-9))


def test_least_squares():
    for a in (random((6, 3)), random((3, 6)), random((6, 2)) @ random((2, 4), seed=3)):
        for b in (random(a.shape[0], seed=1), random((a.shape[0], 2), seed=1)):
            x, residuals, rank, s = pl.lstsq(a, b, rcond=1e-10, numpy_resid=True)
            expected = np.linalg.lstsq(a, b, rcond=1e-10)
            check(x, expected[0])
            check(residuals, expected[1])
            assert int(rank) == expected[2]
            check(s, expected[3])
    check(pl.lstsq(random((6, 3)), random(6))[1], np.linalg.lstsq(random((6, 3)), random(6))[1][0])


def test_products_and_tensors():
    shapes = [(10, 30), (30, 5), (5, 60), (60, 2)]
    arrays = [random(shape, seed=i) for i, shape in enumerate(shapes)]
    check(pl.multi_dot(arrays), np.linalg.multi_dot(arrays))
    check(
        pl.multi_dot([arrays[0][0], *arrays[1:3], arrays[3][:, 0]]),
        np.linalg.multi_dot([arrays[0][0], *arrays[1:3], arrays[3][:, 0]]),
    )
    a, b = random((2, 3, 6)), random((2, 3), seed=1)
    check(pl.tensorsolve(a, b), np.linalg.tensorsolve(a, b))
    moved = np.moveaxis(a, 2, 0)
    check(pl.tensorsolve(moved, b, axes=(0,)), np.linalg.tensorsolve(moved, b, axes=(0,)))
    check(pl.tensorinv(random((4, 6, 8, 3))), np.linalg.tensorinv(random((4, 6, 8, 3))), 1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scipy_names(dtype):
    limit, x, b = tolerance(dtype), random((5, 5), dtype), random((5, 2), dtype, 1)
    a = definite(x)
    for lower in (False, True):
        check(psl.cholesky(a, lower), scipy.linalg.cholesky(a, lower), limit)
        check(psl.cho_solve(psl.cho_factor(a, lower), b), np.linalg.solve(a, b), limit)
        check(psl.solve(a, b[:, 0], lower, assume_a="pos"), np.linalg.solve(a, b[:, 0]), limit)
        for trans in (0, 1, 2, "N", "T", "C"):
            expected = scipy.linalg.solve_triangular(a, b, trans, lower)
            check(psl.solve_triangular(a, b, trans, lower), expected, limit)
    for got, expected in zip(psl.lu(x), scipy.linalg.lu(x)):
        check(got, expected, limit)
    check(psl.lu(x[:, :3], permute_l=True)[0], scipy.linalg.lu(x[:, :3], permute_l=True)[0], limit)
    factors = psl.lu_factor(x)
    for trans in (0, 1, 2):
        check(
            psl.lu_solve(factors, b, trans),
            scipy.linalg.lu_solve(scipy.linalg.lu_factor(x), b, trans),
            limit,
        )
    for scale in (0.01, 1.0, 30.0):
        skew = (x - adjoint(x)) * scale
        check(psl.expm(skew.astype(dtype)), scipy.linalg.expm(skew).astype(dtype), 50 * limit)
    check(psl.block_diag(x, b, 2.0), scipy.linalg.block_diag(x, b, 2.0).astype(dtype), limit)


def test_svd_of_hermitian_matrices():
    h = hermitian(random((3, 4, 4), "complex128"))
    u, s, vh = map(np.asarray, pl.svd(h, hermitian=True))
    check(u @ (s[..., None] * vh), h)
    check(s, np.linalg.svd(h, compute_uv=False))


# --- Derivatives ---

SQUARE = random((4, 4)) + 2 * np.eye(4)


@pytest.mark.parametrize(
    "name, f",
    [
        ("inv", pl.inv), ("det", pl.det), ("slogdet", lambda x: pl.slogdet(x)[1]), ("pinv", pl.pinv),
        ("solve", lambda x: pl.solve(x, np.arange(4.0))), ("cholesky", lambda x: pl.cholesky(x @ x.T + 1.0)),
        ("qr", pl.qr), ("svd", lambda x: pl.svd(x, False)), ("svdvals", pl.svdvals), ("eigh", pl.eigh),
        ("eigvalsh", pl.eigvalsh), ("nuclear norm", lambda x: pl.norm(x, "nuc")), ("cond", pl.cond),
        ("expm", psl.expm), ("lu", lambda x: psl.lu(x)[1:]), ("power", lambda x: pl.matrix_power(x, -2)),
        ("lstsq", lambda x: pl.lstsq(x[:, :2], np.arange(4.0))[0]),
    ],
)  # fmt: skip
def test_gradients_are_differences(name, f):
    check_gradient(f, SQUARE)
    batch = plait.tree.leaves(vmap(f)(np.stack([SQUARE, 2 * SQUARE])))
    for i in (0, 1):
        alone = plait.tree.leaves(f((i + 1) * SQUARE))
        for whole, part in zip(batch, alone, strict=True):
            np.testing.assert_allclose(np.asarray(whole)[i], part, rtol=1e-9, atol=1e-12)


def test_gradients_of_solve_by_both_operands_and_twice():
    b = random((4, 2), seed=5)
    check_gradient(pl.solve, SQUARE, b)
    check_gradient(
        lambda a, b: psl.cho_solve(psl.cho_factor(a @ a.T + pnp.eye(4), True), b), SQUARE, b
    )
    check_gradient(lambda a, b: psl.lu_solve(psl.lu_factor(a), b), SQUARE, b)
    check_gradient(lambda a: grad(lambda a: pnp.sum(pl.solve(a, b) ** 2))(a), SQUARE)
    check_gradient(lambda a: grad(pl.det)(a), SQUARE)
    for f in (
        jit(grad(lambda a: pnp.sum(pl.solve(a, b) ** 2))),
        grad(jit(lambda a: pnp.sum(pl.solve(a, b) ** 2))),
    ):
        check(f(SQUARE), grad(lambda a: pnp.sum(pl.solve(a, b) ** 2))(SQUARE))


@pytest.mark.parametrize(
    "f", [pl.inv, pl.det, pl.svdvals, lambda x: pl.solve(x, np.ones(3)), lambda x: pl.eigvalsh(x)]
)
def test_complex_gradients_are_differences(f):
    x = random((3, 3), "complex128") + 2 * np.eye(3)
    check_complex_gradient(f, x)


def test_gauge_invariant_functions_of_complex_vectors_have_gradients():
    x = random((3, 3), "complex128")
    projector = lambda v: v[:, :1] @ pnp.conj(v[:, :1]).T  # noqa: E731
    check_complex_gradient(lambda x: projector(pl.eigh(x)[1]), x)
    check_complex_gradient(lambda x: projector(pl.svd(x, False)[0]), x)
    check_complex_gradient(lambda x: (lambda q, r: pnp.abs(q))(*pl.qr(x)), x)


def test_det_of_singular_matrices_has_its_gradient():
    a = np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])  # rank 2
    cofactors = lambda a: np.array([[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(len(a))] for i in range(len(a))])  # fmt: skip # noqa: E731
    for x in (a, np.ones((3, 3)), np.zeros((3, 3)), SQUARE, a[:2, :2], np.zeros((1, 1)) + 2.0):
        expected = cofactors(x) if x.shape[0] > 1 else np.ones((1, 1))
        np.testing.assert_allclose(np.asarray(grad(pl.det)(x)), expected, atol=1e-12)


def test_degenerate_values_have_gradients_where_these_are_defined():
    eye = np.eye(3)
    assert np.isfinite(np.asarray(grad(lambda x: pnp.sum(pl.eigvalsh(x)))(eye))).all()
    check(grad(lambda x: pnp.sum(pl.eigvalsh(x)))(eye), eye)
    check(grad(lambda x: pnp.sum(pl.svdvals(x)))(eye), eye)
    assert not np.isfinite(np.asarray(grad(lambda x: pnp.sum(pl.eigh(x)[1]))(eye))).all()


def test_derivatives_that_do_not_exist_are_refused():
    x = random((5, 2))
    for f in (lambda x: pl.qr(x, "complete")[0], lambda x: pl.svd(x)[0]):
        with pytest.raises(NotImplementedError, match="complete"):
            grad(lambda x: pnp.sum(f(x)))(x)


# --- NaN, padding, bad input ---


def test_nan_and_indefinite_matrices_give_nan_alone():
    good = definite(random((3, 3)))
    bad = np.stack([good, np.diag([1.0, -1, 1]), good])
    result = np.asarray(pl.cholesky(bad))
    check(result[[0, 2]], np.linalg.cholesky(bad[[0, 2]]))
    assert (
        np.isnan(result[1][np.tril_indices(3)]).all()
        and (result[1][np.triu_indices(3, 1)] == 0).all()
    )
    bad = np.stack([good, np.full((3, 3), np.nan), good])
    bad[1, 0, 0] = np.inf
    for f in (pl.cholesky, pl.svdvals, pl.eigvalsh, pl.pinv, pl.inv, pl.det, lambda x: pl.svd(x)[0], lambda x: pl.eigh(x)[1],
              lambda x: pl.qr(x)[1], lambda x: lax.linalg.lu(x)[0]):  # fmt: skip
        result = np.asarray(f(bad))
        assert np.isnan(result[1]).any() and np.isfinite(result[[0, 2]]).all()
    assert not np.isfinite(np.asarray(pl.inv(np.zeros((2, 2))))).any()


@pytest.mark.parametrize(
    "f",
    [
        pl.cholesky,
        pl.inv,
        pl.det,
        pl.eigvalsh,
        pl.svdvals,
        pl.pinv,
        lambda a: pl.qr(a)[1],
        lambda a: pl.eigh(a)[1],
    ],
)
def test_ragged_batches_of_matrices(f):
    a = definite(random((3, 5, 5)))
    sizes = np.array([5, 3, 1], np.int32)
    padded = a.copy()
    for i, n in enumerate(sizes):
        padded[i, n:] = padded[i, :, n:] = np.nan
    result = np.asarray(vmap(mask(f, "f64[n n]"))(padded, n=sizes))
    for i, n in enumerate(sizes):
        expected = np.asarray(f(a[i, :n, :n]))
        np.testing.assert_allclose(
            result[i][tuple(slice(0, size) for size in expected.shape)], expected, atol=1e-10
        )


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: pl.inv(np.ones((2, 3))), "not square"), (lambda: pl.cholesky(np.ones(3)), "no matrix"),
        (lambda: pl.solve(np.eye(3), np.ones(2)), "3 rows"), (lambda: pl.det(np.ones((2, 3))), "not square"),
        (lambda: pl.qr(np.eye(2), "full"), "mode"), (lambda: pl.eigh(np.eye(2), "X"), "UPLO"),
        (lambda: lax.linalg.triangular_solve(np.eye(3), np.ones((2, 3)), True), "rows"),
        (lambda: lax.linalg.triangular_solve(np.eye(3), np.ones((3, 3), np.float32), True), "dtypes"),
        (lambda: pl.lstsq(np.ones((3, 2)), np.ones(4)), "rows"), (lambda: pl.multi_dot([]), "no arrays"),
        (lambda: pl.tensorinv(np.ones((2, 2)), 0), "ind"), (lambda: psl.solve(np.eye(2), np.ones(2), assume_a="x"), "assume_a"),
        (lambda: psl.lu_solve((np.eye(2), np.zeros(2)), np.ones(2)), "pivots"), (lambda: psl.cho_solve(np.eye(2), np.ones(2)), "c_and_lower"),
        (lambda: pl.svd(np.ones(3)), "no matrix"), (lambda: pl.pinv(np.eye(2), -1.0), "rtol"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_fix(call, words):
    with pytest.raises(plait.UserError, match=words) as caught:
        call()
    assert "fix:" in str(caught.value)
