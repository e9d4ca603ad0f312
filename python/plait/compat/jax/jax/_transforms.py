"""JAX's transforms over plait's, with JAX's options and their defaults.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import functools
import inspect

import numpy as np

import plait
from plait import _captures, _derivatives, _left, _plait
from plait._functions import wraps
from plait._plait import flatten, unflatten

from jax._arrays import num_places
from jax._doors import refuse_options
from jax._dtypes import float0
from jax._narrow import entered, entered_arrays, staged, transformed

_missing = object()
# Transforms whose arguments are JAX's as they are.
jacfwd = transformed(plait.jacfwd)
hessian = transformed(plait.hessian)
named_scope = plait.named_scope
checkpoint_policies = plait.checkpoint_policies


def jit(
    fun=_missing,
    /,
    *,
    in_shardings=None,
    out_shardings=None,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
    abstracted_axes=None,
):
    """plait.jit. Shardings are of one device, and say nothing."""
    refuse_options("jax.jit", compiler_options=compiler_options, abstracted_axes=abstracted_axes)
    options = {
        "static_argnums": () if static_argnums is None else static_argnums,
        "static_argnames": () if static_argnames is None else static_argnames,
        "donate_argnums": () if donate_argnums is None else donate_argnums,
        "donate_argnames": () if donate_argnames is None else donate_argnames,
    }
    if fun is _missing:
        return functools.partial(_jit, options)
    return _jit(options, fun)


def _jit(options, fun):
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"Expected a function, got a generator function: {fun}")
    function = staged(fun)
    function.static_options = options
    return plait.jit(function, **options)


def keep_captures():
    """Makes jit keep what functions read from outside as it was in tracing, and lets them store traced values outside,
    as in JAX; part of `import jax`."""

    def find(function, wanted, arguments=(), converted=None):
        return [[] for _ in wanted], []  # no places to read again, nothing to compare

    _captures.find = find
    _left.check = lambda function, objects=(): None  # what functions store while they are traced


def vmap(
    fun, in_axes=0, out_axes=0, axis_name=None, axis_size=None, spmd_axis_name=None, sum_match=False
):
    """plait.vmap; in_axes may be a list, and an argument that is not mapped may be no array: fun gets it as it is."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    options = {"axis_name": axis_name, "axis_size": axis_size}

    def holds_other(args):
        """Whether what is not mapped must stay as it is: numbers, which may be static, and what is no array."""
        return any(type(leaf) is not plait.Array for leaf in flatten(args)[0])

    def batched(*args, **kwargs):
        mapped_args, kwargs = entered_arrays((args, kwargs))
        if in_axes == 0 or not holds_other(args):
            return plait.vmap(fun, in_axes, out_axes, **options)(*mapped_args, **kwargs)
        leaves, structure = flatten(tuple(mapped_args))
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            return plait.vmap(fun, in_axes, out_axes, **options)(*args, **kwargs)  # its error
        axes = _plait.broadcast_prefix(in_axes, structure, "vmap: in_axes")
        mapped = [leaf for leaf, axis in zip(leaves, axes) if axis is not None]

        def of_mapped(values, keywords):
            values = iter(values)
            every = [leaf if axis is None else next(values) for leaf, axis in zip(leaves, axes)]
            return fun(*unflatten(structure, every), **keywords)

        of_mapped = wraps("vmap", fun, of_mapped)
        in_dims = ([axis for axis in axes if axis is not None], 0)
        return plait.vmap(of_mapped, in_dims, out_axes, **options)(mapped, kwargs)

    vars(batched).update(getattr(fun, "__dict__", {}))
    return wraps("vmap", fun, batched)


def pmap(
    fun,
    axis_name=None,
    *,
    in_axes=0,
    out_axes=0,
    static_broadcasted_argnums=(),
    devices=None,
    backend=None,
    axis_size=None,
    donate_argnums=(),
    global_arg_shapes=None,
):
    """vmap over an axis of at most as many examples as there are devices, under jit."""
    numbers = static_broadcasted_argnums
    numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)

    @functools.wraps(fun)
    def of_devices(*args, **kwargs):
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        for number in numbers:
            if number < len(axes):
                axes[number] = None
        mapped = vmap(fun, tuple(axes), out_axes, axis_name or "devices", axis_size)
        return mapped(*args, **kwargs)

    program = jit(of_devices, static_argnums=numbers)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        axes = list(in_axes) if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
        for i, (arg, axis) in enumerate(zip(args, axes)):
            mapped = isinstance(axis, int) and i not in numbers
            sizes = {np.shape(leaf)[axis] for leaf in flatten(arg)[0]} if mapped else set()
            if max(sizes, default=0) > num_places():
                _plait.fail(
                    "ValueError",
                    f"jax.pmap: compiling computation `{_name(fun)}` that requires {max(sizes)} logical devices, but "
                    f"only {num_places()} XLA devices are available",
                    "use jax.vmap, or jax.jit",
                )
        return program(*args, **kwargs)

    call.lower = getattr(program, "lower", None)
    return call


