"""What each primitive of JAX 0.10 is in plait: from_jax's table.

A rule is a function of the step (its parameters, the types of its operands and results) and of the operands; it gives
the result, or a tuple or list of them.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from plait import lax
from plait._derivatives import jvp, stop_gradient, vjp
from plait._from_jax import dtype_of

_RULES: dict = {}

# Parameters that say how a compiler may work, or where arrays lie: nothing of the result.
_SAYS_NOTHING = set(
    "accuracy precision sharding out_sharding weak_type algorithm implementation use_magma unique_indices "
    "indices_are_sorted update_jaxpr update_consts enable_eigvec_derivs sort_eigenvalues recall_target "
    "reduction_input_size_override aggregate_to_topk input_dtype dimensions_are_sorted".split()
)


def rule_of(name):
    """The rule of a primitive, or None."""
    return _RULES.get(name)


def names():
    """The primitives of JAX that from_jax knows."""
    return sorted(_RULES)


def rule(name):
    def define(function):
        for each in name.split():
            _RULES[each] = function
        return function

    return define


def _check_params(step, known):
    for name, value in step.params.items():
        if name not in known and name not in _SAYS_NOTHING and value is not None:
            step.refuse(f"plait has no {name}={value!r:.60}")


def _same(name, function, params="", **renamed):
    """A function of the same operands, with some of the parameters by name (here=there)."""
    there = {**dict(zip(params.split(), params.split())), **renamed}

    def run(step, *values):
        _check_params(step, there)
        return function(*values, **{there[name]: plain(step.params[name]) for name in there})

    _RULES[name] = run


def plain(value):
    """A parameter as plait takes it: NumPy's integers as Python's, dtypes by name."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    return value


# --- Element by element --------------------------------------------------------------------------

_ELEMENTWISE = """abs acos acosh add asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex cos
cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igamma_grad_a igammac imag is_finite le lgamma
log log1p logistic lt max min ne neg nextafter polygamma population_count real rem rsqrt shift_left
shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh zeta
and=bitwise_and or=bitwise_or xor=bitwise_xor not=bitwise_not add_any=add regularized_incomplete_beta=betainc
random_gamma_grad"""


def _spread(step, *values):
    """Operands of the shape of the result: JAX's axes of size 1 spread, and scalars stay."""
    shape = step.shape()
    return [
        lax.broadcast_in_dim(value, shape, range(value.ndim))
        if value.ndim and value.shape != shape
        else value
        for value in values
    ]


def _elementwise(name, function):
    def run(step, *values):
        _check_params(step, ())
        return function(*(_spread(step, *values) if len(values) > 1 else values))

    _RULES[name] = run


for _name in _ELEMENTWISE.split():
    _here, _, _there = _name.partition("=")
    _elementwise(_here, getattr(lax, _there or _here))

_same("integer_pow", lax.integer_pow, "y")
_same("reduce_precision", lax.reduce_precision, "exponent_bits mantissa_bits")
_same("convert_element_type", lax.convert_element_type, "new_dtype")
_same("bitcast_convert_type", lax.bitcast_convert_type, "new_dtype")


@rule("copy copy_p sharding_constraint name pvary reshard layout_constraint")
def _identity(step, x):
    return x


@rule("device_put")
def _identities(step, *values):
    return values


@rule("stop_gradient")
def _stop_gradient(step, x):
    return stop_gradient(x)


@rule("optimization_barrier")
def _optimization_barrier(step, *values):
    return lax.optimization_barrier(values)


@rule("mul")
def _mul(step, x, y):
    result = lax.mul(*_spread(step, x, y))
    dtype = step.params.get("out_dtype")
    return result if dtype is None else lax.convert_element_type(result, str(dtype))


@rule("pow")
def _pow(step, x, y):
    x, y = _spread(step, x, y)
    return lax.pow(x, lax.convert_element_type(y, dtype_of(step.in_avals[0])))


