"""Values of 64 bits become such of 32 where they enter: arguments of functions, operators and transforms.

Numbers of Python stay weak, and have 64 bits until they meet an array. With jax_enable_x64 nothing is changed.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy as np

import plait
from plait import _plait
from plait._plait import flatten, unflatten

from jax._config import config
from jax._dtypes import _NARROW, canonical, converted

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


def _array_narrowed(leaf):
    if isinstance(leaf, Array):
        narrow = None if leaf.weak_type else _NARROW.get(leaf.dtype)
        return leaf if narrow is None else _plait.convert(leaf, narrow)
    return narrowed(leaf)


def tree_narrowed(tree):
    """A tree whose arrays of 64 bits have 32."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [_array_narrowed(leaf) for leaf in leaves])


def _argument(leaf):
    """An argument of jit or grad: a float of Python is float32 from here on."""
    if type(leaf) is float:
        return converted(leaf)
    if isinstance(leaf, Array) and leaf.dtype in _NARROW and leaf.dtype.kind in "fc":
        return _plait.convert(leaf, canonical(leaf.dtype))
    return _array_narrowed(leaf)


def arguments_narrowed(tree):
    """A tree of arguments, of 32 bits."""
    leaves, structure = flatten(tree)
    return unflatten(structure, list(map(_argument, leaves)))


def entered(tree):
    """tree_narrowed, where 64 bits are not enabled."""
    return tree if config.x64_enabled else tree_narrowed(tree)


def _result(leaf):
    """A result of a transform: numbers of Python are arrays of JAX's dtypes outside of it."""
    if isinstance(leaf, Array) and leaf.dtype in _NARROW:
        return _plait.convert(leaf, canonical(leaf.dtype))
    return leaf


def results_narrowed(tree):
    leaves, structure = flatten(tree)
    if not any(isinstance(leaf, Array) and leaf.dtype in _NARROW for leaf in leaves):
        return tree
    return unflatten(structure, list(map(_result, leaves)))


def narrowing(function):
    """A function of jax.numpy, whose arguments are narrowed."""

    @functools.wraps(function)
    def call(*args, **keywords):
        if not config.x64_enabled:
            args = [a if type(a) is Array else narrowed(a) for a in args]
            for name, value in keywords.items():
                if type(value) in _NUMPY:
                    keywords[name] = narrowed(value)
        return function(*args, **keywords)

    return call


def staged(fun):
    """fun, for jit: its arguments and results are narrowed in the program."""

    @functools.wraps(fun)
    def call(*args, **keywords):
        if config.x64_enabled:
            return fun(*args, **keywords)
        args, keywords = arguments_narrowed((args, keywords))
        return results_narrowed(fun(*args, **keywords))

    return call


def transformed(transform):
    """A transform of one function, such as grad, whose arguments and results are narrowed."""

    @functools.wraps(transform)
    def door(fun, *options, **more):
        function = transform(fun, *options, **more)

        @functools.wraps(function, updated=())
        def call(*args, **keywords):
            if config.x64_enabled:
                return function(*args, **keywords)
            args, keywords = arguments_narrowed((args, keywords))
            return results_narrowed(function(*args, **keywords))

        return call

    return door


_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()


def _operator(method):
    def operate(array, other):
        if type(other) in _NUMPY and not config.x64_enabled:
            other = narrowed(other)
        return method(array, other)

    operate.__name__ = method.__name__
    return operate


def add_operators():
    """Gives plait's Array operators that narrow NumPy's arrays; part of `import jax`."""
    names = [f"__{side}{name}__" for name in _OPERATORS for side in ("", "r")]
    for name in names + ["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"]:
        setattr(Array, name, _operator(getattr(Array, name)))
    astype = Array.astype
    Array.astype = lambda array, dtype, copy=True, device=None: astype(array, canonical(dtype))
