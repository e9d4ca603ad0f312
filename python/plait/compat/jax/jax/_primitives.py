"""jax.extend.core.Primitive over plait's: primitives that libraries make, with their rules from jax.interpreters.

A primitive without a rule for tracing runs its implementation, or the function that was given to lower it. Parameters
of any kind travel as one: an object that plait compares by identity.

SPDX-License-Identifier: Apache-2.0
"""

import plait
from plait import _extend, _plait

from jax._doors import refuse

# The tables that libraries fill: rules by primitive.
primitive_jvps: dict = {}
primitive_transposes: dict = {}
primitive_batchers: dict = {}
axis_primitive_batchers: dict = {}
fancy_primitive_batchers: dict = {}
_BATCHERS = (primitive_batchers, axis_primitive_batchers, fancy_primitive_batchers)
lowerings: dict = {}
# Primitives that cannot be named like another's.
_names: dict[str, int] = {}


class Zero:
    """A tangent or cotangent that is zero, by its type."""

    def __init__(self, aval):
        self.aval = aval

    def instantiate(self):
        return plait.numpy.zeros(self.aval.shape, self.aval.dtype)

    @staticmethod
    def from_primal_value(value):
        return Zero(_plait.aval_of(value))


class UndefinedPrimal:
    """An input of a transpose rule that is linear, by its type."""

    def __init__(self, aval):
        self.aval = aval


def _with_zero(tangent, value):
    """A tangent, of which plait says None where it is zero."""
    return Zero(_plait.aval_of(value)) if tangent is None else tangent


def instantiate_zeros(tangent):
    return tangent.instantiate() if isinstance(tangent, Zero) else tangent


class _Call:
    """What an equation carries: the parameters, and the jaxpr that runs it, whose last inputs it captured."""

    __name__ = "call"

    def __init__(self, params, jaxpr, count):
        self.params, self.jaxpr, self.count = params, jaxpr, count

    def __call__(self, *arrays):
        return _plait.eval_jaxpr(self.jaxpr, list(arrays))


def _made_here(const):
    """A captured array; a known number is made anew, since a rule may use only what it is given or makes."""
    if _plait.is_concrete(const) and const.size == 1:
        return plait.lax.full(const.shape, const.item(), const.dtype)
    return const


class Primitive:
    """An operation by name, whose rules are functions."""

    multiple_results = False
    call_primitive = map_primitive = False

    def __init__(self, name):
        self.name = name
        self._impl = self._abstract = self._registered = None

    def def_impl(self, impl):
        self._impl = impl
        return impl

    def def_abstract_eval(self, rule):
        self._abstract = rule
        return rule

    def def_effectful_abstract_eval(self, rule):
        self._abstract = lambda *avals, **params: rule(*avals, **params)[0]
        return rule

    def def_custom_bind(self, bind):
        self.bind = bind
        return bind

    @property
    def impl(self):
        return self._impl

    def abstract_eval(self, *avals, **params):
        return self._abstract(*avals, **params), set()

    def bind(self, *args, **params):
        """The results for these arguments: by the implementation, or as an equation of a program."""
        arrays = [_plait.to_array(arg, self.name) for arg in args]
        if (
            not _plait.is_tracing()
            and self._impl is not None
            and all(map(_plait.is_concrete, arrays))
        ):
            return self._impl(*args, **params)
        if self._registered is None:
            self._register()
        avals = [_plait.aval_of(array) for array in arrays]
        jaxpr, consts = _plait.flat_make_jaxpr(
            lambda leaves: self._run(leaves, params), avals, self.name, self.name
        )
        consts = [_made_here(const) for const in consts]
        call = _Call(params, jaxpr, len(arrays))
        results = _plait.bind(self._registered, *arrays, *consts, call=call)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        return results if self.multiple_results else results[0]

    def _run(self, arrays, params):
        """The results by what lowers the primitive, or implements it, as a list of arrays."""
        function = lowerings.get(self) or self._impl
        if function is None:
            refuse(self.name, "it has neither an implementation nor a function that lowers it")
        try:
            results = function(*arrays, **params)
        except plait.TracerError:
            if function is not self._impl or self._abstract is None:
                raise
            results = self._on_the_host(arrays, params)
        results = results if self.multiple_results else [results]
        return [_plait.to_array(result) for result in results]

    def _on_the_host(self, arrays, params):
        """The results of an implementation that reads its arguments, by a call when the program runs."""

        def call(*values):
            results = self._impl(*map(plait.numpy.asarray, values), **params)
            return list(results) if self.multiple_results else results

        types = self._abstract(*map(_plait.aval_of, arrays), **params)
        types = list(types) if self.multiple_results else types
        return plait.host_call(call, types, *arrays, name=self.name)

    bind_with_trace = None

    def get_bind_params(self, params):
        return [], params

    def __repr__(self):
        return self.name

    # --- plait's rules from JAX's ---

    def _register(self):
        count = _names[self.name] = _names.get(self.name, 0) + 1
        name = f"jax_{self.name}" + (f"_{count}" if count > 1 else "")
        primitive = _extend.Primitive(name, f"The primitive {self.name} of a library for JAX.")
        primitive.abstract(lambda *avals, call: call.jaxpr.out_avals)
        primitive.decompose(lambda *arrays, call: call(*arrays))
        if self in primitive_jvps:
            primitive.jvp(self._jvp, symbolic_zeros=True)
        if self in primitive_transposes:
            primitive.transpose(self._transpose, symbolic_zeros=True)
        if any(self in table for table in _BATCHERS):
            primitive.batch(self._batch)
        self._registered = name

    def _jvp(self, primals, tangents, outputs, call):
        n = call.count
        given = map(_with_zero, tangents[:n], primals[:n])
        _, found = primitive_jvps[self](tuple(primals[:n]), tuple(given), **call.params)
        found = found if self.multiple_results else [found]
        return [None if isinstance(t, Zero) or t is None else t for t in found]

    def _transpose(self, cotangents, inputs, call):
        given = [
            UndefinedPrimal(each) if isinstance(each, plait.ShapeDtypeStruct) else each
            for each in inputs[: call.count]
        ]
        cotangents = list(map(_with_zero, cotangents, call.jaxpr.out_avals))
        cotangents = cotangents if self.multiple_results else cotangents[0]
        found = primitive_transposes[self](cotangents, *given, **call.params)
        found = [None if isinstance(ct, Zero) or ct is None or ct is Zero else ct for ct in found]
        return found + [None] * (len(inputs) - call.count)

    def _batch(self, size, arrays, axes, call):
        n = call.count
        if any(axis is not None for axis in axes[n:]):  # of what it captured
            outputs = plait.vmap(call, tuple(axes), axis_size=size)(*arrays)
            return outputs, [0] * len(outputs)
        values, dims = tuple(arrays[:n]), tuple(axes[:n])
        if self in primitive_batchers:
            outputs, dims = primitive_batchers[self](values, dims, **call.params)
        elif self in fancy_primitive_batchers:
            axis = AxisData(size)
            outputs, dims = fancy_primitive_batchers[self](axis, values, dims, **call.params)
        else:
            rule = axis_primitive_batchers[self]
            outputs, dims = rule(size, None, None, values, dims, **call.params)
        if self.multiple_results:
            return list(outputs), list(dims)
        return [outputs], [dims]


