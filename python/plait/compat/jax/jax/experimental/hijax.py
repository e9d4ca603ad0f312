"""jax.experimental.hijax: the names that libraries build on when they are imported. Values of a user's own types in
programs are not in plait's drop-in, and say so when one is made; containers are.

SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: F401

from jax import _doors
from jax._arrays import ShapedArray as AbstractValue, ShapedArray as ShapedArray
from jax._primitives import (
    UndefinedPrimal as _UndefinedPrimal,
    Zero as Zero,
    instantiate_zeros as instantiate_zeros,
)
from jax._src.effects import control_flow_allowed_effects as control_flow_allowed_effects
from jax._src.state.types import AbstractRef as AbstractRef

_FIX = "keep such values in containers (jax.tree_util.register_pytree_node)"


class HiType:
    """The base of types of values that users define."""


class MutableHiType(HiType):
    """The base of such types whose values change."""


class HiPrimitive:
    """The base of primitives of such values, which cannot be bound here."""

    def __init__(self, name):
        self.name = name

    def bind(self, *args, **params):
        _doors.refuse(f"jax.experimental.hijax: {self.name}", "users' own types of values", _FIX)


class VJPHiPrimitive(HiPrimitive):
    """The base of those with a derivative rule."""


class AvalQDD:
    """The type of a value that changes, with what is known of it now."""

    def __init__(self, aval, qdd):
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD:
    """The same, where an operation may change what is known."""

    def __init__(self, aval, mutable_qdd):
        self.aval, self.mutable_qdd = aval, mutable_qdd


class aval_method:
    """A method of values of a type, which the type holds."""

    def __init__(self, fun):
        self.fun = fun


class aval_property:
    """A property of values of a type, which the type holds."""

    def __init__(self, fget):
        self.fget = fget


def register_hitype(value_type, to_type):
    """Nothing: values of the type are leaves that no function of jax takes."""


def is_undefined_primal(value):
    return isinstance(value, _UndefinedPrimal)


__getattr__ = _doors.lacking(__name__)
