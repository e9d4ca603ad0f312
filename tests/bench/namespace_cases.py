"""Calls of NumPy's functions, in words that NumPy, JAX and plait.numpy share: the rows of `./dev bench numpy`.

Letters are inputs, of n elements where nothing else is said (see `inputs`). A row is a call; `jit` compiles it with
its letters as arguments.
"""

# SPDX-License-Identifier: Apache-2.0

import math
import re

import numpy as np

MOST_FACTORED = 160_000  # elements of a matrix that is decomposed


def inputs(n):
    """NumPy's arrays by letter."""
    rng = np.random.default_rng(0)
    side, small = max(1, math.isqrt(n)), max(1, math.isqrt(min(n, MOST_FACTORED)))
    x, y = rng.standard_normal((2, n))
    rows = 1 if n < 10 else 10
    square = rng.standard_normal((small, small))
    return {
        "x": x.astype(np.float32),  # normal
        "y": y.astype(np.float32),
        "p": rng.uniform(0.1, 0.9, n).astype(np.float32),
        "g": rng.uniform(1.1, 2, n).astype(np.float32),  # greater than 1
        "d": x,  # float64
        "e": y,
        "z": (x + 1j * y).astype(np.complex64),
        "w": (y - 1j * x).astype(np.complex64),
        "Z": x + 1j * y,  # complex128
        "i": rng.integers(0, 100, n, dtype=np.int32),
        "j": rng.integers(1, 30, n, dtype=np.int32),
        "l": rng.integers(0, 1 << 40, n),  # int64
        "u": rng.integers(0, 256, n, dtype=np.uint8),
        "k": rng.integers(0, n, n, dtype=np.int32),  # indices
        "m": rng.integers(0, n // rows, min(n, 8), dtype=np.int32),  # columns of X
        "b": x > 0,
        "c": y > 0,
        "o": np.sort(x.astype(np.float32)),  # in order
        "v": x[: min(n, 100)].astype(np.float32),  # a short vector
        "q": np.where(rng.uniform(size=n) < 0.1, np.nan, x).astype(np.float32),  # some NaN
        "X": x.reshape(rows, -1).astype(np.float32),  # ten rows
        "Y": y.reshape(rows, -1).astype(np.float32),
        "T": x.reshape(-1, rows).astype(np.float32),  # ten columns
        "M": rng.standard_normal((side, side)).astype(np.float32),
        "N": rng.standard_normal((side, side)).astype(np.float32),
        "D": rng.standard_normal((side, side)),
        "E": rng.standard_normal((side, side)),
        "I": rng.integers(0, 100, (side, side), dtype=np.int32),
        "C": (rng.standard_normal((side, side)) + 1j).astype(np.complex64),
        "A": square,  # to be decomposed: float64
        "F": square.astype(np.float32),
        "B": square @ square.T + small * np.eye(small),  # symmetric, positive
        "S": square[0].copy(),
    }


def calls(template, names):
    return [template.replace("?", name) for name in names.split()]


UNARY = """
abs absolute negative positive sign square sqrt cbrt exp exp2 expm1 sin cos tan sinh cosh tanh arctan atan arcsinh asinh
floor ceil trunc rint round fix fabs isnan isinf isfinite isposinf isneginf signbit isreal iscomplex logical_not
reciprocal degrees radians deg2rad rad2deg sinc real imag conj conjugate angle nan_to_num i0 spacing
sum prod max min mean std var any all argmax argmin amax amin ptp median count_nonzero average
cumsum cumprod cumulative_sum cumulative_prod diff ediff1d sort argsort unwrap gradient trapezoid
around nansum nanprod nanmax nanmin nanmean nanstd nanvar nanargmax nanargmin nancumsum nancumprod nanmedian
ravel copy flip flipud zeros_like ones_like empty_like squeeze atleast_1d atleast_2d atleast_3d array asarray
frexp modf ndim shape size
"""
POSITIVE = "log log2 log10 log1p arcsin asin arccos acos arctanh atanh"
PAIRS = """
add subtract multiply divide true_divide floor_divide remainder mod fmod maximum minimum fmax fmin hypot arctan2 atan2
logaddexp logaddexp2 copysign nextafter heaviside float_power equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor isclose divmod
"""
COMPLEX = "abs exp log sqrt sin tanh conj square angle real negative sum prod mean sign reciprocal isnan cumsum"
INTEGERS = "abs sum max argmax cumsum sort argsort prod mean bitwise_not invert bitwise_invert bitwise_count negative sign square"
INTEGER_PAIRS = """
add multiply floor_divide remainder maximum bitwise_and bitwise_or bitwise_xor gcd lcm equal divide fmod divmod
"""
SHIFTS = "left_shift right_shift bitwise_left_shift bitwise_right_shift"
OF_FLOAT64 = """
sum prod max mean std argmax cumsum sort argsort median exp log1p sin tanh sqrt abs isnan square cbrt expm1 arctan diff
"""
MATRICES = """
sum(?,axis=0) sum(?,axis=1) max(?,axis=0) max(?,axis=1) argmax(?,axis=0) argmax(?,axis=1) mean(?,axis=0) std(?,axis=0)
cumsum(?,axis=0) cumsum(?,axis=1) sort(?,axis=0) sort(?,axis=1) argsort(?,axis=1) median(?,axis=1) prod(?,axis=0)
any(?,axis=0) flip(?) fliplr(?) rot90(?) roll(?,3,axis=1)
"""
VIEWS = "reshape(X,-1) transpose(X) swapaxes(X,0,1) moveaxis(X,0,1) rollaxis(X,1) permute_dims(X,(1,0)) matrix_transpose(X)"

CASES = [
    *calls("np.?(x)", UNARY),
    *calls("np.?(p)", POSITIVE),
    *calls("np.?(g)", "arccosh acosh"),
    *calls("np.?(x, y)", PAIRS),
    *calls("np.?(b, c)", "logical_and logical_or logical_xor bitwise_and"),
    *calls("np.?(b)", "sum any all logical_not nonzero flatnonzero argwhere count_nonzero packbits"),
    *calls("np.?(z)", COMPLEX),
    *calls("np.?(z, w)", "add multiply divide equal power"),
    *calls("np.?(i)", INTEGERS),
    *calls("np.?(i, j)", INTEGER_PAIRS),
    *calls("np.?(i, np.minimum(j, 8))", SHIFTS),
    *calls("np.?(l)", "sort argsort sum unique cumsum max"),
    *calls("np.?(u)", "sort sum max bincount unpackbits bitwise_count"),
    *calls("np.?(d)", OF_FLOAT64),
    *calls("np.?(d, e)", "add multiply divide floor_divide remainder hypot arctan2 maximum dot vdot"),
    *calls("np.?(q)", "nansum nanmax nanmean nanstd nanmedian nan_to_num nancumsum nanargmax"),
    *(f"np.{call.replace('?', 'X')}" for call in MATRICES.split()),
    *(f"np.{call}" for call in VIEWS.split()),
    # operators, indexing
    "x + y", "x * 2 + 1", "x ** 2", "p ** y", "np.power(p, y)", "np.pow(p, y)", "x > 0", "-x", "x @ y", "x[0]", "X[0, 0]",
    "x[-1]", "x[::2]", "x[::-1]", "x[k]", "x[b]", "X[:, m]", "X[1:, :-1]", "X[0]", "X.T.copy()", "d[k]", "X[:, ::-1] + 1",
    "z * w + z", "Z * Z + Z", "i // j", "i % j", "x % y", "np.astype(x, np.float64)", "np.astype(d, np.int32)",
    "np.astype(u, np.float32)",
    # moves
    "np.broadcast_to(X[:1], X.shape)", "np.broadcast_arrays(X, X[:1])", "np.concatenate([x, y])", "np.concat([x, y])",
    "np.concatenate([X, Y], 1)", "np.stack([x, y])", "np.stack([x, y], -1)", "np.vstack([x, y])", "np.hstack([x, y])",
    "np.dstack([x, y])", "np.column_stack([x, y])", "np.append(x, y)", "np.tile(x, 3)", "np.tile(X, (2, 2))",
    "np.repeat(x, 3)", "np.repeat(X, 2, 1)", "np.expand_dims(x, 0)", "np.roll(x, 3)", "np.pad(x, 3)", "np.pad(X, 1)",
    "np.pad(X, 1, mode='edge')", "np.pad(x, 1, mode='wrap')", "np.diag(M)", "np.diagonal(M)", "np.diag(v)", "np.diagflat(v)",
    "np.tril(M)", "np.triu(M)", "np.tri(len(M))", "np.trace(M)", "np.take(x, k)", "np.take(d, k)", "np.take(l, k)",
    "np.take(X, m, 1)", "np.take_along_axis(X, np.argsort(X, 1), 1)", "np.where(b, x, y)", "np.where(x > 0, x, 0)",
    "np.where(b)", "np.compress(b, x)", "np.extract(b, x)", "np.select([b, c], [x, y], 0)", "np.choose(b.astype(np.int32), [x, y])",
    "np.split(X, [1], 1)", "np.array_split(x, 3)", "np.hsplit(X, [1])", "np.vsplit(X, [1])", "np.dsplit(X[:, :, None], [1])",
    "np.unstack(X)", "np.resize(x, (2, len(x)))", "np.insert(x, 0, 1)", "np.delete(x, 0)", "np.trim_zeros(x)",
    "np.piecewise(x, [b, ~b], [1, 2])", "np.clip(x, -1, 1)", "np.clip(x, -1, None)",
    "np.apply_along_axis(np.sum, 1, X)", "np.apply_over_axes(np.sum, X, 0)", "np.sort_complex(z)", "np.lexsort((x, i))",
    "np.partition(x, len(x) // 2)", "np.argpartition(x, len(x) // 2)", "np.vectorize(lambda a: a + 1)(v)",
    # making
    "np.zeros(len(x))", "np.ones(len(x))", "np.full(len(x), 2.0)", "np.empty(len(x))", "np.arange(len(x))", "np.eye(len(M))",
    "np.identity(len(M))", "np.linspace(0, 1, len(x))", "np.logspace(0, 1, len(x))", "np.geomspace(1, 2, len(x))",
    "np.full_like(x, 2)", "np.meshgrid(x[:300], y[:300])", "np.ix_(v, v)", "np.indices(M.shape)", "np.tril_indices(len(M))",
    "np.triu_indices(len(M))", "np.diag_indices(len(M))", "np.bartlett(len(x))", "np.blackman(len(x))", "np.hamming(len(x))",
    "np.hanning(len(x))", "np.kaiser(len(x), 3.0)", "np.vander(v)", "np.fromfunction(lambda a, b: a + b, M.shape)",
    "np.r_[x, y]", "np.c_[x, y]", "np.mgrid[:30, :30]", "np.block([[M, N], [N, M]])", "np.mask_indices(30, np.tril)",
    # reductions with more
    "np.percentile(x, 30)", "np.percentile(x, [10, 50, 90])", "np.quantile(x, 0.3)", "np.quantile(d, 0.3)",
    "np.nanpercentile(q, 30)", "np.nanquantile(q, 0.3)", "np.average(x, weights=p)", "np.array_equal(x, x)", "np.array_equiv(x, x)",
    "np.allclose(x, x)", "np.cov(X[:, :10000])", "np.corrcoef(X[:, :10000])", "np.histogram(x)", "np.histogram(x, 100)",
    "np.histogram(x, np.arange(-3, 4))", "np.histogram2d(x, y)", "np.histogramdd(T[:, :2])", "np.histogram_bin_edges(x)",
    "np.bincount(i)", "np.bincount(i, weights=x)", "np.digitize(x, np.arange(-3, 4))", "np.searchsorted(o, x)", "np.searchsorted(o[:100], x)",
    "np.interp(x, o, y)", "np.interp(x, np.arange(5.0), np.arange(5.0))", "np.unique(i)", "np.unique(x)",
    "np.unique(i, return_counts=True)", "np.unique_values(i)", "np.unique_counts(i)", "np.unique_inverse(i)",
    "np.unique_all(i)", "np.union1d(i, j)", "np.intersect1d(i, j)", "np.setdiff1d(i, j)", "np.setxor1d(i, j)", "np.isin(i, j)",
    # products
    "np.dot(x, y)", "np.vdot(x, y)", "np.inner(x, y)", "np.vecdot(X, Y)", "np.outer(v, v)", "np.matmul(M, N)", "D @ E", "C @ C", "I @ I",
    "np.dot(M, N)", "np.matvec(M, M[0])", "np.vecmat(M[0], M)", "np.tensordot(M, N, 1)", "np.einsum('ij,jk->ik', M, N)",
    "np.einsum('ij,ij->i', X, Y)", "np.einsum('ij->j', X)", "np.einsum_path('ij,jk->ik', M, N)", "np.kron(v, v)",
    "np.cross(T[:, :3], T[:, 3:6])", "np.convolve(x, v[:50])", "np.convolve(d, e[:50])", "np.correlate(x, v[:50])",
    "np.polyval(v[:5], x)", "np.polyadd(v, v)", "np.polymul(v, v)", "np.polysub(v, v)", "np.polyder(v)", "np.polyint(v)",
    "np.polyfit(x, y, 2)", "np.poly(v[:10])", "np.roots(v[:10])", "np.polydiv(v[:9], v[:3])", "np.ldexp(x, j)",
    "np.ravel_multi_index((k, k), (len(x), len(x)))", "np.unravel_index(k, (1, len(x)))",
    # linear algebra
    "np.linalg.inv(A)", "np.linalg.inv(F)", "np.linalg.solve(A, S)", "np.linalg.cholesky(B)", "np.linalg.qr(A)", "np.linalg.svd(A)",
    "np.linalg.svdvals(A)", "np.linalg.eigh(B)", "np.linalg.eigvalsh(B)", "np.linalg.eig(A[:100, :100])",
    "np.linalg.eigvals(A[:100, :100])", "np.linalg.det(A)", "np.linalg.slogdet(A)", "np.linalg.norm(x)",
    "np.linalg.norm(A, 2)", "np.linalg.pinv(A)", "np.linalg.lstsq(T, x[:len(T)])", "np.linalg.matrix_rank(A)", "np.linalg.cond(A)",
    "np.linalg.matrix_power(F, 5)", "np.linalg.multi_dot([F, F, F])", "np.linalg.vector_norm(x)", "np.linalg.matrix_norm(A)",
    "np.linalg.cross(T[:, :3], T[:, 3:6])", "np.linalg.diagonal(M)", "np.linalg.matmul(D, E)", "np.linalg.outer(v, v)",
    "np.linalg.matrix_transpose(M)", "np.linalg.tensordot(M, N, axes=1)", "np.linalg.trace(M)", "np.linalg.vecdot(X, Y)",
    "np.linalg.tensorinv(A.reshape(len(A), len(A), 1), 1)", "np.linalg.tensorsolve(A, S)",
    # transforms
    "np.fft.fft(z)", "np.fft.fft(Z)", "np.fft.ifft(z)", "np.fft.rfft(x)", "np.fft.rfft(d)", "np.fft.irfft(z)", "np.fft.fft2(C)", "np.fft.fftn(C)",
    "np.fft.rfft2(M)", "np.fft.rfftn(M)", "np.fft.ifft2(C)", "np.fft.ifftn(C)", "np.fft.irfft2(C)", "np.fft.irfftn(C)",
    "np.fft.ihfft(x)", "np.fft.fftshift(x)", "np.fft.ifftshift(x)", "np.fft.fftfreq(len(x))", "np.fft.rfftfreq(len(x))", "np.fft.hfft(z)",
]  # fmt: skip

# What no array goes through, or what a file, a printer or Python alone does.
UNTIMED = """
array_repr array_str can_cast from_dlpack frombuffer fromfile fromiter frompyfunc fromstring get_printoptions
index_exp iscomplexobj isdtype isrealobj isscalar issubdtype load printoptions promote_types result_type s_ save savez
set_printoptions broadcast_shapes dtype finfo iinfo ufunc ogrid ComplexWarning
iterable place put put_along_axis fill_diagonal diag_indices_from tril_indices_from triu_indices_from
""".split()


def letters(case):
    """The inputs of a case."""
    return sorted(
        set(
            re.findall(
                r"(?<![\w.'>])([a-zA-Z])(?![\w'=])", re.sub(r"lambda [^:]*: [^,)]*", "", case)
            )
        )
        - {"a"}
    )


def function_of(case):
    """The case as a function of the library, and of its inputs."""
    return eval(f"lambda np, {', '.join(letters(case))}: {case}")
