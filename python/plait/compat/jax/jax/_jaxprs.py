"""Jaxprs with JAX's attributes over plait's: variables with types, equations with JAX's primitives, closed jaxprs.

SPDX-License-Identifier: Apache-2.0
"""

import plait
from plait import _plait

from jax._primitives import existing, jax_name

# Parameters of plait's equations that JAX names otherwise, by primitive: (name there, name here).
_ALIASES = {
    "scan": (("jaxpr", "body"),),
    "while": (("cond_jaxpr", "cond"), ("body_jaxpr", "body")),
    "jit": (("jaxpr", "body"),),
    "remat": (("jaxpr", "body"),),
    "custom_jvp_call": (("call_jaxpr", "body"),),
}


class Var:
    """A variable of a jaxpr: its type, and itself."""

    def __init__(self, name, aval):
        self.name, self.aval = name, aval

    def __repr__(self):
        return self.name


class DropVar(Var):
    """The type of results that are not used: plait's have variables."""


class Literal:
    """A constant in a jaxpr."""

    def __init__(self, val):
        self.val, self.aval = val, _plait.aval_of(val)

    @property
    def hash(self):
        return None

    def __repr__(self):
        return f"{self.val}:{self.aval}"


class SourceInfo:
    """The named scopes of an equation, as text, and its place in the program."""

    traceback = None

    def __init__(self, source):
        self.source, self.name_stack = source, source.scope if source is not None else ""


class JaxprEqn:
    """An equation: a primitive of JAX's name, its inputs, outputs and parameters."""

    effects: frozenset = frozenset()
    ctx = None

    def __init__(self, equation, invars, outvars):
        self.source_info = SourceInfo(equation.source)
        self.invars, self.outvars, self.equation = invars, outvars, equation
        self.primitive = existing(jax_name(equation.primitive))

    @property
    def params(self):
        params = {name: _closed(value) for name, value in self.equation.params.items()}
        for there, here in _ALIASES.get(self.primitive.name, ()):
            if here in params:
                params[there] = params[here]
        if self.primitive.name == "jit":
            params.setdefault("name", "fun")
        if self.primitive.name == "scan":
            params["unroll"] = 1
        return params

    def __repr__(self):
        return str(self.equation)


def _closed(value):
    if isinstance(value, plait.Jaxpr):
        return ClosedJaxpr(Jaxpr(value), [])
    return tuple(map(_closed, value)) if isinstance(value, (tuple, list)) else value


class Jaxpr:
    """plait's jaxpr under JAX's attributes; its last inputs are constants, as many as num_consts says."""

    effects: frozenset = frozenset()
    debug_info = None

    def __init__(self, jaxpr, num_consts=0):
        self.plait = jaxpr
        variables = {}

        def var(name, aval):
            variables[name] = made = Var(str(name), aval)
            return made

        def atom(value):
            return variables[value] if isinstance(value, str) else Literal(value)

        inputs = [var(*pair) for pair in zip(jaxpr.inputs, jaxpr.in_avals)]
        count = len(inputs) - num_consts
        self.invars, self.constvars = inputs[:count], inputs[count:]
        self.eqns = []
        for equation in jaxpr.eqns:
            invars = [atom(value) for value in equation.inputs]
            outvars = [var(*pair) for pair in zip(equation.outputs, equation.out_avals)]
            self.eqns.append(JaxprEqn(equation, invars, outvars))
        self.outvars = [atom(value) for value in jaxpr.outputs]

    @property
    def in_avals(self):
        return [each.aval for each in self.invars]

    @property
    def out_avals(self):
        return [each.aval for each in self.outvars]

    def __eq__(self, other):
        return (
            isinstance(other, Jaxpr)
            and self.plait == other.plait
            and len(self.invars) == len(other.invars)
        )

    def __hash__(self):
        return hash(self.plait)

    def __repr__(self):
        return str(self.plait)


class ClosedJaxpr:
    """A jaxpr, and the arrays that are its constants."""

    def __init__(self, jaxpr, consts=(), out_tree=None):
        self.jaxpr, self.consts, self.out_tree = jaxpr, list(consts), out_tree

    literals = property(lambda self: self.consts)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)

    def __call__(self, *args):
        return _plait.eval_jaxpr(
            self.jaxpr.plait, [_plait.to_array(arg) for arg in (*args, *self.consts)]
        )

    def __eq__(self, other):
        return (
            isinstance(other, ClosedJaxpr)
            and self.jaxpr == other.jaxpr
            and list(map(id, self.consts)) == list(map(id, other.consts))
        )

    def __hash__(self):
        return hash(self.jaxpr)

    def __repr__(self):
        return str(self.jaxpr)

    def __getattr__(self, name):
        if name.startswith("_repr_"):
            return getattr(self.jaxpr.plait, name)
        raise AttributeError(f"'ClosedJaxpr' object has no attribute {name!r}")


def closed(made):
    """plait's ClosedJaxpr as JAX's."""
    return ClosedJaxpr(Jaxpr(made.jaxpr, len(made.consts)), made.consts, made.out_tree)


def plain(value):
    """plait's jaxpr of what holds one; other values as they are."""
    value = getattr(value, "jaxpr", value)
    return getattr(value, "plait", value)
