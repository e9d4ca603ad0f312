"""Named sizes from Python: instantiate, mask, and ragged batches.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses

from plait import _plait
from plait._functions import (
    Flat,
    applying,
    argument_place,
    check_callable,
    name_of,
    text_of,
    to_arrays,
    wraps,
)
from plait._plait import flatten, unflatten
from plait._size_options import constraint_texts
from plait._transforms import ClosedJaxpr


def instantiate(jaxpr, **sizes):
    """The jaxpr with numbers, or other sizes, in place of named sizes: instantiate(j, n=3)."""
    if not isinstance(jaxpr, (ClosedJaxpr, _plait.Jaxpr)):
        _plait.fail(
            "DtypeError",
            f"instantiate: {text_of(jaxpr)} of type {type(jaxpr).__name__} is no jaxpr",
            "make one with plait.make_jaxpr(f)(...)",
        )
    if isinstance(jaxpr, ClosedJaxpr):
        return ClosedJaxpr(_plait.instantiate(jaxpr.jaxpr, sizes), jaxpr.consts, jaxpr.out_tree)
    return _plait.instantiate(jaxpr, sizes)


def mask(fun, in_shapes, out_shapes=None, *, constraints=()):
    """fun on arrays padded to fixed sizes: mask(f, ["n d", "d k"])(x, w, n=3).

    in_shapes has a spec for each argument (a single spec stands for one argument), in trees like the arguments' own.
    Values of sizes are keywords of the call. Those that it does not give are the arrays' own; ValueError when it gives
    none. "_" is an axis that is never padded. Padding is never read and is zero in results. out_shapes, specs in a tree
    like the results', is checked; "n-1" also matches max(n-1,0), with the constraint n >= 1.

    constraints restrict the sizes ("n > 0", "n % 8 == 0"), as for make_jaxpr; they are checked at run time, for every
    example of a batch.
    """
    check_callable("mask", fun)
    constraints = constraint_texts("mask", constraints)
    shapes = tuple(in_shapes) if isinstance(in_shapes, (list, tuple)) else (in_shapes,)

    def masked(*args, **sizes):
        with applying("mask", fun):
            leaves, structure = flatten(args)
            if len(shapes) != len(args):
                _plait.fail(
                    "ValueError",
                    f"mask: in_shapes has {len(shapes)} specs, and `{name_of(fun)}` was called with {len(args)} arguments",
                    "give one spec for each argument",
                )
            specs = _plait.broadcast_prefix(shapes, structure, "mask: in_shapes")
            place = argument_place(structure)
            arrays = to_arrays(leaves, structure, "mask", place)
        _, both = flatten((args, {}))
        flat = Flat("mask", fun, both)

        def out_specs():
            return _plait.broadcast_prefix(out_shapes, flat.outputs, "mask: out_shapes")

        wanted = None if out_shapes is None else out_specs
        outputs = _plait.flat_mask(
            flat, arrays, specs, wanted, sizes, name_of(fun), place, constraints
        )
        return unflatten(flat.outputs, outputs)

    return wraps("mask", fun, masked)


@dataclasses.dataclass(frozen=True)
class Ragged:
    """Arrays that differ in the size of their first axis: padded data, and the lengths."""

    data: object
    lengths: object

    def arrays(self):
        """The arrays without padding; the lengths' values must be known."""
        return _plait.unpad_ragged(self.data, self.lengths)

    def __len__(self):
        return self.data.shape[0]

    def __iter__(self):
        return iter(self.arrays())


def ragged(arrays, length=None):
    """Arrays of different lengths as one padded array with lengths; see mask."""
    try:
        arrays = list(arrays)
    except TypeError:
        _plait.fail(
            "DtypeError",
            f"ragged: {text_of(arrays)} of type {type(arrays).__name__} is no sequence of arrays",
            "give a list of arrays",
        )
    return Ragged(*_plait.pad_ragged(arrays, length))
