"""The names that programs written for JAX use most exist, with JAX's (NumPy's) argument names and order.

The expected signatures are written by hand from the documentation of JAX and NumPy. Parameters that
plait does not take are listed with the reason.

SPDX-License-Identifier: Apache-2.0
"""

import importlib
import inspect
import pickle

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp

# Where JAX's modules live here.
MODULES = {"jax": "plait", "jax.tree_util": "plait.tree_util"}

# JAX's parameters (of 0.10) that plait lacks, and in which functions. A reason ends the sentence "a program
# would ask for ...".
LACKING = {
    "static_argnames": (
        "static arguments by name, which static_argnums has by number",
        "checkpoint",
    ),
    "concrete": (
        "evaluation while tracing, which JAX has deprecated",
        "checkpoint",
    ),
    "reduce_axes": (
        "collectives",
        "grad linear_transpose value_and_grad vjp",
    ),
    "in_shardings": (
        "placement",
        "jit",
    ),
    "out_shardings": (
        "placement",
        "jit",
    ),
    "keep_unused": (
        "arguments to be kept in the executable",
        "jit",
    ),
    "device": (
        "a device by object, where one compiles",
        "numpy.array",
    ),
    "backend": (
        "a compiler by name",
        "jit",
    ),
    "compiler_options": (
        "XLA's options",
        "jit",
    ),
    "sum_match": (
        "sums of outputs that are not mapped",
        "vmap",
    ),
    "partitioned": (
        "placement",
        "debug.print",
    ),
    "skip_format_check": (
        "formats without a check",
        "debug.print",
    ),
    "out_sharding": (
        "placement",
        "lax.conv_general_dilated nn.initializers.ones nn.initializers.zeros numpy.arange "
        "numpy.array numpy.asarray numpy.broadcast_to numpy.dot numpy.einsum numpy.empty "
        "numpy.full numpy.full_like numpy.matmul numpy.ones numpy.ones_like numpy.repeat "
        "numpy.reshape numpy.tensordot numpy.zeros numpy.zeros_like random.bernoulli "
        "random.bits random.gumbel random.normal random.rademacher random.randint "
        "random.uniform",
    ),
    "accuracy": (
        "less accurate functions",
        "lax.rsqrt",
    ),
    "subset_by_index": (
        "some of the singular values",
        "numpy.linalg.svd",
    ),
    "dtype": (
        "a dtype of indices or of keys",
        "numpy.argsort random.key",
    ),
    "out": (
        "ufuncs' results in given memory",
        "numpy.logaddexp numpy.logical_and numpy.logical_or numpy.maximum numpy.minimum "
        "numpy.negative numpy.stack",
    ),
    "where": (
        "ufuncs at some places",
        "numpy.logaddexp numpy.logical_and numpy.logical_or numpy.maximum numpy.minimum "
        "numpy.negative",
    ),
    "weights": (
        "weighted quantiles",
        "numpy.quantile",
    ),
    "wrap_negative_indices": (
        "a promise about indices",
        "numpy.take_along_axis",
    ),
    "method": (
        "an algorithm by name",
        "numpy.linalg.slogdet",
    ),
    "impl": (
        "another generator",
        "random.PRNGKey random.key",
    ),
    "mode": (
        "other algorithms of sampling",
        "random.bernoulli random.choice random.gumbel",
    ),
}


