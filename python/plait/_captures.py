"""Where a jitted function's captured arrays can be found again, and which scalars it reads.

jit makes captured arrays hidden inputs that are read again at each call. The search goes from the
function through what its code names: closure cells, globals, defaults, its `self`, functions, containers
and attributes, breadth first and within a limit. Scalars are guarded where the code spells the whole
chain (`config.lr`), so that a changed one makes a new trace.

SPDX-License-Identifier: Apache-2.0
"""

import dis
import functools
import types

from plait import _plait

CELL, ITEM, ATTRIBUTE = 0, 1, 2
LIMIT = 20_000
SCALARS = (bool, int, float, complex, str, bytes, type(None))
OPAQUE = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType, *SCALARS)


def find(function, wanted):
    """Paths to each wanted (node, NumPy array or None), and guards as (path, value) pairs."""
    paths = [[] for _ in wanted]
    guards = []
    nodes = {node: index for index, (node, array) in enumerate(wanted) if array is None}
    arrays = {id(array): index for index, (_, array) in enumerate(wanted) if array is not None}
    seen = {id(function)}
    queue = [(function, function, (), getattr(function, "__name__", "f"))]
    position = 0
    numpy_array = _ndarray()
    while position < len(queue) and len(queue) < LIMIT:
        value, root, steps, text = queue[position]
        position += 1
        for child, child_steps, child_text in _children(value, root, steps, text, guards):
            if isinstance(child, _plait.Array):
                index = nodes.get(_plait.node_of(child))
                if index is not None:
                    paths[index].append((root, child_steps, child_text))
                continue
            if isinstance(child, numpy_array):
                index = arrays.get(id(child))
                if index is not None:
                    paths[index].append((root, child_steps, child_text))
                continue
            if isinstance(child, OPAQUE) or id(child) in seen:
                continue
            seen.add(id(child))
            queue.append((child, root, child_steps, child_text))
    return paths, guards


def _ndarray():
    import numpy

    return numpy.ndarray


def _children(value, root, steps, text, guards):
    """What a value leads to, as (child, steps, text)."""
    if isinstance(value, types.FunctionType):
        yield from _of_function(value, steps, text, guards, root)
    elif isinstance(value, types.MethodType):
        yield value.__func__, (*steps, (ATTRIBUTE, "__func__")), text
        yield value.__self__, (*steps, (ATTRIBUTE, "__self__")), f"{text}.__self__"
    elif isinstance(value, functools.partial):
        for name in ("func", "args", "keywords"):
            yield getattr(value, name), (*steps, (ATTRIBUTE, name)), f"{text}.{name}"
    elif isinstance(value, _plait.JitFunction):
        yield value.__wrapped__, (*steps, (ATTRIBUTE, "__wrapped__")), text
    elif type(value) is dict:
        for key, item in list(value.items()):
            yield item, (*steps, (ITEM, key)), f"{text}[{key!r:.40}]"
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield item, (*steps, (ITEM, index)), f"{text}[{index}]"
    else:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            for name, item in list(attributes.items()):
                yield item, (*steps, (ATTRIBUTE, name)), f"{text}.{name}"
        for kind in type(value).__mro__:
            slots = kind.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name) and name not in ("__dict__", "__weakref__"):
                    yield getattr(value, name), (*steps, (ATTRIBUTE, name)), f"{text}.{name}"
        call = getattr(type(value), "__call__", None)
        if isinstance(call, types.FunctionType):
            yield call, (*steps, (ATTRIBUTE, "__class__"), (ATTRIBUTE, "__call__")), text


def _of_function(function, steps, text, guards, root):
    code = function.__code__
    for index, name in enumerate(code.co_freevars):
        cell = function.__closure__[index]
        path = (*steps, (ATTRIBUTE, "__closure__"), (ITEM, index), (CELL, None))
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        yield content, path, name
        _guard(guards, root, path, name, content)
    for name in sorted(_global_names(code)):
        if name in function.__globals__:
            content = function.__globals__[name]
            path = (*steps, (ATTRIBUTE, "__globals__"), (ITEM, name))
            yield content, path, name
            _guard(guards, root, path, name, content)
    for number, value in enumerate(function.__defaults__ or ()):
        yield (
            value,
            (*steps, (ATTRIBUTE, "__defaults__"), (ITEM, number)),
            f"{text}.__defaults__[{number}]",
        )
    for name, value in (function.__kwdefaults__ or {}).items():
        yield value, (*steps, (ATTRIBUTE, "__kwdefaults__"), (ITEM, name)), name
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped, (*steps, (ATTRIBUTE, "__wrapped__")), text
    for chain, kind in _chains(code):
        _guard_chain(guards, function, root, steps, chain, kind)


def _guard(guards, root, path, text, value):
    if isinstance(value, SCALARS):
        guards.append(((root, path, text), value))


def _guard_chain(guards, function, root, steps, chain, kind):
    """Guards a scalar at the end of a chain of attributes that the code spells."""
    name, *attributes = chain
    code = function.__code__
    if kind == "global":
        if name not in function.__globals__:
            return
        value, path = function.__globals__[name], (*steps, (ATTRIBUTE, "__globals__"), (ITEM, name))
    elif name in code.co_freevars:
        index = code.co_freevars.index(name)
        try:
            value = function.__closure__[index].cell_contents
        except ValueError:
            return
        path = (*steps, (ATTRIBUTE, "__closure__"), (ITEM, index), (CELL, None))
    else:
        return
    if isinstance(value, types.ModuleType) and getattr(value, "__name__", "").partition(".")[0] in (
        "plait",
        "numpy",
        "math",
    ):
        return
    for attribute in attributes:
        # Properties could have effects; data is read where it lies.
        if not isinstance(value, (types.ModuleType, type)) and attribute not in getattr(
            value, "__dict__", {}
        ):
            return
        try:
            value = getattr(value, attribute)
        except AttributeError:
            return
        path = (*path, (ATTRIBUTE, attribute))
    _guard(guards, root, path, ".".join(chain), value)


@functools.lru_cache(maxsize=4096)
def _global_names(code):
    """Names of globals that code, or code inside it, loads."""
    names = {
        instruction.argval
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return frozenset(names)


@functools.lru_cache(maxsize=4096)
def _chains(code):
    """Chains of attributes that code spells, such as ("config", "lr")."""
    chains = set()
    current = None
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "LOAD_GLOBAL":
            current = ((instruction.argval,), "global")
        elif name == "LOAD_DEREF":
            current = ((instruction.argval,), "cell")
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and current:
            current = ((*current[0], instruction.argval), current[1])
            chains.add(current)
        elif name not in ("CACHE", "PUSH_NULL", "PRECALL"):
            current = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            chains |= _chains(constant)
    return frozenset(chains)
