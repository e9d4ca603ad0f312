"""Rewrites the code of a function for plait.script: branches and loops become functions that helpers call.

    if x > 0:                       def then_1():
        y = x           becomes         nonlocal y
    else:                               y = x
        y = -x                      def else_1(): ...
                                    script.if_(x > 0, then_1, else_1, "y")

The functions share their variables with the enclosing function. So a helper that knows the condition calls one of them,
as Python would, and otherwise traces both (_script_runtime.py). The names at the end are the variables that the
statement assigns and that are read later. Every part keeps its position in the user's file.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import builtins
import types
from typing import NamedTuple

from plait._script_expressions import Expressions, arguments_of, no_arguments
from plait._script_flow import (
    FUNCTIONS,
    augmented,
    bound,
    captured,
    changed,
    declared,
    live,
    live_in_loop,
    parameters,
    rebinds,
    rebound,
    root,
    stores,
    suspends,
    written,
)
from plait._script_jumps import Jumps, load, placed

# Builtins that are called unchanged, because they do not use the values of arrays.
PLAIN = frozenset(
    "bytes callable delattr dict dir format frozenset getattr globals hasattr hash id isinstance issubclass "
    "iter list locals next object print property repr set setattr slice staticmethod classmethod str "
    "super tuple type vars BaseException Exception ValueError TypeError IndexError KeyError "
    "NotImplementedError RuntimeError AssertionError StopIteration".split()
)


class Names:
    """Makes unused names. helpers is the name of the helpers."""

    def __init__(self, tree, resolve):
        self.taken = set(dir(builtins))
        for node in ast.walk(tree):
            for field in ("id", "name", "arg", "rest"):
                self.taken.add(getattr(node, field, None))
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self.taken.update(node.names)
            if isinstance(node, ast.alias):
                self.taken.add(node.asname or node.name.partition(".")[0])
        self.resolve = resolve
        self.functions = set()  # names of functions made of statements
        self.helpers = self.fresh("script")

    def fresh(self, name):
        candidate, number = name, 0
        while candidate in self.taken or candidate.endswith("_"):
            number += 1
            candidate = f"{name.rstrip('_')}_{number}"
        self.taken.add(candidate)
        return candidate


class State(NamedTuple):
    """The variables of a statement that it assigns and that are read later, and how it changes them."""

    names: list
    written: list  # in place
    rebound: set
    augmented: list  # by `x += v`, which mutates lists and rebinds the names of arrays


class Function:
    """Rewrites one function, a FunctionDef or a Lambda, in place, including nested functions."""

    def __init__(self, node, names, outer=()):
        self.names = names
        self.parameters = parameters(node.args)
        body = node.body if isinstance(node.body, list) else [node.body]
        self.globals = declared(body, ast.Global)
        self.outer = declared(body, ast.Nonlocal)
        own = {*self.parameters, *bound(body)} - self.globals - self.outer
        self.local = own - set(self.parameters)
        self.visible = own | set(outer) | self.outer  # names that are not globals
        self.regions = []  # the names bound in each enclosing branch and loop, outermost first
        self.tries = 0
        self.value, self.flags = None, set()
        self.targets = {"return": frozenset()}  # the names that are live at the target of a jump
        self.found = (
            set()
        )  # names that an enclosing loop leaves with a value, although not every iteration does
        self.inside = set()  # names bound by functions of branches and loops
        self.own = own
        if isinstance(node, ast.Lambda):
            node.body = Expressions(self, alone=True).visit(node.body)
            return
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        documentation, body = body[:start], body[start:] or [placed(ast.Pass(), body[0])]
        jumps = Jumps(names.fresh)
        lowered = jumps.lower(body)
        self.value, self.flags = jumps.value, jumps.flags
        self.local |= set(bound(lowered)) - self.globals - self.outer - set(self.parameters)
        # The caller may read objects that it passed and code mutates.
        kept = set(changed(lowered, self.parameters)) - rebinds(lowered)
        self.always = captured(lowered) | self.globals | self.outer | kept
        self.own = self.local | set(self.parameters)
        self.shared = rebound(lowered) & own
        done = self.block(lowered, frozenset())
        node.body = [*documentation, *self._declarations(done, body[0]), *done]

    def _declarations(self, done, where):
        """Makes local variables of those that only nested functions assign."""
        at_top = set(bound([node for node in done if not getattr(node, "is_region", False)]))
        made = []
        for kind, declared_names in ((ast.Global, self.globals), (ast.Nonlocal, self.outer)):
            if declared_names:
                made.append(placed(kind(sorted(declared_names)), where))
        for name in sorted((self.inside & self.local) - at_top):
            target = ast.Name(name, ast.Store())
            made.append(placed(ast.AnnAssign(target, load("object"), None, 1), where))
        return made

    # --- Statements -----------------------------------------------------------------------------

    def block(self, statements, after):
        """The rewritten statements; names in after are live after them."""
        afters = []
        for statement in reversed(statements):
            afters.append(after)
            after = live([statement], after)
        pairs = zip(statements, reversed(afters))
        return [new for node, later in pairs for new in self.statement(node, later)] or [ast.Pass()]

    def statement(self, node, after):
        prelude = Expressions(self)
        if isinstance(node, ast.If):
            return self._if(node, after, prelude)
        if isinstance(node, ast.While):
            return self._while(node, after)
        if isinstance(node, ast.For):
            return self._for(node, after, prelude)
        if isinstance(node, FUNCTIONS):
            return self._function(node, prelude)
        if isinstance(node, ast.ClassDef):
            return [node]
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            return []
        if isinstance(node, (ast.With, ast.Try, ast.Match, getattr(ast, "TryStar", ast.Try))):
            return self._nested(node, after, prelude)
        if isinstance(node, ast.Assert):
            return self._assert(node, prelude)
        guards = self._guards(node)
        if isinstance(node, ast.AnnAssign) and self.regions and isinstance(node.target, ast.Name):
            if node.value is None:
                return []
            node = ast.copy_location(ast.Assign([node.target], node.value), node)
        return [*guards, *prelude.finish(prelude.visit(node))]

    def _if(self, node, after, prelude):
        if _is_plain(node.test) and not any(
            isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)
        ):
            node.body = self.block(node.body, after)
            node.orelse = self.block(node.orelse, after) if node.orelse else []
            return [node]
        code = [*node.body, *node.orelse]
        state = self._state(code, after)
        test = prelude.visit(node.test)
        then = self._region("then", [], node.body, [], after, node)
        orelse = self._region("else", [], node.orelse, [], after, node)
        functions = [function for function in (then, orelse) if function]
        arguments = [load(made.name) if made else ast.Constant(None) for made in (then, orelse)]
        lost = [self._lost(state.names, ends) for ends in getattr(node, "exits", (None, None))]
        names = [name for name in state.names if not all(name in side for side in lost)]
        state = state._replace(names=names)
        call = self._call("if_", [test, *arguments], state, node.test)
        lost = [tuple(name for name in names if name in side) for side in lost]
        if any(lost):
            call.value.keywords.append(ast.keyword("lost", ast.Constant(tuple(lost))))
        return prelude.finish(*functions, placed(call, node.test))

    def _lost(self, state, exits):
        """Variables that are dead after a branch that ends by these jumps."""
        if exits is None:
            return []
        read = self.flags.union([self.value], *(self.targets[kind] for kind in exits))
        return [name for name in state if name not in read]

    def _while(self, node, after):
        head = live_in_loop(node, after)
        code = [node.test, *node.body]
        state = self._state(code, head)
        prelude = Expressions(self)
        test = prelude.thunk(node.test, "test")
        found = self._found(node)
        body = self._body(node, after, head, [], [])
        call = self._call("while_", [test, load(body.name)], state, node.test, found)
        return prelude.finish(body, call)

    def _for(self, node, after, prelude):
        head = live_in_loop(node, after)
        code = [node.target, *node.body]
        state = self._state(code, head)
        items = prelude.visit(node.iter)
        item = self.names.fresh("item")
        first = placed(ast.Assign([node.target], load(item)), node.target)
        found = self._found(node)
        body = self._body(node, after, head, [item], [first])
        call = self._call("for_", [items, load(body.name)], state, node.iter, found)
        if node.stop:
            stop = placed(ast.Lambda(no_arguments(), node.stop), node.iter)
            stop.body = prelude.visit(stop.body)
            call.value.keywords.insert(0, ast.keyword("stop", stop))
        return prelude.finish(body, placed(call, node.iter))

    def _body(self, node, after, head, arguments, first):
        outer = self.targets, self.found
        self.targets = {**self.targets, "break": after, "continue": head}
        self.found = self.found | self._found(node)
        body = self._region("body", arguments, node.body, first, head, node)
        self.targets, self.found = outer
        return body

    def _found(self, node):
        """Variables that have a value when a loop is left, and that its body does not read first."""
        return node.found - live(node.body, frozenset())

    def _region(self, kind, arguments, body, first, after, where):
        """A function for a branch or loop, or None when it is empty."""
        if kind != "body" and all(isinstance(node, ast.Pass) for node in body):
            return None
        name = self.names.fresh(kind + "_")
        names = [n for n in bound([*first, *body]) if n not in arguments]
        names += sorted(self._reached(body).difference(names))
        self.inside.update(names)
        self.regions.append(set(names))
        done = [s for node in first for s in self.statement(node, after)]
        done += self.block(body, after)
        self.regions.pop()
        declarations = []
        for keyword, is_global in ((ast.Global, True), (ast.Nonlocal, False)):
            wanted = [n for n in names if (n in self.globals) == is_global]
            if wanted:
                declarations.append(placed(keyword(wanted), where))
        return self.define(name, arguments, declarations + done, where)

    def define(self, name, arguments, body, where):
        function = ast.FunctionDef(name, arguments_of(arguments), body, [], None)
        function.type_params = []
        self.names.functions.add(name)
        function.is_region = True
        return placed(function, where)

    def _state(self, code, after):
        """Variables that code assigns and that are live after it, in order of assignment."""
        names = dict.fromkeys([*bound(code), *written(code, self.own)])
        names |= dict.fromkeys(sorted(self._reached(code)))
        names = [n for n in names if n in self.own and n in after | self.always]
        return State(names, written(code, self.own), rebinds(code), augmented(code, self.own))

    def _reached(self, code):
        """Variables that code may assign by calling a nested function."""
        has_call = any(isinstance(node, ast.Call) for top in code for node in ast.walk(top))
        return self.shared if has_call else set()

    def _call(self, helper, arguments, state, where, found=frozenset()):
        """A statement that calls a helper with the names of variables."""
        state, written, rebound, augmented = state
        keywords = []
        if self.value in state:
            state = [name for name in state if name != self.value]
            keywords.append(ast.keyword("result", ast.Constant(self.value)))
        tables = {
            "written": [name for name in written if name not in rebound],
            "copied": [name for name in written if name in rebound],
            "augmented": [name for name in augmented if name not in rebound],
            "found": [name for name in state if name in self.found | found],
        }
        for keyword, names in tables.items():
            if names:
                keywords.append(ast.keyword(keyword, ast.Constant(tuple(names))))
        if self.tries:
            keywords.append(ast.keyword("in_try", ast.Constant(True)))
        arguments = [*arguments, *map(ast.Constant, state)]
        return placed(ast.Expr(self.helper(helper, arguments, keywords)), where)

    def helper(self, name, arguments, keywords=()):
        function = ast.Attribute(load(self.names.helpers), name, ast.Load())
        return ast.Call(function, list(arguments), list(keywords))

    def _function(self, node, prelude):
        node.decorator_list = [prelude.visit(part) for part in node.decorator_list]
        node.args.defaults = [prelude.visit(part) for part in node.args.defaults]
        node.args.kw_defaults = [part and prelude.visit(part) for part in node.args.kw_defaults]
        if isinstance(node, ast.FunctionDef) and not suspends(node.body):
            Function(node, self.names, self.visible)
        return prelude.finish(node)

    def _nested(self, node, after, prelude):
        """Keeps `with`, `try` and `match`, and rewrites the blocks inside them."""
        is_try = bool(getattr(node, "handlers", ()))
        self.tries += is_try
        if isinstance(node, ast.With):
            node.items = [prelude.visit(item) for item in node.items]
            node.body = self.block(node.body, after)
        elif isinstance(node, ast.Match):
            node.subject = prelude.visit(node.subject)
            for case in node.cases:
                case.body = self.block(case.body, after)
        else:
            final, after = after, live(node.finalbody, after)
            rescue = after.union(*(live(handler.body, after) for handler in node.handlers))
            node.body = self.block(node.body, rescue | live(node.orelse, after))
            for handler in node.handlers:
                handler.body = self.block(handler.body, after)
            node.orelse = self.block(node.orelse, after) if node.orelse else []
            if node.finalbody:
                node.finalbody = self.block(node.finalbody, final)
        self.tries -= is_try
        return prelude.finish(node)

    def _assert(self, node, prelude):
        if not __debug__:
            return []
        test = prelude.visit(node.test)
        arguments = [test]
        if node.msg:
            arguments.append(prelude.thunk(self._parts(node.msg), "message"))
        return prelude.finish(placed(ast.Expr(self.helper("assert_", arguments)), node))

    def _parts(self, message):
        """An f-string without formats as its parts, so that a check may show traced values."""
        parts = message.values if isinstance(message, ast.JoinedStr) else []
        values = [part for part in parts if isinstance(part, ast.FormattedValue)]
        if not values or any(value.format_spec or value.conversion != -1 for value in values):
            return message
        parts = [part.value if part in values else part for part in parts]
        return placed(self.helper("text", parts), message)

    # --- Effects --------------------------------------------------------------------------------

    def _guards(self, node):
        """Statements that refuse the effects of node where they would depend on traced values."""
        guards = []
        if not self.regions:
            return guards
        if isinstance(node, ast.Raise):
            guards.append(("raise", ast.unparse(node), len(self.regions)))
        for name in bound(node):
            if name in self.globals | self.outer:
                kind = "global" if name in self.globals else "nonlocal"
                guards.append((kind, name, len(self.regions)))
        for store, target in stores(node):
            depth = self._depth(target)
            if depth and not isinstance(store.ctx, ast.Load):
                guards.append(("change", ast.unparse(store), depth))
        return [
            placed(ast.Expr(self.helper("effect", map(ast.Constant, guard))), node)
            for guard in guards
        ]

    def _depth(self, target):
        """How many of the enclosing regions mutate an object made outside them."""
        name, items = root(target)
        if name is None or (items and name in self.own):
            return 0
        return sum(name not in names for names in self.regions)

    def receiver(self, node):
        """The receiver of a method that may mutate it."""
        depth = self._depth(node)
        if not depth:
            return node
        name, _ = root(node)
        is_module = name not in self.visible and isinstance(
            self.names.resolve(name), types.ModuleType
        )
        if is_module or _is_update(node):
            return node
        text = ast.unparse(node)
        return self.helper("unchanged", [node, ast.Constant(text), ast.Constant(depth)])

    def is_bare(self, function):
        """Whether a call of function stays unchanged: plait's own functions and harmless builtins."""
        name, _ = root(function)
        if name is None or name in self.visible:
            return False
        if name == self.names.helpers:
            return True
        found = self.names.resolve(name)
        if isinstance(found, types.ModuleType):
            return found.__name__.partition(".")[0] == "plait"
        if name in PLAIN and found is getattr(builtins, name):
            return isinstance(function, ast.Name)
        return (getattr(found, "__module__", None) or "").partition(".")[0] == "plait"


def _is_plain(test):
    """Whether a test cannot depend on the value of an array: `x is None`, `isinstance(x, C)`."""
    if isinstance(test, ast.Constant):
        return True
    if isinstance(test, ast.Compare):
        return all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in test.ops)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_plain(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(_is_plain, test.values))
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.func.id in ("isinstance", "issubclass", "callable", "hasattr")
    return False


def _is_update(node):
    """Whether node is `x.at[index]`, whose methods mutate nothing."""
    inner = node.value if isinstance(node, ast.Subscript) else None
    return isinstance(inner, ast.Attribute) and inner.attr == "at"
