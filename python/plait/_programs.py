"""Saved programs: traced functions in a file, and the functions that a file holds.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import functools

from plait import _plait
from plait._functions import (
    Flat,
    check_callable,
    check_flag,
    file_path,
    name_of,
    plain_text,
    refuse,
    text_of,
)
from plait._plait import flatten, unflatten
from plait._size_options import constraint_texts
from plait.tree import DictKey, flatten_with_path


def save(
    path,
    fun,
    *args,
    constraints=(),
    meta=None,
    licence="",
    constants=True,
    test_vectors=True,
    sources=True,
):
    """Writes functions to a `.plait` file, which plait.load reads in Python and in C++.

    save("model.plait", predict, weights, x) saves one function, traced on these arguments. Arguments are trees of
    arrays, or of specs: "b 784" is float32 with a size named b, for which the saved program accepts any value.
    save("model.plait", {"train_step": (step, state, x, y), "predict": (predict, weights, x)}) saves several, which
    share their constants (the arrays that functions capture).

    constraints are texts on named sizes, "b > 0" or "t % 8 == 0", as for make_jaxpr: the file holds them, and every
    call of a loaded function is checked. meta is a dict of texts that the file stores. constants=False leaves the
    constants out: load then needs them. test_vectors=False leaves out the arguments and their results, which
    load(verify=True) compares; sources=False leaves out the source lines of equations.

    The file is written atomically. ValueError for functions that call back into Python (host_call, islands of @script),
    FileError (an OSError) where the file cannot be written.
    """
    path = file_path("save", path)
    if meta is not None and not isinstance(meta, dict):
        refuse("save", "meta", meta, 'give a dict of texts, such as {"task": "digits"}')
    if not isinstance(licence, str):
        refuse("save", "licence", licence, 'give text, such as "Apache-2.0"')
    flags = {"constants": constants, "test_vectors": test_vectors, "sources": sources}
    for name, flag in flags.items():
        check_flag("save", name, flag)
    functions = {}
    if isinstance(fun, dict):
        if args:
            _plait.fail(
                "TreeError",
                "save: arguments were given beside a dict of functions",
                'put them into the dict: {"name": (function, argument, ...)}',
            )
        for name, entry in fun.items():
            if not isinstance(name, str):
                refuse("save", "the name of an entry", name, "give entries names that are text")
            if not isinstance(entry, tuple) or not entry:
                _plait.fail(
                    "TreeError",
                    f"save: the entry {name!r} is {text_of(entry)}",
                    'give a tuple: {"name": (function, argument, ...)}',
                )
            functions[name] = _traced(constraints, *entry)
    else:
        check_callable("save", fun)
        name = "".join(c if c.isalnum() or c in "_-" else "_" for c in name_of(fun))
        functions[name.strip("_") or "main"] = _traced(constraints, fun, *args)
    texts = {plain_text(key): plain_text(value) for key, value in (meta or {}).items()}
    _plait.save_program(
        path, functions, texts, plain_text(licence), constants, test_vectors, sources
    )


def _by_name(what, constants):
    """A dict of arrays by name."""
    if not isinstance(constants, dict) or not all(isinstance(name, str) for name in constants):
        refuse(what, "constants", constants, 'give arrays by name: {"w": array}')
    return constants


def _traced(constraints, fun, *args):
    check_callable("save", fun)
    constraints = constraint_texts("save", constraints)
    leaves, structure = flatten(args)
    _check_keys(args)
    _, both = flatten((args, {}))
    flat = Flat("save", fun, both)
    has_specs = any(isinstance(leaf, str) for leaf in leaves)

    def trace():
        if has_specs or constraints:
            return _plait.trace_with_specs(flat, leaves, name_of(fun), constraints)
        avals = [_plait.aval_of(leaf, "save") for leaf in leaves]
        return _plait.flat_make_jaxpr(flat, avals, "save", name_of(fun))

    jaxpr, constants, origins = _plait.trace_with_origins(trace)
    has_values = all(not isinstance(leaf, str) and _is_value(leaf) for leaf in leaves)
    return {
        "jaxpr": jaxpr,
        "constants": constants,
        "constant_names": _constant_names(fun, origins),
        "arguments": structure,
        "result": flat.outputs,
        "argument_names": _argument_names(fun, len(args)),
        "example": leaves if has_values else [],
    }


def _is_value(leaf):
    """Whether it has values, and is not only a shape and a dtype."""
    return not hasattr(leaf, "shape") or hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__")


def _check_keys(args):
    for path, _ in flatten_with_path(args)[0]:
        for key in path:
            if isinstance(key, DictKey) and not isinstance(key.key, str):
                _plait.fail(
                    "TreeError",
                    f"save: the dict key {text_of(key.key)} is no text",
                    "a file keeps keys that are str: convert them",
                )


def _constant_names(fun, origins):
    """The path of each constant from the function, "weights['w']"; c0, c1, ... where there is none."""
    from plait import _captures  # what reads byte code is imported where there is something to find

    paths, _ = _captures.find(fun, origins)
    return [found[0][2] if found else f"c{i}" for i, found in enumerate(paths)]


def _argument_names(fun, count):
    import inspect  # takes milliseconds to import

    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return named[:count] if len(named) >= count else []


def load(path, *, verify=False, constants=None, map_memory=True, types=None):
    """The program in a file that save wrote.

    verify=True runs the test vectors of all entries and compares checksums. constants gives arrays, by name, that
    replace the file's, or those that it leaves out. With map_memory, constants are read from the file on first use, and
    only verify compares them with checksums. types gives classes, by name, for the records in results: types={"State":
    State} where State is a named tuple, a dataclass, or registered with data None. An instance in place of a dataclass
    says what its static fields are, which a file does not hold: types={"MLP": model}. Without it, a record is a named
    tuple of its name and fields.

    Loading runs no code of the file and bounds what it reads. ValueError gives the place and the problem: damage,
    primitives that are not registered in this process, a format newer than this plait. FileError (an OSError) where it
    cannot be read.
    """
    path = file_path("load", path)
    for name, flag in (("verify", verify), ("map_memory", map_memory)):
        check_flag("load", name, flag)
    given = _by_name("load", {} if constants is None else constants)
    types = {} if types is None else types
    if not isinstance(types, dict) or not all(
        isinstance(cls, type) or dataclasses.is_dataclass(cls) for cls in types.values()
    ):
        refuse("load", "types", types, 'give classes by name: {"State": State}')
    return Program(_plait.load_program(path, verify, given, map_memory), types)


class Program:
    """A loaded program: its functions by name, p["train_step"] or p.train_step; callable itself when it has one."""

    def __init__(self, data, types):
        self._data = data
        self._entries = {entry.name: Entry(entry, types) for entry in data.entries}

    @property
    def entries(self):
        """The functions by name."""
        return dict(self._entries)

    @property
    def meta(self):
        """The texts that were saved with it."""
        return dict(self._data.meta)

    @property
    def licence(self):
        """The licence that was saved with it."""
        return self._data.licence

    def verify(self):
        """Runs every test vector; ValueError says which output differs from the file's."""
        for entry in self._entries.values():
            entry.verify()

    def with_entries(self, entries):
        """The same program with other functions, a dict of entries by name."""
        program = Program(self._data, {})
        program._entries = dict(entries)
        return program

    def __getitem__(self, name):
        if name in self._entries:
            return self._entries[name]
        _plait.fail(
            "ValueError",
            f"the program has no entry {name!r}",
            f"its entries are {', '.join(self._entries)}",
        )

    def __getattr__(self, name):
        entries = self.__dict__.get("_entries", {})
        if name in entries:
            return entries[name]
        raise AttributeError(f"the program has no entry {name!r}; it has {', '.join(entries)}")

    def __call__(self, *args, **kwargs):
        if len(self._entries) != 1:
            _plait.fail(
                "ValueError",
                f"the program has {len(self._entries)} entries",
                f"call one of them by name: {', '.join(self._entries)}",
            )
        return next(iter(self._entries.values()))(*args, **kwargs)

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __dir__(self):
        return [*super().__dir__(), *self._entries]

    def __repr__(self):
        return f"Program({', '.join(map(repr, self._entries.values()))})"


