"""Looking inside: summary, code and diff of programs, conformance of backends; and programs as text: bind, literal,
staged.

SPDX-License-Identifier: Apache-2.0
"""

import os

from plait import _plait
from plait._extend import primitive_name
from plait._functions import check_callable, name_of, text_of
from plait._plait import flatten
from plait._programs import Entry, Program
from plait._transforms import ClosedJaxpr, make_jaxpr


def program_of(what, fun, args=(), kwargs=None):
    """The jaxpr of a function for arguments; without arguments, that of a jaxpr, an entry of a saved program, or the
    last call of a jitted function. DtypeError for anything else."""
    kwargs = kwargs or {}
    given = bool(args or kwargs)
    if isinstance(fun, (_plait.Jaxpr, ClosedJaxpr)):
        if given:
            _plait.fail(
                "TreeError",
                f"{what}: arguments were given beside a jaxpr",
                "leave them out: a jaxpr is traced already",
            )
        return fun.jaxpr if isinstance(fun, ClosedJaxpr) else fun
    check_callable(what, fun)
    if isinstance(fun, Program) and len(fun) == 1:
        (fun,) = fun.entries.values()
    if isinstance(fun, (_plait.JitFunction, Entry)) and not given:
        return fun.jaxpr
    if isinstance(fun, _plait.JitFunction):
        if all(_plait.is_array_like(leaf) for leaf in flatten((args, kwargs))[0]):
            return fun.jaxpr_for(*args, **kwargs)
        fun = fun.__wrapped__
    return make_jaxpr(fun)(*args, **kwargs).jaxpr


def _title(fun):
    return "f" if isinstance(fun, (_plait.Jaxpr, ClosedJaxpr)) else name_of(fun)


def summary(fun, *args, **kwargs):
    """A table of what fun computes for these arguments, by named scope (plait.named_scope).

    For the whole function and each scope: the values that leave it; parameters, the elements of those arguments and
    captured arrays that it reads; equations; FLOPs and bytes as plait/rules/cost.h counts them, where bodies count once
    for each run ("~" marks an assumption where data decide: one step of a while_loop, the most expensive branch of a
    cond); live bytes, the peak memory of the values that the function computes.

    fun may be a jaxpr, an entry of a saved program or a jitted function that was called, all without arguments. The
    result has .rows, .total and .to_json(). ValueError where a size is named instead of a number.
    """
    return _plait.summary_of(program_of("summary", fun, args, kwargs), _title(fun))


class Code(str):
    """Text of a program. namespace holds what text cannot: functions of this process that it refers to by name."""

    def __new__(cls, text, name, namespace):
        self = super().__new__(cls, text)
        self.name, self.namespace = name, namespace
        return self

    def function(self):
        """The function that the text, which is Python, defines."""
        names = dict(self.namespace)
        exec(compile(self, f"<code of {self.name}>", "exec"), names)
        return names[self.name]


def code(fun, *args, language="python", **kwargs):
    """fun, traced for these arguments, as text that rebuilds the same program: a line for each equation.

    The text is Python that calls plait.lax, or with language="c++" C++ that calls plait::lax; an equation without a
    function of lax is bound by name (plait.bind). It defines a function of the leaves of the arguments, then of the
    arrays that fun captured; bodies of control flow, of calls and of custom rules are functions before it. Tracing it
    gives the same jaxpr. code(f, x).function() is the function.

    fun may be a jaxpr, an entry of a saved program or a jitted function that was called, all without arguments.
    ValueError for another language.
    """
    if language not in ("python", "c++"):
        _plait.fail(
            "ValueError", f"code: the language is {language!r:.60}", 'choose "python" or "c++"'
        )
    jaxpr = program_of("code", fun, args, kwargs)
    name = "".join(c if c.isascii() and c.isalnum() else "_" for c in _title(fun))
    name = f"f_{name}" if name[0].isdigit() else name
    text, callables = _plait.code_of(jaxpr, language == "c++", name)
    return Code(text, name, callables)


def diff(first, second, *args, **kwargs):
    """How two programs differ: functions traced for the same arguments, or jaxprs without arguments.

    Equations are aligned. The text has a line for each that was removed (-), added (+) or changed (~: other operands or
    parameters), with its line in the source. The result is false when the programs are equal; .changes lists all
    equations.
    """
    return _plait.diff_of(
        program_of("diff", first, args, kwargs), program_of("diff", second, args, kwargs)
    )


def conformance(backend, primitives=(), *, runs=True, programs=True, modules=(), device="cpu"):
    """Tests a backend against the laws that kernels must obey: what `plait conformance` does.

    backend is a name ("llvm"); modules are paths of shared modules that register backends, which are loaded first. Each
    primitive, or only the given ones, is tried in every dtype: results against the reference, NaN and infinities,
    strides, memory around outputs, calls from two threads; with programs, also its derivatives and vmap as whole
    programs. Without runs, the backend is only asked what it takes. device is the one that it runs on. The result prints as a table; .rows has .primitive, .dtype,
    .state ("passed", "refused" or "failed"), .samples and .detail, and .passed() says whether none failed.

    ValueError for an unknown backend, module or primitive, BackendError for a backend that cannot be used on this
    machine, or an unknown device.
    """
    _text("conformance", backend)
    modules, primitives = [
        [names] if isinstance(names, (str, os.PathLike)) else list(names)
        for names in (modules, primitives)
    ]
    return _plait.conformance_of(
        backend,
        [os.fspath(path) for path in modules],
        [primitive_name(one) for one in primitives],
        programs,
        str(device),
        runs,
    )


def bind(primitive, /, *inputs, **params):
    """Applies a primitive: bind("reduce", x, kind="sum", axes=(0,)). Returns an array or a tuple of them.

    primitive is a name, a function of plait.lax, or a plait.Primitive. Parameters are bools, integers, floats, strings,
    dtypes, tuples of integers, jaxprs and functions. ValueError when there is no such primitive, and the errors of its
    own rules. For passes and for the output of plait.code; functions of plait.lax check more.
    """
    return _plait.bind(primitive_name(primitive), *inputs, **params)


def literal(text):
    """A scalar literal in jaxpr notation: literal("2.0:f32"), literal("1:i32*"). ValueError for other text."""
    return _plait.literal(_text("literal", text))


def size(text):
    """A named size, or an expression of named sizes: size("n"), size("min(n, 512)"). ValueError for other text."""
    return _plait.size_of_text(_text("size", text))


def parse_jaxpr(text):
    """The jaxpr of a text, as str(jaxpr) writes it. ValueError gives line, column and what was expected."""
    return _plait.parse_jaxpr(_text("parse_jaxpr", text))


def staged(header):
    """A decorator: the jaxpr of a function of arrays whose types header gives in jaxpr notation.

    @staged("n ; a:f32[n,3] b:f32[]") takes a function of the size n, then of a and b, and traces it once. Weak types
    and constraints are written as in a jaxpr: "n ; a:f32[n]* where n<=4". ValueError for a malformed header, or a
    function that uses other arrays.
    """
    _text("staged", header)

    def decorate(function):
        check_callable("staged", function)
        return _plait.staged(header, function)

    return decorate


def _text(what, value):
    if not isinstance(value, str):
        _plait.fail("DtypeError", f"{what}: {text_of(value)} is no text", "give a string")
    return value
