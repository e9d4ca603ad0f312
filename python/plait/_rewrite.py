"""Passes: functions from programs to programs, as transforms of functions; rewrite rules; builders.

SPDX-License-Identifier: Apache-2.0
"""

import inspect
import math

from plait import _plait
from plait._extend import primitive_name
from plait._functions import (
    Flat,
    applying,
    call_place,
    check_callable,
    check_flag,
    name_of,
    refuse,
    text_of,
    to_arrays,
    wraps,
)
from plait._plait import Jaxpr, Match, Uses, flatten, unflatten
from plait._programs import Entry, Program
from plait._transforms import ClosedJaxpr

__all__ = [
    "Builder",
    "Match",
    "Pass",
    "PassStatistics",
    "Rule",
    "Uses",
    "apply_pass",
    "pipeline",
    "rebuild",
    "rewrite",
    "walk",
]


class PassStatistics:
    """Statistics of one run of a pass: equations before and after (including bodies), matches, seconds; and its parts.

    Its text is a table.
    """

    def __init__(self, values):
        self.name, self.matches, self.seconds = values["name"], values["matches"], values["seconds"]
        self.equations_before = values["equations_before"]
        self.equations_after = values["equations_after"]
        self.parts = [PassStatistics(part) for part in values["parts"]]
        self._text = values["text"]

    def __repr__(self):
        return self._text


class Pass:
    """A function from programs to programs, made by apply_pass, rewrite and pipeline.

    Applied to a Jaxpr (or the result of make_jaxpr) it returns one; applied to a loaded program, or an entry of one, it
    returns another that keeps its test vectors. Applied to any other function it is a transform: the function is
    traced, and its rewritten program runs instead, under any transforms around and inside. Every result is checked:
    ValueError names a pass whose program is ill-formed, has other inputs, or another number of outputs.
    """

    def __init__(self, compiled):
        self._pass = compiled
        self.__name__ = compiled.name

    @property
    def statistics(self):
        """PassStatistics of the last run."""
        return PassStatistics(self._pass.statistics)

    def __call__(self, target):
        if isinstance(target, Jaxpr):
            return self._pass.run(target)
        if isinstance(target, ClosedJaxpr):
            return ClosedJaxpr(self._pass.run(target.jaxpr), target.consts, target.out_tree)
        if isinstance(target, Entry):
            return target.with_jaxpr(self._pass.run(target.jaxpr))
        if isinstance(target, Program):
            return target.with_entries({name: self(target[name]) for name in target})
        check_callable(self.__name__, target)

        def rewritten(*args, **kwargs):
            leaves, structure = flatten((args, kwargs))
            with applying(self.__name__, target):
                arrays = to_arrays(leaves, structure, self.__name__, call_place(structure))
            flat = Flat(self.__name__, target, structure)
            outputs = self._pass.apply(flat, arrays, name_of(target))
            return unflatten(flat.outputs, outputs)

        return wraps(self.__name__, target, rewritten)

    def __repr__(self):
        return f"Pass({self.__name__!r})"


def apply_pass(pass_, name=None, *, verify=False):
    """Makes a Pass from a function from Jaxpr to Jaxpr: apply_pass(mine)(f)(x). Also a decorator.

    The function runs once per trace. It keeps the program's inputs, and their order, and the number of its outputs.
    verify runs the programs before and after it on random numbers, in float64 where their equations allow it; a pair
    verify=(low, high) gives their range. ValueError where results differ, and for programs with effects.
    """
    if not isinstance(pass_, Pass):
        check_callable("apply_pass", pass_)
        pass_ = Pass(_plait.make_pass(pass_, _checked_name("apply_pass", name) or name_of(pass_)))
    if verify:
        return Pass(_plait.make_verified(pass_._pass, *_interval(verify)))
    return pass_


def pipeline(*passes, name="pipeline", verify=False):
    """These passes, one after the other, as one Pass; functions from Jaxpr to Jaxpr are passes too.

    `statistics` of the result has a part for each. verify is that of apply_pass, for each.
    """
    made = [apply_pass(pass_, verify=verify)._pass for pass_ in passes]
    return Pass(_plait.make_pipeline(made, _checked_name("pipeline", name) or "pipeline"))


def _interval(verify):
    """The range of verify's random numbers: low and high."""
    if isinstance(verify, bool):
        return -2.0, 2.0
    is_pair = isinstance(verify, tuple) and len(verify) == 2
    if not is_pair or not all(isinstance(bound, (int, float)) for bound in verify):
        refuse("rewrite", "verify", verify, "write verify=True, or bounds as verify=(0.5, 2)")
    if not -math.inf < verify[0] < verify[1] < math.inf:
        _plait.fail(
            "ValueError",
            f"rewrite: verify is {verify}, which bounds no numbers",
            "give a lower and an upper bound, both finite",
        )
    return tuple(float(bound) for bound in verify)