# "module.name": "parameters" as in JAX; * starts those by keyword. Names without parentheses are not functions.
NAMES = """
jax: Array ShapeDtypeStruct
jax.block_until_ready(x)
jax.checkpoint(fun, *, prevent_cse, policy, static_argnums)
jax.custom_jvp(fun, nondiff_argnums)
jax.custom_vjp(fun, nondiff_argnums)
jax.eval_shape(fun, *args, **kwargs)
jax.grad(fun, argnums, has_aux, holomorphic, allow_int)
jax.hessian(fun, argnums, has_aux, holomorphic)
jax.jacfwd(fun, argnums, has_aux, holomorphic)
jax.jacobian(fun, argnums, has_aux, holomorphic, allow_int)
jax.jacrev(fun, argnums, has_aux, holomorphic, allow_int)
jax.jit(fun, *, static_argnums, static_argnames, donate_argnums, donate_argnames, inline, device)
jax.jvp(fun, primals, tangents, has_aux)
jax.linear_transpose(fun, *primals)
jax.linearize(fun, *primals, has_aux)
jax.value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)
jax.vjp(fun, *primals, has_aux)
jax.vmap(fun, in_axes, out_axes, axis_name, axis_size, spmd_axis_name)
jax.debug.print(fmt, *args, ordered, **kwargs)
jax.dtypes.canonicalize_dtype(dtype, allow_extended_dtype)
jax.dtypes.issubdtype(a, b)
jax.dtypes: prng_key
jax.dtypes.result_type(*args, return_weak_type_flag)
jax.flatten_util.ravel_pytree(pytree)
jax.lax.broadcast_shapes(*shapes)
jax.lax.clamp(min, x, max)
jax.lax.conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, batch_group_count, precision, preferred_element_type)
jax.lax.conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
jax.lax.ConvDimensionNumbers(lhs_spec, rhs_spec, out_spec)
jax.lax.GatherDimensionNumbers(offset_dims, collapsed_slice_dims, start_index_map, operand_batching_dims, start_indices_batching_dims)
jax.lax.ScatterDimensionNumbers(update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims, operand_batching_dims, scatter_indices_batching_dims)
jax.lax: GatherScatterMode Precision
jax.lax.dynamic_index_in_dim(operand, index, axis, keepdims)
jax.lax.dynamic_slice(operand, start_indices, slice_sizes)
jax.lax.dynamic_update_slice(operand, update, start_indices)
jax.lax.max(x, y)
jax.lax.reduce(operands, init_values, computation, dimensions)
jax.lax.reduce_window(operand, init_value, computation, window_dimensions, window_strides, padding, base_dilation, window_dilation)
jax.lax.rsqrt(x)
jax.lax.select(pred, on_true, on_false)
jax.lax.stop_gradient(x)
jax.lax.top_k(operand, k, *, axis)
jax.lax.custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)
jax.lax.custom_root(f, initial_guess, solve, tangent_solve, has_aux)
jax.lax.linalg.cholesky(x, *, symmetrize_input)
jax.lax.linalg.cholesky_update(r_matrix, w_vector)
jax.lax.linalg.eig(x, *, compute_left_eigenvectors, compute_right_eigenvectors, enable_eigvec_derivs, implementation, use_magma)
jax.lax.linalg.eigh(x, *, lower, symmetrize_input, sort_eigenvalues, subset_by_index, implementation)
jax.lax.linalg.hessenberg(a)
jax.lax.linalg.householder_product(a, taus)
jax.lax.linalg.lu(x)
jax.lax.linalg.lu_pivots_to_permutation(pivots, permutation_size)
jax.lax.linalg.ormqr(a, taus, c, *, left, transpose)
jax.lax.linalg.qdwh(x, *, is_hermitian, max_iterations, eps, dynamic_shape)
jax.lax.linalg.qr(x, *, pivoting, full_matrices, use_magma)
jax.lax.linalg.schur(x, *, compute_schur_vectors, sort_eig_vals, select_callable)
jax.lax.linalg.symmetric_product(a_matrix, c_matrix, *, alpha, beta, symmetrize_output)
jax.lax.linalg.tridiagonal(a, *, lower)
jax.lax.linalg.tridiagonal_solve(dl, d, du, b, *, perturb_singular)
jax.lax.linalg.svd(x, *, full_matrices, compute_uv, subset_by_index, algorithm)
jax.lax.linalg.triangular_solve(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal)
jax.scipy.linalg.block_diag(*arrs)
jax.scipy.linalg.cho_factor(a, lower, overwrite_a, check_finite)
jax.scipy.linalg.cho_solve(c_and_lower, b, overwrite_b, check_finite)
jax.scipy.linalg.cholesky(a, lower, overwrite_a, check_finite)
jax.scipy.linalg.circulant(c)
jax.scipy.linalg.companion(a)
jax.scipy.linalg.convolution_matrix(a, n, mode)
jax.scipy.linalg.dft(n, scale, *, dtype)
jax.scipy.linalg.eigh(a, b, lower, eigvals_only, overwrite_a, overwrite_b, turbo, eigvals, type, check_finite)
jax.scipy.linalg.eigh_tridiagonal(d, e, *, eigvals_only, select, select_range, tol, key)
jax.scipy.linalg.expm_frechet(A, E, *, method, compute_expm)
jax.scipy.linalg.fiedler(a)
jax.scipy.linalg.fiedler_companion(a)
jax.scipy.linalg.funm(A, func, disp)
jax.scipy.linalg.hadamard(n, dtype)
jax.scipy.linalg.hankel(c, r)
jax.scipy.linalg.helmert(n, full)
jax.scipy.linalg.hessenberg(a, *, calc_q, overwrite_a, check_finite)
jax.scipy.linalg.hilbert(n)
jax.scipy.linalg.invhilbert(n)
jax.scipy.linalg.invpascal(n, kind)
jax.scipy.linalg.leslie(f, s)
jax.scipy.linalg.pascal(n, kind)
jax.scipy.linalg.polar(a, side, *, method, eps, max_iterations)
jax.scipy.linalg.qr(a, overwrite_a, lwork, mode, pivoting, check_finite)
jax.scipy.linalg.qr_multiply(a, c, mode, pivoting, conjugate, overwrite_a, overwrite_c)
jax.scipy.linalg.rsf2csf(T, Z, check_finite)
jax.scipy.linalg.schur(a, output)
jax.scipy.linalg.solve_sylvester(A, B, C, *, method, tol)
jax.scipy.linalg.sqrtm(A, blocksize)
jax.scipy.linalg.svd(a, full_matrices, compute_uv, overwrite_a, check_finite, lapack_driver)
jax.scipy.linalg.toeplitz(c, r)
jax.scipy.linalg.det(a, overwrite_a, check_finite)
jax.scipy.linalg.expm(A, *, upper_triangular, max_squarings)
jax.scipy.linalg.inv(a, overwrite_a, check_finite)
jax.scipy.linalg.lu(a, permute_l, overwrite_a, check_finite)
jax.scipy.linalg.lu_factor(a, overwrite_a, check_finite)
jax.scipy.linalg.lu_solve(lu_and_piv, b, trans, overwrite_b, check_finite)
jax.scipy.linalg.solve(a, b, lower, overwrite_a, overwrite_b, debug, check_finite, assume_a)
jax.scipy.linalg.solve_triangular(a, b, trans, lower, unit_diagonal, overwrite_b, debug, check_finite)
jax.nn.elu(x, alpha)
jax.nn.gelu(x, approximate)
jax.nn.log_sigmoid(x)
jax.nn.log_softmax(x, axis, where)
jax.nn.logsumexp(a, axis, b, keepdims, return_sign, where)
jax.nn.one_hot(x, num_classes, *, dtype, axis)
jax.nn.relu(x)
jax.nn.sigmoid(x)
jax.nn.silu(x)
jax.nn.softmax(x, axis, where)
jax.nn.softplus(x)
jax.nn.sparse_plus(x)
jax.nn.initializers.constant(value, dtype)
jax.nn.initializers.glorot_normal(in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.glorot_uniform(in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.he_normal(in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.he_uniform(in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.lecun_normal(in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.lecun_uniform(in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.normal(stddev, dtype)
jax.nn.initializers.ones(key, shape, dtype)
jax.nn.initializers.orthogonal(scale, column_axis, dtype)
jax.nn.initializers.truncated_normal(stddev, dtype, lower, upper)
jax.nn.initializers.uniform(scale, dtype)
jax.nn.initializers.variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)
jax.nn.initializers.zeros(key, shape, dtype)
jax.numpy.abs(x)
jax.numpy.add.outer(a, b)
jax.numpy.all(a, axis, out, keepdims, *, where)
jax.numpy.allclose(a, b, rtol, atol, equal_nan)
jax.numpy.any(a, axis, out, keepdims, *, where)
jax.numpy.arange(start, stop, step, dtype)
jax.numpy.arctan2(x1, x2)
jax.numpy.arctanh(x)
jax.numpy.argmax(a, axis, out, keepdims)
jax.numpy.argmin(a, axis, out, keepdims)
jax.numpy.argsort(a, axis, *, kind, order, stable, descending)
jax.numpy.array(object, dtype, copy, order, ndmin)
jax.numpy.asarray(a, dtype, order, *, copy)
jax.numpy.astype(x, dtype, *, copy)
jax.numpy.average(a, axis, weights, returned, keepdims)
jax.numpy: bfloat16 bool_ complex128 complex64 complexfloating dtype
jax.numpy.broadcast_to(array, shape)
jax.numpy.cbrt(x)
jax.numpy.clip(arr, min, max)
jax.numpy.concatenate(arrays, axis, dtype)
jax.numpy.conj(x)
jax.numpy.cos(x)
jax.numpy.count_nonzero(a, axis, keepdims)
jax.numpy.cumprod(a, axis, dtype, out)
jax.numpy.cumsum(a, axis, dtype, out)
jax.numpy.diag(v, k)
jax.numpy.dot(a, b, *, precision, preferred_element_type)
jax.numpy.einsum(subscripts, *operands, out, optimize, precision, preferred_element_type)
jax.numpy.empty(shape, dtype)
jax.numpy.empty_like(prototype, dtype, shape)
jax.numpy.equal(x1, x2)
jax.numpy.exp(x)
jax.numpy.expand_dims(a, axis)
jax.numpy.eye(N, M, k, dtype)
jax.numpy.finfo(dtype)
jax.numpy.flip(m, axis)
jax.numpy: float16 float32 float64 floating iinfo inf int32 int64 integer less mgrid nan ndarray newaxis pi uint32
jax.numpy.floor(x)
jax.numpy.full(shape, fill_value, dtype)
jax.numpy.full_like(a, fill_value, dtype, shape)
jax.numpy.histogram(a, bins, range, weights, density)
jax.numpy.hstack(tup, dtype)
jax.numpy.imag(val)
jax.numpy.isclose(a, b, rtol, atol, equal_nan)
jax.numpy.iscomplexobj(x)
jax.numpy.isfinite(x)
jax.numpy.isinf(x)
jax.numpy.isnan(x)
jax.numpy.isrealobj(x)
jax.numpy.issubdtype(arg1, arg2)
jax.numpy.less(x1, x2)
jax.numpy.linspace(start, stop, num, endpoint, retstep, dtype, axis)
jax.numpy.log(x)
jax.numpy.log1p(x)
jax.numpy.log2(x)
jax.numpy.logaddexp(x1, x2)
jax.numpy.logical_and(x1, x2)
jax.numpy.logical_not(x)
jax.numpy.logical_or(x1, x2)
jax.numpy.logspace(start, stop, num, endpoint, base, dtype, axis)
jax.numpy.matmul(a, b, *, precision, preferred_element_type)
jax.numpy.max(a, axis, out, keepdims, initial, where)
jax.numpy.maximum(x1, x2)
jax.numpy.mean(a, axis, dtype, out, keepdims, *, where)
jax.numpy.meshgrid(*xi, sparse, indexing)
jax.numpy.min(a, axis, out, keepdims, initial, where)
jax.numpy.minimum(x1, x2)
jax.numpy.mod(x1, x2)
jax.numpy.moveaxis(a, source, destination)
jax.numpy.nan_to_num(x, copy, nan, posinf, neginf)
jax.numpy.negative(x)
jax.numpy.ones(shape, dtype)
jax.numpy.ones_like(a, dtype, shape)
jax.numpy.outer(a, b, out)
jax.numpy.pad(array, pad_width, mode)
jax.numpy.power(x1, x2)
jax.numpy.prod(a, axis, dtype, out, keepdims, initial, where)
jax.numpy.promote_types(a, b)
jax.numpy.quantile(a, q, axis, out, overwrite_input, method, keepdims)
jax.numpy.real(val)
jax.numpy.repeat(a, repeats, axis, *, total_repeat_length)
jax.numpy.reshape(a, shape, order, *, copy)
jax.numpy.roll(a, shift, axis)
jax.numpy.round(a, decimals, out)
jax.numpy.shape(a)
jax.numpy.sign(x)
jax.numpy.sin(x)
jax.numpy.size(a, axis)
jax.numpy.sort(a, axis, *, kind, order, stable, descending)
jax.numpy.split(ary, indices_or_sections, axis)
jax.numpy.sqrt(x)
jax.numpy.square(x)
jax.numpy.squeeze(a, axis)
jax.numpy.stack(arrays, axis, dtype)
jax.numpy.std(a, axis, dtype, out, ddof, keepdims, *, where, correction)
jax.numpy.sum(a, axis, dtype, out, keepdims, initial, where)
jax.numpy.take(a, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value)
jax.numpy.take_along_axis(arr, indices, axis, mode, fill_value)
jax.numpy.tanh(x)
jax.numpy.tensordot(a, b, axes, *, precision, preferred_element_type)
jax.numpy.tile(A, reps)
jax.numpy.trace(a, offset, axis1, axis2, dtype, out)
jax.numpy.transpose(a, axes)
jax.numpy.tril(m, k)
jax.numpy.triu(m, k)
jax.numpy.var(a, axis, dtype, out, ddof, keepdims, *, where, correction)
jax.numpy.vdot(a, b, *, precision, preferred_element_type)
jax.numpy.vectorize(pyfunc, *, excluded, signature)
jax.numpy.where(condition, x, y, *, size, fill_value)
jax.numpy.zeros(shape, dtype)
jax.numpy.zeros_like(a, dtype, shape)
jax.numpy.linalg.cholesky(a, *, upper, symmetrize_input)
jax.numpy.linalg.cond(x, p)
jax.numpy.linalg.det(a)
jax.numpy.linalg.eig(a)
jax.numpy.linalg.eigvals(a)
jax.numpy.linalg.eigh(a, UPLO, symmetrize_input)
jax.numpy.linalg.eigvalsh(a, UPLO, *, symmetrize_input)
jax.numpy.linalg.inv(a)
jax.numpy.linalg.lstsq(a, b, rcond, *, numpy_resid)
jax.numpy.linalg.matrix_norm(x, *, keepdims, ord)
jax.numpy.linalg.matrix_power(a, n)
jax.numpy.linalg.matrix_rank(M, rtol, *, hermitian, tol)
jax.numpy.linalg.multi_dot(arrays)
jax.numpy.linalg.norm(x, ord, axis, keepdims)
jax.numpy.linalg.pinv(a, rtol, hermitian, *, rcond)
jax.numpy.linalg.qr(a, mode)
jax.numpy.linalg.slogdet(a)
jax.numpy.linalg.solve(a, b)
jax.numpy.linalg.svd(a, full_matrices, compute_uv, hermitian)
jax.numpy.linalg.svdvals(x)
jax.numpy.linalg.tensorinv(a, ind)
jax.numpy.linalg.tensorsolve(a, b, axes)
jax.numpy.linalg.vector_norm(x, *, axis, keepdims, ord)
jax.random.PRNGKey(seed)
jax.random.bernoulli(key, p, shape)
jax.random.bits(key, shape, dtype)
jax.random.choice(key, a, shape, replace, p, axis)
jax.random.fold_in(key, data)
jax.random.gumbel(key, shape, dtype)
jax.random.key(seed)
jax.random.key_data(keys)
jax.random.normal(key, shape, dtype)
jax.random.rademacher(key, shape, dtype)
jax.random.randint(key, shape, minval, maxval, dtype)
jax.random.split(key, num)
jax.random.uniform(key, shape, dtype, minval, maxval)
jax.scipy.special.logsumexp(a, axis, b, keepdims, return_sign, where)
jax.scipy.stats.norm.logpdf(x, loc, scale)
jax.tree.all(tree, *, is_leaf)
jax.tree.flatten(tree, is_leaf)
jax.tree.leaves(tree, is_leaf)
jax.tree.map(f, tree, *rest, is_leaf)
jax.tree.reduce(function, tree, initializer, is_leaf)
jax.tree.reduce_associative(operation, tree, *, identity, is_leaf)
jax.tree.structure(tree, is_leaf)
jax.tree.transpose(outer_treedef, inner_treedef, pytree_to_transpose)
jax.tree.unflatten(treedef, leaves)
jax.tree_util: DictKey FlattenedIndexKey GetAttrKey SequenceKey
jax.tree_util.register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
jax.tree_util.register_pytree_node_class(cls)
jax.tree_util.tree_flatten(tree, is_leaf)
jax.tree_util.tree_leaves(tree, is_leaf)
jax.tree_util.tree_leaves_with_path(tree, is_leaf, is_leaf_takes_path)
jax.tree_util.tree_map(f, tree, *rest, is_leaf)
jax.tree_util.tree_map_with_path(f, tree, *rest, is_leaf, is_leaf_takes_path)
jax.tree_util.tree_structure(tree, is_leaf)
""".strip().splitlines()