@rule("conj")
def _conj(step, x):
    return lax.conj(x) if x.dtype.kind == "c" else lax.complex(x, lax.full_like(x, 0))


@rule("round")
def _round(step, x):
    return lax.round(x, int(step.params["rounding_method"]))


@rule("select_n")
def _select_n(step, which, *cases):
    which, *cases = _spread(step, which, *cases)
    if which.dtype != bool:
        which = lax.convert_element_type(which, "int32")
    return lax.select_n(which, *cases)


def _ordered(x):
    """Integers in the total order of floats: -NaN, -inf, ..., -0, 0, ..., inf, NaN."""
    if x.dtype.kind not in "fV":
        return x
    bits = lax.bitcast_convert_type(x, f"int{8 * x.dtype.itemsize}")
    flipped = lax.bitwise_xor(bits, lax.full_like(bits, np.iinfo(str(bits.dtype)).max))
    return lax.select(lax.lt(bits, lax.full_like(bits, 0)), flipped, bits)


for _name, _compare in {"eq_to": lax.eq, "le_to": lax.le, "lt_to": lax.lt}.items():
    _elementwise(_name, lambda x, y, compare=_compare: compare(_ordered(x), _ordered(y)))


# --- Shapes and places ---------------------------------------------------------------------------

_same("transpose", lax.transpose, "permutation")
_same("squeeze", lax.squeeze, "dimensions")
_same("rev", lax.rev, "dimensions")
_same("tile", lax.tile, "reps")
_same("pad", lax.pad, "padding_config")
_same("split", lax.split, "sizes axis")
_same("slice", lax.slice, "start_indices limit_indices strides")
_same("reshape", lax.reshape, "new_sizes dimensions")
_same("top_k", lax.top_k, "k axis")
for _name in "cumsum cumprod cummax cummin cumlogsumexp".split():
    _same(_name, getattr(lax, _name), "axis reverse")


@rule("argmax argmin")
def _argmax(step, x):
    (axis,) = plain(step.params["axes"])
    return getattr(lax, step.name)(x, axis, str(step.params["index_dtype"]))


@rule("broadcast_in_dim")
def _broadcast_in_dim(step, x, *sizes):
    return lax.broadcast_in_dim(x, step.shape(), plain(step.params["broadcast_dimensions"]))


@rule("iota")
def _iota(step, *sizes):
    return lax.broadcasted_iota(str(step.params["dtype"]), step.shape(), step.params["dimension"])


@rule("empty empty2")
def _empty(step):
    return lax.full(step.shape(), 0, dtype_of(step.out_avals[0]))


@rule("dim_as_value")
def _dim_as_value(step):
    return lax.convert_element_type(step.params["dim"], dtype_of(step.out_avals[0]))


@rule("concatenate")
def _concatenate(step, *operands):
    return lax.concatenate(operands, step.params["dimension"])


@rule("stack")
def _stack(step, *operands):
    return lax.stack(operands, axis=step.params["axis"])


@rule("unstack")
def _unstack(step, x):
    return lax.unstack(x, axis=step.params["axis"])


@rule("sort")
def _sort(step, *operands):
    p = step.params
    return lax.sort(
        operands, dimension=p["dimension"], is_stable=p["is_stable"], num_keys=p["num_keys"]
    )


@rule("approx_top_k")
def _approx_top_k(step, x):
    choose = lax.approx_max_k if step.params["is_max_k"] else lax.approx_min_k
    return choose(x, step.params["k"], step.params["reduction_dimension"])


@rule("dynamic_slice")
def _dynamic_slice(step, x, *starts):
    sizes = plain(step.params["slice_sizes"])
    return lax.dynamic_slice(x, starts[: x.ndim], sizes, allow_negative_indices=False)


@rule("dynamic_update_slice")
def _dynamic_update_slice(step, x, update, *starts):
    return lax.dynamic_update_slice(x, update, starts, allow_negative_indices=False)