class AxisData:
    """The axis of a vmap: its size; it has no name."""

    name = spmd_name = None
    explicit_mesh_axis = None

    def __init__(self, size):
        self.size = size


class _Existing(Primitive):
    """A primitive of plait under JAX's interface; its parameters are plait's."""

    def __init__(self, name):
        super().__init__(name)
        self._registered = name

    def bind(self, *args, **params):
        from jax._jaxprs import ClosedJaxpr, plain

        held = {
            name: [plain(each) for each in value]
            if isinstance(value, tuple) and value and isinstance(value[0], ClosedJaxpr)
            else plain(value)
            if isinstance(value, ClosedJaxpr)
            else value
            for name, value in params.items()
        }
        return _plait.bind(self._registered, *args, **held)

    def get_bind_params(self, params):
        """No functions, and the parameters that plait's primitive has."""
        from jax._jaxprs import _ALIASES

        names = {there for there, _ in _ALIASES.get(self.name, ())} | {"unroll"}
        return [], {name: value for name, value in params.items() if name not in names}


# Primitives of JAX that plait names differently.
_THERE = {
    "convert_element_type": "cast",
    "bitcast_convert_type": "bitcast",
    "select_n": "select",
    "custom_jvp_call": "custom_derivative",
    "custom_vjp_call": "custom_derivative",
    "remat": "checkpoint",
    "jit": "call",
    "closed_call": "call",
    "reduce_and": "reduce_all",
    "reduce_or": "reduce_any",
}
_HERE = {there: here for here, there in reversed(_THERE.items())}
_existing: dict[str, _Existing] = {}


def jax_name(name):
    """JAX's name of a primitive of plait."""
    return _HERE.get(name, name)


class _Composed(Primitive):
    """What is a primitive in JAX and a function of plait.lax, whose equations it has in programs."""

    def bind(self, *args, **params):
        return getattr(plait.lax, self.name)(*args, **params)


def existing(name):
    """JAX's primitive of this name, if plait has it, or the function of that name."""
    there = _THERE.get(name, name)
    if name not in _existing:
        if _plait.has_primitive(there):
            _existing[name] = _Existing(there)
            _existing[name].name = name
        elif name in _plait.catalogue("lax"):
            _existing[name] = _Composed(name)
        else:
            return None
    return _existing[name]