# Parameters whose name differs: positional-only in JAX or NumPy, so nobody writes them.
POSITIONAL_ONLY = {"jax.numpy.clip": {"arr": "a"}, "jax.numpy.empty_like": {"prototype": "a"}}


def find(path):
    value = plait
    for part in path.removeprefix("jax").lstrip(".").split("."):
        value = getattr(value, part) if part else value
    return value


FUNCTIONS = [line for line in NAMES if "(" in line]
OTHERS = [
    f"{module}.{name}"
    for line in NAMES
    if "(" not in line
    for module, names in [line.split(": ")]
    for name in names.split()
]


@pytest.mark.parametrize("line", FUNCTIONS, ids=lambda line: line.partition("(")[0])
def test_functions_take_the_arguments_that_programs_give(line):
    path, _, text = line.rstrip(")").partition("(")
    parameters = inspect.signature(find(path)).parameters
    positional, keyword_only = [], set()
    for parameter in parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            keyword_only.add(parameter.name)
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            positional.append(parameter.name)
    wanted, star = [], False
    for name in text.split(", "):
        name = POSITIONAL_ONLY.get(path, {}).get(name, name)
        if name.startswith("*"):
            star = True
            kind = (
                inspect.Parameter.VAR_KEYWORD
                if name.startswith("**")
                else inspect.Parameter.VAR_POSITIONAL
            )
            if name != "*":
                assert any(
                    p.name == name.lstrip("*") and p.kind is kind for p in parameters.values()
                )
        elif star:
            assert name in keyword_only or name in positional, f"{path} lacks {name}"
        else:
            wanted.append(name)
    assert positional[: len(wanted)] == wanted