def _checked_name(what, name):
    if name is not None and not isinstance(name, str):
        refuse(what, "the name", name, "give text")
    return name


def _program(what, jaxpr):
    """A Jaxpr, also from the result of make_jaxpr."""
    found = jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr
    if not isinstance(found, Jaxpr):
        refuse(what, "the program", jaxpr, "give a Jaxpr, such as plait.make_jaxpr(f)(x)")
    return found


class Rule:
    """A pattern and its replacement, for plait.rewrite, whose arguments these are."""

    def __init__(self, pattern, replacement, where=None, *, name=None, any_params=(), like=None):
        for function in (pattern, replacement):
            check_callable("rewrite", function)
        if where is not None:
            check_callable("rewrite: where", where)
        count = _num_arguments(pattern)
        if count != _num_arguments(replacement):
            _plait.fail(
                "TreeError",
                f"rewrite: the pattern takes {count} arguments and the replacement "
                f"{_num_arguments(replacement)}",
                "give both the same arguments",
            )
        many = isinstance(any_params, (tuple, list, set, frozenset))
        names = list(any_params) if many else [any_params]
        if like is not None and not isinstance(like, (tuple, list)):
            refuse("rewrite", "like", like, 'give a tuple of specs: like=("n d", "d")')
        self.name = _checked_name("rewrite", name) or _rule_name(pattern)
        self._rule = _plait.make_rule(
            _flat(pattern),
            _flat(replacement),
            count,
            where,
            self.name,
            [primitive_name(each) for each in names],
            like,
        )

    def __repr__(self):
        return f"Rule({self.name!r})"


def rewrite(
    pattern,
    replacement=None,
    where=None,
    *,
    name=None,
    any_params=(),
    like=None,
    nested=True,
    repeat=True,
    verify=False,
):
    """A Pass that replaces what pattern(*args) computes by replacement(*args), wherever it occurs in a program.

    Both are ordinary functions of the same arguments, traced as usual: rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x:
    x)(f). Arguments match any value of any shape and dtype, numbers too; an argument that is used twice matches equal
    values. Everything else must be the same: primitives, parameters, numbers; operands of commutative operations may be
    in any order. There may be several results (a tuple). A match is replaced only when nothing but its results is used
    outside it.

    where(match) says whether to apply the rule, given a Match. any_params are primitives, such as "conv", whose
    parameters may be any: the replacement's equation of the same primitive takes those of the match. like gives types
    of the arguments, as specs ("n c h w", "c"), at which to trace the pattern where those of the program are not
    suitable. nested enters bodies of calls, loops and branches. repeat continues until nothing matches. verify runs
    pattern and replacement on random numbers at the types of each match, in float64 where both can be traced so; a pair
    verify=(low, high) gives their range.

    pattern may be a list of plait.Rule: the first that matches at an equation is applied.

    ValueError for a pattern that matches everything or nothing, a replacement of other types, rules that match without
    end, and where verify finds a difference, which shows both values.
    """
    if isinstance(pattern, (Rule, list, tuple)):
        rules = [pattern] if isinstance(pattern, Rule) else list(pattern)
        for rule in rules:
            if not isinstance(rule, Rule):
                _plait.fail(
                    "DtypeError",
                    f"rewrite: {text_of(rule)} of type {type(rule).__name__} is no rule",
                    "give plait.Rule(pattern, replacement)",
                )
        if replacement is not None or where is not None:
            _plait.fail(
                "TreeError",
                "rewrite: a replacement or where was given beside rules, which have their own",
                "put it into plait.Rule(pattern, replacement, where)",
            )
    else:
        rules = [Rule(pattern, replacement, where, name=name, any_params=any_params, like=like)]
    check_flag("rewrite", "nested", nested)
    check_flag("rewrite", "repeat", repeat)
    compiled = _plait.make_rewrite(
        [rule._rule for rule in rules], nested, repeat, bool(verify), *_interval(verify)
    )
    return Pass(compiled)


def _flat(function):
    """The function as one of a list of arrays; results are the leaves of its return value."""

    def flat(leaves):
        return flatten(function(*leaves))[0]

    return flat


