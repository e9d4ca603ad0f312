"""jax.interpreters.batching: rules of vmap.

SPDX-License-Identifier: Apache-2.0
"""

import plait.numpy as _numpy

from jax import _doors
from jax._primitives import (
    axis_primitive_batchers as axis_primitive_batchers,
    fancy_primitive_batchers as fancy_primitive_batchers,
    primitive_batchers as primitive_batchers,
)

not_mapped = None


def defvectorized(primitive):
    """A primitive that works on every element by itself."""

    def rule(args, dims, **params):
        (dim,) = set(dims)
        return primitive.bind(*args, **params), dim

    primitive_batchers[primitive] = rule


def defbroadcasting(primitive):
    """A primitive of elements whose arguments have equal shapes."""

    def rule(args, dims, **params):
        size = next(arg.shape[dim] for arg, dim in zip(args, dims) if dim is not None)
        return primitive.bind(
            *(bdim_at_front(arg, dim, size) for arg, dim in zip(args, dims)), **params
        ), 0

    primitive_batchers[primitive] = rule


def broadcast(x, size, axis, mesh_axis=None):
    """x with a further axis, along which it is repeated."""
    return _numpy.repeat(_numpy.expand_dims(x, axis), size, axis)


def bdim_at_front(x, dim, size, mesh_axis=None):
    """x with its batch axis first, made where it has none."""
    return broadcast(x, size, 0) if dim is None else _numpy.moveaxis(x, dim, 0)


def moveaxis(x, source, destination):
    return _numpy.moveaxis(x, source, destination)


def register_vmappable(data_type, spec_type, axis_size_type, to_elt, from_elt, make_iota):
    """Refused: what vmap maps are arrays and trees of them."""
    _doors.refuse(
        "jax.interpreters.batching.register_vmappable",
        "types with their own axes",
        "register a tree",
    )


unregister_vmappable = defreducer = _doors.refused(
    "jax.interpreters.batching", "this part is not in plait's drop-in"
)
__getattr__ = _doors.lacking(__name__)
