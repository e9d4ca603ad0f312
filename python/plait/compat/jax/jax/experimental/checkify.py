"""jax.experimental.checkify over plait.check: a check that fails raises when the program runs.

SPDX-License-Identifier: Apache-2.0
"""

import string
from typing import Any

import plait
from plait import _plait

from jax import _doors
from jax.errors import JaxRuntimeError as JaxRuntimeError


class Error:
    """What went wrong in a program, or nothing."""

    def __init__(self, error=None):
        self._error = error

    def get(self):
        return None if self._error is None else str(self._error)

    def throw(self):
        if self._error is not None:
            raise ValueError(str(self._error))


ErrorCategory = Any
user_checks: frozenset = frozenset(["user"])
nan_checks = float_checks = frozenset(["nan"])
div_checks, index_checks = frozenset(["div"]), frozenset(["index"])
automatic_checks = float_checks | div_checks | index_checks
all_checks = user_checks | automatic_checks


def check(pred, msg, *fmt_args, **fmt_kwargs):
    """Fails with a message where pred is false when the program runs; {} and {name} in it stand for values."""
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
    plait.check(pred, "".join(text), *values)


debug_check = check


def check_error(error):
    """Raises what went wrong."""
    error.throw()


def checkify(f, errors=user_checks):
    """f, which returns its error and its value; the value is None where there is an error."""
    if errors - user_checks - index_checks:
        _doors.refuse(
            "checkify",
            f"checks of kind {sorted(errors - user_checks - index_checks)}",
            "plait.first_nan finds NaNs",
        )

    def checked(*args, **kwargs):
        try:
            return Error(), f(*args, **kwargs)
        except plait.UserError as error:
            return Error(error), None

    return checked


__getattr__ = _doors.lacking(__name__)
