"""jax.custom_batching: functions with their own rule of vmap.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import plait

from jax import _doors
from jax.tree_util import tree_flatten as _flatten, tree_unflatten as _unflatten


class custom_vmap:
    """A function with a rule (axis_size, in_batched, *args) -> (outputs, out_batched)."""

    _count = 0

    def __init__(self, fun):
        functools.update_wrapper(self, fun)
        self.fun, self.vmap_rule = fun, None

    def def_vmap(self, vmap_rule):
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args):
        from jax._primitives import Primitive, primitive_batchers

        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.__name__} using def_vmap"
            )
        leaves, structure = _flatten(args)
        result = []

        def flat(*values):
            found, out = _flatten(self.fun(*_unflatten(structure, values)))
            result[:] = [out]
            return found

        def batch(values, dims):
            moved = [
                v if d is None else plait.numpy.moveaxis(v, d, 0) for v, d in zip(values, dims)
            ]
            size = next(v.shape[0] for v, d in zip(moved, dims) if d is not None)
            batched = _unflatten(structure, [d is not None for d in dims])
            outputs, out_batched = self.vmap_rule(
                size, list(batched), *_unflatten(structure, moved)
            )
            found, out = _flatten(outputs)
            result[:] = [out]
            return found, [0 if each else None for each in _flatten(out_batched)[0]]

        primitive = Primitive(f"custom_vmap_{self.__name__}")
        primitive.multiple_results = True
        primitive.def_impl(flat)
        primitive_batchers[primitive] = batch
        outputs = primitive.bind(*leaves)
        return _unflatten(result[0], outputs)


def sequential_vmap(fun):
    """fun, which vmap applies to one example after the other."""
    function = custom_vmap(fun)

    def rule(axis_size, in_batched, *args):
        leaves, structure = _flatten(args)
        flags = _flatten(list(in_batched))[0]
        mapped = [leaf for leaf, flag in zip(leaves, flags) if flag]

        def step(values):
            values = iter(values)
            return fun(
                *_unflatten(
                    structure, [next(values) if f else leaf for leaf, f in zip(leaves, flags)]
                )
            )

        outputs = plait.lax.map(step, mapped)
        found, out = _flatten(outputs)
        return outputs, _unflatten(out, [True] * len(found))

    function.def_vmap(rule)
    return function


__getattr__ = _doors.lacking(__name__)
