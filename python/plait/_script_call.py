"""Calls in scripted code: functions of its own package are scripted too, and untraceable ones become islands.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import sys
import types

from plait import _plait
from plait._functions import name_of, text_of
from plait._plait import flatten, is_known, unflatten
from plait._script_items import REPLACED

# Packages whose functions have no effect: they need not run where their result is not used.
PURE = ("math", "cmath", "numpy", "scipy")


def call(function):
    """The function to call where scripted code calls function."""
    # Lists, strings, arrays and classes behave as usual.
    if isinstance(function, type) or isinstance(
        getattr(function, "__self__", None), (_plait.Array, list, dict, set, tuple, str, bytes)
    ):
        return REPLACED.get(id(function), function)
    module = getattr(function, "__module__", None)
    if str(module).partition(".")[0] == "plait" or type(function).__module__ == "plait":
        return function
    if isinstance(function, types.BuiltinFunctionType) and module == "builtins":
        return REPLACED.get(id(function), function)
    caller = sys._getframe(1).f_globals
    if isinstance(function, functools.partial):
        inner = _scripted(function.func, caller)
        return functools.partial(inner, *function.args, **function.keywords)
    return _scripted(function, caller)


def _scripted(function, caller):
    """function rewritten, if it is Python code of the caller's package and not marked as unscripted."""
    from plait._script_compile import rewritten

    if isinstance(function, types.MethodType):
        inner = _scripted(function.__func__, caller)
        if isinstance(inner, types.FunctionType):
            return types.MethodType(inner, function.__self__)
        return _island(function)
    if isinstance(function, types.FunctionType):
        if "__plait_unscripted__" in function.__dict__:
            return function
        return rewritten(function) if _is_near(function.__globals__, caller) else _island(function)
    method = getattr(type(function), "__call__", None)
    if isinstance(method, types.FunctionType) and _is_near(method.__globals__, caller):
        return types.MethodType(_scripted(method, caller), function)
    return _island(function)


def _is_near(one, other):
    """Whether two modules, given by their globals, are the same or belong to one package."""
    if one is other:
        return True
    names = [str(module.get("__name__", "")).partition(".")[0] for module in (one, other)]
    return names[0] == names[1] and names[0] not in ("", "plait")


# --- Islands --------------------------------------------------------------------------------------


def _island(function):
    """function, turned into a host_call where it needs the values of traced arguments."""
    if not _plait.is_tracing():
        return function

    @functools.wraps(function, updated=())
    def island(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except _plait.TracerError:
            leaves = flatten((args, kwargs))[0]
            if all(map(is_known, leaves)) and not any(map(_plait.carries_tangent, leaves)):
                raise
        return _host_call(function, args, kwargs)

    return island


def _host_call(function, args, kwargs):
    from plait._host import host_call

    # Numbers of Python say what the results are, as n in quantiles(x, n=4): they are not operands.
    leaves, structure = flatten((args, kwargs))
    fixed = {i: leaf for i, leaf in enumerate(leaves) if type(leaf) in (bool, int, float, complex)}
    operands = [leaf for i, leaf in enumerate(leaves) if i not in fixed]

    def apply(*operands):
        rest = iter(operands)
        all_ = [fixed[i] if i in fixed else next(rest) for i in range(len(leaves))]
        args, kwargs = unflatten(structure, all_)
        return function(*args, **kwargs)

    name = name_of(function)
    pure = str(getattr(function, "__module__", "")).partition(".")[0] in PURE
    types_ = _result_types(name, apply, operands)
    return host_call(apply, types_, *operands, ordered=not pure, name=name)


def _result_types(name, apply, operands):
    """The types of a function's results, from a call with sample arrays of the types of its arguments."""
    try:
        result = apply(*[_sample(leaf) for leaf in operands])
    except Exception as error:
        _plait.fail(
            "TracerError",
            f"script: `{name}` cannot be traced, and what it returns is not known: on made-up arrays of the types of "
            f"its arguments it raised {type(error).__name__}: {text_of(str(error))}",
            f"say what it returns: plait.host_call({name}, plait.ShapeDtypeStruct(shape, dtype), ...)",
        )
    results, structure = flatten(result)
    for leaf in results:
        if not _plait.is_array_like(leaf):
            _plait.fail(
                "TreeError",
                f"script: `{name}` cannot be traced, and it returns {text_of(leaf)} of type {type(leaf).__name__}, "
                "which is no array",
                "call it outside jit, or let it return arrays",
            )
    return unflatten(structure, [_plait.aval_of(leaf) for leaf in results])


def _sample(leaf):
    """A sample NumPy array of the type of an array: different numbers around 1; matrices that have every
    decomposition."""
    import numpy

    if not _plait.is_array_like(leaf):
        return leaf
    aval = _plait.aval_of(leaf)
    if aval.dtype.kind in "biu":
        return numpy.ones(aval.shape, aval.dtype)
    values = 0.5 + numpy.modf(0.5 + 0.6180339887 * numpy.arange(aval.size))[0].reshape(aval.shape)
    if len(aval.shape) > 1 and aval.shape[-1] == aval.shape[-2]:
        values = (
            values + numpy.swapaxes(values, -1, -2) + 4 * aval.shape[-1] * numpy.eye(aval.shape[-1])
        )
    return values.astype(aval.dtype)
