"""What a scripted `for` can loop over inside the program: ranges, arrays, and zips of both.

SPDX-License-Identifier: Apache-2.0
"""

import builtins

import numpy

from plait import _plait
from plait._plait import is_known
from plait._script_state import truth


def _is_array(value):
    return (isinstance(value, _plait.Array) or type(value) is numpy.ndarray) and value.ndim > 0


def items_of(iterable):
    """The items of a range, of arrays, or of a zip; None for anything that Python has to iterate over."""
    if isinstance(iterable, (builtins.range, Range)):
        return iterable if isinstance(iterable, Range) else Range(iterable)
    if isinstance(iterable, Together):
        return iterable
    return Rows(iterable) if _is_array(iterable) else None


class Range:
    """range(start, stop, step) with arrays as bounds; step is an integer."""

    def __init__(self, *bounds):
        if len(bounds) == 1 and isinstance(bounds[0], builtins.range):
            bounds = (bounds[0].start, bounds[0].stop, bounds[0].step)
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if not isinstance(step, int) or step == 0:
            _plait.fail(
                "ValueError",
                f"range: the step is {step!r:.60}, and a range with traced bounds needs one that is known",
                "give an integer that is not 0",
            )
        self.start, self.step = _integer(start), step
        self.stop = _integer(stop)
        self.is_known = builtins.all(isinstance(bound, int) for bound in (self.start, self.stop))
        span = (
            self.stop - self.start
            if isinstance(self.start, _plait.Array) or self.start
            else self.stop
        )
        self.length = span if step == 1 else (span + (step - (1 if step > 0 else -1))) // step

    def item(self, index, rows):
        del rows
        index = index if self.step == 1 else index * self.step
        return index if type(self.start) is int and self.start == 0 else self.start + index

    def row_avals(self):
        return ()

    def arrays(self):
        return ()

    def rest(self, count):
        return Range(self.start + count * self.step, self.stop, self.step)

    def __iter__(self):
        _plait.fail(
            "TracerError",
            "a range with a traced bound is iterated over: how often is not known while the program is made",
            "loop over it in a `for` statement of a scripted function",
        )


def _integer(bound):
    """A bound as an int, or an array of an integer dtype."""
    if isinstance(bound, (_plait.Array, _plait.Size)) and not is_known(bound):
        array = _plait.to_array(bound)
        if array.dtype.kind in "iu" and array.ndim == 0:
            return array
        _plait.fail(
            "DtypeError",
            f"range: a bound has type {_plait.aval_of(array)!r}",
            "give integers, or arrays of integers without axes",
        )
    return bound.__index__()


class Rows:
    """The rows of an array."""

    def __init__(self, array):
        self.array = _plait.to_array(array)
        self.length, self.is_known = array.shape[0], is_known(array)

    def item(self, index, rows):
        del index
        return rows[0]

    def row_avals(self):
        aval = _plait.aval_of(self.array)
        return (_plait.ShapeDtypeStruct(aval.shape[1:], aval.dtype, weak_type=aval.weak_type),)

    def arrays(self):
        return (self.array,)

    def rest(self, count):
        return Rows(self.array[count:])


class Together:
    """zip of ranges and arrays; a row is a tuple."""

    def __init__(self, parts, iterables):
        self.parts, self.iterables = parts, iterables
        self.length = min(part.length for part in parts)
        self.is_known = builtins.all(part.is_known for part in parts)

    def item(self, index, rows):
        row, result = iter(rows), []
        for part in self.parts:
            own = [next(row) for _ in part.arrays()]
            result.append(part.item(index, own))
        return tuple(result)

    def row_avals(self):
        return tuple(row for part in self.parts for row in part.row_avals())

    def arrays(self):
        return tuple(array[: self.length] for part in self.parts for array in part.arrays())

    def rest(self, count):
        return Together([part.rest(count) for part in self.parts], ())

    def __iter__(self):
        return builtins.zip(*self.iterables)


def plait_numpy():
    from plait import numpy as module

    return module


# --- The builtins that scripted code calls instead of Python's ------------------------------------


def range(*bounds):
    known = [bound.__index__() if is_known(bound) else None for bound in bounds]
    return Range(*bounds) if None in known else builtins.range(*known)


def zip(*iterables, strict=False):
    parts = [items_of(iterable) for iterable in iterables]
    traced = builtins.any(part is not None and not part.is_known for part in parts)
    if strict or not traced or not builtins.all(_has_length(part) for part in parts):
        return builtins.zip(*iterables, strict=strict)
    return Together(parts, iterables)


def _has_length(part):
    """Whether the number of items of a part is known; parts of a zip are not zips themselves."""
    return isinstance(part, (Range, Rows)) and isinstance(part.length, int)


def enumerate(iterable, start=0):
    part = items_of(iterable)
    if part is None or part.is_known or not _has_length(part):
        return builtins.enumerate(iterable, start)
    counted = builtins.range(start, start + part.length)
    return Together([Range(counted), part], (counted, iterable))


def length_of(*args):
    """len, which for an array whose first size is named is that size: Python's own must be an integer."""
    if builtins.len(args) == 1 and isinstance(args[0], _plait.Array) and args[0].shape:
        return args[0].shape[0]
    return builtins.len(*args)


def minimum(*values, **options):
    return _extreme(builtins.min, lambda x, y: x < y, values, options)


def maximum(*values, **options):
    return _extreme(builtins.max, lambda x, y: x > y, values, options)


def _extreme(builtin, precedes, values, options):
    """min and max: the first value that no other precedes."""
    if len(values) == 1:
        values = tuple(values[0])
    if options or builtins.all(map(is_known, values)):
        return builtin(values, **options)
    best, *others = values
    for value in others:
        best = plait_numpy().where(precedes(value, best), value, best)
    return best


def any(values):
    return _fold(values, True, "logical_or")


def all(values):
    return _fold(values, False, "logical_and")


def _fold(values, decisive, name):
    """any and all: a known value may decide, as soon as it is reached."""
    result = not decisive
    for value in values:
        if not is_known(value):
            result = getattr(plait_numpy(), name)(result, truth(value))
        elif bool(value) == decisive:
            return decisive
    return result


def _is_traced(args):
    """Whether the number comes from an array whose value is not known, or whose derivative is being taken."""
    return (
        len(args) == 1
        and isinstance(args[0], _plait.Array)
        and (not _plait.is_known(args[0]) or _plait.carries_tangent(args[0]))
    )


def _one_element(name, x):
    if x.size != 1:
        _plait.fail(
            "ShapeError",
            f"{name}: only an array of one element is a number, and this one has shape {x.shape}",
            "index it, or reduce it, first",
        )
    return x.reshape(())


def as_float(*args):
    """float, which on a traced array returns the array: a scalar, in its own precision."""
    if not _is_traced(args):
        return float(*args)
    x = _one_element("float", args[0])
    return x if x.dtype.kind == "f" or x.dtype.name == "bfloat16" else x * 1.0


def as_int(*args, **base):
    """int, which on a traced array returns the array rounded towards zero: a scalar."""
    if base or not _is_traced(args):
        return int(*args, **base)
    x = _one_element("int", args[0])
    return x if x.dtype.kind in "iu" else x.astype("int64")


REPLACED = {
    id(builtins.float): as_float,
    id(builtins.int): as_int,
    id(builtins.len): length_of,
    id(builtins.range): range,
    id(builtins.zip): zip,
    id(builtins.enumerate): enumerate,
    id(builtins.min): minimum,
    id(builtins.max): maximum,
    id(builtins.any): any,
    id(builtins.all): all,
}
