"""Python functions over trees as functions over flat lists of arrays, the form that the C++ side takes.

Every transform of the package is written with these. How trees flatten, which leaves are arrays, and the error when one
is not, are decided here once.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import operator
import os

from plait import _plait
from plait._plait import flatten, unflatten

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def name_of(fun):
    """The name of a function as users know it."""
    try:
        name = getattr(fun, "__name__", None)
    except Exception:
        name = None
    if name is None and isinstance(fun, functools.partial):
        return name_of(fun.func)
    if not isinstance(name, str):
        name = type(fun).__name__
    if name == "<lambda>":
        return _name_of_lambda(fun)
    return name.encode("utf-8", "backslashreplace").decode()


def _name_of_lambda(fun):
    """The name of a function by its line; one of this package is not a user function."""
    code = getattr(fun, "__code__", None)
    if code is None or code.co_filename.startswith(PACKAGE):
        return "f"
    return f"<lambda:{code.co_firstlineno}>"


def composition_of(fun):
    """The text "grad(vmap(loss))" for such a function: its transforms and its name."""
    names = []
    while True:
        if isinstance(fun, _plait.JitFunction):
            names.append("jit")
        elif getattr(fun, "__plait_transform__", None) and hasattr(fun, "__wrapped__"):
            names.append(fun.__plait_transform__)
        else:
            return "".join(name + "(" for name in names) + name_of(fun) + ")" * len(names)
        fun = fun.__wrapped__


def applying(transform, fun):
    """A context in which errors say that transform is applied to fun: for checks of its arguments."""
    return _plait.Applying(transform, composition_of(fun))


def check_callable(transform, fun):
    if not callable(fun):
        _plait.fail(
            "DtypeError",
            f"{transform}: {text_of(fun)} of type {type(fun).__name__} is no function",
            f"pass a function, as in {transform}(f)(x)",
        )


def refuse(what, name, value, fix):
    """The error for an argument of the wrong type."""
    problem = f"{what}: {name} is {text_of(value)} of type {type(value).__name__}"
    _plait.fail("DtypeError", problem, fix)


def check_flag(what, name, flag):
    if not isinstance(flag, bool):
        refuse(what, name, flag, f"write {name}=True or {name}=False")


def file_path(what, path):
    """The path in the encoding of the operating system, as bytes."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        refuse(what, "the path", path, "give the path of a file")
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        _plait.fail(
            "ValueError",
            f"{what}: the path {text_of(path)} has a zero in it",
            "give the path of a file",
        )
    return encoded


