"""from_jax: a function written for JAX as a function of plait, through the jaxpr that JAX traces.

JAX traces the function for the types of a call; its equations run one after the other as functions of plait.lax
(_from_jax_rules.py), so that every transform of plait applies to them.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import importlib
import types

import numpy as np

from plait import _plait, lax
from plait._functions import check_callable, name_of, text_of, wraps

wrap_key_data = _plait.catalogue("random")["wrap_key_data"]

_NUM_KEPT = 256  # programs that a function keeps, each for its types of arguments


def from_jax(f, static_argnums=(), static_argnames=()):
    """A function written for JAX as a function of plait: of the same arguments and results, which are trees of arrays.

    JAX, which must be installed, traces f once for each combination of shapes and dtypes, and of static arguments,
    which are those of jax.jit. What it has traced runs on plait, so that grad, vmap, jit, mask and save apply; the
    derivative rules of jax.custom_jvp and jax.custom_vjp stay. Trees are JAX's: its registered classes are known.
    Dtypes are those that JAX traces, so that 64 bits need jax_enable_x64. Keys of jax.random.key that f takes or
    returns are keys of plait.random. Arrays that f captures are as they were when f was traced.

    ImportError where JAX is not installed; MissingRuleError, which names the primitive and the line, for what plait has
    not got: mutable references, Pallas, several devices, other generators of random numbers than threefry.
    """
    jax = _import_jax()
    check_callable("from_jax", f)
    numbers = (static_argnums,) if hasattr(static_argnums, "__index__") else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    tree = jax.tree_util

    @functools.lru_cache(_NUM_KEPT)
    def traced(structure, avals, count, fixed, keywords, x64):
        fixed, keywords = dict(fixed), dict(keywords)

        def of_leaves(*leaves):
            args, kwargs = tree.tree_unflatten(structure, leaves)
            rest = iter(args)
            args = [fixed[i] if i in fixed else next(rest) for i in range(count)]
            return f(*args, **kwargs, **keywords)

        with jax.enable_x64(x64):
            return _traced(jax, of_leaves, avals)

    def call(*args, **kwargs):
        fixed = {number % len(args): args[number] for number in numbers if number < len(args)}
        dynamic = tuple(arg for i, arg in enumerate(args) if i not in fixed)
        keywords = {name: kwargs.pop(name) for name in names if name in kwargs}
        leaves, structure = tree.tree_flatten((dynamic, kwargs))
        values = [_value_of(jax, leaf, f) for leaf in leaves]
        static = tuple(sorted(fixed.items())), tuple(sorted(keywords.items()))
        try:
            hash(static)
        except TypeError:
            _plait.fail(
                "ValueError",
                f"from_jax: a static argument of `{name_of(f)}` is not hashable: {text_of(static)}",
                "make static what is hashable, such as a tuple",
            )
        avals = tuple(map(_aval_of, leaves, values))
        x64 = bool(jax.config.jax_enable_x64)
        program, out_structure = traced(structure, avals, len(args), *static, x64)
        return tree.tree_unflatten(out_structure, program.of_users(values))

    return wraps("from_jax", f, call)


def _import_jax():
    try:
        jax = importlib.import_module("jax")  # no import statement: type checkers need no JAX
    except ModuleNotFoundError as error:
        if error.name != "jax":
            raise
        raise ImportError(
            "from_jax: JAX is not installed, and it traces the function; install it with `pip install jax`. Functions "
            "that need no JAX run by `python -m plait.jax`"
        ) from None
    from plait.compat import is_drop_in

    if is_drop_in(jax):
        _plait.fail(
            "ValueError",
            "from_jax: `jax` is plait's drop-in here, whose functions are plait's",
            "call the function as it is, or run without `python -m plait.jax` and install_as_jax",
        )
    return jax


# --- Values and their types ----------------------------------------------------------------------


def _value_of(jax, leaf, f):
    """An argument's leaf as an array of plait."""
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return wrap_key_data(_plait.to_array(np.asarray(jax.random.key_data(leaf))))
    if isinstance(leaf, jax.Array):
        return _plait.to_array(np.asarray(leaf))
    if not _plait.is_array_like(leaf):
        _plait.fail(
            "TreeError",
            f"from_jax: an argument of `{name_of(f)}` is or holds {text_of(leaf)} of type {type(leaf).__name__}, which "
            "is no array",
            "name it in static_argnums or static_argnames, or register its class with jax.tree_util",
        )
    return _plait.to_array(leaf)


