"""Traced values that outlive their trace: `self.mean += x`, globals, lists that the traced function can reach.

A trace computes no numbers, so values that the function stores would be lost silently. The search is that for captured
arrays, and runs only where arrays of the trace outlive the call.

SPDX-License-Identifier: Apache-2.0
"""

import dis
import functools
import re
import types

from plait import _plait
from plait._captures import LIMIT, OPAQUE, _children
from plait._functions import Flat, name_of


def check(function, objects=()):
    """TracerError when a value of the current trace can be reached from function, which was traced.

    objects are (parameter, value) of the arguments that belong to the signature.
    """
    for text in _left(function, [(value, name) for name, value in objects]):
        text = re.sub(r"^.*\.__self__", "self", text)
        _plait.fail(
            "TracerError",
            f"`{text}` holds a traced value when the trace ends, which has no number from then on: what the function "
            "assigned would be lost",
            "return the value from the function, and assign it outside",
        )


def _left(function, others):
    """The texts of places that hold values of the current trace."""
    seen = {id(function), *(id(value) for value, _ in others)}
    queue = [(function, getattr(function, "__name__", "f")), *others]
    position = 0
    while position < len(queue) and len(queue) < LIMIT:
        value, text = queue[position]
        position += 1
        for child, child_text in (*_of(value, text), *_stored(value)):
            if isinstance(child, _plait.Array):
                if _plait.is_of_this_trace(child):
                    yield child_text
            elif not isinstance(child, OPAQUE) and id(child) not in seen:
                seen.add(id(child))
                queue.append((child, child_text))


def _of(value, text):
    if isinstance(value, Flat):
        yield from [(value.fun, name_of(value.fun)), *value.held()]
        return
    for child, _, child_text, *_root in _children(value, (), text):
        yield child, child_text


def _stored(value):
    """Globals that a function assigns."""
    if isinstance(value, types.FunctionType):
        for name in _stored_names(value.__code__):
            if name in value.__globals__:
                yield value.__globals__[name], name


@functools.lru_cache(maxsize=4096)
def _stored_names(code):
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname == "STORE_GLOBAL"
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _stored_names(constant)
    return frozenset(names)
