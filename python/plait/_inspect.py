"""Looking inside: summary, code and diff of programs, conformance of backends; and programs that are written down: bind, literal, staged.

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
    """The jaxpr of a function for arguments; of a jaxpr, an entry of a saved program, or the last call of a
    jitted function, without arguments. DtypeError for what is none of these."""
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

    For the whole function and each scope: the values that leave it; parameters, the elements of those arguments
    and captured arrays that it reads; equations; FLOPs and bytes as plait/cost.h counts them, where bodies count
    as often as they run ("~" before what data decide: one step of a while_loop, the dearest branch of a cond);
    live bytes, the most memory that values the function made take while it runs.

    fun may be a jaxpr, an entry of a saved program or a jitted function that was called; then without arguments.
    The result has .rows, .total and .to_json(). ValueError where a size has a name instead of a number.
    """
    return _plait.summary_of(program_of("summary", fun, args, kwargs), _title(fun))


class Code(str):
    """Text of a program. namespace holds what text cannot: functions of this process that it names."""

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
    """fun, traced for these arguments, as text that makes the same program: a line for each equation.

    The text is Python that calls plait.lax, or with language="c++" C++ that calls plait::lax; what lax has no
    function for is bound by name (plait.bind). It defines a function of the leaves of the arguments, then of the
    arrays that fun captured; bodies of control flow, of calls and of custom rules are functions before it. Tracing
    that gives the same jaxpr. code(f, x).function() is the function.

    fun may be a jaxpr, an entry of a saved program or a jitted function that was called; then without arguments.
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

    Equations are aligned; the text has a line for each that was removed (-), added (+) or changed (~: other
    operands or parameters), with the line of the function that it is from. The result is false when the programs
    are equal; .changes lists all equations.
    """
    return _plait.diff_of(
        program_of("diff", first, args, kwargs), program_of("diff", second, args, kwargs)
    )


def conformance(backend, primitives=(), *, programs=True, modules=()):
    """The laws that kernels must obey, asked of a backend: what `plait conformance` does.

    backend is a name ("llvm"); modules are paths of shared objects that register backends, which are loaded first.
    Each primitive, or those named alone, is tried in every dtype: results against the reference, NaN and infinities,
    strides, memory around outputs, calls from two threads; with programs, its derivatives and vmap as whole programs
    too. The result prints as a table; .rows has .primitive, .dtype, .state ("passed", "refused" or "failed"),
    .samples and .detail, and .passed() says whether none failed.

    ValueError for a backend, module or primitive that is not there, BackendError for a backend that cannot be used
    on this machine.
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
    )


def bind(primitive, /, *inputs, **params):
    """Applies a primitive: bind("reduce", x, kind="sum", axes=(0,)). Its results, an array or a tuple of them.

    primitive is a name, a function of plait.lax, or a plait.Primitive. Parameters are bools, integers, floats,
    strings, dtypes, tuples of integers, jaxprs and functions. ValueError when there is no such primitive, and the
    errors of its own rules. For passes and for what plait.code writes; functions of plait.lax check more.
    """
    return _plait.bind(primitive_name(primitive), *inputs, **params)


def literal(text):
    """A scalar literal as jaxprs write it: literal("2.0:f32"), literal("1:i32*"). ValueError for other text."""
    return _plait.literal(_text("literal", text))


def size(text):
    """A named size, or an expression of some: size("n"), size("min(n, 512)"). ValueError for other text."""
    return _plait.size_of_text(_text("size", text))


def parse_jaxpr(text):
    """The jaxpr that a text writes, as str(jaxpr) gives it. ValueError says line, column and what was expected."""
    return _plait.parse_jaxpr(_text("parse_jaxpr", text))


def staged(header):
    """A decorator: the jaxpr of a function of arrays whose types header gives as a jaxpr writes them.

    @staged("n ; a:f32[n,3] b:f32[]") takes a function of the size n, then of a and b, and traces it once. Weak
    types and constraints are said as in a jaxpr: "n ; a:f32[n]* where n<=4". ValueError says what is wrong with
    the header, or that the function uses arrays that it was not given.
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