class Entry:
    """A function of a loaded program: it runs, and can be jitted, differentiated and vmapped."""

    def __init__(self, data, types):
        self._data = data
        self._types = types
        self._result = flatten(_template(data.result(), types))[1]
        self.__name__ = self.__qualname__ = data.name
        self.__doc__ = f"{data.name}, a function of a saved program."

    @property
    def jaxpr(self):
        """The program; its last inputs are the constants."""
        return self._data.jaxpr

    @property
    def code(self):
        """The program as Python text that rebuilds it; see plait.code."""
        from plait._inspect import code  # knows entries

        return code(self)

    @property
    def constants(self):
        """The arrays that the function captured, by name."""
        return dict(zip(self._data.constant_names, self._data.constants))

    @property
    def sizes(self):
        """Specs of the arguments, as jit takes them; None when there are no named sizes."""
        if not self.jaxpr.sizes:
            return None
        arguments = flatten(_template(self._data.arguments(), self._types))[1]
        avals = self.jaxpr.in_avals[: len(self.jaxpr.in_avals) - len(self._data.constants)]
        named = [any(not isinstance(size, int) for size in aval.shape) for aval in avals]
        return unflatten(arguments, [str(a) if name else None for a, name in zip(avals, named)])

    @property
    def argument_names(self):
        """The names of the arguments, where the saved function has names."""
        return list(self._data.argument_names)

    def with_constants(self, constants):
        """The same function with some constants replaced by arrays of the same shapes and dtypes."""
        return Entry(self._data.with_constants(_by_name("with_constants", constants)), self._types)

    def with_jaxpr(self, jaxpr):
        """The same function with another program of the same input and output types, such as the result of a pass."""
        return Entry(self._data.with_jaxpr(jaxpr), self._types)

    def verify(self):
        """Runs the test vector, if there is one; ValueError says which output differs."""
        self._data.verify()

    def __call__(self, *args, **kwargs):
        leaves, structure = flatten(self._positional(args, kwargs))
        return unflatten(self._result, self._data.call(structure, leaves))

    def _positional(self, args, kwargs):
        if not kwargs:
            return args
        names = self._data.argument_names[len(args) :]
        unknown = [name for name in kwargs if name not in names]
        if unknown or len(kwargs) < len(names):
            _plait.fail(
                "TreeError",
                f"{self.__name__} was called with the keywords {', '.join(kwargs)}",
                f"after {len(args)} arguments it takes {', '.join(names) or 'none'}",
            )
        return (*args, *(kwargs[name] for name in names))

    def __repr__(self):
        return f"{self.__name__}({', '.join(self._data.argument_names)})"


