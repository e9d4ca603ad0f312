"""jax.interpreters.partial_eval: plait's tracing has other parts; what programs of JAX build on is refused by name.

SPDX-License-Identifier: Apache-2.0
"""

import plait
from plait import _plait

from jax._arrays import Tracer
from jax._doors import lacking, refused

JaxprTracer = DynamicJaxprTracer = Tracer
custom_partial_eval_rules: dict = {}
partial_eval_jaxpr_custom_rules: dict = {}
dce_rules: dict = {}
trace_to_jaxpr_dynamic = refused(
    "jax.interpreters.partial_eval.trace_to_jaxpr_dynamic", "use jax.make_jaxpr"
)
dce_jaxpr = refused(
    "jax.interpreters.partial_eval.dce_jaxpr", "plait drops what is not used itself"
)


class PartialVal(tuple):
    """What is known of a value: (None, the value), or (its type, None)."""

    @classmethod
    def known(cls, value):
        return cls((None, value))

    @classmethod
    def unknown(cls, aval):
        return cls((aval, None))

    def is_known(self):
        return self[0] is None


def _varying(jaxpr, count):
    """The names in a jaxpr that depend on its first inputs."""
    found = set(jaxpr.inputs[:count])
    for equation in jaxpr.eqns:
        if any(isinstance(atom, str) and atom in found for atom in equation.inputs):
            found.update(equation.outputs)
    return found


def trace_to_jaxpr_nounits(fun, pvals, instantiate=False):
    """(jaxpr, what is known of the outputs, captured arrays) of fun, a WrappedFun, for inputs that are not known."""
    avals = [aval for aval, _ in pvals if aval is not None]
    others = []

    def flat(leaves):
        leaves = iter(leaves)
        results = fun.call_wrapped(
            *(const if aval is None else next(leaves) for aval, const in pvals)
        )
        others[:] = [None if _plait.is_array_like(result) else result for result in results]
        return [_plait.to_array(result) for result in results if _plait.is_array_like(result)]

    jaxpr, consts = _plait.flat_make_jaxpr(flat, avals, "trace_to_jaxpr_nounits", "fun")
    varying = _varying(jaxpr, len(avals))
    zeros = [plait.numpy.zeros(aval.shape, aval.dtype) for aval in avals]
    values = iter(_plait.eval_jaxpr(jaxpr, zeros + consts))
    atoms = iter(jaxpr.outputs)
    out_pvals = []
    for other in others:
        if other is not None:
            out_pvals.append(PartialVal.known(other))
            continue
        atom, value = next(atoms), next(values)
        is_varying = isinstance(atom, str) and atom in varying
        unknown = instantiate or is_varying
        out_pvals.append(
            PartialVal.unknown(_plait.aval_of(value)) if unknown else PartialVal.known(value)
        )
    return jaxpr, out_pvals, consts


__getattr__ = lacking(__name__)
