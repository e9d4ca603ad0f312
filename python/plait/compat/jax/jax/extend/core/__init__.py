"""jax.extend.core: jaxprs and primitives. Jaxprs have JAX's attributes, and plait's text.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

from typing import Any

import numpy as np

import plait
from plait import _plait

from jax._arrays import find_top_trace
from jax._doors import lacking, refused
from jax._jaxprs import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from jax._primitives import Primitive
from jax.extend.core import primitives

Effects = Any
no_effects: frozenset = frozenset()
array_types = {plait.Array, np.ndarray}


class Effect:
    """The type of effects, which plait orders itself."""


class Token:
    """The type of tokens, which order effects: plait orders them itself."""


class TraceTag:
    """The type of traces' tags, which plait has not."""


CallPrimitive = Primitive


class JaxprTypeError(TypeError):
    """A jaxpr whose types do not fit; plait checks its own."""


def valid_jaxtype(value):
    """Whether a value is an array or a number."""
    return _plait.is_array_like(value)


def concrete_or_error(force, value, context=""):
    """A value, read now."""
    return value if force is None else force(value)


def jaxpr_as_fun(closed_jaxpr):
    """A function of the arrays of a jaxpr's inputs."""
    return lambda *args: closed_jaxpr(*args)


def mapped_aval(size, axis, aval):
    """The type of an example of a batch."""
    if axis is None:
        return aval
    return plait.ShapeDtypeStruct(aval.shape[:axis] + aval.shape[axis + 1 :], aval.dtype)


def unmapped_aval(size, axis, aval, *_):
    """The type of a batch of examples."""
    if axis is None:
        return aval
    return plait.ShapeDtypeStruct((*aval.shape[:axis], size, *aval.shape[axis:]), aval.dtype)


def primal_dtype_to_tangent_dtype(dtype):
    """The dtype of a tangent of a value of a dtype."""
    from jax.dtypes import float0

    return dtype if np.dtype(dtype).kind in "fcV" else float0


def get_opaque_trace_state(convention=None):
    """What is equal while one trace is the innermost."""
    return _plait.is_tracing()


def unsafe_am_i_under_a_jit_DO_NOT_USE():
    return _plait.is_tracing()


new_jaxpr_eqn = refused("jax.extend.core.new_jaxpr_eqn", "plait.Builder makes jaxprs")
take_current_trace = refused("jax.extend.core.take_current_trace", "plait's traces are not shown")
set_current_trace = refused("jax.extend.core.set_current_trace", "plait's traces are not shown")
subjaxprs = refused("jax.extend.core.subjaxprs", "plait.walk(jaxpr) goes through bodies")
jaxprs_in_params = refused(
    "jax.extend.core.jaxprs_in_params", "plait.walk(jaxpr) goes through bodies"
)
__getattr__ = lacking(__name__)
