"""jax.experimental.checkify: errors as values, which pass through jit, vmap and loops, over plait's checks.

SPDX-License-Identifier: Apache-2.0
"""

import string
import threading

import numpy as np

import plait
from plait import _checked, _plait
from plait._plait import flatten, unflatten

from jax import _doors
from jax._narrow import entered_arrays
from jax.tree_util import register_pytree_node_class


class JaxRuntimeError(ValueError):
    """A check that failed."""


class JaxException(Exception):
    """The kind of what checks say."""


class FailedCheckError(JaxException):
    """A check of the user."""


class NaNError(JaxException):
    """A NaN among results."""


class OOBError(JaxException):
    """An index that is out of bounds."""


class DivisionByZeroError(JaxException):
    """A divisor that is zero."""


ErrorCategory = type[JaxException]
_KINDS = {FailedCheckError: "user", NaNError: "nan", OOBError: "index", DivisionByZeroError: "div"}
user_checks, nan_checks = frozenset({FailedCheckError}), frozenset({NaNError})
index_checks, div_checks = frozenset({OOBError}), frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@register_pytree_node_class
class Error:
    """The first check that failed in a program, or none, as a tree of arrays; in a batch, for each example."""

    def __init__(self, code, values, messages):
        self._code, self._values, self._messages = code, values, messages

    def tree_flatten(self):
        return (self._code, self._values), self._messages

    @classmethod
    def tree_unflatten(cls, messages, parts):
        return cls(*parts, messages)

    def _at(self, place):
        code = int(np.asarray(self._code)[place])
        if code == 0:
            return None
        values = [np.asarray(value)[place] for value in self._values[code - 1]]
        return _checked.filled(self._messages[code - 1], values)

    def get(self):
        """What failed, or None."""
        shape = np.shape(self._code)
        if not shape:
            return self._at(())
        found = [(place, self._at(place)) for place in np.ndindex(*shape)]
        lines = [
            f"at mapped index {', '.join(map(str, place))}: {text}" for place, text in found if text
        ]
        return "\n".join(lines) or None

    def get_exception(self):
        """What failed as an exception, or None."""
        text = self.get()
        return None if text is None else JaxException(text)

    def throw(self):
        check_error(self)

    def __str__(self):
        return f"Error({self.get()})"


init_error = Error(np.int32(0), [], ())


class _Local(threading.local):
    mark = None  # inside of checkify, a traced zero


_local = _Local()


def check(pred, msg, *fmt_args, debug=False, **fmt_kwargs):
    """Fails with a message where pred is false; {} and {name} in it stand for values."""
    if not isinstance(pred, (bool, np.bool_)) and (
        np.shape(pred) or getattr(pred, "dtype", None) != np.bool_
    ):
        raise TypeError(
            f"{'debug_check' if debug else 'check'} takes a scalar pred as argument, got {pred}"
        )
    text, values, count = [], [], 0
    for literal, field, *_ in string.Formatter().parse(msg):
        text.append(literal)
        if field is None:
            continue
        index = int(field) if field.isdecimal() else count
        count += not field
        value = fmt_kwargs[field] if field in fmt_kwargs else fmt_args[index]
        if _plait.is_array_like(value):
            values.append(value)
        text.append("{}" if _plait.is_array_like(value) else repr(value))
    _raise_unless(pred, "".join(text) + " (`check` failed)", values)


def _raise_unless(pred, message, values):
    """A check of a program, or of known values at once."""
    pred = _plait.to_array(pred)
    if _local.mark is not None:
        pred = pred | (_local.mark != 0)
    elif _plait.is_concrete(pred):
        if not bool(pred):
            raise JaxRuntimeError(_checked.filled(message, map(np.asarray, values)))
        return
    plait.check(pred, message, *values)


def debug_check(pred, msg, *fmt_args, **fmt_kwargs):
    """check, inside of functions that checkify makes; elsewhere nothing."""
    if _local.mark is not None:
        check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error):
    """Raises what went wrong, in a program when it runs."""
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    code = error._code
    if not isinstance(code, plait.Array) or _plait.is_concrete(code):
        text = error.get()
        if text is not None and _local.mark is None:
            raise JaxRuntimeError(text)
    for number, message in enumerate(error._messages):
        fails = plait.numpy.any(_plait.to_array(code) == number + 1)
        values = error._values[number] if not np.ndim(code) else []
        _raise_unless(plait.numpy.logical_not(fails), message, values)


def checkify(f, errors=user_checks):
    """f, which returns its error and its value."""
    kinds = frozenset(_KINDS[error] for error in errors)

    def checked(*args, **kwargs):
        leaves, structure = flatten(entered_arrays((args, kwargs)))
        places = [
            i
            for i, leaf in enumerate(leaves)
            if _plait.is_array_like(leaf) and not isinstance(leaf, (bool, int))
        ]
        result = []

        def flat(inputs):
            mark, *arrays = inputs
            given = list(leaves)
            for place, array in zip(places, arrays):
                given[place] = array
            before, _local.mark = _local.mark, mark
            try:
                args, kwargs = unflatten(structure, given)
                found, out = flatten(f(*args, **kwargs))
            finally:
                _local.mark = before
            is_array = [_plait.is_array_like(leaf) for leaf in found]
            result[:] = [out, is_array, found]
            return [_plait.to_array(x) for x, is_one in zip(found, is_array) if is_one]

        given = [_plait.to_array(0), *(_plait.to_array(leaves[i]) for i in places)]
        jaxpr, consts = _plait.flat_make_jaxpr(
            flat, list(map(_plait.aval_of, given)), "checkify", getattr(f, "__name__", "f")
        )
        run = _checked.Run(kinds)
        arrays = iter(run.program(jaxpr, [*given, *consts]))
        out, is_array, found = result
        values = unflatten(
            out, [next(arrays) if is_one else x for x, is_one in zip(found, is_array)]
        )
        return Error(run.code, run.values, tuple(run.messages)), values

    return checked


__getattr__ = _doors.lacking(__name__)
