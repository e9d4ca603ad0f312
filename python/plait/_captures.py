"""Where a jitted function's captured arrays can be found again, and which scalars it reads.

jit makes captured arrays hidden inputs that are read again at each call. The search goes from the
function, and from arguments that are no arrays, through what code names: closure cells, globals, defaults,
`self`, functions, containers and attributes, breadth first and within a limit. Scalars are guarded where the
code spells the whole chain (`config.lr`, `self.scale`, `options["rate"]`), in methods that it calls too, and so
are lengths of lists and dicts that hold captured arrays, so that a changed one makes a new trace.

SPDX-License-Identifier: Apache-2.0
"""

import dis
import functools
import types

from plait import _plait

CELL, ITEM, ATTRIBUTE, LENGTH = 0, 1, 2, 3
LIMIT = 20_000
OURS = ("plait", "numpy", "math")
SCALARS = (bool, int, float, complex, str, bytes, type(None))
OPAQUE = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType, *SCALARS)


def find(function, wanted, arguments=()):
    """Paths to each wanted (node, NumPy array or None), and guards as (path, value) pairs.

    arguments are (parameter, value) of those that belong to the signature: an object whose method is jitted.
    """
    paths = [[] for _ in wanted]
    guards = _Guards()
    nodes = {node: index for index, (node, array) in enumerate(wanted) if array is None}
    arrays = {id(array): index for index, (_, array) in enumerate(wanted) if array is not None}
    seen = {id(function)}
    queue = [(function, function, (), getattr(function, "__name__", "f"))]
    for name, value in arguments:
        if not isinstance(value, OPAQUE) and id(value) not in seen:
            seen.add(id(value))
            queue.append((value, value, (), name))
            _guard_locals(guards, function, name, value)
    position = 0
    numpy_array = _ndarray()
    while position < len(queue) and len(queue) < LIMIT:
        value, root, steps, text = queue[position]
        position += 1
        holds = False
        for child, child_steps, child_text in _children(value, root, steps, text, guards):
            if isinstance(child, _plait.Array):
                index = nodes.get(_plait.node_of(child))
            elif isinstance(child, numpy_array):
                index = arrays.get(id(child))
            else:
                if not isinstance(child, OPAQUE) and id(child) not in seen:
                    seen.add(id(child))
                    queue.append((child, root, child_steps, child_text))
                continue
            if index is not None:
                holds = True
                paths[index].append((root, child_steps, child_text))
        if holds and type(value) in (list, dict):
            guards.append(((root, (*steps, (LENGTH, None)), f"len({text})"), len(value)))
    return paths, guards


class _Guards(list):
    """Guards, and the (code, object) pairs whose chains are among them."""

    def __init__(self):
        self.methods = set()


def _ndarray():
    import numpy

    return numpy.ndarray


def _children(value, root, steps, text, guards):
    """What a value leads to, as (child, steps, text)."""
    if isinstance(value, types.FunctionType):
        yield from _of_function(value, steps, text, guards, root)
    elif isinstance(value, types.MethodType):
        if isinstance(value.__func__, types.FunctionType):
            path = (*steps, (ATTRIBUTE, "__self__"))
            _guard_self(guards, value.__func__, value.__self__, root, path)
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
            _guard_self(guards, call, value, root, steps)
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
        _guard_chains(guards, function, "cell", name, content, root, path)
    for name in sorted(_global_names(code)):
        if name in function.__globals__:
            content = function.__globals__[name]
            path = (*steps, (ATTRIBUTE, "__globals__"), (ITEM, name))
            yield content, path, name
            _guard(guards, root, path, name, content)
            _guard_chains(guards, function, "global", name, content, root, path)
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


def _guard(guards, root, path, text, value):
    if isinstance(value, SCALARS):
        guards.append(((root, path, text), value))


def _guard_locals(guards, function, name, value):
    """Guards what the function's code reads from an argument that belongs to the signature."""
    while not isinstance(function, types.FunctionType):
        function = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if function is None:
            return
    _guard_chains(guards, function, "local", name, value, value, ())


def _guard_self(guards, method, value, root, path):
    """Guards what a method of value reads from it."""
    code = method.__code__
    if code.co_varnames and (code, id(value)) not in guards.methods:
        guards.methods.add((code, id(value)))
        _guard_chains(guards, method, "local", code.co_varnames[0], value, root, path)


def _guard_chains(guards, function, kind, name, value, root, path):
    """Guards scalars at the ends of chains that the code spells from a name that holds value."""
    if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in OURS:
        return
    # What plait.script rewrites spells the chains of the original with other instructions.
    written = getattr(function, "__wrapped__", None) if hasattr(function, "source") else function
    for chain_kind, chain_name, links in _chains(written.__code__):
        if (chain_kind, chain_name) == (kind, name):
            _guard_chain(guards, name, links, value, root, path)


def _guard_chain(guards, text, links, value, root, path):
    for step, key in links:
        if step == ITEM:
            if type(value) not in (dict, list, tuple):
                return
            try:
                value = value[key]
            except (LookupError, TypeError):
                return
            text += f"[{key!r:.40}]"
        else:
            # Properties could have effects; data is read where it lies.
            if not isinstance(value, (types.ModuleType, type)) and key not in getattr(
                value, "__dict__", {}
            ):
                found = _of_class(value, key)
                if isinstance(found, types.FunctionType):
                    _guard_self(guards, found, value, root, path)
                if not isinstance(found, types.MemberDescriptorType):
                    return
            try:
                value = getattr(value, key)
            except AttributeError:
                return
            text += f".{key}"
        path = (*path, (step, key))
    _guard(guards, root, path, text, value)


def _of_class(value, key):
    """What the class of value says of an attribute: a method, a slot, a property, nothing."""
    for kind in type(value).__mro__:
        if key in kind.__dict__:
            return kind.__dict__[key]
    return None


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


LOADS = {
    "LOAD_GLOBAL": "global",
    "LOAD_DEREF": "cell",
    "LOAD_FAST": "local",
    "LOAD_FAST_LOAD_FAST": "local",
    "STORE_FAST_LOAD_FAST": "local",
}


def _stored(instruction):
    """The locals that an instruction assigns: they may hold anything afterwards."""
    value = instruction.argval
    if instruction.opname == "STORE_FAST_LOAD_FAST":
        return {value[0]}
    if instruction.opname.startswith("STORE_FAST"):
        return set(value) if isinstance(value, tuple) else {value}
    return set()


@functools.lru_cache(maxsize=4096)
def _chains(code):
    """What code spells after names: ("global", "config", ((ATTRIBUTE, "lr"),))."""
    chains = set()
    current = key = None
    instructions = list(dis.get_instructions(code))
    stored = set().union(*(_stored(instruction) for instruction in instructions))
    for instruction in instructions:
        name, value = instruction.opname, instruction.argval
        if name in LOADS:
            # Some versions of Python load or store two locals at once.
            value = value[1] if isinstance(value, tuple) else value
            current = (LOADS[name], value, ()) if value not in stored else None
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and current:
            current = (*current[:2], (*current[2], (ATTRIBUTE, value)))
            chains.add(current)
        elif name == "LOAD_CONST" and current and isinstance(value, (str, int)):
            key = (ITEM, value)
            continue
        elif name == "BINARY_SUBSCR" and current and key:
            current = (*current[:2], (*current[2], key))
            chains.add(current)
        elif name not in ("CACHE", "PUSH_NULL", "PRECALL"):
            current = None
        key = None
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            chains |= {chain for chain in _chains(constant) if chain[0] != "local"}
    return frozenset(chains)
