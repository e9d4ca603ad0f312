"""Transforms of Python functions over trees, under JAX's names: tracing, batching, compiling.

The mathematics is in C++ (transforms/*.cpp), over flat lists of arrays.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect

from plait import _plait
from plait._functions import (
    Flat,
    applying,
    call_place,
    check_argnums,
    check_callable,
    composition_of,
    integers,
    name_of,
    texts,
    to_arrays,
    wraps,
)
from plait._plait import flatten, unflatten
from plait._size_options import constraint_texts, size_options


class ClosedJaxpr:
    """A jaxpr, and the arrays that the function captured, which are its last inputs."""

    def __init__(self, jaxpr, consts, structure):
        self.jaxpr, self.consts, self.out_tree = jaxpr, consts, structure

    @property
    def in_avals(self):
        """Types of the arguments, without captured arrays."""
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

    def _repr_html_(self):
        return self.jaxpr._repr_html_()

    def _repr_svg_(self):
        return self.jaxpr._repr_svg_()


def make_jaxpr(fun, static_argnums=(), *, return_shape=False, constraints=()):
    """A function that returns the jaxpr of fun for arguments: arrays, shapes with dtypes, or specs.

    A spec is text that names sizes: "n d" is float32, "i32[n d]" gives the dtype, "_" is a size of the call. With
    return_shape=True it returns the tree of the result's types too.

    constraints are texts on these sizes. "b > 0", "t <= 512", "n <= m" are orders, which decide comparisons that fun
    makes of sizes; they are part of the jaxpr, and calls are checked against them. "t % 8 == 0" replaces t by 8*t_8, so
    that reshape(t // 8, 8) fits. ValueError for a text that is not a comparison of these sizes.
    """
    check_callable("make_jaxpr", fun)
    constraints = constraint_texts("make_jaxpr", constraints)
    integers("make_jaxpr", "static_argnums", static_argnums)

    def jaxpr_of(*args, **kwargs):
        static = check_argnums("make_jaxpr", fun, static_argnums, args, what="static_argnums")
        fixed = {number: args[number] for number in static}

        def partial(*dynamic, **keywords):
            dynamic = iter(dynamic)
            return fun(
                *[fixed[i] if i in fixed else next(dynamic) for i in range(len(args))], **keywords
            )

        dynamic = tuple(arg for i, arg in enumerate(args) if i not in fixed)
        leaves, structure = flatten((dynamic, kwargs))
        flat = Flat("make_jaxpr", partial if fixed else fun, structure)
        if constraints or any(isinstance(leaf, str) for leaf in leaves):
            jaxpr, consts = _plait.trace_with_specs(flat, leaves, name_of(fun), constraints)
        else:
            avals = [_plait.aval_of(leaf, "make_jaxpr") for leaf in leaves]
            jaxpr, consts = _plait.flat_make_jaxpr(flat, avals, "make_jaxpr", name_of(fun))
        closed = ClosedJaxpr(jaxpr, consts, flat.outputs)
        return (closed, unflatten(flat.outputs, closed.out_avals)) if return_shape else closed

    return wraps("make_jaxpr", fun, jaxpr_of)


def eval_shape(fun, *args, **kwargs):
    """The tree of shapes and dtypes that fun(*args, **kwargs) returns, inferred without computation."""
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]


def vmap(
    fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None, *, chunk=None
):
    """fun applied to every example: in_axes gives the batch axis of each argument.

    in_axes and out_axes are integers, None (not mapped), or prefixes of the trees of arguments and results, such as
    ({"w": None, "b": 0}, 1). Keyword arguments are mapped over axis 0. axis_size is needed when nothing is mapped.
    chunk limits the number of examples in memory at once. axis_name is the name, text, by which lax.psum and its kind
    speak of the examples.

    ShapeError when arguments disagree on the number of examples, IndexError for an axis out of range.
    """
    check_callable("vmap", fun)
    del spmd_axis_name
    if axis_name is not None and not (isinstance(axis_name, str) and axis_name):
        _plait.fail(
            "ValueError",
            f"vmap: axis_name is {axis_name!r:.60}",
            'give the axis a name: axis_name="batch"',
        )

    def batched(*args, **kwargs):
        with applying("vmap", fun):
            leaves, structure = flatten((args, kwargs))
            place = call_place(structure)
            arrays = to_arrays(leaves, structure, "vmap", place)
            dims = _in_dims(fun, in_axes, args)
            dims += [0] * (len(leaves) - len(dims))
            for index, (dim, array) in enumerate(zip(dims, arrays)):
                _check_in_axis(dim, array, lambda: place(index))
        flat = Flat("vmap", fun, structure)

        def out_dims():
            dims = _plait.broadcast_prefix(out_axes, flat.outputs, "vmap: out_axes")
            for dim in dims:
                _check_axis("out_axes", dim)
            return dims

        outputs = _plait.flat_vmap(
            flat,
            arrays,
            dims,
            out_dims,
            axis_size,
            chunk,
            axis_name or "",
            composition_of(fun),
            place,
        )
        return unflatten(flat.outputs, outputs)

    return wraps("vmap", fun, batched)


def _in_dims(fun, in_axes, args):
    """The mapped axis of each leaf of the positional arguments."""
    if not isinstance(in_axes, (tuple, list)):
        in_axes = (in_axes,) * len(args)
    if len(in_axes) != len(args):
        _plait.fail(
            "TreeError",
            f"vmap: in_axes has {len(in_axes)} entries, and `{name_of(fun)}` was called with {len(args)} "
            f"positional argument{'s' if len(args) != 1 else ''}",
            "give one entry for each; keyword arguments are mapped over axis 0",
        )
    dims = []
    for number, (axes, argument) in enumerate(zip(in_axes, args)):
        structure = flatten(argument)[1]
        dims += _plait.broadcast_prefix(axes, structure, f"vmap: in_axes of argument {number}")
    return dims


def _check_axis(what, axis):
    if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
        _plait.fail("DtypeError", f"vmap: {what} holds {axis!r:.60}", "give integers or None")


def _check_in_axis(axis, array, place):
    _check_axis("in_axes", axis)
    if axis is None or -array.ndim <= axis < array.ndim:
        return
    if array.ndim == 0:
        _plait.fail(
            "ValueError",
            f"vmap: {place()} is a scalar and has no axis {axis} to map",
            "give it the axis None in in_axes, or pass an array",
        )
    _plait.fail(
        "IndexError",
        f"vmap: in_axes says axis {axis} for {place()}, which has shape {array.shape}",
        f"use an axis from {-array.ndim} to {array.ndim - 1}",
    )


def jit(
    fun=None,
    *,
    static_argnums=(),
    static_argnames=(),
    donate_argnums=(),
    donate_argnames=(),
    inline=False,
    sizes=None,
    constraints=(),
    buckets=None,
    bound=None,
    executables=64,
    wait=False,
    device=None,
):
    """fun, traced once for each signature of its arguments, and compiled.

    What fun reads from outside is tracked. Arrays that it captures are inputs, which are read again at every call.
    Everything else that its code and the functions it calls read by name, attribute, key, index or iteration is
    compared at every call, and a change makes a new trace, which f.cache.last_miss explains: numbers, strings, enums,
    slices, dtypes, the lengths and keys of containers, classes of objects, functions by their code. NumPy arrays are
    read in place; those with which NumPy itself computes (W * 2, W.sum(), a mask) are compared by their bytes, and are
    an error above 1 MB. An array that fun reads through float(), bool() or np.asarray() is compared by its bytes too.
    Results of calls that depend on more than these are not tracked: iterators and generators, files, clocks, random
    numbers, libraries; arrays from there are listed in f.cache.frozen.

    Static arguments are part of the signature. Donated arguments give their memory to results and cannot be used after
    the call. With sizes, a spec for each argument ("n d", "i32[n]", "_", None for all from the call, or trees of them),
    one trace serves every value of the named sizes: jit(f, sizes=("b 784", None)). constraints restrict these sizes, as
    for make_jaxpr, and are checked at each call.

    At the sizes of a call the trace runs as an executable of its own; at most `executables` are kept, and the least
    recently used goes first. buckets=True pads arrays to the next power of two and masks the padding, so that few
    executables serve all sizes; a list [16, 64] gives the buckets, and a dict of lists or True gives them by size.
    bound={"b": 512} pads to one executable. f.explain says which of these applies, and what padding costs. A loaded
    function needs no sizes: jit(program.predict, buckets=True) takes those with which it was saved.

    The first calls run at once, on libraries and prebuilt loops. Once the program has run for as long as compilation
    takes, generated loops compile on a separate thread. They give the same bits, and take over between calls, and
    between steps of a loop. A program whose loops are known to run longer than compilation is compiled first. With
    wait, every first call waits; f.compile_for(*args) compiles now without running.

    It runs on the device of its arguments. With device ("cuda:0") it runs there: arguments that are NumPy arrays,
    numbers, or arrays of numbers alone go there at each call, and BackendError for an array that lies elsewhere.

    Ctrl-C, and every other signal with a handler, is handled between kernels and between steps of loops, and an
    exception of the handler ends the call: results and donated arguments are lost.

    ShapeError when an array does not fit its spec, sizes of one name disagree, a constraint does not hold, or a size is
    beyond its bound or the last bucket. TracerError when fun reads more objects than can be compared, or NumPy computes
    with a large array.
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            inline=inline,
            sizes=sizes,
            constraints=constraints,
            buckets=buckets,
            bound=bound,
            executables=executables,
            wait=wait,
            device=device,
        )
    check_callable("jit", fun)
    del inline
    positional, known = _parameters(fun)
    static = _numbers_and_names("static", static_argnums, static_argnames, positional, known)
    donated = _numbers_and_names("donate", donate_argnums, donate_argnames, positional, known)
    both = [name for name in static[1] if name in donated[1]]
    if both or set(static[0]) & set(donated[0]):
        _plait.fail(
            "ValueError",
            f"jit: {both[0] if both else 'an argument'} is static and donated",
            "donate arrays only: static arguments are values of the signature",
        )
    options = size_options(constraints, buckets, bound, executables)
    if sizes is None and (options["constraints"] or options["buckets"] or options["bound"]):
        sizes = getattr(fun, "sizes", None)
        if sizes is None:
            _plait.fail(
                "ValueError",
                f"jit: constraints, buckets or bound are given for `{name_of(fun)}`, and no sizes",
                'name sizes: jit(f, sizes=("b 784", None), buckets=True)',
            )
    if sizes is not None:
        sizes = (sizes,) if isinstance(sizes, str) else tuple(sizes)
    jitted = _plait.make_jit(
        fun, name_of(fun), *static, *donated, bool(wait), device, sizes, options, positional
    )
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(jitted, attribute, getattr(fun, attribute))
        except Exception:  # an object that lacks the attribute, or fails to give it
            pass
    jitted.__wrapped__ = fun
    return jitted


