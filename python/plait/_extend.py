"""New primitives and new transforms in Python, composing with everything else.

SPDX-License-Identifier: Apache-2.0
"""

import inspect

from plait import _plait
from plait._functions import check_callable, name_of, text_of, wraps
from plait._plait import Jaxpr, flatten, unflatten
from plait._transforms import ClosedJaxpr

# Functions of plait.lax that are named differently from their primitive.
_NAMES = {
    "convert_element_type": "cast",
    "bitcast_convert_type": "bitcast",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "bitwise_not": "not",
}


def primitive_name(primitive):
    """The name of a primitive, from a name, a function of plait.lax, or a Primitive."""
    name = primitive
    if not isinstance(primitive, str):
        name = getattr(primitive, "name", None) or name_of(primitive)
    return _NAMES.get(name, name)


def _place(function):
    """File and line of a rule; all cells of a notebook count as one place, so that rerunning one replaces the rule."""
    code = inspect.unwrap(function).__code__ if hasattr(function, "__code__") else None
    if code is None or code.co_filename.startswith("<") or "ipykernel" in code.co_filename:
        return "<interactive>", 0
    return code.co_filename, code.co_firstlineno


def _taking(function):
    """Calls function with those keyword arguments that it names."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return function
    names = {
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL
    }
    return lambda *args, **params: function(
        *args, **{key: value for key, value in params.items() if key in names}
    )


def _applied(rule):
    """rule as a function of an equation and values; it receives the parameters that it names, and the equation."""
    taking = _taking(rule)
    try:
        whole = "equation" in inspect.signature(rule).parameters
    except (TypeError, ValueError):
        whole = False

    def applied(equation, values):
        given = {"equation": equation} if whole else {}
        return taking(*values, **equation.params, **given)

    return applied


class Primitive:
    """A new primitive. Rules are given by decorators; a kind without a rule runs through decompose.

    abstract(*avals) -> aval(s)                  decompose(*arrays) -> array(s)
    eval(*NumPy arrays) -> NumPy array(s)        jvp(primals, tangents, outputs) -> tangent(s)
    transpose(cotangents, inputs) -> cotangents  batch(size, arrays, axes) -> (outputs, axes)
    mask(padded, avals, outputs, size_value) -> padded outputs

    Parameters of the call reach rules as keywords: numbers, strings, dtypes, tuples, jaxprs, functions, and objects that
    can be hashed, of which equal ones are the same parameter. An effectful primitive, such as one that prints, runs each time the
    program does, in order. Others run when their outputs are needed, once for equal inputs.
    """

    def __init__(self, name, doc="", effectful=False):
        frame = inspect.currentframe().f_back
        file, line = frame.f_code.co_filename, frame.f_lineno
        if file.startswith("<") or "ipykernel" in file:
            file, line = "<interactive>", 0
        _plait.make_primitive(name, doc, file, line, effectful)
        self.name, self.__name__, self.__doc__ = name, name, doc or type(self).__doc__

    def _define(self, kind, function, symbolic_zeros=False):
        if function is None:
            return lambda function: self._define(kind, function, symbolic_zeros)
        check_callable(f"{self.name}.{kind}", function)
        _plait.define_rule(self.name, kind, _taking(function), *_place(function), symbolic_zeros)
        return function

    def abstract(self, function):
        """Sets function(*avals) as the rule for the types of the outputs, ShapeDtypeStructs."""
        return self._define("abstract", function)

    def eval(self, function):
        """Sets function(*NumPy arrays) as the kernel."""
        return self._define("eval", function)

    def jvp(self, function=None, *, symbolic_zeros=False):
        """Sets function(primals, tangents, outputs) as the rule for tangents of the outputs; None for zero.

        With symbolic_zeros, the tangents of inputs that do not vary are None too, and not arrays of zeros.
        """
        return self._define("jvp", function, symbolic_zeros)

    def transpose(self, function=None, *, symbolic_zeros=False):
        """Sets function(cotangents, inputs) as the rule for cotangents; linear inputs are passed as types.

        With symbolic_zeros, the cotangents of outputs that nothing depends on are None, and not arrays of zeros.
        """
        return self._define("transpose", function, symbolic_zeros)

    def batch(self, function):
        """Sets function(size, arrays, axes) as the rule for (outputs, axes); axis None is not mapped."""
        return self._define("batch", function)

    def mask(self, function):
        """Sets function(padded, avals, outputs, size_value) as the rule for padded outputs."""
        return self._define("mask", function)

    def decompose(self, function):
        """Defines the primitive by others. Its types follow from the decomposition where abstract is not given."""
        self._define("decompose", function)
        if not any(row[0] == self.name and row[1] == "rule" for row in _plait.coverage("abstract")):
            taking = _taking(function)

            def abstract(*avals, **params):
                def flat(leaves):
                    result = taking(*leaves, **params)
                    return list(result) if isinstance(result, (tuple, list)) else [result]

                return _plait.flat_make_jaxpr(flat, list(avals), "abstract", self.name)[0].out_avals

            _plait.define_rule(self.name, "abstract", abstract, *_place(function))
        return function

    def __call__(self, *args, **params):
        return _plait.bind(self.name, *args, **params)

    def __repr__(self):
        return f"Primitive({self.name!r})"


class Transform:
    """A new transform: an interpreter of jaxprs over values of its own.

    lift makes a value from an array, aval gives the type of a value, and @transform.rule(primitive) sets a rule. A
    primitive without a rule is decomposed; one without a decomposition goes to the rule of @transform.otherwise.
    transform(f)(*values) traces f and interprets its jaxpr. Where values are made of arrays, it composes with every
    other transform.
    """

    def __init__(self, name, lift, aval=None):
        if not isinstance(name, str) or not name:
            _plait.fail(
                "ValueError",
                f"Transform: the name is {text_of(name)}",
                'give it a name: plait.Transform("interval", lift)',
            )
        for function in (lift, aval) if aval is not None else (lift,):
            check_callable(name, function)
        self.name, self.__name__, self.lift = name, name, lift
        self.aval = aval or (lambda value: value[0] if isinstance(value, tuple) else value)
        self.table = {}
        self.last_resort = None

    def rule(self, *primitives):
        """Sets the rule of some primitives, given as functions of plait.lax, names, or Primitives.

        A rule takes the values of the inputs and returns that of the output, or a list if there are several. Parameters
        of the equation that it names come as keywords, and so does the equation itself, whose equation.bind(*arrays)
        applies the same primitive to other arrays. A rule that returns NotImplemented does not apply to these inputs: a
        MissingRuleError says so.
        """
        if not primitives:
            _plait.fail(
                "ValueError",
                f"{self.name}.rule: no primitive is named",
                f"name some, as in @{self.name}.rule('add'); the rest is @{self.name}.otherwise's",
            )
        names = []
        for primitive in primitives:
            name = primitive_name(primitive)
            if not _plait.has_primitive(name):
                _plait.fail(
                    "ValueError",
                    f"{self.name}.rule: `{name}` is no primitive",
                    "name one of those that plait.rules('abstract') lists",
                )
            names.append(name)

        def define(function):
            check_callable(f"{self.name}.rule", function)
            applied = _applied(function)
            for name in names:
                self.table[name] = (applied, function)
            return function

        return define

    def otherwise(self, function):
        """Sets the rule of every primitive that has neither a rule nor a decomposition."""
        check_callable(f"{self.name}.otherwise", function)
        self.last_resort = (_applied(function), function)
        return function

    def __call__(self, fun):
        check_callable(self.name, fun)

        def transformed(*values):
            structure = None

            def flat(leaves):
                nonlocal structure
                result, structure = flatten(fun(*leaves))
                return result

            avals = [_plait.aval_of(self.aval(value)) for value in values]
            jaxpr, consts = _plait.flat_make_jaxpr(flat, avals, self.name, name_of(fun))
            results = self.interpret(jaxpr, list(values) + [self.lift(const) for const in consts])
            return unflatten(structure, results)

        return wraps(self.name, fun, transformed)

    def interpret(self, jaxpr, values):
        """Maps the values of a jaxpr's inputs to the list of those of its outputs; jaxpr is a Jaxpr or from make_jaxpr.

        TreeError when there are not as many values as inputs, MissingRuleError for a primitive without a rule.
        """
        if isinstance(jaxpr, ClosedJaxpr):
            values = [*values, *(self.lift(const) for const in jaxpr.consts)]
            jaxpr = jaxpr.jaxpr
        if not isinstance(jaxpr, Jaxpr):
            _plait.fail(
                "DtypeError",
                f"{self.name}.interpret: {text_of(jaxpr)} of type {type(jaxpr).__name__} is no jaxpr",
                "make one with plait.make_jaxpr(f)(...)",
            )
        if len(values) != len(jaxpr.inputs):
            _plait.fail(
                "TreeError",
                f"{self.name}.interpret: the jaxpr has {len(jaxpr.inputs)} inputs, and there are "
                f"{len(values)} values",
                "give one for each input, captured arrays lifted to values after the arguments",
            )
        environment = dict(zip(jaxpr.inputs, values))

        def read(atom):
            return environment[atom] if isinstance(atom, str) else self.lift(atom)

        for index, equation in enumerate(jaxpr.eqns):
            inputs = [read(atom) for atom in equation.inputs]
            with _plait.AtLine(equation.source.under(self.name)):
                outputs = self._process(jaxpr, index, equation, inputs)
            environment.update(zip(equation.outputs, outputs))
        return [read(atom) for atom in jaxpr.outputs]

    def _process(self, jaxpr, index, equation, inputs):
        """The values of an equation's outputs."""
        rule = self.table.get(equation.primitive)
        if rule is None:
            try:
                body = _plait.decomposition(jaxpr, index)
            except _plait.MissingRuleError:
                rule = self.last_resort
            else:
                return self.interpret(body, inputs)
        outputs = rule[0](equation, inputs) if rule else NotImplemented
        if outputs is NotImplemented:
            for_these = " for these inputs and parameters" if rule else ""
            _plait.fail(
                "MissingRuleError",
                f"`{equation.primitive}` has no {self.name} rule{for_these}",
                f"give it one with @{self.name}.rule({equation.primitive!r}), or a decomposition",
            )
        wanted = len(equation.outputs)
        if wanted == 1:
            return [outputs]
        found = [] if outputs is None else outputs
        if not isinstance(found, (list, tuple)) or len(found) != wanted:
            _plait.fail(
                "TreeError",
                f"the {self.name} rule of `{equation.primitive}` returned {text_of(outputs)}, where "
                f"{wanted} outputs are needed",
                "return a list with the value of each output",
            )
        return found

    def coverage(self):
        """Rows (primitive, state, file, line) for plait.rules."""
        rows = []
        for name, state, file, line in _plait.coverage("decompose"):
            decomposes = state.startswith(("rule", "family"))
            if name in self.table:
                rows.append((name, "rule", *_place(self.table[name][1])))
            elif not decomposes and self.last_resort:
                rows.append((name, "otherwise", *_place(self.last_resort[1])))
            else:
                rows.append((name, "decompose" if decomposes else "missing", file, line))
        return rows

    def __repr__(self):
        return f"Transform({self.name!r})"