@functools.cache
def _record(name, keys):
    """The class of a record of which the file only has the name: a named tuple of its fields."""
    import collections
    import keyword

    names = [
        key if key.isidentifier() and not keyword.iskeyword(key) and key[0] != "_" else f"field{i}"
        for i, key in enumerate(keys)
    ]
    title = name if name.isidentifier() and not keyword.iskeyword(name) else "Record"
    return collections.namedtuple(title, names)


def _template(description, types):
    kind, name, keys, parts = description
    parts = [_template(part, types) for part in parts]
    if kind == "leaf":
        return 0
    if kind == "none":
        return None
    if kind == "dict":
        return dict(zip(keys, parts))
    if kind == "record":
        return (
            _made(types[name], keys, parts) if name in types else _record(name, tuple(keys))(*parts)
        )
    return tuple(parts) if kind == "tuple" else parts


def _made(cls, keys, parts):
    """An instance of a user's class with these parts; or of the class of an instance, with its static fields."""
    example = None if isinstance(cls, type) else cls
    cls = cls if example is None else type(cls)
    names = None
    if isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names = list(cls._fields)
    elif dataclasses.is_dataclass(cls):
        names = [f.name for f in dataclasses.fields(cls) if not f.metadata.get("static", False)]
    if names is not None and names != list(keys):
        _plait.fail(
            "TreeError",
            f"load: {cls.__name__} has the fields {', '.join(names)}, and the file {', '.join(keys)}",
            "give a class of the same fields, in that order, in types",
        )
    if names is None:
        return _plait.make_registered(cls, tuple(parts))
    if issubclass(cls, tuple):
        return cls(**dict(zip(keys, parts)))
    made = object.__new__(cls)  # __init__ may check what a template does not satisfy
    values = dict(zip(keys, parts))
    for field in dataclasses.fields(cls):
        if field.name not in values:
            values[field.name] = (
                _default(cls, field) if example is None else getattr(example, field.name)
            )
        object.__setattr__(made, field.name, values[field.name])
    return made


def _default(cls, field):
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    _plait.fail(
        "TreeError",
        f"load: the static field {field.name} of {cls.__name__} has no default, and a file does not hold it",
        f"give an instance, whose fields they are, in types: {{'{cls.__name__}': example}}",
    )