def _parameters(fun):
    """Names of the parameters that can be given by position, and of all; None where they are not known."""
    try:
        parameters = inspect.signature(fun).parameters.values()
    except Exception:  # a function without a signature
        return [], None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [parameter.name for parameter in parameters if parameter.kind in kinds]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return positional, None
    return positional, [parameter.name for parameter in parameters]


def _numbers_and_names(what, numbers, names, positional, known):
    """Positions and names that select the same arguments, however they are passed."""
    numbers = list(integers("jit", f"{what}_argnums", () if numbers is None else numbers))
    names = list(texts("jit", f"{what}_argnames", () if names is None else names))
    wrong = [
        f"{what}_argnames holds {name!r:.60}"
        for name in names
        if known is not None and name not in known
    ]
    count = len(positional)
    if known is not None:
        wrong += [f"{what}_argnums holds {n}" for n in numbers if not -count <= n < count]
    if wrong:
        _plait.fail(
            "ValueError",
            f"jit: {wrong[0]}, and the function's parameters are {', '.join(known) or 'none'}",
            "name parameters of the function",
        )
    for name in names:
        if name in positional and positional.index(name) not in numbers:
            numbers.append(positional.index(name))
    for number in numbers:
        if -count <= number < count and positional[number] not in names:
            names.append(positional[number])
    return numbers, tuple(names)


def explain(fun, *args, **kwargs):
    """Where each equation of fun runs for these arguments, and why not elsewhere, as text."""
    jitted = fun if isinstance(fun, _plait.JitFunction) else jit(fun)
    return jitted.explain(*args, **kwargs)
