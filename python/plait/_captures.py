"""Where the captured arrays of a jitted function can be found again, and what else must not change.

jit makes captured arrays hidden inputs that are read again at each call. The search starts at the function, and at
arguments that are not arrays, and follows the names in code: closure cells, globals, defaults, `self`, functions,
containers and attributes, breadth first and up to a limit. Everything else that the code reads is guarded (_reads.py),
so that a call after a change makes a new trace.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import types

import numpy

from plait import _plait
from plait._bytecode import instructions
from plait._reads import (
    ATTRIBUTE,
    AVAL,
    BYTES,
    CELL,
    ELEMENT,
    ITEM,
    LENGTH,
    MOST_BYTES,
    UNORDERED,
    VALUES,
    Node,
    Reader,
)

LIMIT = 20_000
OPAQUE = (types.ModuleType, type, types.BuiltinFunctionType, types.CodeType, *VALUES)


def find(function, wanted, arguments=(), converted=None):
    """Paths to each wanted (node, NumPy array or None), and guards as (path, kind, expected).

    A path is (root, steps, text). arguments are (parameter, value) of the arguments that belong to the signature, such
    as an object whose method is jitted. converted lists the (object, is_read) that the trace converted to arrays or
    whose values it read; without them there are no guards.
    """
    paths, lengths = _find_arrays(function, wanted, arguments)
    if converted is None:
        return [[path for _, path in found] for found in paths], []
    reader = Reader({})
    for name, value in arguments:
        if isinstance(value, VALUES):
            reader.plain.add(name)
            continue
        place = reader.root(value, name)
        reader.arguments[name] = frozenset([place])
        if not name.isidentifier():
            reader.use_node(place, "any")
    reader.start(function)
    for path, size in lengths:
        reader.guard(Node(None, *path), LENGTH, size)
    paths = _with_read(reader, wanted, paths)
    _guard_arrays(reader, wanted, paths, converted, function, arguments)
    return paths, reader.guards


def _with_read(reader, wanted, paths):
    """Adds the places where the code reads the arrays. Of two paths to one object, the code's own is kept."""
    nodes = {node: index for index, (node, array) in enumerate(wanted) if array is None}
    arrays = {id(array): index for index, (_, array) in enumerate(wanted) if array is not None}
    found = [dict(path) for path in paths]
    for node, _ in reader.arrays.values():
        is_numpy = isinstance(node.value, numpy.ndarray)
        index = arrays.get(id(node.value)) if is_numpy else nodes.get(_plait.node_of(node.value))
        if index is not None:
            found[index][node.holder] = node.path
    return [list(path.values()) for path in found]


def _guard_arrays(reader, wanted, paths, converted, function, arguments):
    """Guards the bytes or types of arrays that are not inputs of the program, or not only inputs."""
    inputs = {id(array) for (_, array), found in zip(wanted, paths) if array is not None and found}
    nodes = {node for (node, array), found in zip(wanted, paths) if array is None and found}
    read = {_plait.node_of(value) for value, is_read in converted if is_read}
    made = [value for value, is_read in converted if not is_read]
    computed = any(id(value) not in inputs for value in made)
    seen = set()
    for node, uses in list(reader.arrays.values()):
        value = node.value
        if isinstance(value, numpy.ndarray):
            is_input = id(value) in inputs
            derived = [other for other in made if other is not value and _is_view(other, value)]
            fixed = derived or "numpy" in uses or ("index" in uses and value.dtype == bool)
            fixed = fixed or ("either" in uses and computed)
            fixed = fixed or (not is_input and uses != {"type"})
            if fixed and value.nbytes > MOST_BYTES and ("numpy" in uses or derived or computed):
                _refuse(node)
            fixed = fixed and value.nbytes <= MOST_BYTES
        else:
            number = _plait.node_of(value)
            is_input = number in nodes
            seen.add(number)
            fixed = number in read or ("index" in uses and value.dtype == bool)
        if fixed:
            reader.guard(node, BYTES, value)
        elif not is_input:
            reader.guard(node, AVAL, value)
    # Values that were read where the code does not show it.
    lost = [(number, None) for number in read - seen]
    places = _find_arrays(function, lost, arguments)[0] if lost else ()
    values = {_plait.node_of(value): value for value, is_read in converted if is_read}
    for (number, _), found in zip(lost, places):
        if found:
            reader.guard(Node(None, *found[0][1]), BYTES, values[number])