_MODES = {"CLIP": "clip", "FILL_OR_DROP": "fill", "PROMISE_IN_BOUNDS": "promise_in_bounds"}


def _mode(step):
    mode = step.params["mode"]
    name = getattr(mode, "name", str(mode))
    if name not in _MODES:
        step.refuse(f"plait has no mode {name}")
    return _MODES[name]


@rule("gather")
def _gather(step, x, indices):
    numbers = lax.GatherDimensionNumbers(*map(plain, step.params["dimension_numbers"]))
    sizes, fill = plain(step.params["slice_sizes"]), step.params["fill_value"]
    return lax.gather(
        x,
        indices,
        numbers,
        sizes,
        mode=_mode(step),
        fill_value=None if fill is None else np.asarray(fill).item(),
    )


@rule("scatter scatter-add scatter-sub scatter-mul scatter-min scatter-max scatter_sub")
def _scatter(step, x, indices, updates):
    p = step.params
    if step.name == "scatter" and p["update_jaxpr"] is not None:
        program = step.once("update", lambda: step.program("update_jaxpr"))
        return lax.scatter_apply(
            x,
            indices,
            lambda element: program(element, element)[0],
            lax.ScatterDimensionNumbers(*map(plain, p["dimension_numbers"])),
            update_shape=updates.shape,
            unique_indices=p["unique_indices"],
            mode=_mode(step),
        )
    numbers = lax.ScatterDimensionNumbers(*map(plain, p["dimension_numbers"]))
    scatter = getattr(lax, step.name.replace("-", "_"))
    return scatter(
        x,
        indices,
        updates,
        numbers,
        indices_are_sorted=p["indices_are_sorted"],
        unique_indices=p["unique_indices"],
        mode=_mode(step),
    )


# --- Sums of products, windows, transforms -------------------------------------------------------


@rule("dot_general")
def _dot_general(step, x, y):
    dtype = step.params["preferred_element_type"]
    return lax.dot_general(
        x,
        y,
        plain(step.params["dimension_numbers"]),
        preferred_element_type=None if dtype is None else str(dtype),
    )


@rule("ragged_dot_general")
def _ragged_dot_general(step, x, y, group_sizes):
    numbers = step.params["ragged_dot_dimension_numbers"]
    dtype = step.params["preferred_element_type"]
    return lax.ragged_dot_general(
        x,
        y,
        group_sizes,
        lax.RaggedDotDimensionNumbers(
            plain(numbers.dot_dimension_numbers),
            plain(numbers.lhs_ragged_dimensions),
            plain(numbers.rhs_group_dimensions),
        ),
        preferred_element_type=None if dtype is None else str(dtype),
    )


@rule("conv_general_dilated")
def _conv_general_dilated(step, x, kernel):
    p = step.params
    dtype = p["preferred_element_type"]
    return lax.conv_general_dilated(
        x,
        kernel,
        plain(p["window_strides"]),
        plain(p["padding"]),
        plain(p["lhs_dilation"]),
        plain(p["rhs_dilation"]),
        lax.ConvDimensionNumbers(*map(plain, p["dimension_numbers"])),
        p["feature_group_count"],
        p["batch_group_count"],
        preferred_element_type=None if dtype is None else str(dtype),
    )


for _name in "sum prod max min and or xor".split():
    _same(f"reduce_{_name}", getattr(lax, f"reduce_{_name}"), "axes")


@rule("psum pmax pmin")
def _collective(step, *values):
    """Over axes of the operand: JAX's own vmap has removed the names."""
    axes = step.params["axes"]
    if not all(isinstance(axis, int) for axis in axes) or step.params["axis_index_groups"]:
        step.refuse(f"the axes {axes} belong to no vmap of the function")
    reduce = getattr(lax, f"reduce_{step.name[1:]}")
    return [reduce(value, plain(axes)) for value in values]


_FOLDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or"}


