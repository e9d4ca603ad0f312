"""Decompositions of general matrices, functions of matrices and special matrices, beside NumPy and SciPy.

SPDX-License-Identifier: Apache-2.0
"""

import warnings

import numpy as np
import plait
import plait.numpy as pnp
import pytest
import scipy.linalg
from plait import grad, jit, lax, mask, vmap
from plait.scipy import linalg as psl

pl, ll = pnp.linalg, lax.linalg
DTYPES = ["float32", "float64", "complex64", "complex128"]
BATCHES = [(), (3,), (2, 0)]


def limit_of(dtype):
    return 2e-4 if np.finfo(dtype).bits == 32 else 1e-10


def random(shape, dtype="float64", seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * generator.normal(size=shape)
    return x.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(actual, expected, limit=1e-10):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=limit, atol=limit)


def complex_of(dtype):
    return np.result_type(dtype, np.complex64)


def check_gradient(f, *arguments, limit=1e-6):
    """The gradient of a sum of f's results with random weights against central differences."""

    def scalar(*xs):
        total = 0.0
        for i, leaf in enumerate(plait.tree.leaves(f(*xs))):
            weights = np.random.default_rng(50 + i).normal(size=leaf.shape)
            both = (pnp.real(leaf), pnp.imag(leaf)) if leaf.dtype.kind == "c" else (leaf,)
            for factor, part in zip((1, 2), both):
                total = total + factor * pnp.sum(part * weights)
        return total

    def at(index, x):
        return float(scalar(*[x if i == index else v for i, v in enumerate(arguments)]))

    gradients = grad(scalar, argnums=tuple(range(len(arguments))))(*arguments)
    for index, (x, gradient) in enumerate(zip(arguments, gradients)):
        numeric = np.zeros(x.shape, x.dtype)
        for place in np.ndindex(x.shape):
            for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
                step = np.zeros(x.shape, x.dtype)
                step[place] = 1e-6 * unit
                slope = (at(index, x + step) - at(index, x - step)) / 2e-6
                numeric[place] += slope * np.conj(unit)
        np.testing.assert_allclose(np.asarray(gradient), numeric, rtol=limit, atol=limit)


# --- Values ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_eigenvalues_and_eigenvectors_of_general_matrices(dtype, batch):
    limit = 10 * limit_of(dtype)
    for n in (0, 1, 2, 5):
        x = random((*batch, n, n), dtype, seed=n)
        w, vl, vr = map(np.asarray, ll.eig(x))
        assert w.dtype == vl.dtype == vr.dtype == complex_of(dtype)
        close(x @ vr, vr * w[..., None, :], limit)
        close(adjoint(vl) @ x, w[..., :, None] * adjoint(vl), limit)
        for v in (vl, vr):
            close(np.linalg.norm(v, axis=-2), np.ones(w.shape), limit)
            if n == 0:
                continue
            large = np.abs(v) >= np.abs(v).max(-2, keepdims=True) / 2 * (1 - 1e-6)
            first = np.take_along_axis(v, large.argmax(-2)[..., None, :], -2)
            assert (np.abs(first.imag) < limit).all() and (first.real > 0).all()
        expected = np.sort_complex(
            np.linalg.eigvals(x.astype("c16" if x.dtype.kind == "c" else "f8"))
        )
        close(w, expected, limit)
        close(pl.eigvals(x), w, limit)
        values, vectors = pl.eig(x)
        close(vectors, vr, limit)
        assert pl.eig(x).eigenvalues.shape == values.shape