def _aval_of(leaf, value):
    """What JAX is told of an argument: shape, dtype, whether the dtype is weak."""
    aval = _plait.aval_of(value)
    is_weak = isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic)
    return tuple(aval.shape), str(aval.dtype), is_weak


class _Sizes:
    """The named sizes of plait in arguments, as JAX's symbolic dimensions, and back; and whether JAX has 64 bits."""

    def __init__(self, jax, avals):
        self.x64 = bool(jax.config.jax_enable_x64)
        found = dict.fromkeys(
            size for shape, *_ in avals for size in shape if not isinstance(size, int)
        )
        self.there = {}
        if found:
            names = [f"d{i}" for i in range(len(found))]
            symbols = jax.export.symbolic_shape(", ".join(names))
            self.there = dict(zip(found, symbols))
            self.here = dict(zip(names, found))

    def shape(self, shape):
        return tuple(self.there[size] if size in self.there else size for size in shape)

    def back(self, value):
        """A parameter with plait's sizes in the place of JAX's."""
        if not self.there:
            return value
        if hasattr(value, "_evaluate"):  # JAX's dimension expression
            return value._evaluate(self.here)
        if isinstance(value, tuple):
            items = [self.back(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        return value


def _traced(jax, f, avals):
    """The program of f for these types of arguments, and the structure of its result."""
    sizes = _Sizes(jax, avals)
    key = jax.eval_shape(lambda: jax.random.key(0)).dtype
    types = [
        jax.ShapeDtypeStruct(sizes.shape(shape), key)
        if dtype == "key<fry>"
        else jax.ShapeDtypeStruct(
            sizes.shape(shape), jax.dtypes.canonicalize_dtype(_numpy_dtype(dtype)), weak_type=weak
        )
        for shape, dtype, weak in avals
    ]
    return trace(jax, f, types, sizes)


def trace(jax, f, types, sizes):
    """The program of f, a function for JAX, and the structure of its result."""
    closed, shapes = jax.make_jaxpr(f, return_shape=True)(*types)
    return Program(jax, closed.jaxpr, closed.consts, sizes), jax.tree_util.tree_structure(shapes)


def _numpy_dtype(name):
    try:
        return np.dtype(name)
    except TypeError:
        # bfloat16 and its like, which come with JAX
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))


def is_key(aval):
    return str(aval.dtype).startswith("key<")


def dtype_of(aval):
    return str(aval.dtype)


# --- Programs ------------------------------------------------------------------------------------