def _with_float0(find, argnums, at):
    """grad or value_and_grad with integers, whose gradients are NumPy's zeros of dtype float0; at is their place."""

    def filled(found, arg):
        leaves, structure = flatten(found, lambda node: node is None)
        wanted = zip(leaves, structure.flatten_up_to(arg))
        return unflatten(
            structure, [np.zeros(np.shape(x), float0) if g is None else g for g, x in wanted]
        )

    @functools.wraps(find, updated=())
    def call(*args, **kwargs):
        found = find(*args, **kwargs)
        grads = found if at is None else found[at]
        if isinstance(argnums, int):
            grads = filled(grads, args[argnums])
        else:
            grads = tuple(filled(g, args[i]) for g, i in zip(grads, argnums))
        return grads if at is None else (*found[:at], grads, *found[at + 1 :])

    return call


@transformed
def grad(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()):
    find = plait.grad(fun, argnums, has_aux, holomorphic, allow_int)
    return _with_float0(find, argnums, 0 if has_aux else None) if allow_int else find


@transformed
def value_and_grad(
    fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False, reduce_axes=()
):
    find = plait.value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)
    return _with_float0(find, argnums, 1) if allow_int else find


@transformed
def jacrev(fun, argnums=0, has_aux=False, holomorphic=False, allow_int=False):
    return plait.jacrev(fun, argnums, has_aux, holomorphic, allow_int)


jacobian = jacrev


def _float0_of_integers(tree):
    """Tangents or cotangents; those of integers are of dtype float0, outside of programs."""
    leaves, structure = flatten(tree)
    if _plait.is_tracing() or not any(x.dtype.kind in "iub" for x in leaves):
        return tree
    return unflatten(
        structure,
        [
            np.zeros(x.shape, float0) if x.dtype.kind in "iub" and _plait.is_concrete(x) else x
            for x in leaves
        ],
    )


def jvp(fun, primals, tangents, has_aux=False):
    out, tangent, *aux = plait.jvp(fun, entered(primals), entered(tangents), has_aux)
    return out, _float0_of_integers(tangent), *aux


def vjp(fun, *primals, has_aux=False, reduce_axes=()):
    return plait.vjp(fun, *entered(primals), has_aux=has_aux)


def linearize(fun, *primals, has_aux=False):
    value, linear, *aux = plait.linearize(fun, *entered(primals), has_aux=has_aux)

    @functools.wraps(linear)
    def narrowed_linear(*tangents):
        return linear(*entered(tangents))

    return value, narrowed_linear, *aux


def linear_transpose(fun, *primals, reduce_axes=()):
    transposed = plait.linear_transpose(fun, *entered(primals))
    return lambda cotangents: transposed(entered(cotangents))


def narrow_cotangents():
    """Makes pullbacks narrow their cotangents, and give float0 to integers outside of programs; part of `import jax`."""
    pull = _derivatives.Pullback.__call__

    def call(pullback, cotangents):
        return _float0_of_integers(pull(pullback, entered(cotangents)))

    _derivatives.Pullback.__call__ = call


