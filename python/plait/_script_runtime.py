"""The helpers called by code that plait.script rewrites: statements that trace where Python cannot decide.

Each does what Python does while it knows the values. Where a condition is traced, both branches, or the body of the
loop, are traced once, on the variables that they share with the enclosing code, and lax.cond or lax.while_loop runs
them.

SPDX-License-Identifier: Apache-2.0
"""

import operator
from collections import deque

from plait import _plait
from plait._plait import is_known, unflatten
from plait._script_call import call
from plait._script_items import items_of
from plait._script_loop import Loop
from plait._script_state import (
    UNBOUND,
    Output,
    Traced,
    Undefined,
    Variables,
    aval_of,
    filler,
    is_same,
    packed,
    regions,
    truth,
    type_of,
    unpacked,
    where,
)

__all__ = [
    "and_", "assert_", "call", "compare", "effect", "for_", "if_", "if_exp", "not_", "or_", "text", "unchanged", "while_",
]  # fmt: skip

OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not, "in": lambda x, y: x in y, "not in": lambda x, y: x not in y,
}  # fmt: skip


def refuse_in_try(in_try, what):
    if in_try:
        _plait.fail(
            "TracerError",
            f"the condition of {what} inside `try` is traced, and which code raises would depend on it",
            "move it out of the `try` statement, or into a function called there",
        )


# --- Branches -------------------------------------------------------------------------------------


def if_(test, then, orelse, *names, lost=((), ()), in_try=False, **options):
    """`if test: then()`, `else: orelse()`; the functions assign names, which are read later.

    lost are names that are dead after then, or after orelse, because the branch ends by a jump. options are those of
    Variables.
    """
    if is_known(test):
        function = then if test else orelse
        if function is not None:
            regions.run(function)
        return
    refuse_in_try(in_try, "an `if`")
    variables = Variables((then, orelse), names, **options)
    _branch("`if`", truth(test), then, orelse, variables, lost)


def if_exp(test, then, orelse, names=()):
    """`then() if test else orelse()`."""
    if is_known(test):
        return then() if test else orelse()
    variables = Variables((then, orelse), names)
    return _branch("conditional expression", truth(test), then, orelse, variables)


def _branch(what, predicate, then, orelse, variables, lost=((), ())):
    """Selects the result of then or orelse, and the variables that they assign."""
    from plait import lax

    def trace(function, lost):
        def run(_):
            returned = function() if function is not None else None
            values = {
                name: UNBOUND if name in lost else value for name, value in variables.read().items()
            }
            return [], {"": returned, **values}

        return Traced(variables, lambda _: {}, (), run)

    try:
        sides = trace(then, lost[0]), trace(orelse, lost[1])
    except RecursionError:
        if len(regions.traced) > 1:
            raise
        _plait.fail(
            "TracerError",
            f"a function calls itself without end inside a traced {what}: both of its branches are traced",
            "write the recursion as a loop",
        )
    choice = _Choice(variables, what, sides, {*variables.filled, *lost[0], *lost[1]})

    def side(index):
        return lambda: choice.arrays(index, sides[index]())

    results = choice.results(lax.cond(predicate, side(0), side(1)))
    returned = results.pop("")
    variables.write(results)
    return returned


