"""Transforms of Python functions over trees, under JAX's names: tracing, batching, compiling.

The mathematics is in C++ (transforms/*.cpp), over flat lists of arrays.

SPDX-License-Identifier: Apache-2.0
"""

import inspect

from plait import _plait
from plait._functions import Flat, check_callable, name_of, to_arrays, wraps
from plait._plait import flatten, unflatten


class ClosedJaxpr:
    """A jaxpr, and the arrays that the function captured, which are its last inputs."""

    def __init__(self, jaxpr, consts, structure):
        self.jaxpr, self.consts, self.out_tree = jaxpr, consts, structure

    @property
    def in_avals(self):
        """Types of the arguments, without what was captured."""
        avals = self.jaxpr.in_avals
        return avals[: len(avals) - len(self.consts)]

    @property
    def out_avals(self):
        return self.jaxpr.out_avals

    @property
    def eqns(self):
        return self.jaxpr.eqns

    def __call__(self, *args):
        leaves, _ = flatten(args)
        return unflatten(self.out_tree, _plait.eval_jaxpr(self.jaxpr, leaves + self.consts))

    def __repr__(self):
        return str(self.jaxpr)


def make_jaxpr(fun, static_argnums=()):
    """A function that returns the jaxpr of fun for arguments: arrays, shapes with dtypes, or specs.

    A spec is text that names sizes: "n d" is float32, "i32[n d]" says the dtype, "_" is a size of the call.
    """
    check_callable("make_jaxpr", fun)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def jaxpr_of(*args, **kwargs):
        fixed = {number % len(args): args[number] for number in static}

        def partial(*dynamic, **keywords):
            dynamic = iter(dynamic)
            return fun(
                *[fixed[i] if i in fixed else next(dynamic) for i in range(len(args))], **keywords
            )

        dynamic = tuple(arg for i, arg in enumerate(args) if i not in fixed)
        leaves, structure = flatten((dynamic, kwargs))
        flat = Flat("make_jaxpr", partial if fixed else fun, structure)
        if any(isinstance(leaf, str) for leaf in leaves):
            jaxpr, consts = _plait.trace_with_specs(flat, leaves, name_of(fun))
        else:
            avals = [_plait.aval_of(leaf, "make_jaxpr") for leaf in leaves]
            jaxpr, consts = _plait.flat_make_jaxpr(flat, avals, "make_jaxpr", name_of(fun))
        return ClosedJaxpr(jaxpr, consts, flat.outputs)

    return wraps("make_jaxpr", fun, jaxpr_of)


def eval_shape(fun, *args, **kwargs):
    """The tree of shapes and dtypes that fun(*args, **kwargs) returns, computed without numbers."""
    closed = make_jaxpr(fun)(*args, **kwargs)
    return unflatten(closed.out_tree, closed.out_avals)


def vmap(
    fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None, *, chunk=None
):
    """fun applied to every example: in_axes says which axis of each argument counts examples.

    in_axes and out_axes are integers, None, or prefixes of the trees of arguments and results. chunk bounds
    how many examples are in memory at once.
    """
    check_callable("vmap", fun)
    del axis_name, spmd_axis_name

    def batched(*args, **kwargs):
        axes = in_axes
        if isinstance(axes, list):
            axes = tuple(axes)
        args_leaves, args_structure = flatten(args)
        kwargs_leaves, _ = flatten(kwargs)
        dims = _plait.broadcast_prefix(axes, args_structure, "vmap: in_axes")
        dims += [0] * len(kwargs_leaves)
        _, structure = flatten((args, kwargs))
        flat = Flat("vmap", fun, structure)
        arrays = to_arrays(args_leaves + kwargs_leaves, structure, "vmap: the input")
        for index, dim in enumerate(dims):
            if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int)):
                _plait.fail(
                    "DtypeError", f"vmap: in_axes holds {dim!r:.60}", "give integers or None"
                )
            if dim is not None and arrays[index].ndim == 0:
                _plait.fail(
                    "ValueError",
                    f"vmap: argument {structure.path(index)[3:] or '0'} is a scalar and has no axis {dim} to map",
                    "give it the axis None in in_axes, or an array",
                )

        def out_dims():
            return _plait.broadcast_prefix(out_axes, flat.outputs, "vmap: out_axes")

        outputs = _plait.flat_vmap(flat, arrays, dims, out_dims, axis_size, chunk, name_of(fun))
        return unflatten(flat.outputs, outputs)

    return wraps("vmap", fun, batched)


def jit(
    fun=None,
    *,
    static_argnums=(),
    static_argnames=(),
    donate_argnums=(),
    donate_argnames=(),
    inline=False,
):
    """fun, traced once for each signature of its arguments, and compiled.

    Arrays that fun captures are read again at every call. Static arguments are part of the signature.
    """
    if fun is None:
        return lambda fun: jit(fun, static_argnums=static_argnums, static_argnames=static_argnames)
    check_callable("jit", fun)
    del donate_argnums, donate_argnames, inline
    numbers = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums)
    names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames)
    parameters = []
    try:
        parameters = [
            parameter.name
            for parameter in inspect.signature(fun).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        pass
    # An argument is static however it is passed.
    for name in names:
        if name in parameters and parameters.index(name) not in numbers:
            numbers.append(parameters.index(name))
    for number in list(numbers):
        if -len(parameters) <= number < len(parameters) and parameters[number] not in names:
            names.append(parameters[number])
    jitted = _plait.make_jit(fun, name_of(fun), numbers, tuple(names), parameters)
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(fun, attribute):
            setattr(jitted, attribute, getattr(fun, attribute))
    jitted.__wrapped__ = fun
    return jitted


def explain(fun, *args, **kwargs):
    """Where each equation of fun runs for these arguments, and why not elsewhere, as text."""
    jitted = fun if isinstance(fun, _plait.JitFunction) else jit(fun)
    return jitted.explain(*args, **kwargs)
