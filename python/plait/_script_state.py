"""The variables of branches and loops that plait.script traces, and their state after tracing.

A branch or body is a function without arguments that shares its variables with the enclosing code, in cells. For
tracing, the cells are set to tracers; afterwards their previous values are restored, until the statement has its
results.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import threading

from plait import _plait
from plait._functions import text_of
from plait._plait import flatten, is_known, unflatten

UNBOUND = object()
SCALARS = (bool, int, float, complex)
CONTAINERS = (list, dict, set)
FUNCTION_RESULT = "the returned value"


class Undefined:
    """The value of a variable that a traced statement may have left unassigned; every use is an error."""

    __slots__ = ("_name", "_why")

    def __init__(self, name, why):
        self._name, self._why = name, why

    def __repr__(self):
        return f"nothing: the variable `{self._name}` {self._why}"

    def _use(self, *args, **kwargs):
        _plait.fail(
            "ValueError",
            f"the variable `{self._name}` may have no value here: it {self._why}",
            f"give `{self._name}` a value before that statement",
        )

    __call__ = __iter__ = __bool__ = __len__ = __getitem__ = __contains__ = __hash__ = _use
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = __enter__ = _use
    __int__ = __float__ = __complex__ = __index__ = __neg__ = __pos__ = __abs__ = __invert__ = _use
    __str__ = __format__ = _use

    def __getattr__(self, attribute):
        if attribute.startswith("__"):  # introspection by libraries
            raise AttributeError(attribute)
        self._use()


for (
    _operator
) in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split():
    for _prefix in ("", "r", "i"):
        setattr(Undefined, f"__{_prefix}{_operator}__", Undefined._use)


def is_undefined(value):
    return value is UNBOUND or type(value) is Undefined


class _Regions(threading.local):
    """The branches and loops that enclose the current code of this thread: whether each is being traced."""

    def __init__(self):
        self.traced = []

    @contextlib.contextmanager
    def tracing(self):
        self.traced.append(True)
        try:
            yield
        finally:
            self.traced.pop()

    def run(self, function, *arguments):
        """Calls the function of a branch or body that Python chose."""
        self.traced.append(False)
        try:
            return function(*arguments)
        finally:
            self.traced.pop()


regions = _Regions()


def where():
    """The line of the statement that is being traced: "train.py:5"."""
    place = _plait.current_line().partition(":  ")[0]
    return place.partition(" in ")[0]


def type_of(value):
    """The type of an array, or the text of another value, for messages."""
    leaves, structure = flatten(value)
    types = [_plait.aval_of(leaf) if isinstance(leaf, _plait.Array) else leaf for leaf in leaves]
    return text_of(unflatten(structure, types))


def truth(value):
    """The truth of a value for `if`, as a bool scalar array."""
    if not isinstance(value, _plait.Array):
        return _plait.to_array(bool(value) if is_known(value) else value)
    if value.size != 1:
        _plait.fail(
            "ShapeError",
            f"the truth of an array of type {type_of(value)} is asked for",
            "reduce it with all() or any()",
        )
    value = value.reshape(()) if value.ndim else value
    return value if value.dtype.kind == "b" else value != 0


# --- Variables ------------------------------------------------------------------------------------


def _read(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def _write(cell, value):
    if value is UNBOUND:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _own(name, value, refuse_views):
    """A copy of a container or array that a branch may mutate, without effect on the other branch."""
    if type(value) is set:
        return set(value)
    if type(value) not in (list, dict, _plait.Array):
        return value
    leaves, structure = flatten(value)
    for index, leaf in enumerate(leaves):
        if type(leaf) is _plait.Array:
            if refuse_views and _plait.is_viewed(leaf):
                _plait.fail(
                    "TracerError",
                    f"`{name}` is written to inside a traced `if` or loop, and it is a view or has views, which would "
                    "not show that",
                    f"make a new array, as {name} = {name} + v does",
                )
            leaves[index] = _plait.to_array(leaf)
    return unflatten(structure, leaves)


def _write_into(old, new):
    """Mutates an object to equal new, so that all its holders see it; returns new where that is impossible."""
    if old is new or type(old) is not type(new):
        return new
    if type(old) is _plait.Array:
        if not old.ndim or old.shape != new.shape or old.dtype != new.dtype:
            return new
        old[...] = new
    elif type(old) is list:
        old[:] = new
    elif type(old) in (dict, set):
        old.clear()
        old.update(new)
    else:
        return new
    return old


class Variables:
    """The variables that functions share with the enclosing code.

    names are those that are read later, result one of them. Variables in written are mutated and not rebound; those in
    copied may be both. augmented are assigned by `x += v`, which mutates containers and rebinds the names of other
    values. found are those that have a value wherever they are read.
    """

    def __init__(
        self, functions, names, result=None, written=(), copied=(), augmented=(), found=()
    ):
        self.cells = {}
        for function in functions:
            if function is not None:
                self.cells.update(zip(function.__code__.co_freevars, function.__closure__ or ()))
        self.names = [*names, result] if result else list(names)
        self.result = result
        self.filled = {result, *found}  # dead where they have no value
        self.before = {name: _read(cell) for name, cell in self.cells.items()}
        anew = {n for n in augmented if type(self.before.get(n)) not in CONTAINERS}
        self.written = [name for name in written if name not in anew]
        self.copied = [*copied, *(name for name in written if name in anew)]

    def restore(self):
        """Restores the previous value of every variable."""
        for name, cell in self.cells.items():
            _write(cell, self.before[name])

    def renew(self, values):
        """The same for the beginning of a branch or body: with these values, and copied containers."""
        for name, cell in self.cells.items():
            value = values.get(name, self.before[name])
            if name in self.written or name in self.copied:
                value = _own(name, value, name in self.written and name not in values)
            _write(cell, value)

    def write(self, values):
        for name, value in values.items():
            if name in self.written:
                value = _write_into(self.before[name], value)
            _write(self.cells[name], value)

    def read(self):
        return {name: _read(self.cells[name]) for name in self.names}

    def label(self, name):
        """The name of a variable in messages."""
        return FUNCTION_RESULT if name == self.result else name or "value"


# --- What tracing leaves --------------------------------------------------------------------------


class Output:
    """An output of a traced function, by index."""

    def __init__(self, index, aval):
        self.index, self.aval = index, aval


class Value:
    """The value of a variable when a traced function ends: a structure with leaves; arrays are Outputs."""

    def __init__(self, structure, leaves, original):
        self.structure, self.leaves, self.original = structure, leaves, original


class Traced:
    """A function traced once. run(arrays) returns a list of arrays and a dict of values."""

    def __init__(self, variables, values, avals, run):
        found = {}

        def flat(arrays):
            variables.renew(values(arrays))
            outputs, named = run(arrays)
            self.num_outputs = len(outputs)
            for name, value in named.items():
                found[name] = self._flatten(name, value, outputs)
            return outputs

        try:
            with regions.tracing():
                self.jaxpr, self.consts = _plait.trace_region(flat, list(avals))
        finally:
            variables.restore()
        avals = self.jaxpr.out_avals
        self.values = {
            name: value and Value(value[0], [_output(leaf, avals) for leaf in value[1]], value[2])
            for name, value in found.items()
        }

    @staticmethod
    def _flatten(name, value, outputs):
        """(structure, leaves, leaves before), where an int in a list stands for an output; None: undefined."""
        if value is UNBOUND or (type(value) is Undefined and value._name == name):
            return None
        leaves, structure = flatten(value)
        marked = []
        for leaf in leaves:
            if type(leaf) is Undefined:
                leaf._use()
            is_array = isinstance(leaf, _plait.Array)
            marked.append([len(outputs)] if is_array else leaf)
            if is_array:
                outputs.append(leaf)
        return structure, marked, leaves

    def __call__(self, arrays=()):
        return _plait.eval_jaxpr(self.jaxpr, [*arrays, *self.consts])


def _output(leaf, avals):
    return Output(leaf[0], avals[leaf[0]]) if type(leaf) is list else leaf


def aval_of(leaf):
    return leaf.aval if isinstance(leaf, Output) else _plait.aval_of(leaf)


def is_same(a, b):
    """Whether two leaves that are not arrays are the same value, which needs no selection."""
    return a is b or (type(a) is type(b) and isinstance(a, (*SCALARS, str, bytes)) and a == b)


def filler(aval):
    """Zeros of a type, for a dead value."""
    from plait import numpy

    if aval.weak_type:
        number = {"f": 0.0, "c": 0j}.get(aval.dtype.kind, 0)
        return numpy.broadcast_to(_plait.to_array(number), aval.shape)
    return numpy.zeros(aval.shape, aval.dtype)


def packed(leaves):
    """Arrays of one variable as a tree: the array itself, or a list."""
    return leaves[0] if len(leaves) == 1 else leaves


def unpacked(tree):
    return tree if isinstance(tree, list) else [tree]