def fwd_and_bwd(fun, argnums, has_aux=False, jitted=True):
    """Two functions: one gives fun's value and its pullback, the other applies the pullback to a cotangent."""

    def forward(*args, **kwargs):
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

        def of_wrt(*wrt):
            every = list(args)
            for number, value in zip(numbers, wrt):
                every[number] = value
            return fun(*every, **kwargs)

        return plait.vjp(of_wrt, *(args[number] for number in numbers), has_aux=has_aux)

    def backward(pullback, cotangent):
        found = pullback(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (jit(forward), jit(backward)) if jitted else (forward, backward)


def checkpoint(
    fun=_missing,
    *,
    prevent_cse=True,
    policy=None,
    static_argnums=(),
    static_argnames=(),
    concrete=False,
):
    """plait.checkpoint: derivatives recompute what fun computes."""
    if fun is _missing:
        return functools.partial(checkpoint, policy=policy, static_argnums=static_argnums)
    return plait.checkpoint(fun, policy=policy, static_argnums=static_argnums)


remat = checkpoint


def eval_shape(fun, *args, **kwargs):
    """The tree of shapes and dtypes of fun's result. Arguments are arrays, numbers, or what has a shape and a dtype."""
    leaves, structure = flatten((args, kwargs))
    leaves = [
        leaf
        if isinstance(leaf, (plait.Array, plait.ShapeDtypeStruct)) or not hasattr(leaf, "shape")
        else plait.ShapeDtypeStruct(leaf.shape, leaf.dtype)
        for leaf in leaves
    ]
    args, kwargs = unflatten(structure, leaves)

    def typed(*args, **kwargs):
        leaves, structure = flatten(fun(*args, **kwargs))
        return unflatten(structure, [_value_of(leaf) for leaf in leaves])

    return plait.eval_shape(functools.wraps(fun)(typed), *args, **kwargs)


def _value_of(leaf):
    """A result of a function; a type stands for a value of it."""
    if isinstance(leaf, plait.ShapeDtypeStruct):
        return plait.numpy.zeros(leaf.shape, leaf.dtype)
    return leaf


def make_jaxpr(fun, static_argnums=(), axis_env=None, return_shape=False):
    """plait.make_jaxpr, whose jaxpr has JAX's attributes."""
    from jax._jaxprs import closed

    refuse_options("jax.make_jaxpr", axis_env=axis_env or None)
    make = plait.make_jaxpr(staged(fun), static_argnums, return_shape=return_shape)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun)
    def call(*args, **kwargs):
        numbers = {number % len(args) for number in static}
        args = [arg if i in numbers else entered(arg) for i, arg in enumerate(args)]
        made = make(*args, **entered(kwargs))
        return (closed(made[0]), made[1]) if return_shape else closed(made)

    return call


def named_call(fun, *, name=None):
    """fun, whose equations carry a name."""
    name = name or getattr(fun, "__name__", "fun")

    @functools.wraps(fun)
    def named(*args, **kwargs):
        with plait.named_scope(name):
            return fun(*args, **kwargs)

    return named


def closure_convert(fun, *example_args):
    """fun with the traced arrays that it captures as further arguments, and these arrays."""
    leaves, structure = flatten(example_args)
    result = []

    def flat(values):
        found, out = flatten(fun(*unflatten(structure, list(values))))
        result[:] = [out]
        return [_plait.to_array(leaf) for leaf in found]

    jaxpr, consts = _plait.flat_make_jaxpr(
        flat, [_plait.aval_of(leaf) for leaf in leaves], "closure_convert", "fun"
    )
    moved = [const for const in consts if _plait.is_differentiable(const)]

    def converted(*args):
        count = len(args) - len(moved)
        given = iter(args[count:])
        values, found = flatten(tuple(args[:count]))
        all_consts = [next(given) if _plait.is_differentiable(const) else const for const in consts]
        return unflatten(
            result[0], _plait.eval_jaxpr(jaxpr, [_plait.to_array(v) for v in values] + all_consts)
        )

    return converted, moved


@contextlib.contextmanager
def ensure_compile_time_eval():
    """A context for what depends on known values alone: these are computed at once here anyway."""
    yield


# --- Calls to the host ---------------------------------------------------------------------------


def pure_callback(
    callback, result_shape_dtypes, *args, sharding=None, vmap_method=None, vectorized=None, **kwargs
):
    """callback(*args), a pure function of NumPy arrays, run by the host when the program runs."""
    batched = vmap_method in ("expand_dims", "broadcast_all") or bool(vectorized)
    call = functools.partial(callback, **kwargs) if kwargs else callback
    return plait.host_call(
        call, _types(result_shape_dtypes), *args, batched=batched, name=_name(callback)
    )


def io_callback(callback, result_shape_dtypes, *args, sharding=None, ordered=False, **kwargs):
    """callback(*args), run each time the program runs, in order."""
    call = functools.partial(callback, **kwargs) if kwargs else callback
    return plait.host_call(
        call, _types(result_shape_dtypes), *args, ordered=True, name=_name(callback)
    )


def _name(callback):
    return getattr(callback, "__name__", type(callback).__name__)


def _types(tree):
    from jax._dtypes import canonical

    leaves, structure = flatten(tree)
    return unflatten(
        structure, [plait.ShapeDtypeStruct(leaf.shape, canonical(leaf.dtype)) for leaf in leaves]
    )
