"""Functions of Python over parts of arrays: rows along an axis, pieces, padding.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._functions import check_callable


def _axis_of(what, axis, rank):
    if not -rank <= axis < rank:
        _plait.fail("IndexError", f"{what}: axis {axis} of an array of {rank} axes", "name one")
    return axis % rank


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """func1d(row, *args, **kwargs) for each row along an axis, which the axes of the results replace: by vmap."""
    from plait import numpy
    from plait._transforms import vmap

    check_callable("apply_along_axis", func1d)
    array = _plait.to_array(arr, "apply_along_axis")
    axis = _axis_of("apply_along_axis", axis, array.ndim)

    def function(row):
        return _plait.to_array(func1d(row, *args, **kwargs), "apply_along_axis")

    for _ in range(array.ndim - 1):
        function = vmap(function)
    result = function(numpy.moveaxis(array, axis, -1))
    added = result.ndim - (array.ndim - 1)
    return numpy.moveaxis(result, range(array.ndim - 1, result.ndim), range(axis, axis + added))


def apply_over_axes(func, a, axes):
    """func(a, axis) over one axis after the other; an axis that func drops is put back with size 1."""
    from plait import numpy

    check_callable("apply_over_axes", func)
    array = _plait.to_array(a, "apply_over_axes")
    for axis in axes if hasattr(axes, "__iter__") else (axes,):
        axis = _axis_of("apply_over_axes", axis, array.ndim)
        result = _plait.to_array(func(array, axis), "apply_over_axes")
        if result.ndim == array.ndim - 1:
            result = numpy.expand_dims(result, axis)
        if result.ndim != array.ndim:
            _plait.fail(
                "ShapeError",
                f"apply_over_axes: func gives {result.ndim} axes for {array.ndim}",
                "return as many, or one less",
            )
        array = result
    return array


def piecewise(x, condlist, funclist, *args, **kw):
    """The function or number of the last condition that is true for each element, else one more, or 0, in x's dtype.

    Functions get (element, *args, **kw), scalars, and contribute exactly zero to derivatives where they are not taken.
    """
    from plait import numpy
    from plait._where import where_functions

    x = _plait.to_array(x, "piecewise")
    if not isinstance(condlist, (list, tuple)):
        condlist = _plait.to_array(condlist, "piecewise")
        condlist = list(condlist) if condlist.ndim > x.ndim else [condlist]
    elif condlist and all(numpy.ndim(condition) == 0 for condition in condlist) and x.ndim:
        condlist = [condlist]  # one condition, as a list of bools
    conditions = [_plait.to_array(condition, "piecewise") for condition in condlist]
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        _plait.fail(
            "ValueError",
            f"piecewise: {len(functions)} functions for {len(conditions)} conditions",
            "give one for each, and perhaps one for elements that fulfil none",
        )

    def chosen(condition, function, other):
        if not callable(function):
            return numpy.where(condition, numpy.asarray(function, dtype=x.dtype), other)

        def taken(element, other):
            return _plait.to_array(function(element, *args, **kw), "piecewise").astype(x.dtype)

        return where_functions(condition, taken, _other, x, other)

    *functions, default = functions
    if callable(default):
        result = chosen(numpy.ones_like(x, dtype=bool), default, numpy.zeros_like(x))
    else:
        result = numpy.broadcast_to(numpy.asarray(default, dtype=x.dtype), x.shape)
    for condition, function in zip(conditions, functions):
        result = chosen(condition.astype(bool), function, result)
    return result


def _other(element, other):
    return other


def pad_by_function(array, pad_width, mode, **kwargs):
    """numpy.pad with a function: mode(row, (before, after), axis, kwargs) gives each row along each axis, padded with 0."""
    from plait import numpy

    array = numpy.pad(array, pad_width)
    if isinstance(pad_width, dict):
        _plait.fail("DtypeError", "pad: the pad width is a dict", "give a pair for each axis")
    rank = array.ndim
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (rank, 2)).tolist()
    for axis, (before, after) in enumerate(widths):

        def padded(row, axis=axis, widths=(before, after)):
            result = mode(row, widths, axis, kwargs)
            return row if result is None else result

        array = apply_along_axis(padded, axis, array)
    return array
