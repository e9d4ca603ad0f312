"""plait.script: Python's statements, as written, on traced values.

The source of the function is read and recompiled (_script_compile.py) with its branches, loops and jumps rewritten
(_script_jumps.py, _script_rewrite.py) to calls of helpers (_script_runtime.py), which do what Python does while values
are known, and trace where they are not. All of it is loaded when a function is first scripted.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import types

from plait import _plait
from plait._functions import check_callable, text_of


def script(fun):
    """fun with `if`, `while`, `for`, `break`, `continue`, `return`, `and`, `or`, `not`, chained comparisons, conditional
    expressions and `assert` that also work on traced values, as cond, while_loop and scan.

    Where Python knows a value (numbers, strings, arrays outside jit) a statement keeps Python's meaning: its loop is
    unrolled, its branch is taken. `for` becomes a loop of the program over a traced array or `range(n)` with a traced n,
    and so does a loop that a traced condition leaves. A function that fun calls is scripted too when it belongs to the
    same package; `plait.unscripted` leaves it as it is. The result is a function like fun; its `source` is the
    rewritten text.

    DtypeError when fun is no Python function, ValueError when its source cannot be read, or is a generator or coroutine.

    >>> import plait
    >>> @plait.jit
    ... @plait.script
    ... def steps(n):
    ...     count = 0
    ...     while n != 1:
    ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
    ...         count += 1
    ...     return count
    >>> int(steps(27))
    111
    """
    check_callable("script", fun)
    if isinstance(fun, (staticmethod, classmethod)):
        return type(fun)(script(fun.__func__))
    if isinstance(fun, types.MethodType):
        return types.MethodType(script(fun.__func__), fun.__self__)
    if isinstance(fun, functools.partial):
        return functools.partial(script(fun.func), *fun.args, **fun.keywords)
    if not isinstance(fun, types.FunctionType) or hasattr(fun, "__plait_transform__"):
        _plait.fail(
            "DtypeError",
            f"script: {text_of(fun)} is no function written in Python",
            "apply script to the function itself, before jit and other transforms",
        )
    from plait import _script_compile

    if _script_compile.is_rewritten(fun):
        return fun
    function, source = _script_compile.rewrite(fun)
    functools.update_wrapper(function, fun)
    function.source = source
    return function


def unscripted(fun):
    """fun, unchanged when scripted functions call it: its statements are not rewritten. DtypeError unless it is a
    function."""
    if not isinstance(fun, types.FunctionType):
        _plait.fail(
            "DtypeError",
            f"unscripted: {text_of(fun)} is no function written in Python",
            "what is none is called as it is",
        )
    fun.__plait_unscripted__ = True
    return fun
