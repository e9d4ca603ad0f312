"""Values of 64 bits become such of 32 where they enter: arguments of functions, operators and transforms.

Numbers stay weak, and weak numbers alone have 32 bits too. With jax_enable_x64 nothing is changed.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import warnings

import numpy as np

import plait
from plait import _plait
from plait._plait import flatten, unflatten

from jax._config import config, rank_checks
from jax._dtypes import _NARROW, canonical, weak

Array = plait.Array
_NUMPY = {np.ndarray, np.float64, np.int64, np.uint64, np.complex128}
_HOLDERS = {list, tuple}


def narrowed(x):
    """x, if it is of 64 bits and not a number, with 32."""
    if type(x) in _NUMPY:
        narrow = _NARROW.get(x.dtype)
        return x if narrow is None else x.astype(narrow)
    if type(x) in _HOLDERS and any(type(each) in _NUMPY for each in x):
        return type(x)(map(narrowed, x))
    convert = getattr(type(x), "__jax_array__", None)
    return x if convert is None or type(x) is Array else convert(x)


def _narrowed_array(leaf):
    """A leaf, of 32 bits if it is an array."""
    if isinstance(leaf, Array):
        narrow = _NARROW.get(leaf.dtype)
        if narrow is None:
            return leaf
        return weak(leaf) if leaf.weak_type else _plait.convert(leaf, narrow)
    return narrowed(leaf)


def _narrowed_leaf(leaf):
    """A leaf, of 32 bits; a number is an array."""
    kind = type(leaf)
    if kind is int or kind is float or kind is complex:
        return weak(leaf)
    return _narrowed_array(leaf)


def arrays_narrowed(tree):
    """A tree whose arrays of 64 bits have 32; numbers of Python stay, which may be static."""
    leaves, structure = flatten(tree)
    return unflatten(structure, list(map(_narrowed_array, leaves)))


def tree_narrowed(tree):
    """A tree of arrays and numbers, as arrays of 32 bits."""
    leaves, structure = flatten(tree)
    return unflatten(structure, list(map(_narrowed_leaf, leaves)))


def entered(tree):
    """tree_narrowed, where 64 bits are not enabled."""
    return tree if config.x64_enabled else tree_narrowed(tree)


def entered_arrays(tree):
    """arrays_narrowed, where 64 bits are not enabled."""
    return tree if config.x64_enabled else arrays_narrowed(tree)


def results_narrowed(tree):
    """A tree of results whose arrays of 64 bits have 32."""
    if type(tree) is Array:
        return _narrowed_array(tree) if tree.dtype in _NARROW else tree
    leaves, structure = flatten(tree)
    if not any(isinstance(leaf, Array) and leaf.dtype in _NARROW for leaf in leaves):
        return tree
    return unflatten(structure, list(map(_narrowed_array, leaves)))


def narrowing(function):
    """A function of jax.numpy, whose arguments and results are narrowed."""

    @functools.wraps(function)
    def call(*args, **keywords):
        if "out_sharding" in keywords:  # the only device
            del keywords["out_sharding"]
        if config.x64_enabled:
            return function(*args, **keywords)
        args = [a if type(a) is Array else narrowed(a) for a in args]
        for name, value in keywords.items():
            if type(value) in _NUMPY:
                keywords[name] = narrowed(value)
        result = function(*args, **keywords)
        kind = type(result)
        if (kind is Array and result.dtype in _NARROW) or kind is tuple or kind is list:
            return results_narrowed(result)
        return result

    return call


def check_ranks(name, operands):
    """With jax_numpy_rank_promotion "raise" or "warn": operands that are no scalars have equal ranks."""
    shapes = [np.shape(x) for x in operands if type(x) is Array or isinstance(x, np.ndarray)]
    if config.jax_numpy_rank_promotion == "allow" or len({len(s) for s in shapes if s}) < 2:
        return
    text = (
        f"Operands could not be broadcast together for {name} on shapes {' '.join(map(str, shapes))} and with the "
        f"config option jax_numpy_rank_promotion={config.jax_numpy_rank_promotion!r}. For more information, see "
        "https://docs.jax.dev/en/latest/rank_promotion_warning.html."
    )
    if config.jax_numpy_rank_promotion == "raise":
        raise ValueError(text)
    warnings.warn(text, stacklevel=4)


_INEXACT = (float, complex)


def _is_weak_inexact(x):
    return type(x) in _INEXACT or (type(x) is Array and x.weak_type and x.dtype.kind in "fc")


def _is_strong_inexact(x):
    return not _is_weak_inexact(x) and getattr(getattr(x, "dtype", None), "kind", "f") not in "biu"


def promoting(function, first=0):
    """narrowing of a function of operands: integers and a weak float give a weak float, as in JAX's lattice of dtypes."""
    call = narrowing(function)

    @functools.wraps(function)
    def promote(*args, **keywords):
        if rank_checks[0]:
            check_ranks(function.__name__, args)
        result = call(*args, **keywords)
        if type(result) is Array and not result.weak_type and result.dtype.kind in "fc":
            operands = [arg for arg in args[first:] if type(arg) is not int]
            if any(map(_is_weak_inexact, operands)) and not any(map(_is_strong_inexact, operands)):
                return weak(result, complex if result.dtype.kind == "c" else float)
        return result

    return promote


