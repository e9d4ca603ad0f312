"""jax.interpreters.ad: rules of differentiation.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import plait

from jax import _doors
from jax._arrays import JVPTracer as JVPTracer
from jax._primitives import (
    UndefinedPrimal as UndefinedPrimal,
    Zero as Zero,
    instantiate_zeros as instantiate_zeros,
    primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes,
)


def is_undefined_primal(value):
    return isinstance(value, UndefinedPrimal)


def zeros_like_aval(aval):
    return plait.numpy.zeros(aval.shape, aval.dtype)


def add_tangents(x, y):
    """The sum of two tangents, of which each may be Zero."""
    if isinstance(x, Zero):
        return y
    return x if isinstance(y, Zero) else x + y


add_jaxvals = add_tangents


def _sum(tangents, primal_out):
    found = [tangent for tangent in tangents if not isinstance(tangent, Zero)]
    return functools.reduce(add_tangents, found, Zero.from_primal_value(primal_out))


def defjvp(primitive, *jvps):
    """One rule for each argument: jvp(tangent, *primals, **params), or None."""

    def rule(primals, tangents, **params):
        output = primitive.bind(*primals, **params)
        parts = [
            f(t, *primals, **params)
            for f, t in zip(jvps, tangents)
            if f and not isinstance(t, Zero)
        ]
        return output, _sum(parts, output)

    primitive_jvps[primitive] = rule


def defjvp2(primitive, *jvps):
    """One rule for each argument, which takes the output too: jvp(tangent, output, *primals, **params)."""

    def rule(primals, tangents, **params):
        output = primitive.bind(*primals, **params)
        parts = [
            f(t, output, *primals, **params)
            for f, t in zip(jvps, tangents)
            if f and not isinstance(t, Zero)
        ]
        return output, _sum(parts, output)

    primitive_jvps[primitive] = rule


def deflinear2(primitive, transpose):
    """A primitive that is linear in all its arguments, and its transpose."""

    def rule(primals, tangents, **params):
        return primitive.bind(*primals, **params), primitive.bind(
            *map(instantiate_zeros, tangents), **params
        )

    primitive_jvps[primitive] = rule
    primitive_transposes[primitive] = transpose


def deflinear(primitive, transpose):
    """A primitive that is linear in all its arguments; transpose takes the cotangent alone."""
    deflinear2(primitive, lambda cotangent, *_, **params: transpose(cotangent, **params))


defbilinear = _doors.refused(
    "jax.interpreters.ad.defbilinear", "bilinear primitives; give a jvp and a transpose rule"
)
jvp = _doors.refused("jax.interpreters.ad.jvp", "use jax.jvp")
linearize = _doors.refused("jax.interpreters.ad.linearize", "use jax.linearize")
__getattr__ = _doors.lacking(__name__)
