"""Recompiles the rewritten source of a function at its lines, with its globals and its cells.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import builtins
import copy
import functools
import inspect
import linecache
import types

from plait import _plait, _script_runtime
from plait._functions import name_of
from plait._script_flow import FUNCTIONS, SUSPENDS, suspends
from plait._script_jumps import Refused, placed
from plait._script_rewrite import Function, Names

# Rewritten code objects, with nested ones, and the rewritten form of user code: by identity, kept alive.
_ours: dict[int, types.CodeType] = {}
_made: dict[int, tuple] = {}


def is_rewritten(fun):
    return id(fun.__code__) in _ours


def rewritten(fun):
    """A user's function, called from scripted code, rewritten; unchanged if it cannot be."""
    if is_rewritten(fun):
        return fun
    done = fun.__dict__.get("__plait_scripted__")
    if done is None or done[0] is not fun.__code__:
        try:
            made = rewrite(fun)[0]
        except _plait.ValueError:  # script(fun) would say why
            made = fun
        done = fun.__plait_scripted__ = (fun.__code__, made)
    return done[1]


# --- Reading ------------------------------------------------------------------------------------------------


def _body(node):
    return node.body if isinstance(node.body, list) else [node.body]


@functools.lru_cache(maxsize=64)
def _parsed(text, filename):
    """Functions in a file, by their first line, each with the names of its enclosing classes."""
    found = {}

    def visit(node, owner):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (*FUNCTIONS, ast.Lambda)):
                lines = [child.lineno, *(d.lineno for d in getattr(child, "decorator_list", ()))]
                found.setdefault(min(lines), []).append((child, owner))
                visit(child, owner)
            else:
                visit(child, child.name if isinstance(child, ast.ClassDef) else owner)

    visit(ast.parse(text, filename), None)
    return found


def _definition(fun):
    """The node of a function's definition with private names spelled out, or None."""
    code = fun.__code__
    linecache.checkcache(code.co_filename)
    try:
        lines, _ = inspect.findsource(code)
        candidates = _parsed("".join(lines), code.co_filename).get(code.co_firstlineno, [])
    except (OSError, SyntaxError, IndexError):
        return None
    fitting = [pair for pair in candidates if getattr(pair[0], "name", "<lambda>") == code.co_name]
    if len(fitting) > 1:
        places = list(code.co_positions())
        fitting = [pair for pair in fitting if _places(pair[0], fun) == places]
    if not fitting:
        return None
    node, owner = fitting[0]
    node = copy.deepcopy(node)
    return _Mangler(owner.lstrip("_")).visit(node) if owner and owner.strip("_") else node


def _places(node, fun):
    """The source positions of a definition's instructions, which distinguish two lambdas of one line."""
    node = copy.deepcopy(node)
    node.decorator_list = []
    return list(_inner_code(node, fun, fun.__code__.co_freevars).co_positions())


class _Mangler(ast.NodeTransformer):
    """Spells private names of a class out, as the compiler does inside it."""

    def __init__(self, owner):
        self.owner = owner

    def _mangle(self, name):
        private = name and name.startswith("__") and not name.endswith("__") and "." not in name
        return f"_{self.owner}{name}" if private else name

    def generic_visit(self, node):
        for field in ("id", "attr", "arg", "name"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, self._mangle(value))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._mangle(name) for name in node.names]
        return super().generic_visit(node)


# --- Compiling ----------------------------------------------------------------------------------------------


def rewrite(fun):
    """fun rewritten, and its rewritten text."""
    made = _made.get(id(fun.__code__))
    if made is None:
        made = _made[id(fun.__code__)] = (fun.__code__, *_compile(fun))
    _, code, source, helpers = made
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or ()))
    cells[helpers] = types.CellType(_script_runtime)
    closure = tuple(cells[name] for name in code.co_freevars)
    function = types.FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    function.__kwdefaults__ = fun.__kwdefaults__
    function.__qualname__, function.__module__ = fun.__qualname__, fun.__module__
    return function, source


def _compile(fun):
    """The rewritten code of fun, its text, and the name of the helpers in it."""
    name, node = name_of(fun), _definition(fun)
    if node is None:
        _plait.fail(
            "ValueError",
            f"script: the source of `{name}` cannot be read from {fun.__code__.co_filename}",
            "define it in a file or notebook, and one lambda a line",
        )
    node.decorator_list = []
    if isinstance(node, ast.FunctionDef):
        node.returns = None
    _strip(node.args)
    names = Names(node, _resolver(fun))
    try:
        _refuse_suspension(node)
        Function(node, names)
    except Refused as refused:
        part, what, fix = refused.args
        with _plait.AtLine(fun.__code__.co_filename, part.lineno, name):
            _plait.fail("ValueError", f"script: {what}", fix)
    free = [*fun.__code__.co_freevars, names.helpers]
    code = _inner_code(node, fun, free)
    code = _named(code, names.functions, code.co_name, code.co_qualname)
    return code, ast.unparse(ast.fix_missing_locations(node)), names.helpers


def _refuse_suspension(node):
    stop = suspends(_body(node))
    if stop is None and not isinstance(node, ast.AsyncFunctionDef):
        return
    what = SUSPENDS[type(stop)] if stop else "async def"
    raise Refused(
        stop or node,
        f"`{what}` makes `{node.name}` stop and go on, which a program does not",
        "return arrays, and write the loop around it",
    )


def _strip(arguments):
    """Removes defaults and annotations, which the function keeps as values."""
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    nothing = ast.Constant(None)
    arguments.defaults = [nothing for _ in arguments.defaults]
    arguments.kw_defaults = [value and nothing for value in arguments.kw_defaults]


def _resolver(fun):
    """The current meaning of a name that is not a local of fun."""
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or ()))

    def resolve(name):
        try:
            return cells[name].cell_contents if name in cells else fun.__globals__[name]
        except (KeyError, ValueError):
            return getattr(builtins, name, None)

    return resolve


def _inner_code(node, fun, free):
    """The code of a definition, nested in a function that has the free names as parameters."""
    if isinstance(node, ast.Lambda):
        inner = ast.Return(node)
    else:  # its own name must not shadow a global that it may call
        inner = copy.copy(node)
        inner.name = "<scripted>"
    parameters = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    outer = ast.FunctionDef("outer", parameters, [inner], [], None)
    outer.type_params = []
    module = ast.Module([placed(outer, node)], [])
    flags = fun.__code__.co_flags & 0x1FF0000  # those of `from __future__ import ...`
    compiled = compile(
        ast.fix_missing_locations(module),
        fun.__code__.co_filename,
        "exec",
        flags,
        dont_inherit=True,
    )
    code = _codes(_codes(compiled)[0])[0]
    return code.replace(co_name=fun.__code__.co_name, co_qualname=fun.__code__.co_qualname)


def _codes(code):
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _named(code, made, name, qualified):
    """Renames functions made of statements after the enclosing function, and marks the code as rewritten."""
    new = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            thunk = constant.co_name == "<lambda>" and constant.co_argcount == 0
            own = constant.co_name in made or thunk
            names = (name, qualified) if own else (constant.co_name, constant.co_qualname)
            constant = _named(constant, made, *names)
        new.append(constant)
    code = code.replace(co_consts=tuple(new), co_name=name, co_qualname=qualified)
    _ours[id(code)] = code
    return code