class Program:
    """A jaxpr of JAX, called with a list of plait's arrays: one for each binder, then lists of results."""

    def __init__(self, jax, jaxpr, consts=(), sizes=None):
        self.jax, self.sizes = jax, sizes
        places = {}
        self.consts = [_constant(jax, const) for const in consts]
        self.inputs = [self.bound(places, var) for var in jaxpr.invars]
        self.in_avals = [var.aval for var in jaxpr.invars]
        self.captured = [self.bound(places, var) for var in jaxpr.constvars]
        self.steps = [Step(self, equation, places) for equation in jaxpr.eqns]
        self.outputs = [self.read(places, atom) for atom in jaxpr.outvars]
        self.out_avals = [atom.aval for atom in jaxpr.outvars]
        self.count = len(places)
        # What no later step reads is dropped: eager calls hold no more than they need.
        kept = {place for place in self.outputs if isinstance(place, int)}
        for step in reversed(self.steps):
            read = {place for place in step.inputs if isinstance(place, int)}
            step.dropped = [place for place in (read | set(step.outputs)) - kept]
            kept |= read

    @staticmethod
    def bound(places, var):
        return places.setdefault(var, len(places))

    def read(self, places, atom):
        """The place of a variable, or what makes the value of a literal."""
        if not hasattr(atom, "val"):
            return places[atom]
        value, dtype = atom.val, dtype_of(atom.aval)
        if np.ndim(value) == 0:
            value = np.asarray(value).item()
            return lambda: lax.full((), value, dtype)
        array = _constant(self.jax, value)
        return lambda: array

    def __call__(self, *values):
        held = [None] * self.count
        for place, value in zip(self.captured + self.inputs, [*self.consts, *values]):
            held[place] = value
        for step in self.steps:
            results = step.run([held[i] if isinstance(i, int) else i() for i in step.inputs])
            for place, result in zip(step.outputs, results):
                held[place] = result
            for place in step.dropped:
                held[place] = None
        return [held[place] if isinstance(place, int) else place() for place in self.outputs]

    def of_users(self, values):
        """The same from arrays as users have them: of other dtypes than JAX's, and keys also as their words."""
        entered = [
            wrap_key_data(value)
            if is_key(aval)
            else lax.convert_element_type(value, str(aval.dtype))
            for aval, value in zip(self.in_avals, values)
        ]
        return self(*entered)


def _constant(jax, value):
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return wrap_key_data(_plait.to_array(np.asarray(jax.random.key_data(value))))
    return _plait.to_array(np.asarray(value))


class Step:
    """An equation of JAX's, ready to run."""

    def __init__(self, program, equation, places):
        from plait import _from_jax_calls, _from_jax_rules  # noqa: F401, two halves of one table

        self.jax, self.sizes, self.equation = program.jax, program.sizes, equation
        self.name = equation.primitive.name
        self.params = types.MappingProxyType(
            {
                name: self.sizes.back(value) if self.sizes else value
                for name, value in equation.params.items()
            }
        )
        self.in_avals = [atom.aval for atom in equation.invars]
        self.out_avals = [var.aval for var in equation.outvars]
        self.inputs = [program.read(places, atom) for atom in equation.invars]
        self.outputs = [Program.bound(places, var) for var in equation.outvars]
        self.dropped = []
        self.kept = {}
        self.rule = _from_jax_rules.rule_of(self.name)
        if self.rule is None:
            self.refuse("plait has no function for it")

    def refuse(self, why):
        """The error for what cannot be done."""
        _plait.fail(
            "MissingRuleError",
            f"from_jax: JAX's primitive `{self.name}` at {self.place()}: {why}",
            "write this part of the function with other functions, or in plait",
        )

    def place(self):
        """The user's line that made the equation."""
        if not hasattr(self.jax, "extend") or not hasattr(self.jax.extend, "source_info_util"):
            importlib.import_module("jax.extend.source_info_util")
        return self.jax.extend.source_info_util.summarize(self.equation.source_info)

    def run(self, values):
        try:
            results = self.rule(self, *values)
        except Exception as error:
            note = f"in JAX's `{self.name}` at {self.place()}"
            if not getattr(error, "__notes__", None):
                error.add_note(note)
            raise
        return results if isinstance(results, (tuple, list)) else [results]

    def once(self, key, make):
        """What make() gives, made the first time."""
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    def program(self, name, index=None):
        """The program of a parameter, or of one of several."""

        def make():
            value = self.params[name] if index is None else self.params[name][index]
            if hasattr(value, "consts"):
                return Program(self.jax, value.jaxpr, value.consts, self.sizes)
            return Program(self.jax, value, self.params.get("consts", ()), self.sizes)

        return self.once((name, index), make)

    def shape(self, index=0):
        """The shape of a result, in plait's sizes."""
        shape = tuple(self.out_avals[index].shape)
        return self.sizes.back(shape) if self.sizes else shape