def test_eig_of_real_matrices_has_conjugate_pairs_and_real_vectors():
    x = random((7, 7), seed=3)
    w, v = map(np.asarray, pl.eig(x))
    assert (w.imag == 0).any() and (w.imag != 0).any()
    assert (v[:, w.imag == 0].imag == 0).all()
    for i in np.flatnonzero(w.imag < 0):
        assert w[i + 1] == np.conj(w[i]) and (v[:, i + 1] == np.conj(v[:, i])).all()
    for defective in (np.eye(3), np.zeros((3, 3)), np.array([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]])):
        w, v = map(np.asarray, pl.eig(defective))
        close(defective @ v, v * w)
    bad = np.stack([x, np.where(np.eye(7) > 0, np.nan, x)])
    w = np.asarray(pl.eigvals(bad))
    assert np.isfinite(w[0]).all() and np.isnan(w[1]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_schur_and_hessenberg_forms(dtype, batch):
    limit = limit_of(dtype)
    for n in (0, 1, 5):
        x = random((*batch, n, n), dtype, seed=n)
        eye = np.broadcast_to(np.eye(n), x.shape)
        for output in ("real", "complex"):
            t, z = map(np.asarray, psl.schur(x, output))
            assert t.dtype == z.dtype == (complex_of(dtype) if output == "complex" else x.dtype)
            close(z @ t @ adjoint(z), x, limit)
            close(adjoint(z) @ z, eye, limit)
            complex_t, complex_z = map(np.asarray, psl.rsf2csf(t, z))
            close(complex_z @ complex_t @ adjoint(complex_z), x, limit)
            close(np.tril(complex_t, -1), 0 * eye, 0)
            close(np.tril(t, -2 if output == "real" else -1), 0 * eye, 0)
        close(ll.schur(x)[0], psl.schur(x)[0])
        h, q = map(np.asarray, psl.hessenberg(x, calc_q=True))
        close(q @ h @ adjoint(q), x, limit)
        close(adjoint(q) @ q, eye, limit)
        close(np.tril(h, -2), 0 * eye, 0)
        if n == 5 and batch == ():
            for got, expected in zip((h, q), scipy.linalg.hessenberg(x, calc_q=True)):
                close(got, expected, limit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_are_packed_as_in_lapack(dtype):
    limit, x = limit_of(dtype), random((5, 5), dtype)
    hermitian = (x + adjoint(x)) / 2
    names = ("gehrd", "hetrd" if hermitian.dtype.kind == "c" else "sytrd")
    gehrd, trd = scipy.linalg.get_lapack_funcs(names, (x,))
    for got, expected in zip(ll.hessenberg(np.stack([x, 2 * x])), gehrd(x)):
        close(np.asarray(got)[0], expected, limit)
    for lower in (True, False):
        packed, d, e, taus = ll.tridiagonal(hermitian, lower=lower)
        for got, expected in zip((packed, d, e, taus), trd(hermitian, lower=lower)):
            close(np.triu(got, 1) + np.tril(got, -1) if got.ndim == 2 else got,
                  np.triu(expected, 1) + np.tril(expected, -1) if got.ndim == 2 else expected, limit)  # fmt: skip
    for m, n in ((5, 3), (3, 5), (4, 4)):
        y = random((m, n), dtype, seed=m)
        h, taus = pl.qr(y, "raw")
        for got, expected in zip((h, taus), np.linalg.qr(y, "raw")):
            close(got, expected, limit)
        k = min(m, n)
        a = np.asarray(h).T[:, :k]
        close(ll.householder_product(a, taus), np.linalg.qr(y)[0], limit)
        q, c = np.linalg.qr(y, "complete")[0], random((m, 2), dtype, seed=9)
        close(ll.ormqr(a, taus, c), q @ c, limit)
        close(ll.ormqr(a, taus, c, transpose=True), adjoint(q) @ c, limit)
        close(ll.ormqr(a, taus, c.T, left=False), c.T @ q, limit)
        close(ll.ormqr(a, taus, c.T, left=False, transpose=True), c.T @ adjoint(q), limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_tridiagonal_systems_and_updates_of_factors(dtype, batch):
    limit = 20 * limit_of(dtype)
    for n in (1, 2, 5):
        dl, d, du = (random((*batch, n), dtype, seed) for seed in (1, 2, 3))
        d = d * np.where(np.arange(n) == 0, 1e-9, 1) if n > 1 else d  # exchanges rows
        b = random((*batch, n, 2), dtype, 4)
        full = np.zeros((*batch, n, n), dtype)
        for i in range(n):
            full[..., i, i] = d[..., i]
            if i > 0:
                full[..., i, i - 1], full[..., i - 1, i] = dl[..., i], du[..., i - 1]
        close(ll.tridiagonal_solve(dl, d.astype(dtype), du, b), np.linalg.solve(full, b), limit)
        r, w = np.triu(random((*batch, n, n), dtype)), random((*batch, n), dtype, 5)
        updated = np.asarray(ll.cholesky_update(r, w))
        outer = w[..., :, None] * np.conj(w[..., None, :])
        close(adjoint(updated) @ updated, adjoint(r) @ r + outer, limit)
        close(np.tril(updated, -1), 0 * r, 0)
        assert (np.diagonal(updated, axis1=-2, axis2=-1).real >= 0).all()
        c = outer + np.swapaxes(outer, -1, -2)
        expected = 2 * r @ np.swapaxes(r, -1, -2) - c
        got = ll.symmetric_product(r, c, alpha=2.0, beta=-1.0, symmetrize_output=True)
        close(got, expected, limit)


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar_and_pivoted_factors(dtype):
    limit = limit_of(dtype)
    for shape in ((5, 3), (4, 4), (3, 5)):
        x = random(shape, dtype)
        for side in ("right", "left"):
            for method in ("qdwh", "svd"):
                for got, expected in zip(
                    psl.polar(x, side, method=method), scipy.linalg.polar(x, side)
                ):
                    close(got, expected, limit)
        for mode in ("full", "economic", "r"):
            got, expected = (
                psl.qr(x, mode=mode, pivoting=True),
                scipy.linalg.qr(x, mode=mode, pivoting=True),
            )
            assert (np.asarray(got[-1]) == expected[-1]).all()
            close(np.abs(got[-2]), np.abs(expected[-2]), limit)
            if mode != "r":
                close(np.asarray(got[0]) @ np.asarray(got[1]), x[:, expected[-1]], limit)
                assert got[0].shape == expected[0].shape
        assert psl.qr(x, mode="r").shape == shape
        assert (np.asarray(ll.qr(x, pivoting=True)[2]) == expected[-1]).all()
        k, q = min(shape), np.asarray(pl.qr(x)[0])
        for mode, c in (("left", random((k, 2), dtype)), ("left", random(k, dtype)),
                        ("right", random((2, shape[0]), dtype)), ("right", random(shape[0], dtype))):  # fmt: skip
            for conjugate in (False, True):
                factor = np.conj(q) if conjugate else q
                got, r = psl.qr_multiply(x, c, mode, conjugate=conjugate)
                close(got, factor @ c if mode == "left" else c @ factor, limit)
    u, h, steps, converged = ll.qdwh(random((3, 6, 4), dtype))
    assert steps.shape == (3,) and bool(converged.all()) and int(steps.max()) <= 7
    close(np.asarray(u) @ np.asarray(h), random((3, 6, 4), dtype), limit)
    tiny = np.diag([1.0, 1e-14, 0]).astype(dtype)
    close(psl.polar(tiny)[1], tiny, limit)


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
def test_functions_of_matrices(dtype):
    limit, x = limit_of(dtype), random((4, 4), dtype)
    b, c = random((3, 3), dtype, 1), random((4, 3), dtype, 2)
    shifted = x + 4 * np.eye(4, dtype=dtype)  # no negative eigenvalue
    close(psl.sqrtm(shifted), scipy.linalg.sqrtm(shifted), 10 * limit)
    close(psl.sqrtm(np.eye(3)), np.eye(3), limit)
    close(psl.sqrtm(np.zeros((3, 3))), np.zeros((3, 3)), limit)
    for method in ("schur", "eigen"):
        close(
            psl.solve_sylvester(x, b, c, method=method),
            scipy.linalg.solve_sylvester(x, b, c),
            20 * limit,
        )
    close(psl.funm(x, pnp.sin), scipy.linalg.sinm(x), limit)
    close(psl.funm(x + adjoint(x), pnp.exp), scipy.linalg.expm(x + adjoint(x)), 20 * limit)
    result, error = psl.funm(np.stack([x, 2 * x]), pnp.cos, disp=False)
    close(np.asarray(result)[1], scipy.linalg.cosm(2 * x), 5 * limit)
    assert float(error.max()) < 10 * limit
    for got, expected in zip(psl.expm_frechet(x, x.T), scipy.linalg.expm_frechet(x, x.T)):
        close(got, expected, 20 * limit)
    close(psl.expm_frechet(x, x.T, compute_expm=False), expected, 20 * limit)
    triangular = np.triu(x)
    close(psl.expm(triangular, upper_triangular=True), scipy.linalg.expm(triangular), 5 * limit)
    hermitian, definite = x + adjoint(x), x @ adjoint(x) + np.eye(4, dtype=dtype)
    for lower in (True, False):
        for type in (1, 2, 3):
            w, v = map(np.asarray, psl.eigh(np.tril(hermitian) if lower else np.triu(hermitian), definite, lower, type=type))  # fmt: skip
            left, right = ((hermitian, definite), (hermitian @ definite, np.eye(4)), (definite @ hermitian, np.eye(4)))[type - 1]  # fmt: skip
            close(left @ v, right @ v * w, 100 * limit)
    close(psl.eigh(hermitian, eigvals_only=True), np.linalg.eigvalsh(hermitian), limit)
    d, e = x[0].real, x[1, :3].real
    w, v = psl.eigh_tridiagonal(d, e)
    close(w, scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True), limit)
    picked = psl.eigh_tridiagonal(d, e, select="i", select_range=(1, 2))
    close(picked[0], w[1:3])
    close(picked[1], v[:, 1:3])


def test_parts_of_decompositions():
    x = random((3, 5, 5))
    v, w = ll.eigh(x, subset_by_index=(1, 3))
    close(w, pl.eigvalsh(x)[:, 1:3])
    assert v.shape == (3, 5, 2)
    u, s, vh = ll.svd(x, subset_by_index=(0, 2))
    close(s, pl.svdvals(x)[:, :2])
    assert u.shape == (3, 5, 2) and vh.shape == (3, 2, 5)
    with pytest.raises(ValueError, match="subset_by_index"):
        ll.eigh(x, subset_by_index=(2, 9))


VECTORS = {
    "toeplitz": [(5,), (5, 4)], "hankel": [(5,), (5, 4)], "circulant": [(5,)], "companion": [(4,), (2,)],
    "fiedler": [(4,)], "fiedler_companion": [(7,), (6,), (3,), (2,)], "leslie": [(4, 3)],
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_matrices_of_vectors(name):
    ours, theirs = getattr(psl, name), getattr(scipy.linalg, name)
    for sizes in VECTORS[name]:
        for dtype in ("float64", "complex128", "int32"):
            vectors = [random(size, dtype, i) if dtype != "int32" else np.arange(i + 1, i + 1 + size, dtype=dtype) for i, size in enumerate(sizes)]  # fmt: skip
            close(ours(*vectors), theirs(*vectors), 1e-6 if dtype == "int32" else 1e-12)
            stacks = [np.stack([v, 2 * v, v + 1]) for v in vectors]
            close(vmap(ours)(*stacks), ours(*stacks), 1e-6)
            close(ours(*stacks)[2], theirs(*[s[2] for s in stacks]), 1e-6)
            close(jit(ours)(*vectors), ours(*vectors), 0)


def test_matrices_of_sizes():
    for name in ("hilbert", "invhilbert", "pascal", "invpascal", "hadamard", "dft", "helmert"):
        for n in (1, 2, 4) if name == "hadamard" else (1, 2, 5):
            close(getattr(psl, name)(n), getattr(scipy.linalg, name)(n), 1e-6)
    for kind in ("lower", "upper", "symmetric"):
        close(psl.pascal(6, kind), scipy.linalg.pascal(6, kind))
        close(psl.invpascal(6, kind), scipy.linalg.invpascal(6, kind))
    for scale in ("sqrtn", "n"):
        close(psl.dft(6, scale, dtype="complex128"), scipy.linalg.dft(6, scale), 1e-12)
    close(psl.helmert(5, full=True), scipy.linalg.helmert(5, full=True), 1e-6)
    assert psl.hadamard(4, dtype="float32").dtype == "float32"
    a = random(5)
    for n in (3, 8):
        for mode in ("full", "same", "valid"):
            close(
                psl.convolution_matrix(a, n, mode),
                scipy.linalg.convolution_matrix(a, n, mode),
                1e-12,
            )
    for wrong in (lambda: psl.hadamard(6), lambda: psl.pascal(3, "middle"), lambda: psl.dft(3, "half"),
                  lambda: psl.leslie(a, a), lambda: psl.convolution_matrix(a, 3, "all")):  # fmt: skip
        with pytest.raises(ValueError):
            wrong()


# --- Derivatives ---

REAL = random((3, 3)) + np.diag([3.0, 5, -2])
COMPLEX = random((3, 3), "complex128", 7)
ROTATION = np.array(
    [[1.0, -2, 0.3], [2.5, 1, 0.2], [0.1, 0.4, -1]]
)  # a pair of complex eigenvalues


@pytest.mark.parametrize("x", [REAL, COMPLEX, ROTATION], ids=["real", "complex", "pair"])
@pytest.mark.parametrize(
    "name, f",
    [
        ("eig", pl.eig), ("left", ll.eig), ("eigvals", pl.eigvals),
        ("projector", lambda x: (lambda v: v[:, :1] @ pl.inv(v)[:1])(pl.eig(x)[1])),
        ("schur", lambda x: psl.schur(x, "complex")), ("sqrtm", psl.sqrtm),
        ("hessenberg", lambda x: psl.hessenberg(x, calc_q=True)), ("packed", ll.hessenberg),
        ("raw", lambda x: pl.qr(x[:, :2], "raw")), ("wide", lambda x: pl.qr(x[:2], "raw")),
        ("tridiagonal", lambda x: ll.tridiagonal(x + x.T.conj())), ("polar", lambda x: psl.polar(x[:, :2])),
        ("square polar", psl.polar), ("sine", lambda x: psl.funm(x, pnp.sin)),
        ("pivoted", lambda x: psl.qr(x, pivoting=True)[:2]), ("expm", psl.expm),
        ("multiply", lambda x: psl.qr_multiply(x, x[:2], "right")),
        ("generalised", lambda x: psl.eigh(x + x.T.conj(), x @ x.T.conj() + pnp.eye(3), eigvals_only=True)),
        ("frechet", lambda x: psl.expm_frechet(x / 2, x.T)),
    ],
)  # fmt: skip
def test_gradients_are_differences(name, f, x):
    check_gradient(f, x, limit=2e-6)
    whole = plait.tree.leaves(vmap(f)(np.stack([x, 2 * x])))
    for got, alone in zip(whole, plait.tree.leaves(f(2 * x)), strict=True):
        np.testing.assert_allclose(np.asarray(got)[1], alone, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_systems_are_differences(dtype):
    dl, d, du, b = (random(shape, dtype, i) for i, shape in enumerate([(3,), (3,), (3,), (3, 2)]))
    check_gradient(ll.tridiagonal_solve, dl, d, du, b)
    check_gradient(
        psl.solve_sylvester, random((3, 3), dtype), random((2, 2), dtype, 1) + 4 * np.eye(2), b
    )
    check_gradient(ll.cholesky_update, np.triu(random((3, 3), dtype)) + 2 * np.eye(3), d)
    h, taus = map(np.asarray, pl.qr(random((4, 3), dtype), "raw"))
    check_gradient(ll.householder_product, h.T, taus)
    check_gradient(ll.ormqr, h.T, taus, random((4, 2), dtype, 6))
    if dtype == "float64":
        check_gradient(
            lambda x: grad(lambda x: pnp.sum(pnp.real(psl.sqrtm(x)) ** 2))(x), REAL @ REAL
        )
        check_gradient(lambda x: grad(lambda x: pnp.sum(pnp.abs(pl.eig(x)[1]) ** 4))(x), REAL)
        check_gradient(psl.eigh_tridiagonal, d, du[:2])
        check_gradient(lambda c, r: psl.toeplitz(c, r) @ psl.hankel(c, r), d, du)
        check_gradient(lambda f: psl.companion(f) @ psl.circulant(f[1:]), d)


def test_equal_eigenvalues_drop_their_term_and_the_real_form_is_refused():
    assert np.isfinite(
        np.asarray(grad(lambda x: pnp.sum(pnp.abs(pl.eig(x)[1]) ** 2))(np.eye(3)))
    ).all()
    close(grad(lambda x: pnp.sum(pnp.real(pl.eigvals(x))))(np.eye(3)), np.eye(3))
    with pytest.raises(NotImplementedError, match="complex"):
        grad(lambda x: pnp.sum(psl.schur(x)[0]))(REAL)


# --- Ragged matrices and bad input ---


def test_masked_matrices_are_those_without_padding():
    def real_part(got, expected):
        close(np.asarray(got)[tuple(slice(size) for size in expected.shape)], expected)

    n = 3
    x = random((n, n)) + 2 * np.eye(n)
    padded = np.full((2, 5, 5), np.nan)
    padded[0, :n, :n], padded[1, :2, :2] = x, x[:2, :2]
    sizes = np.array([3, 2])
    functions = [
        pl.eigvals, lambda x: pl.eig(x)[1], lambda x: psl.schur(x, "complex"), psl.sqrtm, psl.polar,
        lambda x: psl.qr(x, pivoting=True)[2], lambda x: psl.solve_sylvester(x, x, x), ll.hessenberg,
        lambda x: ll.cholesky_update(x, x[0]), lambda x: ll.tridiagonal_solve(x[0], x[1] + 9.0, x[0], x),
        lambda x: psl.funm(x, pnp.exp), ll.tridiagonal, lambda x: psl.toeplitz(x[0]),
    ]  # fmt: skip
    for f in functions:
        results = plait.tree.leaves(vmap(mask(f, "f64[n n]"))(padded, n=sizes))
        for i, size in enumerate(sizes):
            alone = plait.tree.leaves(f(padded[i, :size, :size]))
            for got, expected in zip(results, alone, strict=True):
                real_part(got[i], expected)
        if results[0].dtype.kind == "i":
            continue

        def squares(x, f=f):
            return sum(pnp.sum(pnp.abs(leaf) ** 2) for leaf in plait.tree.leaves(f(x)))

        gradients = vmap(mask(grad(squares), "f64[n n]"))(padded, n=sizes)
        for i, size in enumerate(sizes):
            real_part(gradients[i], np.asarray(grad(squares)(padded[i, :size, :size])))


def test_wrong_arguments_are_errors():
    x = random((3, 4))
    for f in (pl.eig, psl.schur, psl.sqrtm, psl.hessenberg, ll.tridiagonal):
        with pytest.raises(ValueError, match="square"):
            f(x)
    with pytest.raises(ValueError, match="more columns than rows"):
        ll.qdwh(x)
    with pytest.raises(ValueError, match="do not fit"):
        psl.solve_sylvester(x[:, :3], x[:, :3], x)
    for wrong in (lambda: psl.schur(x[:, :3], "both"), lambda: psl.polar(x, "up"), lambda: psl.qr(x, mode="raw"),
                  lambda: psl.eigh_tridiagonal(x[0], x[0]), lambda: psl.eigh(x[:, :3], x[:, :3], type=4),
                  lambda: ll.tridiagonal_solve(x[0], x[0], x[0], x), lambda: ll.ormqr(x, x[0], x[0])):  # fmt: skip
        with pytest.raises(ValueError), warnings.catch_warnings():
            wrong()
