"""NumPy's functions on plait's arrays: what __array_ufunc__ and __array_function__ do.

np.sin(x), np.concatenate([x, y]), np.add.reduce(x) go to plait's function of that name, with the arguments
translated, so that they trace and differentiate. Where plait has none, NumPy computes with the values of arrays
that are known, as it does when it writes to memory of its own (out=); for traced ones it is an error.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import importlib
import inspect
import sys

import numpy as _np

from plait import _plait

Array = _plait.Array
# What NumPy's functions take and arrays of plait have no use for.
_SAYS_NOTHING = {"casting", "subok", "order", "like"}
# Functions that change their first argument, and what to write instead.
_WRITES = {
    "copyto": "x[...] = values",
    "fill_diagonal": "plait.numpy.fill_diagonal(x, value, inplace=False), or x.at[...].set(value)",
    "place": "x[mask] = values",
    "put": "x.at[indices].set(values) on the flattened array",
    "put_along_axis": "plait.numpy.put_along_axis(x, indices, values, axis, inplace=False)",
    "putmask": "x[mask] = values",
}


# --- Which function it is -------------------------------------------------------------------------


@functools.lru_cache(None)
def _module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@functools.lru_cache(1024)
def _ufunc_here(ufunc):
    """(its name to users, plait's function or None)."""
    name = ufunc.__name__
    if getattr(_np, name, None) is ufunc:
        return f"np.{name}", vars(_module("plait.numpy")).get(name)
    special = sys.modules.get("scipy.special")
    if special and getattr(special, name, None) is ufunc:
        return f"scipy.special.{name}", getattr(_module("plait.scipy.special"), name, None)
    return f"the ufunc {name}", None


@functools.lru_cache(1024)
def _function_here(function):
    """(its name to users, plait's function or None)."""
    name, module = function.__name__, function.__module__ or "numpy"
    home = _module("plait." + module) if module in ("numpy", "numpy.linalg", "numpy.fft") else None
    return f"{module.replace('numpy', 'np', 1)}.{name}", vars(home).get(name) if home else None


@functools.lru_cache(1024)
def _parameters(function):
    """The parameters of a function by name, or None where Python cannot tell."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None


# --- NumPy itself ---------------------------------------------------------------------------------


def _values(tree):
    """A tree of arguments with the values of plait's arrays as NumPy's arrays."""
    if isinstance(tree, Array):
        return _np.asarray(tree)
    if type(tree) in (list, tuple):
        return type(tree)(map(_values, tree))
    if type(tree) is dict:
        return {key: _values(value) for key, value in tree.items()}
    return tree


def _by_numpy(name, function, args, options, why, fix):
    """function of the values; TracerError that says why NumPy is asked, where an array has none."""
    try:
        args, options = _values(args), _values(options)
    except _plait.TracerError:
        _plait.fail("TracerError", f"{name}: {why}, and an array is traced or differentiated", fix)
    return function(*args, **options)


def _without_it(name, function, args, options):
    return _by_numpy(
        name,
        function,
        args,
        options,
        "plait has no such function",
        f"write it with functions of plait.numpy, or call it on the host: plait.host_call({name}, types, ...)",
    )


def _into(name, function, args, options, out):
    """A call whose result NumPy writes to its own memory."""
    if any(isinstance(each, Array) for each in out):
        _plait.fail(
            "ValueError",
            f"{name}: argument 'out' is an array of plait",
            f"arrays are not written to by functions: use the result, x = {name}(...)",
        )
    return _by_numpy(
        name,
        function,
        args,
        options,
        "argument 'out' is memory of NumPy, which is written now",
        f"leave 'out' out, and use the result: y = {name}(...)",
    )


# --- Ufuncs ---------------------------------------------------------------------------------------


def array_ufunc(self, ufunc, method, *inputs, **options):
    """Array.__array_ufunc__: np.add(x, y), np.add.reduce(x), and operators of NumPy's arrays with plait's."""
    name, function = _ufunc_here(ufunc)
    name = name if method == "__call__" else f"{name}.{method}"
    out = options.get("out") or ()
    out = tuple(each for each in (out if isinstance(out, tuple) else (out,)) if each is not None)
    if out:
        # a += x for an array of NumPy: that name takes the result where it cannot be written.
        is_in_place = method == "__call__" and out[0] is inputs[0]
        if not (is_in_place and function and _is_traced(inputs)):
            return _into(name, getattr(ufunc, method), inputs, options, out)
    if method == "at" and isinstance(inputs[0], Array):
        _plait.fail(
            "ValueError",
            f"{name}: it would write to an array of plait",
            f"use the result of plait.numpy.{ufunc.__name__}.at(x, indices, values), or x.at[indices]",
        )
    if method != "__call__":
        function = None if method == "at" else getattr(function, method, None)
    if function is None:
        return _without_it(name, getattr(ufunc, method), inputs, options)
    options = {key: value for key, value in options.items() if key not in _SAYS_NOTHING | {"out"}}
    if method != "__call__":
        return function(*inputs, **options)
    if options.pop("where", True) is not True:
        _plait.fail(
            "ValueError",
            f"{name}: argument 'where' is given",
            f"choose from the result: np.where(mask, {name}(...), other)",
        )
    dtype = options.pop("dtype", None)
    for key in options:
        _plait.fail(
            "ValueError",
            f"{name}: argument {key!r} is given, which plait's function does not have",
            f"leave it out, or call plait.numpy.{ufunc.__name__}",
        )
    return function(*inputs) if dtype is None else _in_dtype(name, function, inputs, dtype)


def _is_traced(inputs):
    return any(
        isinstance(each, Array) and (not _plait.is_known(each) or _plait.carries_tangent(each))
        for each in inputs
    )


def _in_dtype(name, function, inputs, dtype):
    """The function computed in a dtype, which is that of the result."""
    dtype = _plait.as_dtype(dtype)
    if dtype.kind != "b":
        inputs = [_plait.to_array(each, name).astype(dtype) for each in inputs]
    result = function(*inputs)
    if getattr(result, "dtype", dtype) != dtype:
        _plait.fail(
            "DtypeError",
            f"{name}: dtype is {dtype}, and the result of plait's function is {result.dtype}",
            f"convert the result: {name}(...).astype({dtype.name!r})",
        )
    return result


# --- Other functions ------------------------------------------------------------------------------


def array_function(self, function, types, args, options):
    """Array.__array_function__: np.concatenate([x, y]), np.linalg.norm(x), ..."""
    for kind in types:
        if not issubclass(kind, (Array, _np.ndarray)):
            return NotImplemented  # it is another library's turn
    name, here = _function_here(function)
    implementation = getattr(function, "_implementation", function)
    short = function.__name__
    if short in _WRITES:
        if args and isinstance(args[0], Array):
            _plait.fail(
                "ValueError", f"{name}: it would write to an array of plait", _WRITES[short]
            )
        return _by_numpy(
            name,
            implementation,
            args,
            options,
            "it writes to memory of NumPy now",
            "make the array one of plait first: x = plait.numpy.asarray(x)",
        )
    if options.get("out") is not None:
        return _into(name, implementation, args, options, (options["out"],))
    if here is None:
        return _without_it(name, implementation, args, options)
    args, options = _translated(name, function, here, args, options)
    return here(*args, **options)


@functools.lru_cache(1024)
def _names(function, here):
    """Plait's name, or None, for every parameter of NumPy's function: their own, or that of the same place."""
    theirs, ours = _parameters(function), _parameters(here)
    places = [each.name for each in ours.values() if each.kind is not each.KEYWORD_ONLY]
    renamed = {"a_min": "min", "a_max": "max"} if function.__name__ == "clip" else {}
    for index, name in enumerate(theirs):
        if name in ours:
            renamed[name] = name
        elif name not in renamed:
            place = places[index] if index < len(places) else None
            renamed[name] = place if place not in theirs else None
    return renamed


def _translated(name, function, here, args, options):
    """Arguments of NumPy's function for plait's, by name, without those that say nothing."""
    theirs, ours = _parameters(function), _parameters(here)
    if theirs is None or ours is None:
        return args, options
    given = dict(options)
    if not any(each.kind is each.VAR_POSITIONAL for each in theirs.values()):
        if len(args) > len(theirs):
            raise TypeError(f"{name}() takes {len(theirs)} arguments, and {len(args)} were given")
        given, args = dict(zip(theirs, args)) | given, ()
    names, kept = _names(function, here), {}
    for key, value in given.items():
        default = theirs[key].default if key in theirs else inspect.Parameter.empty
        if _is_default(value, default):
            continue
        if names.get(key, key) is not None and names.get(key, key) in ours:
            kept[names.get(key, key)] = value
        elif key not in _SAYS_NOTHING:
            _plait.fail(
                "ValueError",
                f"{name}: argument {key!r} is given, which plait's function does not have",
                f"it is called as {here.__name__}({', '.join(map(str, ours.values()))})",
            )
    return args, kept


def _is_default(value, default):
    return value is default or (
        type(value) is type(default)
        and isinstance(value, (bool, int, float, str))
        and value == default
    )