def plain_text(value):
    """The text of a path, in printable characters."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def wraps(transform, fun, wrapper):
    """Makes wrapper look like fun."""
    try:
        functools.update_wrapper(wrapper, fun, updated=())
    except Exception:  # an object that lacks the attributes of a function
        wrapper.__wrapped__ = fun
    wrapper.__name__ = name_of(fun)
    wrapper.__plait_transform__ = transform
    return wrapper


def call_place(structure, numbers=None):
    """The names of the leaves of (args, kwargs) in messages: "argument 1['w']", "argument key".

    numbers are those of the positional arguments, if not all are included.
    """

    def place(index):
        path = structure.path(index)
        name, _, rest = path[4:].partition("]")
        if path.startswith("[1]"):
            name = name[1:-1]
        elif numbers is not None:
            name = numbers[int(name)]
        return f"argument {name}{rest}"

    return place


def argument_place(structure, numbers=None):
    """The names of the leaves of a tuple of arguments; numbers are those of the arguments, if not all are included."""

    def place(index):
        number, _, rest = structure.path(index)[1:].partition("]")
        return f"argument {numbers[int(number)] if numbers is not None else number}{rest}"

    return place


def output_place(structure):
    """The names of the leaves of a result in messages."""
    return lambda index: f"the output{structure.path(index)}"


def to_arrays(leaves, structure, what, place=None):
    """The leaves as arrays; the error names the path of one that is not an array, or its position."""
    arrays = []
    for index, leaf in enumerate(leaves):
        if not _plait.is_array_like(leaf):
            path = structure.path(index)
            where = (
                f"{what.partition(':')[0]}: {place(index)}"
                if place
                else what + (" at " + path if path else "")
            )
            _plait.fail(
                "TreeError",
                f"{where} is {text_of(leaf)} of type {type(leaf).__name__}, which is no array",
                "keep other values out, for example with functools.partial or argnums",
            )
        arrays.append(_plait.to_array(leaf, what))
    return arrays


class Flat:
    """fun(*args, **kwargs) as a function of the list of leaves of (args, kwargs).

    After a call, outputs holds the structure of the result.
    """

    def __init__(self, transform, fun, structure, has_aux=False):
        self.transform, self.fun, self.structure, self.has_aux = transform, fun, structure, has_aux
        self.outputs = self.aux = None
        self.num_outputs = 0

    def __call__(self, leaves):
        _plait.mark_arguments(leaves)
        args, kwargs = unflatten(self.structure, leaves)
        return self.finish(self.fun(*args, **kwargs))

    def held(self):
        """Arguments that are not leaves, with their names in messages."""
        return []

    def finish(self, result):
        aux = None
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                _plait.fail(
                    "TreeError",
                    f"{self.transform}: with has_aux=True `{name_of(self.fun)}` must return a pair, "
                    f"and it returned {type(result).__name__}",
                    "return (output, auxiliary data)",
                )
            result, aux = result
        leaves, self.outputs = flatten(result)
        self.num_outputs = len(leaves)
        arrays = to_arrays(leaves, self.outputs, f"{self.transform}: the output")
        if self.has_aux:
            # Auxiliary arrays leave through the transform; other values are passed as they are.
            aux_leaves, self.aux = flatten(aux)
            self.aux_values = [None if _plait.is_array_like(leaf) else leaf for leaf in aux_leaves]
            arrays += [_plait.to_array(leaf) for leaf in aux_leaves if _plait.is_array_like(leaf)]
        return arrays

    def unflatten_aux(self, arrays):
        arrays = iter(arrays)
        return unflatten(
            self.aux, [next(arrays) if value is None else value for value in self.aux_values]
        )


class Selected(Flat):
    """fun as a function of the leaves of some positional arguments, the others held fixed."""

    def __init__(self, transform, fun, argnums, args, kwargs, has_aux=False):
        self.args, self.kwargs, self.argnums = args, kwargs, argnums
        self.leaves, structure = flatten(tuple(args[number] for number in argnums))
        super().__init__(transform, fun, structure, has_aux)
        self.place = argument_place(structure, argnums)

    def arrays(self):
        """The selected leaves as arrays."""
        return to_arrays(self.leaves, self.structure, self.transform, self.place)

    def held(self):
        return [
            (arg, f"argument {number}")
            for number, arg in enumerate(self.args)
            if number not in self.argnums
        ]

    def __call__(self, leaves):
        args = [arg.copy() if isinstance(arg, _plait.Array) else arg for arg in self.args]
        _plait.mark_arguments([*leaves, *args])
        for number, value in zip(self.argnums, unflatten(self.structure, leaves)):
            args[number] = value
        return self.finish(self.fun(*args, **self.kwargs))


def is_single(numbers):
    """Whether one position is given, not several: the result is then not a tuple."""
    return not isinstance(numbers, (tuple, list))


def integers(transform, what, value):
    """An integer, or a sequence of them, as a tuple."""
    numbers = (value,) if is_single(value) else tuple(value)
    for number in numbers:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            _plait.fail(
                "DtypeError",
                f"{transform}: {what} is {text_of(value)}",
                "give an integer or a tuple of integers",
            )
    return tuple(operator.index(number) for number in numbers)


def texts(transform, what, value):
    """A string, or a sequence of them, as a tuple."""
    found = tuple(value) if isinstance(value, (tuple, list, set, frozenset)) else (value,)
    for name in found:
        if not isinstance(name, str):
            _plait.fail(
                "DtypeError",
                f"{transform}: {what} is {text_of(value)}",
                "give a string or a tuple of strings",
            )
    return found


def text_of(value):
    try:
        return f"{value!r:.60}"
    except Exception:
        return f"a {type(value).__name__}"


def check_argnums(transform, fun, argnums, args, what="argnums"):
    """argnums as a tuple of positions."""
    result = []
    for number in integers(transform, what, argnums):
        if not -len(args) <= number < len(args):
            _plait.fail(
                "ValueError",
                f"{transform}: {what}={argnums!r}, but `{name_of(fun)}` was called with {len(args)} positional "
                f"argument{'s' if len(args) != 1 else ''}",
                "pass what is differentiated by position"
                if what == "argnums"
                else "give positions that there are",
            )
        result.append(number % len(args))
    return tuple(result)


def differentiable(arrays, allow_int=False):
    """Which leaves are differentiated: with allow_int, integers are excluded."""
    return [not (allow_int and array.dtype.kind in "iub") for array in arrays]


def spread(wrt, values):
    """values at the positions marked in wrt, None elsewhere."""
    values = iter(values)
    return [next(values) if marked else None for marked in wrt]


def thread_local():
    """An object whose attributes are those of the thread."""
    import threading  # a millisecond of `import plait`, which needs none

    return threading.local()