@pytest.mark.parametrize("name", LACKING)
def test_what_is_said_to_be_lacking_is(name):
    """An entry that is taken by now belongs into NAMES."""
    reason, functions = LACKING[name]
    assert reason and functions
    taken = [
        path
        for path in functions.split()
        if name in inspect.signature(find(f"jax.{path}")).parameters
    ]
    assert taken == []
    listed = {
        path
        for path in functions.split()
        if f"jax.{path}" not in {line.partition("(")[0] for line in FUNCTIONS}
    }
    assert listed == set()


@pytest.mark.parametrize("path", OTHERS)
def test_types_and_constants_exist(path):
    assert find(path) is not None or path.endswith(".newaxis")


@pytest.mark.parametrize(
    "name",
    "shape dtype at astype sum flatten reshape ndim T mean conj real transpose size max clip dot all prod "
    "block_until_ready ravel imag copy item squeeze argmax argsort min any var take mT tolist".split(),
)
def test_arrays_have_the_methods_that_programs_call(name):
    assert hasattr(plait.Array, name) and hasattr(pnp.zeros((2, 2)), name)


def test_modules_import_under_their_names():
    for name in (
        "debug dtypes flatten_util image lax lax.linalg nn nn.initializers numpy numpy.linalg ops optim random scipy scipy.linalg scipy.special "
        "scipy.stats scipy.stats.norm tree tree_util"
    ).split():
        module = importlib.import_module(f"plait.{name}")
        assert module.__doc__ and module.__name__ == f"plait.{name}"