class _Choice:
    """How the values of two traced branches are merged."""

    def __init__(self, variables, what, sides, fillable):
        self.variables, self.what, self.fillable = variables, what, fillable
        self.values, self.pairs = {}, {}
        self.sides = sides
        for name, then in sides[0].values.items():
            self.values[name], self.pairs[name] = self._plan(name, then, sides[1].values[name])

    def _plan(self, name, then, orelse):
        """The part that is the same on both sides, and the pairs of leaves to select."""
        present = then or orelse
        if not present:
            return None, []
        if not (then and orelse):
            if name not in self.fillable:
                return None, []
            # It is dead on the side that lacks it: a flag says so.
            missing = [leaf if _is_static(leaf) else None for leaf in present.leaves]
            sides = (then.leaves, missing) if then else (missing, orelse.leaves)
            return present, list(zip(*sides))
        if then.structure != orelse.structure:
            self._differ(name, then, orelse)
        pairs = list(zip(then.leaves, orelse.leaves))
        for index, (a, b) in enumerate(pairs):
            if then.original[index] is orelse.original[index]:
                pairs[index] = (then.original[index],) * 2
            elif _is_static(a) or _is_static(b):
                if not is_same(a, b) and not (_is_number(a) and _is_number(b)):
                    self._differ(name, then, orelse)
        return then, pairs

    def _differ(self, name, then, orelse):
        label = self.variables.label(name)
        label = label if label.startswith("the ") else f"`{name}`" if name else "the value"
        values = [unflatten(side.structure, side.original) for side in (then, orelse)]
        _plait.fail(
            "TreeError",
            f"{label} of the traced {self.what} is {type_of(values[0])} in one branch and "
            f"{type_of(values[1])} in the other",
            "give both branches values of one structure: a traced condition selects between arrays",
        )

    def arrays(self, index, outputs):
        """The arrays of each variable that one side passes to lax.cond."""
        trees = {}
        for name, pairs in self.pairs.items():
            leaves = [
                self._array(pair[index], pair[1 - index], outputs)
                for pair in pairs
                if not is_same(*pair)
            ]
            if leaves:
                trees[self.variables.label(name)] = packed(leaves)
        return trees

    @staticmethod
    def _array(leaf, other, outputs):
        if leaf is None:
            return filler(aval_of(other))
        return outputs[leaf.index] if isinstance(leaf, Output) else _plait.to_array(leaf)

    def results(self, trees):
        """The values of the variables, from what lax.cond returned."""
        found = {}
        for name, value in self.values.items():
            if value is None:
                found[name] = self._undefined(name)
                continue
            selected = iter(unpacked(trees.get(self.variables.label(name), [])))
            leaves = [a if is_same(a, b) else next(selected) for a, b in self.pairs[name]]
            found[name] = unflatten(value.structure, leaves)
        return found

    def _undefined(self, name):
        return Undefined(
            name, f"is not assigned in every branch of the traced {self.what} at {where()}"
        )


def _is_static(leaf):
    return not isinstance(leaf, Output) and not _plait.is_array_like(leaf)


def _is_number(leaf):
    return isinstance(leaf, Output) or _plait.is_array_like(leaf)


# --- Loops ----------------------------------------------------------------------------------------


def while_(test, body, *names, in_try=False, **options):
    """`while test(): body()`; test and body assign names, which are read later."""
    while is_known(going := test()):
        if not going:
            return
        regions.run(body)
    refuse_in_try(in_try, "a `while`")

    def step():
        body()
        return [truth(test())]

    loop = Loop("`while`", Variables((test, body), names, **options))
    loop.trace(step)
    loop.run_while(truth(going))


def for_(iterable, body, *names, stop=None, in_try=False, **options):
    """`for item in iterable: body(item)`, ended by stop(), if given, after an item."""
    variables = lambda: Variables((body, stop), names, **options)  # noqa: E731
    items = items_of(iterable)
    if items is not None and not items.is_known:
        refuse_in_try(in_try, "a `for`")
        return _run_items(items, body, stop, variables())
    iterator = iter(iterable)
    for index, item in enumerate(iterator):
        regions.run(body, item)
        stopped = stop() if stop else False
        if is_known(stopped):
            if stopped:
                return
            continue
        refuse_in_try(in_try, "a `break` or `return` in a `for`")
        if items is not None:
            return _run_items(items.rest(index + 1), body, stop, variables(), stopped)
        return _run_each(iterator, body, stop, variables(), stopped)


def _run_items(items, body, stop, variables, stopped=False):
    """A traced loop over a range or arrays."""
    if isinstance(items.length, int) and items.length <= 0:
        return

    def step(index, *rows):
        body(items.item(index, rows))
        return [truth(stop())] if stop else []

    loop = Loop("`for`", variables)
    loop.trace(step, _plait.aval_of(0), *items.row_avals())
    if stop:
        loop.run_indexed(items, truth(stopped))
    elif items.arrays() or isinstance(items.length, int):
        loop.run_scan(items)
    else:
        loop.run_indexed(items)


