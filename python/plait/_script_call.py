"""What scripted code calls: functions of its own package are scripted too, builtins take traced values.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import sys
import types

from plait._script_items import REPLACED

BUILTIN = (types.BuiltinFunctionType, types.MethodWrapperType, types.WrapperDescriptorType)


def call(function):
    """What code that calls function is to call instead, in scripted code."""
    kind = type(function)
    if kind is types.FunctionType or kind is types.MethodType:
        return _scripted(function, sys._getframe(1).f_globals)
    if kind is type or isinstance(function, BUILTIN):
        return _builtin(function)
    if kind is functools.partial:
        inner = _scripted(function.func, sys._getframe(1).f_globals)
        return functools.partial(inner, *function.args, **function.keywords)
    return _scripted(function, sys._getframe(1).f_globals)


def _builtin(function):
    try:
        return REPLACED.get(function, function)
    except TypeError:  # a method of an object without a hash
        return function


def _scripted(function, caller):
    """function rewritten, where it is Python code of the caller's package and not marked to be left alone."""
    from plait._script_compile import rewritten

    if isinstance(function, types.MethodType):
        inner = _scripted(function.__func__, caller)
        return (
            types.MethodType(inner, function.__self__)
            if inner is not function.__func__
            else function
        )
    if isinstance(function, types.FunctionType):
        if (
            not _is_near(function.__globals__, caller)
            or "__plait_unscripted__" in function.__dict__
        ):
            return function
        return rewritten(function)
    method = getattr(type(function), "__call__", None)
    if isinstance(method, types.FunctionType):
        inner = _scripted(method, caller)
        return types.MethodType(inner, function) if inner is not method else function
    return function


def _is_near(one, other):
    """Whether two modules, given by their globals, are one, or of one package."""
    if one is other:
        return True
    names = [str(module.get("__name__", "")).partition(".")[0] for module in (one, other)]
    return names[0] == names[1] and names[0] not in ("", "plait")