def _num_arguments(function):
    """The number of required arguments; others keep their defaults."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = None
    needed = [p for p in parameters or () if p.default is p.empty]
    if parameters is None or any(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in needed
    ):
        _plait.fail(
            "TreeError",
            f"rewrite: how many arguments `{name_of(function)}` takes is not known",
            "give a function of positional arguments, such as a lambda",
        )
    return len(needed)


def _rule_name(pattern):
    name = getattr(pattern, "__name__", "")
    if name != "<lambda>":
        return name_of(pattern)
    code = pattern.__code__
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"


class Builder:
    """A program under construction, which cannot be ill-formed: types are inferred and vars checked as it grows.

    Builder() is empty; Builder(jaxpr) begins with the equations, inputs and outputs of a program, whose vars it takes.
    Equations have no order beyond their dependencies; close() drops unused ones, and effects stay in the order in which
    they were added. ValueError for vars of another program.
    """

    def __init__(self, jaxpr=None):
        self._builder = _plait.ProgramBuilder(None if jaxpr is None else _program("Builder", jaxpr))

    def input(self, aval):
        """A new input of this type, such as a ShapeDtypeStruct: its var."""
        return self._builder.input(aval)

    def add(self, primitive, *inputs, **params):
        """The results of a new equation, as a list: vars, or existing values where the equation would be an identity.

        primitive is a name, or an equation whose parameters are the defaults of those given here.
        """
        if callable(primitive):
            primitive = primitive_name(primitive)
        elif not isinstance(primitive, (str, _plait.JaxprEquation, _plait.BuilderEquation)):
            refuse("add", "the primitive", primitive, "give its name, or an equation")
        return self._builder.add(primitive, *inputs, **params)

    def splice(self, program, *inputs):
        """Adds a whole program, applied to inputs: a Jaxpr, which gives the list of its outputs, or a function of
        arrays, which is traced at their types and gives its result."""
        if isinstance(program, Jaxpr):
            return self._builder.splice(program, inputs)
        check_callable("splice", program)
        flat = Flat("splice", program, flatten((inputs, {}))[1])
        avals = [self._builder.aval(atom) for atom in inputs]
        jaxpr, consts = _plait.flat_make_jaxpr(flat, avals, "splice", name_of(program))
        if consts:
            _plait.fail(
                "ValueError",
                f"splice: `{name_of(program)}` uses an array that is no argument of it",
                "make it an argument, or of numbers inside the function",
            )
        return unflatten(flat.outputs, self._builder.splice(jaxpr, inputs))

    def replace(self, var, value):
        """Replaces a var by value, of the same type, in all its uses except those from which value is computed."""
        self._builder.replace(var, value)

    def set_params(self, equation, **params):
        """Sets the parameters of an equation; its outputs keep their types: ShapeError."""
        if not isinstance(equation, _plait.BuilderEquation):
            refuse("set_params", "the equation", equation, "give one of the builder's equations")
        self._builder.set_params(equation, **params)

    @property
    def inputs(self):
        """The vars of the inputs."""
        return self._builder.inputs

    @property
    def outputs(self):
        """The results of the program; assign a list of vars and numbers."""
        return self._builder.outputs

    @outputs.setter
    def outputs(self, atoms):
        if not isinstance(atoms, (list, tuple)):
            refuse("Builder", "outputs", atoms, "give a list of vars and numbers")
        self._builder.outputs = list(atoms)

    @property
    def eqns(self):
        """The equations, in the order in which they were added."""
        return self._builder.equations

    def aval(self, value):
        """The type of a var or number."""
        return self._builder.aval(value)

    def users_of(self, var):
        """The equations that take a var."""
        return self._builder.users_of(var)

    def definition_of(self, var):
        """The equation that defines a var; None for an input."""
        return self._builder.definition_of(var)

    def depends_on(self, value, on):
        """Whether value is the var `on`, or depends on it."""
        return self._builder.depends_on(value, on)

    def close(self, *outputs):
        """The Jaxpr, checked and in canonical order, with these outputs if any are given."""
        if outputs:
            self.outputs = outputs
        return self._builder.close()


def walk(jaxpr, nested=True):
    """Every equation of a program, in order; those of bodies follow the equation that holds them."""
    for equation in _program("walk", jaxpr).eqns:
        yield equation
        if nested:
            for body in _plait.bodies_of(equation):
                yield from walk(body)


def rebuild(jaxpr, rule, nested=True):
    """Rebuilds a Jaxpr with rule(builder, equation, *inputs) applied to each equation.

    rule adds to the builder and returns the equation's result, or a list if there are several, or None to keep the
    equation. With nested, bodies of calls, loops and branches are rebuilt first.
    """
    jaxpr = _program("rebuild", jaxpr)
    check_callable("rebuild", rule)
    builder = Builder()
    builder._builder.take_sizes(jaxpr)
    values = {}
    for var in jaxpr.inputs:
        values[var] = builder.input(var.aval)

    def read(atom):
        return values[atom] if isinstance(atom, str) else atom

    for equation in jaxpr.eqns:
        inputs = [read(atom) for atom in equation.inputs]
        results = rule(builder, equation, *inputs)
        if results is None:
            results = _plait.map_bodies(
                builder._builder,
                equation,
                inputs,
                (lambda body: rebuild(body, rule)) if nested else (lambda body: body),
            )
        elif not isinstance(results, (list, tuple)):
            results = [results]
        if len(results) != len(equation.outputs):
            _plait.fail(
                "TreeError",
                f"rebuild: the rule returned {len(results)} values for `{equation.primitive}`, which has "
                f"{len(equation.outputs)} outputs",
                "return a value for each output",
            )
        values.update(zip(equation.outputs, results))
    return builder.close(*[read(atom) for atom in jaxpr.outputs])