def _folding(step):
    program = step.program("jaxpr")
    if len(step.in_avals) == 2:
        return lambda a, b: program(a, b)[0]
    return lambda a, b: tuple(program(*a, *b))


@rule("reduce")
def _reduce(step, *values):
    return _folded(step, lax.reduce, values, {"dimensions": plain(step.params["dimensions"])})


def _folded(step, fold, values, options):
    """The operands, which are the first half of the values, folded from the second half."""
    count = len(values) // 2
    if count == 1:
        return fold(*values, _folding(step), **options)
    return list(fold(values[:count], values[count:], _folding(step), **options))


def _windows(step):
    names = "window_dimensions window_strides padding base_dilation window_dilation".split()
    return {name: plain(step.params[name]) for name in names if name in step.params}


for _name in "sum max min prod".split():
    _same(
        f"reduce_window_{_name}",
        getattr(lax, f"reduce_window_{_name}"),
        "window_dimensions window_strides padding base_dilation window_dilation",
    )


@rule("reduce_window")
def _reduce_window(step, *values):
    return _folded(step, lax.reduce_window, values, _windows(step))


def _window_choice(step):
    """The largest or smallest of each window, whose derivatives are the primitives that choose and move others."""
    is_max = step.params["select_prim"].name == "ge"
    choose = lax.reduce_window_max if is_max else lax.reduce_window_min
    return lambda x: choose(x, **_windows(step))


@rule("select_and_scatter_add")
def _select_and_scatter_add(step, source, operand):
    return vjp(_window_choice(step), operand)[1](source)[0]


@rule("select_and_gather_add")
def _select_and_gather_add(step, tangents, operand):
    return jvp(_window_choice(step), (operand,), (tangents,))[1]


@rule("fft")
def _fft(step, x):
    kind = step.params["fft_type"]
    return lax.fft(x, getattr(kind, "name", str(kind)).lower(), plain(step.params["fft_lengths"]))


# --- Linear algebra ------------------------------------------------------------------------------

_same(
    "triangular_solve",
    lax.linalg.triangular_solve,
    "left_side lower transpose_a conjugate_a unit_diagonal",
)
_same("lu", lax.linalg.lu)
_same("lu_pivots_to_permutation", lax.linalg.lu_pivots_to_permutation, "permutation_size")
_same("cholesky_update", lax.linalg.cholesky_update)
_same("symmetric_product", lax.linalg.symmetric_product, "alpha beta")
_same("householder_product", lax.linalg.householder_product)
_same("hessenberg", lax.linalg.hessenberg)
_same("tridiagonal", lax.linalg.tridiagonal, "lower")
_same("qr", lax.linalg.qr, "pivoting full_matrices")
_same("eig", lax.linalg.eig, "compute_left_eigenvectors compute_right_eigenvectors")


@rule("cholesky")
def _cholesky(step, x):
    return lax.linalg.cholesky(x, symmetrize_input=False)


@rule("eigh")
def _eigh(step, x):
    p = step.params
    return lax.linalg.eigh(
        x, lower=p["lower"], symmetrize_input=False, subset_by_index=p["subset_by_index"]
    )


@rule("svd")
def _svd(step, x):
    p = step.params
    found = lax.linalg.svd(
        x, p["full_matrices"], p["compute_uv"], subset_by_index=p["subset_by_index"]
    )
    return (found[1], found[0], found[2]) if p["compute_uv"] else found


@rule("schur")
def _schur(step, x):
    if step.params["sort_eig_vals"]:
        step.refuse("plait's schur does not sort")
    return lax.linalg.schur(x, compute_schur_vectors=step.params["compute_schur_vectors"])


@rule("tridiagonal_solve")
def _tridiagonal_solve(step, dl, d, du, b):
    if step.params.get("perturb_singular"):
        step.refuse("plait's tridiagonal_solve does not perturb")
    return lax.linalg.tridiagonal_solve(dl, d, du, b)
