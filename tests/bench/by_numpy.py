"""The names of JAX and plait that programs.py uses, as NumPy and loops in Python: the reference.

Every loop runs step by step; nothing is traced, and nothing of plait takes part.
"""

# SPDX-License-Identifier: Apache-2.0

import functools
import types

import numpy as np


class Array(np.ndarray):
    """An array that has .at, whose updates copy."""

    @property
    def at(self):
        return _At(self)


class _At:
    def __init__(self, array, index=None):
        self.array, self.index = array, index

    def __getitem__(self, index):
        return _At(self.array, index)

    def _updated(self, write):
        copy = self.array.copy()
        write(copy, self.index)
        return copy

    def set(self, value):
        return self._updated(lambda copy, index: copy.__setitem__(index, value))

    def add(self, value):
        return self._updated(lambda copy, index: np.add.at(copy, index, value))

    def multiply(self, value):
        return self._updated(lambda copy, index: np.multiply.at(copy, index, value))


def array(value):
    return np.asarray(value).view(Array)


def _wrapped(function):
    """Its results, also those that NumPy makes scalars, are arrays."""

    @functools.wraps(function)
    def call(*arguments, **options):
        result = function(*arguments, **options)
        return array(result) if isinstance(result, (np.ndarray, np.generic)) else result

    return call


def tree(function, value):
    if isinstance(value, (tuple, list)):
        return tuple(tree(function, part) for part in value)
    return None if value is None else function(value)


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [value]


def stacked(values):
    """The leaves of equal trees, one array for each."""
    first = values[0]
    if isinstance(first, (tuple, list)):
        return tuple(stacked([value[i] for value in values]) for i in range(len(first)))
    return None if first is None else array(np.stack([np.asarray(value) for value in values]))


def fori_loop(low, high, body, state):
    for i in range(int(low), int(high)):
        state = body(i, state)
    return state


def while_loop(goes_on, body, state):
    while goes_on(state):
        state = body(state)
    return state


def scan(body, state, xs, length=None, reverse=False):
    count = length if length is not None else len(leaves(xs)[0])
    steps = range(count - 1, -1, -1) if reverse else range(count)
    ys = [None] * count
    for i in steps:
        state, ys[i] = body(state, tree(lambda x, i=i: x[i], xs))
    return state, stacked(ys)


def cond(holds, first, second, *operands):
    return (first if holds else second)(*operands)


def dynamic_slice(x, starts, sizes):
    starts = [min(max(int(a), 0), n - s) for a, n, s in zip(starts, x.shape, sizes)]
    return x[tuple(slice(a, a + s) for a, s in zip(starts, sizes))]


def dynamic_update_slice(x, update, starts):
    starts = [min(max(int(a), 0), n - s) for a, n, s in zip(starts, x.shape, update.shape)]
    return x.at[tuple(slice(a, a + s) for a, s in zip(starts, update.shape))].set(update)


def conv_general_dilated(x, w, strides, padding, dimension_numbers):
    height, width = w.shape[:2]
    if padding == "SAME":
        around = [((size - 1) // 2, size // 2) for size in (height, width)]
        x = np.pad(x, [(0, 0), *around, (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(x, (height, width), (1, 2))
    return array(np.einsum("nhwcij,ijcd->nhwd", windows, w))


def reduce_window(x, start, combine, size, strides, padding):
    n, h, w, c = x.shape
    return array(x.reshape(n, h // size[1], size[1], w // size[2], size[2], c).max((2, 4)))


def vmap(function):
    return lambda *arguments: stacked([function(*of_one) for of_one in zip(*arguments)])


def logsumexp(x, axis):
    most = np.max(x, axis, keepdims=True)
    return array(np.log(np.sum(np.exp(x - most), axis)) + np.squeeze(most, axis))


def names():
    """(module, numpy names, lax names) for programs.use."""
    jnp = types.SimpleNamespace(
        **{
            name: _wrapped(getattr(np, name))
            for name in (
                "abs sum max min mean std var any all argmax argmin where sqrt exp log sin cos tanh"
                " floor sign maximum minimum arange zeros ones full eye zeros_like ones_like asarray"
                " concatenate stack roll pad clip einsum diagonal cumsum searchsorted flip"
            ).split()
        },
        int32=np.int32,
        inf=np.inf,
        linalg=types.SimpleNamespace(
            solve=_wrapped(np.linalg.solve),
            qr=lambda a: tuple(map(array, np.linalg.qr(a))),
        ),
    )
    lax = types.SimpleNamespace(
        fori_loop=fori_loop,
        while_loop=while_loop,
        scan=scan,
        cond=cond,
        dynamic_slice=dynamic_slice,
        dynamic_update_slice=dynamic_update_slice,
        conv_general_dilated=conv_general_dilated,
        reduce_window=reduce_window,
        max=np.maximum,
    )
    nn = types.SimpleNamespace(
        relu=lambda x: np.maximum(x, 0),
        sigmoid=lambda x: 1 / (1 + np.exp(-x)),
        logsumexp=logsumexp,
    )
    return types.SimpleNamespace(vmap=vmap, nn=nn), jnp, lax
