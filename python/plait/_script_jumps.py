"""Removes `return`, `break` and `continue` from branches and loops, for plait.script.

`if p: return a` with statements after it becomes `if p: value = a` with those statements in its `else`. Where both
branches continue, a flag records the jump, and the following statements run under `if not flag`. Loops test the flags
too. The flags are ordinary variables: what Python knows of them stays known, and the others become values of the
program. `exits` of an `if` names the jumps that definitely end each of its branches: the value that such a branch
leaves in a variable does not matter if it is not read after the jump.

SPDX-License-Identifier: Apache-2.0
"""

import ast

from plait._script_flow import FUNCTIONS, falls_through, found_by, jumps


def placed(node, where):
    """node, in which parts without a source position get that of where."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and getattr(part, "lineno", None) is None:
            ast.copy_location(part, where)
    return node


def load(name):
    return ast.Name(name, ast.Load())


def assign(name, value, where):
    if not isinstance(value, ast.expr):
        value = ast.Constant(value)
    return placed(ast.Assign([ast.Name(name, ast.Store())], value), where)


class Refused(Exception):
    """A part of a function that cannot be scripted: the node, the problem, and the fix."""


class Jumps:
    """Lowers the body of one function. fresh makes an unused name."""

    def __init__(self, fresh):
        self.fresh = fresh
        self.value = self.returned = None
        self.flags = set()

    def lower(self, body):
        """The body with jumps in its last statement only."""
        last = body[-1]
        if not any("return" in jumps(statement) for statement in body if not _returns(statement)):
            return self._clean(self._block(body, {}))
        if falls_through(body):
            body = [*body, placed(ast.Return(ast.Constant(None)), _end(last))]
        self.value, self.returned = self.fresh("return_value"), self.fresh("returned")
        self.flags.add(self.returned)
        flags = {"return": self.returned}
        lowered = [assign(self.returned, False, body[0]), *self._block(body, flags)]
        lowered.append(placed(ast.Return(load(self.value)), _end(last)))
        return self._clean(lowered)

    def _block(self, statements, flags):
        """Statements without jumps; flags are the variables that record which jumps were taken."""
        done = []
        statements = list(statements)
        while statements:
            statement, *statements = statements
            if isinstance(statement, ast.Return) and "return" not in flags:
                return [*done, statement]
            if isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                if isinstance(statement, ast.Return):
                    value = statement.value or ast.Constant(None)
                    done.append(assign(self.value, value, statement))
                kind = type(statement).__name__.lower()
                return [*done, assign(flags[kind], True, statement)]
            kinds, completes = jumps(statement), falls_through([statement])
            if isinstance(statement, ast.If) and kinds and not falls_through(statement.body):
                orelse = [*statement.orelse, *statements]
                return [*done, self._if(statement, statement.body, orelse, flags)]
            if isinstance(statement, ast.If) and kinds and not falls_through(statement.orelse):
                body = [*statement.body, *statements]
                return [*done, self._if(statement, body, statement.orelse, flags)]
            if isinstance(statement, (ast.For, ast.While)):
                before, statement, after = self._loop(statement, flags)
                done += before
                statements = [*after, *statements]
                kinds = set(statement.inner) & {"return"}
                done.append(self._loop_body(statement))
            else:
                done.append(self._inside(statement, flags))
            if not completes:
                break
            if kinds and statements:
                guard = _if_not([flags[kind] for kind in sorted(kinds)], statements)
                guard.exits = (exits(statements), kinds)
                guard.body = self._block(statements, flags)
                return [*done, guard]
        return done

    def _if(self, old, body, orelse, flags):
        ends = exits(body), exits(orelse)
        new = ast.If(old.test, self._block(body, flags), self._block(orelse, flags))
        new.exits = ends
        return ast.copy_location(new, old)

    def _inside(self, statement, flags):
        """A statement with its blocks lowered."""
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            return statement
        if isinstance(statement, ast.Try) and jumps(statement.finalbody):
            raise Refused(
                statement.finalbody[0],
                "`finally` is left by a jump, which would drop the exception that it ends",
                "leave the function or loop after the `try` statement",
            )
        if isinstance(statement, ast.If):
            statement.exits = (exits(statement.body), exits(statement.orelse))
        taken = [flags[kind] for kind in sorted(jumps(getattr(statement, "body", [])))]
        for part in (
            statement,
            *getattr(statement, "handlers", ()),
            *getattr(statement, "cases", ()),
        ):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(part, field, None)
                if isinstance(block, list) and block:
                    setattr(part, field, self._block(block, flags))
        if isinstance(statement, ast.Try) and statement.orelse and taken:
            statement.orelse = [_if_not(taken, statement.orelse)]
        return statement

    # --- Loops ---

    def _loop(self, loop, flags):
        """The statements before a loop, the loop without `else`, and the statements after it."""
        kinds = jumps(loop.body)
        loop.inner = {kind: flags[kind] for kind in kinds & {"return"}}
        before = []
        for kind in sorted(kinds & {"break", "continue"}):
            loop.inner[kind] = self.fresh(kind + "_")
            self.flags.add(loop.inner[kind])
        if "break" in kinds:
            before.append(assign(loop.inner["break"], False, loop))
        loop.found = found_by(loop) if "break" in kinds else set()
        orelse, loop.orelse = loop.orelse, []
        if orelse and "break" in kinds:
            orelse = [_if_not([loop.inner["break"]], orelse)]
        return before, loop, orelse

    def _loop_body(self, loop):
        inner = loop.inner
        stops = [inner[kind] for kind in ("break", "return") if kind in inner]
        forever = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)
        body = self._block(loop.body, inner)
        if "continue" in inner:
            body.insert(0, assign(inner["continue"], False, loop.body[0]))
        where = loop.iter if isinstance(loop, ast.For) else loop.test
        tests = [placed(ast.UnaryOp(ast.Not(), load(name)), where) for name in stops]
        new = type(loop)(**{name: getattr(loop, name, None) for name in loop._fields})
        ast.copy_location(new, loop)
        new.body, new.orelse, new.stop, new.found = body, [], None, loop.found
        if isinstance(loop, ast.While):
            tests += [] if forever and loop.test.value and tests else [loop.test]
            new.test = tests[0] if len(tests) == 1 else placed(ast.BoolOp(ast.And(), tests), where)
        elif stops:
            new.stop = placed(_any(stops), where)
        return new

    # --- Unused flags ---

    def _clean(self, body):
        read = {
            node.id
            for top in body
            for part in (top, *_stops(top))
            for node in ast.walk(part)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        return _Dropper(self.flags - read).block(body)


class _Dropper(ast.NodeTransformer):
    """Removes assignments of flags."""

    def __init__(self, names):
        self.names = names

    def block(self, statements):
        kept = [node for node in map(self.visit, statements) if node is not None]
        return kept or [placed(ast.Pass(), statements[0])]

    def visit_Assign(self, node):
        target = node.targets[0]
        return None if isinstance(target, ast.Name) and target.id in self.names else node

    def generic_visit(self, node):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                kept = self.block(value)
                only_pass = len(kept) == 1 and isinstance(kept[0], ast.Pass)
                setattr(node, field, [] if only_pass and field == "orelse" else kept)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, (ast.ExceptHandler, ast.match_case)):
                        self.visit(item)
        return node


def _stops(top):
    return [node.stop for node in ast.walk(top) if getattr(node, "stop", None)]


def _returns(statement):
    return isinstance(statement, ast.Return)


def _end(node):
    """The position of the last line of a statement."""
    where = ast.Pass()
    where.lineno = where.end_lineno = node.end_lineno
    where.col_offset = where.end_col_offset = 0
    return where


def _any(names):
    loads = [load(name) for name in names]
    return loads[0] if len(loads) == 1 else ast.BoolOp(ast.Or(), loads)


def exits(statements):
    """The jumps that end a block, one of which is definitely taken; None if control may reach its end."""
    return None if falls_through(statements) else jumps(statements)


def _if_not(flags, body):
    """`if not (a or b): body`, at the first line of body."""
    return placed(ast.If(ast.UnaryOp(ast.Not(), _any(flags)), body, []), body[0])
