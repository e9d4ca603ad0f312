"""Derivatives of Python functions over trees, under JAX's names.

SPDX-License-Identifier: Apache-2.0
"""

import typing

from plait import _plait
from plait._functions import (
    Flat,
    Selected,
    applying,
    argument_place,
    check_argnums,
    check_callable,
    composition_of,
    differentiable,
    is_single,
    name_of,
    output_place,
    spread,
    to_arrays,
    wraps,
)
from plait._plait import flatten, unflatten


def _selected(transform, fun, argnums, args, kwargs, has_aux, allow_int):
    """fun as a function of the leaves of the arguments in argnums, those leaves, and which are differentiable."""
    with applying(transform, fun):
        numbers = check_argnums(transform, fun, argnums, args)
        flat = Selected(transform, fun, numbers, args, kwargs, has_aux)
        arrays = flat.arrays()
        return flat, arrays, differentiable(arrays, allow_int)


def value_and_grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """A function that returns fun's value and its gradient with respect to the arguments in argnums, as in grad.

    With has_aux=True fun returns (output, auxiliary data), and the value is that pair. With allow_int=True integers may
    be among the arguments; their gradient is None.

    DtypeError as in grad, ShapeError when the output is not a scalar.
    """

    def result(value, gradient):
        return value, gradient

    return _gradient("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, result)


def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    """A function that returns the gradient of fun, a real scalar, with respect to the arguments in argnums.

    The gradient with respect to a complex x + iy is df/dx - i df/dy, as in JAX: its conjugate is the direction of
    steepest ascent. With holomorphic=True arguments and output are complex, and the gradient is the complex derivative.
    With has_aux=True fun returns (output, auxiliary data), and the result is (gradient, auxiliary data). With
    allow_int=True integers may be among the arguments; their gradient is None.

    DtypeError when an argument is an integer, or the output an integer or complex; with holomorphic=True, when one of
    them is not complex. ShapeError when the output is not a scalar.
    """

    def result(value, gradient):
        return (gradient, value[1]) if has_aux else gradient

    return _gradient("grad", fun, argnums, has_aux, holomorphic, allow_int, result)


def _gradient(transform, fun, argnums, has_aux, holomorphic, allow_int, result):
    check_callable(transform, fun)

    def gradient_of(*args, **kwargs):
        flat, arrays, wrt = _selected(transform, fun, argnums, args, kwargs, has_aux, allow_int)

        def scalar(leaves):
            arrays = flat(leaves)
            if flat.num_outputs != 1:
                _plait.fail(
                    "TreeError",
                    f"{transform}: `{name_of(fun)}` returns {flat.outputs}, and a gradient is of one scalar",
                    "return a single array of rank 0; return the rest as auxiliary data with has_aux=True",
                )
            return arrays

        outputs, gradients = _plait.flat_value_and_grad(
            scalar, arrays, wrt, transform, composition_of(fun), bool(holomorphic), flat.place
        )
        value = unflatten(flat.outputs, outputs[:1])
        if has_aux:
            value = (value, flat.unflatten_aux(outputs[1:]))
        trees = unflatten(flat.structure, spread(wrt, gradients))
        return result(value, trees[0] if is_single(argnums) else trees)

    return wraps(transform, fun, gradient_of)


def _check_like(transform, fun, what, values, others, structure, other_structure, place):
    with applying(transform, fun):
        return _fitting(transform, what, values, others, structure, other_structure, place)


def _fitting(transform, what, values, others, structure, other_structure, place):
    """TreeError or ShapeError unless tangents (or cotangents) fit their values."""
    if structure != other_structure:
        _plait.fail(
            "TreeError",
            f"{transform}: the {what}s have the structure {other_structure}, and the values have {structure}",
            f"give one {what} for each value",
        )
    result = []
    for index, (value, other) in enumerate(zip(values, others)):
        aval = _plait.aval_of(value)
        if aval.dtype.kind in "iub":
            result.append(None)
            continue
        if not _plait.is_array_like(other):
            _plait.fail(
                "TreeError",
                f"{transform}: the {what} of {place(index)} is {other!r:.60} of type {type(other).__name__}, "
                f"which is no array",
                f"give a {what} of the value's shape and dtype",
            )
        result.append(
            _plait.fitting(value, other, what, f"{transform}: the {what} of {place(index)}")
        )
    return result


def _instantiate(values, avals):
    return [
        _plait.zeros_like(aval) if value is None else value for value, aval in zip(values, avals)
    ]


def jvp(fun, primals, tangents, has_aux=False):
    """fun(*primals), and its derivative along the tangents."""
    check_callable("jvp", fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        _plait.fail(
            "TreeError",
            f"jvp: primals and tangents are {type(primals).__name__} and {type(tangents).__name__}",
            "give a tuple of arguments and a tuple of tangents, as in jvp(f, (x,), (v,))",
        )
    leaves, structure = flatten(tuple(primals))
    tangent_leaves, tangent_structure = flatten(tuple(tangents))
    with applying("jvp", fun):
        arrays = to_arrays(leaves, structure, "jvp", argument_place(structure))
    directions = _check_like(
        "jvp",
        fun,
        "tangent",
        arrays,
        tangent_leaves,
        structure,
        tangent_structure,
        argument_place(structure),
    )
    _, both = flatten((tuple(primals), {}))
    flat = Flat("jvp", fun, both, has_aux)
    outputs, derivatives = _plait.flat_jvp(flat, arrays, directions, composition_of(fun))
    n = flat.num_outputs
    value = unflatten(flat.outputs, outputs[:n])
    derivative = unflatten(flat.outputs, _instantiate(derivatives[:n], outputs))
    return (value, derivative, flat.unflatten_aux(outputs[n:])) if has_aux else (value, derivative)


def vjp(fun, *primals, has_aux=False):
    """fun(*primals), and the function from cotangents of its outputs to cotangents of the primals.

    The function is a tree whose leaves are arrays (residuals), so that jit can return it and take it.
    """
    check_callable("vjp", fun)
    leaves, structure = flatten(primals)
    with applying("vjp", fun):
        arrays = to_arrays(leaves, structure, "vjp", argument_place(structure))
    _, both = flatten((primals, {}))
    flat = Flat("vjp", fun, both, has_aux)
    outputs, jaxpr, _, residuals, linear_inputs, linear_outputs = _plait.flat_linearize(
        flat, arrays, "vjp", composition_of(fun)
    )
    n = flat.num_outputs
    pullback = Pullback(
        residuals,
        _PullbackData(
            name_of(fun),
            jaxpr,
            tuple(linear_inputs),
            tuple(linear_outputs),
            tuple(_plait.aval_of(array) for array in arrays),
            tuple(_plait.aval_of(output) for output in outputs[:n]),
            structure,
            flat.outputs,
        ),
    )
    value = unflatten(flat.outputs, outputs[:n])
    return (value, pullback, flat.unflatten_aux(outputs[n:])) if has_aux else (value, pullback)


class _PullbackData(typing.NamedTuple):
    """The data of a pullback besides its residuals."""

    name: str
    jaxpr: _plait.Jaxpr
    linear_inputs: tuple
    linear_outputs: tuple
    in_avals: tuple
    out_avals: tuple
    in_structure: _plait.TreeDef
    out_structure: _plait.TreeDef


class Pullback:
    """The result of vjp: the function from cotangents of outputs to cotangents of primals.

    It is a tree whose leaves are its residuals, so it can be a result and an argument of jit.
    """

    def __init__(self, residuals, data):
        self._residuals, self._data = residuals, data

    def __call__(self, cotangents):
        data = self._data
        leaves, structure = flatten(cotangents)
        with _plait.Applying("vjp", data.name):
            fitted = _fitting(
                "vjp",
                "cotangent",
                data.out_avals,
                leaves,
                data.out_structure,
                structure,
                output_place(data.out_structure),
            )
        fitted += [None] * (max(data.linear_outputs, default=0) + 1)  # for auxiliary data
        pulled = _plait.flat_transpose(
            data.jaxpr,
            [None] * len(data.linear_inputs) + self._residuals,
            [fitted[output] for output in data.linear_outputs],
            "vjp",
            data.name,
        )
        found = dict(zip(data.linear_inputs, pulled))
        pulled = [found.get(i) for i in range(len(data.in_avals))]
        return unflatten(data.in_structure, _instantiate(pulled, data.in_avals))


_plait.register_pytree_node(
    Pullback,
    lambda pullback: (pullback._residuals, pullback._data),
    lambda data, residuals: Pullback(list(residuals), data),
)


def linearize(fun, *primals, has_aux=False):
    """fun(*primals), and the linear function from tangents of the primals to tangents of the outputs.

    With has_aux=True fun returns (output, auxiliary data), and the auxiliary data comes third.
    """
    check_callable("linearize", fun)
    leaves, structure = flatten(primals)
    with applying("linearize", fun):
        arrays = to_arrays(leaves, structure, "linearize", argument_place(structure))
    _, both = flatten((primals, {}))
    flat = Flat("linearize", fun, both, has_aux)
    outputs, jaxpr, push, *_ = _plait.flat_linearize(flat, arrays, "linearize", composition_of(fun))
    n = flat.num_outputs
    avals = [_plait.aval_of(output) for output in outputs[:n]]

    def linear(*tangents):
        tangent_leaves, tangent_structure = flatten(tangents)
        fitted = _check_like(
            "linearize",
            fun,
            "tangent",
            arrays,
            tangent_leaves,
            structure,
            tangent_structure,
            argument_place(structure),
        )
        return unflatten(flat.outputs, _instantiate(push(fitted)[:n], avals))

    linear.jaxpr = jaxpr
    value = unflatten(flat.outputs, outputs[:n])
    return (value, linear, flat.unflatten_aux(outputs[n:])) if has_aux else (value, linear)


def linear_transpose(fun, *primals):
    """The transpose of a linear function, whose arguments have the types of these."""
    check_callable("linear_transpose", fun)
    leaves, structure = flatten(primals)
    avals = [_plait.aval_of(leaf, "linear_transpose") for leaf in leaves]
    _, both = flatten((primals, {}))
    flat = Flat("linear_transpose", fun, both)
    jaxpr, consts = _plait.flat_make_jaxpr(flat, avals, "linear_transpose", name_of(fun))
    if jaxpr.out_avals and all(aval.dtype.kind in "iub" for aval in jaxpr.out_avals):
        _plait.fail(
            "DtypeError",
            f"linear_transpose: {output_place(flat.outputs)(0)} of `{name_of(fun)}` has dtype {jaxpr.out_avals[0].dtype}, "
            "of which there are no cotangents",
            "convert the arguments to floats",
        )

    def transposed(cotangents):
        cotangent_leaves, cotangent_structure = flatten(cotangents)
        fitted = _check_like(
            "linear_transpose",
            fun,
            "cotangent",
            jaxpr.out_avals,
            cotangent_leaves,
            flat.outputs,
            cotangent_structure,
            output_place(flat.outputs),
        )
        pulled = _plait.flat_transpose(
            jaxpr, [None] * len(avals) + consts, fitted, "linear_transpose", name_of(fun)
        )
        return unflatten(structure, _instantiate(pulled[: len(avals)], avals))

    return transposed


def _jacobian(transform, fun, argnums, has_aux, holomorphic, allow_int, chunk):
    check_callable(transform, fun)

    def jacobian_of(*args, **kwargs):
        flat, arrays, wrt = _selected(transform, fun, argnums, args, kwargs, has_aux, allow_int)

        outputs, blocks = _plait.flat_jacobian(
            flat,
            arrays,
            wrt,
            transform,
            name_of(fun),
            chunk,
            bool(holomorphic),
            flat.place,
            lambda: flat.num_outputs,
            lambda index: output_place(flat.outputs)(index),
        )
        rows, width = [], sum(wrt)
        for row in range(flat.num_outputs):
            block = spread(wrt, blocks[row * width : (row + 1) * width])
            trees = unflatten(flat.structure, block)
            rows.append(trees[0] if is_single(argnums) else trees)
        result = unflatten(flat.outputs, rows)
        return (result, flat.unflatten_aux(outputs[flat.num_outputs :])) if has_aux else result

    return wraps(transform, fun, jacobian_of)


def jacfwd(fun, argnums=0, has_aux=False, holomorphic=False, *, chunk=None):
    """The Jacobian of fun with respect to the arguments in argnums, by forward mode: best for few inputs.

    Each block has the output's axes, then the input's. fun runs once. Arguments are real, outputs real or complex; with
    holomorphic=True all are complex, and the Jacobian is of complex derivatives. With has_aux=True fun returns (output,
    auxiliary data), and the result is (Jacobian, auxiliary data). chunk limits the number of directions in memory at
    once.
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, holomorphic, False, chunk)


def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, *, chunk=None):
    """The Jacobian of fun with respect to the arguments in argnums, by reverse mode: best for few outputs.

    Like jacfwd, but without holomorphic=True arguments may be complex and outputs are real: see grad. With
    allow_int=True integers may be among the arguments; their block is None.
    """
    return _jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int, chunk)


def hessian(fun, argnums=0, has_aux=False, holomorphic=False, *, chunk=None):
    """The second derivatives of fun with respect to the arguments in argnums: jacfwd of jacrev.

    Arguments and outputs are real, or with holomorphic=True complex. chunk limits the number of directions of each in
    memory at once.
    """
    first = jacrev(fun, argnums, has_aux, holomorphic, chunk=chunk)
    return jacfwd(first, argnums, has_aux, holomorphic, chunk=chunk)


def hvp(fun, primals, tangents):
    """The product of the Hessian of fun, a scalar, with tangents: the derivative of grad along them."""
    numbers = tuple(range(len(primals)))
    return jvp(grad(fun, argnums=numbers), tuple(primals), tuple(tangents))[1]


def stop_gradient(x):
    """x, a tree, with derivatives of zero."""
    leaves, structure = flatten(x)
    return unflatten(
        structure,
        [_plait.stop_gradient(leaf) if _plait.is_array_like(leaf) else leaf for leaf in leaves],
    )