def staged(fun):
    """fun, for jit: its arguments and results are narrowed in the program."""

    @functools.wraps(fun)
    def call(*args, **keywords):
        if config.x64_enabled:
            return fun(*args, **keywords)
        args, keywords = arrays_narrowed((args, keywords))
        return results_narrowed(fun(*args, **keywords))

    return call


def transformed(transform):
    """A transform of a function with argnums, such as grad, whose arguments and results are narrowed."""

    @functools.wraps(transform)
    def door(fun, argnums=0, *options, **more):
        function = transform(fun, argnums, *options, **more)
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

        @functools.wraps(function, updated=())
        def call(*args, **keywords):
            if config.x64_enabled:
                return function(*args, **keywords)
            args = [
                tree_narrowed(arg)
                if i in numbers or i - len(args) in numbers
                else arrays_narrowed(arg)
                for i, arg in enumerate(args)
            ]
            return results_narrowed(function(*args, **arrays_narrowed(keywords)))

        return call

    return door


def _entering(array, other, method):
    """The operands of an operator as JAX has them: NumPy's arrays narrow, and what is weak of 32 bits."""
    kind = type(other)
    if kind in _NUMPY:
        return array, narrowed(other)
    if kind is Array:
        if array.dtype.kind in "iub" and other.dtype.kind in "fc" and other.weak_type:
            return weak(array, complex if other.dtype.kind == "c" else float), other
        if other.dtype.kind in "iub" and array.dtype.kind in "fc" and array.weak_type:
            return array, weak(other, complex if array.dtype.kind == "c" else float)
        return array, other
    if kind is int:
        return (
            (array, other) if "pow" in method or not array.weak_type else (weak(array), weak(other))
        )
    if array.dtype.kind in "iub":
        array = weak(array, kind)
    return (weak(array), weak(other)) if array.weak_type else (array, other)


_MEETING = {*_NUMPY, int, float, complex}


def _operator(method):
    name = method.__name__

    def operate(array, other):
        kind = type(other)
        if rank_checks[0] and name not in ("__matmul__", "__rmatmul__"):
            check_ranks(name.strip("_"), (array, other))
        if (
            kind in _MEETING or (kind is Array and array.weak_type != other.weak_type)
        ) and not config.x64_enabled:
            array, other = _entering(array, other, name)
            result = method(array, other)
            return weak(result) if kind is int and array.weak_type and "pow" in name else result
        return method(array, other)

    operate.__name__ = name
    return operate


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def add_operators():
    """Gives plait's Array operators that narrow NumPy's arrays; part of `import jax`."""
    names = [f"__{side}{name}__" for name in _OPERATORS for side in ("", "r")]
    for name in names + ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]:
        setattr(Array, name, _operator(getattr(Array, name)))
    astype = Array.astype
    Array.astype = lambda array, dtype, copy=True, device=None: astype(array, canonical(dtype))