def _is_view(array, base):
    """Whether array is a NumPy view of base."""
    while isinstance(array, numpy.ndarray):
        if array is base:
            return True
        array = array.base
    return False


def _refuse(node):
    value = node.value
    _plait.fail(
        "TracerError",
        f"jit: the NumPy array {node.text}, of {value.nbytes / 1e6:.3g} MB, is computed with by NumPy while "
        "the function is traced, so that the program would keep its values",
        f"make it an array of plait once, outside of the function: {node.text} = plait.numpy.asarray("
        f"{node.text}); then it is read at each call",
    )


def _find_arrays(function, wanted, arguments):
    """Every (holder, path) of each wanted array, and (path, size) of lists and dicts that hold one.

    A holder is the id of the object that holds the array, with the steps from there.
    """
    paths = [[] for _ in wanted]
    lengths = []
    nodes = {node: index for index, (node, array) in enumerate(wanted) if array is None}
    arrays = {id(array): index for index, (_, array) in enumerate(wanted) if array is not None}
    seen = {id(function)}
    queue = [(function, function, (), getattr(function, "__name__", "f"))]
    for name, value in arguments:
        if not isinstance(value, OPAQUE) and id(value) not in seen:
            seen.add(id(value))
            queue.append((value, value, (), name))
    position = 0
    while position < len(queue) and len(queue) < LIMIT:
        value, root, steps, text = queue[position]
        position += 1
        holds = False
        for child, child_steps, child_text, *other in _children(value, steps, text):
            child_root = other[0] if other else root
            if isinstance(child, _plait.Array):
                index = nodes.get(_plait.node_of(child))
            elif isinstance(child, numpy.ndarray):
                index = arrays.get(id(child))
            else:
                if not isinstance(child, OPAQUE) and id(child) not in seen:
                    seen.add(id(child))
                    queue.append((child, child_root, child_steps, child_text))
                continue
            if index is not None:
                holds = True
                tail = child_steps if other else child_steps[len(steps) :]
                holder = (id(child_root if other else value), tail)
                paths[index].append((holder, (child_root, child_steps, child_text)))
        if holds and type(value) in (list, dict):
            lengths.append(((root, steps, text), len(value)))
    return paths, lengths


def _children(value, steps, text):
    """The values reachable from a value, as (child, steps, text), and a root where it is another one."""
    if isinstance(value, types.FunctionType):
        yield from _of_function(value, steps, text)
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
    elif isinstance(value, (list, tuple, *UNORDERED)):
        step = ITEM if isinstance(value, (list, tuple)) else ELEMENT
        for index, item in enumerate(list(value)):
            yield item, (*steps, (step, index)), f"{text}[{index}]"
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


def _of_function(function, steps, text):
    code = function.__code__
    for index, name in enumerate(code.co_freevars):
        path = (*steps, (ATTRIBUTE, "__closure__"), (ITEM, index), (CELL, None))
        try:
            yield function.__closure__[index].cell_contents, path, name
        except ValueError:
            continue
    scope = function.__globals__
    for name in sorted(_global_names(code)):
        if name in scope:
            yield scope[name], ((ITEM, name),), name, scope
    for number, value in enumerate(function.__defaults__ or ()):
        path = (*steps, (ATTRIBUTE, "__defaults__"), (ITEM, number))
        yield value, path, f"{text}.__defaults__[{number}]"
    for name, value in (function.__kwdefaults__ or {}).items():
        yield value, (*steps, (ATTRIBUTE, "__kwdefaults__"), (ITEM, name)), name
    wrapped = getattr(function, "__wrapped__", None)
    if wrapped is not None:
        yield wrapped, (*steps, (ATTRIBUTE, "__wrapped__")), text


@functools.lru_cache(maxsize=4096)
def _global_names(code):
    """Names of globals that code, or code inside it, loads."""
    names = {i.argval for i in instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return frozenset(names)