def _run_each(iterator, body, stop, variables, stopped):
    """The rest of a loop over Python objects; each iteration runs under the condition that the loop continues."""
    for item in iterator:
        variables.before = {**variables.before, **variables.read()}
        _branch("`for`", truth(not_(stopped)), lambda: body(item), None, variables)  # noqa: B023
        stopped = stop()


# --- Expressions ----------------------------------------------------------------------------------


def not_(value):
    return not value if is_known(value) else _logical("logical_not", truth(value))


def and_(value, *rest, names=()):
    """`value and rest[0]() and ...`."""
    for index, function in enumerate(rest):
        if not is_known(value):
            return _short_circuit("logical_and", value, rest[index:], names)
        if not value:
            return value
        value = function()
    return value


def or_(value, *rest, names=()):
    """`value or rest[0]() or ...`."""
    for index, function in enumerate(rest):
        if not is_known(value):
            return _short_circuit("logical_or", value, rest[index:], names)
        if value:
            return value
        value = function()
    return value


def _logical(name, *values):
    from plait import numpy

    return getattr(numpy, name)(*values)


def _short_circuit(name, value, rest, names):
    """`and` and `or` of a traced value: the rest is computed where Python would reach it."""
    joined = and_ if name == "logical_and" else or_
    first, *others = rest
    following = lambda: joined(first(), *others, names=names)  # noqa: E731
    predicate = truth(value)
    if not names:
        with regions.tracing():
            jaxpr, consts = _plait.trace_region(lambda _: [following()], [])
        aval = jaxpr.out_avals[0]
        both_bools = (
            value.dtype.kind == aval.dtype.kind == "b" and value.ndim == len(aval.shape) == 0
        )
        if both_bools and _plait.may_speculate(jaxpr):
            return _logical(name, predicate, _plait.eval_jaxpr(jaxpr, consts)[0])
    sides = (following, lambda: value) if joined is and_ else (lambda: value, following)
    variables = Variables(rest, names)
    return _branch(f"`{name[8:]}`", predicate, *sides, variables)


def compare(left, *rest, names=()):
    """`left < middle() < right()`, as compare(left, "<", middle, "<", right)."""
    name, function, *others = rest
    right = function()
    value = OPERATORS[name](left, right)
    return and_(value, lambda: compare(right, *others), names=names) if others else value


class Text(tuple):
    """The parts of an f-string, of which values may be traced."""

    def __str__(self):
        return "".join(map(format, self))


def text(*parts):
    return Text(parts)


def assert_(test, message=None):
    """`assert test, message()`; a traced test is checked each time the program runs: see plait.check."""
    said = [message()] if message and not (is_known(test) and test) else []
    if is_known(test):
        if not test:
            raise AssertionError(*(str(part) if isinstance(part, Text) else part for part in said))
        return
    from plait import check

    parts = (
        said[0] if said and isinstance(said[0], Text) else said or ["the assertion does not hold"]
    )
    values = [part for part in parts if not is_known(part)]
    template = ("{}" if not is_known(part) else format(part).replace("{}", "{ }") for part in parts)
    check(truth(test), "".join(template), *values)


# --- Effects --------------------------------------------------------------------------------------


def effect(kind, text, depth):
    """Precedes a statement with an effect: an error if one of the depth enclosing statements is traced."""
    if not any(regions.traced[-depth:]):
        return
    if kind == "raise":
        _plait.fail(
            "TracerError",
            f"`{text}` depends on a traced condition: whether it runs is not known while the program is made",
            "use assert, which is checked when the program runs",
        )
    what = "" if kind == "change" else f"the {kind} variable "
    _plait.fail(
        "TracerError",
        f"{what}`{text}` is assigned inside a traced `if` or loop, which runs once for all values",
        "assign a local variable there, and this one after the statement",
    )


def unchanged(receiver, text, depth):
    """The receiver of a method that may mutate it: an error if a traced branch would mutate a container."""
    if type(receiver) in (list, dict, set, deque, bytearray) and any(regions.traced[-depth:]):
        _plait.fail(
            "TracerError",
            f"`{text}`, a {type(receiver).__name__} from outside, is changed inside a traced `if` or loop, which runs "
            "once for all values",
            "keep what you collect in arrays, or in variables of the function",
        )
    return receiver
