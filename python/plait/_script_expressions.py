"""Rewrites the expressions of a statement for plait.script: an operand that may not be evaluated becomes a function.

SPDX-License-Identifier: Apache-2.0
"""

import ast

from plait._script_flow import bound, is_mutator, own_nodes
from plait._script_jumps import Refused, load, placed

COMPARISONS = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one statement. Definitions that must precede it are collected."""

    def __init__(self, function, alone=False):
        self.function, self.alone = function, alone
        self.before = []

    def finish(self, *statements):
        return [*self.before, *statements]

    def thunk(self, node, kind):
        """A function of no arguments that computes an expression."""
        walrus = [part for part in own_nodes(node) if isinstance(part, ast.NamedExpr)]
        if not walrus:
            return placed(ast.Lambda(no_arguments(), self.visit(node)), node)
        if self.alone:
            raise Refused(
                walrus[0],
                f"`{walrus[0].target.id}` is assigned by `:=` where a lambda or comprehension may skip it",
                "assign before, in a statement",
            )
        names = sorted({part.target.id for part in walrus})
        self.function.inside.update(names)
        inner = Expressions(self.function)
        value = inner.visit(node)
        keywords = [
            placed(kind(wanted), node)
            for kind, wanted in (
                (ast.Global, [n for n in names if n in self.function.globals]),
                (ast.Nonlocal, [n for n in names if n not in self.function.globals]),
            )
            if wanted
        ]
        body = [*keywords, *inner.finish(placed(ast.Return(value), node))]
        made = self.function.define(self.function.names.fresh(kind + "_"), [], body, node)
        self.before.append(made)
        return placed(load(made.name), node)

    def visit_BoolOp(self, node):
        helper = "and_" if isinstance(node.op, ast.And) else "or_"
        first, *rest = node.values
        assigned = assigned_by(rest)
        arguments = [self.visit(first), *(self.thunk(value, "right") for value in rest)]
        return placed(self.function.helper(helper, arguments, assigned), node)

    def visit_UnaryOp(self, node):
        operand = self.visit(node.operand)
        if not isinstance(node.op, ast.Not):
            node.operand = operand
            return node
        return placed(self.function.helper("not_", [operand]), node)

    def visit_Compare(self, node):
        if len(node.ops) == 1:
            return self.generic_visit(node)
        assigned = assigned_by(node.comparators[1:])
        arguments = [self.visit(node.left)]
        for operator, right in zip(node.ops, node.comparators):
            arguments += [ast.Constant(COMPARISONS[type(operator)]), self.thunk(right, "right")]
        return placed(self.function.helper("compare", arguments, assigned), node)

    def visit_IfExp(self, node):
        assigned = assigned_by([node.body, node.orelse])
        test = self.visit(node.test)
        arguments = [test, self.thunk(node.body, "then"), self.thunk(node.orelse, "else")]
        return placed(self.function.helper("if_exp", arguments, assigned), node)

    def visit_Call(self, node):
        function = self.function
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args
        if is_super and function.regions and function.parameters:
            node.args = [load("__class__"), load(function.parameters[0])]
            return placed(node, node)
        if is_mutator(node):
            node.func.value = placed(function.receiver(node.func.value), node.func)
        bare = function.is_bare(node.func)
        node = self.generic_visit(node)
        if not bare:
            node.func = placed(function.helper("call", [node.func]), node.func)
        return node

    def visit_Lambda(self, node):
        type(self.function)(node, self.function.names, self.function.visible)
        return node

    def _visit_comprehension(self, node):
        inner = Expressions(self.function, alone=True)
        shadow = {n for part in node.generators for n in bound(part.target)}
        visible, self.function.visible = self.function.visible, self.function.visible | shadow
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                value[:] = [inner.visit(part) for part in value]
            else:
                setattr(node, field, inner.visit(value))
        self.function.visible = visible
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension


def assigned_by(nodes):
    """The keyword with the names that `:=` assigns in expressions that may not be evaluated."""
    names = sorted({part.target.id for part in own_nodes(nodes) if isinstance(part, ast.NamedExpr)})
    return [ast.keyword("names", ast.Constant(tuple(names)))] if names else []


def arguments_of(names):
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def no_arguments():
    return arguments_of([])
