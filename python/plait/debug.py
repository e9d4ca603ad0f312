"""Looking at values while a program runs, under every transform.

SPDX-License-Identifier: Apache-2.0
"""

import sys as _sys


from plait import _plait
from plait._extend import Primitive as _Primitive

__all__ = ["callback", "print"]

# arrays: the operands, then the sizes of ragged axes under mask.
# function(*arrays) is what is called; lanes are the sizes of the vmaps around it, outermost first; mapped has, for each
# of them, a flag for each operand; cuts are pairs (operand, axis), one for each size.
_call = _Primitive(
    "debug_callback", "Calls a Python function with the values, for its effect.", effectful=True
)


@_call.abstract
def _(*avals, **params):
    return []


@_call.eval
def _(*arrays, function, lanes, mapped, cuts):
    def visit(arrays, level):
        if level < len(lanes):
            flags = mapped[level * len(arrays) : (level + 1) * len(arrays)]
            for lane in range(lanes[level]):
                visit([x[lane] if flag else x for x, flag in zip(arrays, flags)], level + 1)
            return
        count = len(arrays) - len(cuts) // 2
        values, sizes = list(arrays[:count]), arrays[count:]
        for size, operand, axis in zip(sizes, cuts[::2], cuts[1::2]):
            values[operand] = values[operand][(slice(None),) * axis + (slice(0, int(size)),)]
        function(*values)

    visit(arrays, 0)
    return []


@_call.jvp
def _(primals, tangents, outputs, **params):
    return []


@_call.transpose
def _(cotangents, inputs, **params):
    return [None] * len(inputs)


@_call.batch
def _(size, arrays, axes, *, function, lanes, mapped, cuts):
    from plait import numpy

    arrays = [x if axis is None else numpy.moveaxis(x, axis, 0) for x, axis in zip(arrays, axes)]
    flags = tuple(int(axis is not None) for axis in axes)
    _call(*arrays, function=function, lanes=(size, *lanes), mapped=flags + tuple(mapped), cuts=cuts)
    return [], []


@_call.mask
def _(padded, avals, outputs, size_value, *, function, lanes, mapped, cuts):
    cuts, sizes = list(cuts), []
    for operand, (array, aval) in enumerate(zip(padded, avals)):
        for axis, dim in enumerate(aval.shape):
            if not isinstance(dim, int):
                cuts += [operand, axis]
                sizes.append(size_value(dim))
    _call(*padded, *sizes, function=function, lanes=lanes, mapped=mapped, cuts=tuple(cuts))
    return []


def callback(callback, *args, ordered=False, **kwargs):
    """Calls callback(*args, **kwargs) each time the program runs, for its effect; what it returns is dropped.

    Arrays in args and kwargs, which are trees, arrive as NumPy arrays; other leaves as they are. Under jit it is called
    at each run, in the order of the program (ordered says nothing more); under vmap once for each example; under mask
    with the real elements; under differentiation with the values. DtypeError when callback is no function.
    """
    from plait._functions import check_callable

    check_callable("debug.callback", callback)
    leaves, structure = _plait.flatten((args, kwargs))
    places = [index for index, leaf in enumerate(leaves) if _plait.is_array_like(leaf)]

    def function(*arrays):
        values = list(leaves)
        for index, array in zip(places, arrays):
            values[index] = array
        positional, named = _plait.unflatten(structure, values)
        callback(*positional, **named)

    arrays = [_plait.to_array(leaves[index], "debug.callback") for index in places]
    for index in places:
        leaves[index] = None  # a trace may not be kept alive by the program that it made
    _call(*arrays, function=function, lanes=(), mapped=(), cuts=())


def print(fmt, *args, ordered=False, **kwargs):
    """Prints fmt.format(*args, **kwargs) with the values of arrays each time the program runs, as callback does.

    Under jit the text appears at each run; under vmap once for each example. DtypeError when fmt is no string.
    """
    if not isinstance(fmt, str):
        _plait.fail(
            "DtypeError",
            f"debug.print: the format is {fmt!r:.60}",
            'call it as debug.print("x = {}", x)',
        )

    def write(*args, **kwargs):
        _sys.stdout.write(fmt.format(*args, **kwargs) + "\n")

    callback(write, *args, ordered=ordered, **kwargs)