STANDARD = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool broadcast_arrays broadcast_to can_cast
ceil clip complex128 complex64 concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide e
empty empty_like equal exp expand_dims expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full
full_like greater greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype isfinite isin isinf isnan less
less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor matmul
matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative newaxis nextafter nonzero
not_equal ones ones_like permute_dims pi positive pow prod real reciprocal remainder repeat reshape result_type roll
round searchsorted sign signbit sin sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh
tensordot tile tril triu trunc uint16 uint32 uint64 uint8 unique_all unique_counts unique_inverse unique_values
unstack var vecdot where zeros zeros_like __array_api_version__ __array_namespace_info__
""".split()


def test_the_names_of_the_array_api_standard():
    namespace = pnp.zeros(3).__array_namespace__()
    assert namespace is pnp
    assert [name for name in STANDARD if not hasattr(namespace, name)] == []
    info = namespace.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert info.default_device() == pnp.zeros(3).device
    own = [one for one in info.devices() if one.platform not in ("standin", "delayed")]  # of tests
    assert own == ["cpu:0"]
    assert info.capabilities()["boolean indexing"]


@pytest.mark.parametrize(
    "module, name, meant",
    [
        ("numpy", "concatinate", "concatenate"),
        ("numpy", "Sum", "sum"),
        ("numpy.linalg", "slogdett", "slogdet"),
        ("lax", "whileloop", "while_loop"),
        ("nn", "sofmax", "softmax"),
        ("random", "nomral", "normal"),
        ("nn.initializers", "orthogonl", "orthogonal"),
        ("scipy.special", "logsumexpp", "logsumexp"),
    ],
)
def test_a_misspelled_name_gets_a_suggestion(module, name, meant):
    owner = importlib.import_module("plait." + module)
    with pytest.raises(
        AttributeError, match=f"'plait.{module}' has no attribute '{name}'; did you mean '{meant}'?"
    ):
        getattr(owner, name)
    with pytest.raises(AttributeError, match="has no attribute 'zzzz'$"):
        owner.zzzz  # noqa: B018


def test_misspelled_names_of_the_package_and_of_arguments_get_suggestions():
    with pytest.raises(
        AttributeError, match="'plait' has no attribute 'gard'; did you mean 'grad'?"
    ):
        plait.gard  # noqa: B018
    with pytest.raises(AttributeError, match="plait.numpy.concatenate is there"):
        plait.concatenate  # noqa: B018
    with pytest.raises(plait.DtypeError, match="no argument 'axes'; did you mean 'axis'?"):
        plait.numpy.sum([1.0], axes=0)
    with pytest.raises(plait.DtypeError, match="no argument 'zzzz'\n"):
        plait.numpy.sum([1.0], zzzz=0)


def test_dtypes_of_the_namespace_are_numpys_and_convert_what_they_are_called_on():
    for name in ("bool_", "int8", "uint32", "int64", "float16", "float32", "complex64", "bfloat16"):
        ours = getattr(pnp, name)
        theirs = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name.strip("_"))
        assert np.dtype(ours) == theirs and ours == theirs.type and hash(ours) == hash(theirs.type)
        assert pnp.zeros(2, ours).dtype == ours == theirs and np.zeros(2, ours).dtype == theirs
        converted = ours(pnp.ones(2))
        assert type(converted) is plait.Array and converted.dtype == theirs
        assert getattr(plait, name) is ours and pickle.loads(pickle.dumps(ours)) is ours
    assert pnp.issubdtype(pnp.float32, pnp.floating) and not pnp.issubdtype(pnp.int32, pnp.floating)
    assert isinstance(np.float32(1), pnp.float32) and not isinstance(np.float64(1), pnp.float32)
    assert pnp.finfo(pnp.float32).eps == np.finfo(np.float32).eps
    x = plait.jit(lambda x, i: pnp.float32(x) * pnp.int32(i))(2.5, 2)
    assert (x.tolist(), x.dtype, x.weak_type) == (5.0, np.float32, False)
    assert not pnp.float64(2.0).weak_type and pnp.int32(2.75).tolist() == 2
