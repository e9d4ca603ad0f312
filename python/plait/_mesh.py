"""Meshes and shard_map: one program in several places at once, which are the ranks of a job or all in this process.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import math

from plait import _plait
from plait._functions import (
    Flat,
    applying,
    call_place,
    check_callable,
    name_of,
    to_arrays,
    wraps,
)
from plait._plait import flatten, unflatten


class PartitionSpec:
    """For each axis of an array a name of a mesh's axis along which it is divided, several names, or None: P("data", None).

    Axes that are left out at the end are whole.
    """

    def __init__(self, *partitions):
        self._partitions = partitions
        for part in partitions:
            names = part if isinstance(part, tuple) else (part,)
            if not all(name is None or isinstance(name, str) for name in names):
                _plait.fail(
                    "ValueError",
                    f"P: {part!r:.60} is no name of an axis",
                    'write P("data", None), or P(("data", "model")) for several names',
                )

    def __iter__(self):
        return iter(self._partitions)

    def __len__(self):
        return len(self._partitions)

    def __getitem__(self, index):
        return self._partitions[index]

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._partitions == other._partitions

    def __hash__(self):
        return hash(self._partitions)

    def __repr__(self):
        return "P(" + ", ".join(map(repr, self._partitions)) + ")"

    @property
    def _names(self):
        """For each axis its names, as a list."""
        return [
            [] if part is None else list(part) if isinstance(part, tuple) else [part]
            for part in self._partitions
        ]


P = PartitionSpec


class Mesh:
    """Places in a grid whose axes have names: plait.mesh((4, 2), ("data", "model"))."""

    def __init__(self, shape, axis_names):
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self._flat = _plait.FlatMesh(list(shape), list(axis_names))
        self.axis_names = axis_names
        self.shape = dict(zip(axis_names, shape))

    @property
    def size(self):
        """The number of places."""
        return math.prod(self.shape.values())

    def __eq__(self, other):
        return isinstance(other, Mesh) and self.shape == other.shape

    def __hash__(self):
        return hash(tuple(self.shape.items()))

    def __repr__(self):
        return "Mesh(" + ", ".join(f"{name!r}: {size}" for name, size in self.shape.items()) + ")"


def mesh(shape, axis_names):
    """A mesh of places: their numbers along axes, and the axes' names.

    In a job of several ranks (`plait run -n 8 script.py`) the places are the ranks, row-major, and there are as many.
    A process that is alone has all places, and runs them one after the other with the same bits. ValueError where shape,
    names and job do not fit.
    """
    return Mesh(shape, axis_names)


def shard_map(f=None, mesh=None, in_specs=None, out_specs=None, *, check_vma=True):
    """f for one place of a mesh, as a function of whole arrays that runs in all places at once.

    in_specs and out_specs are P(...), or prefixes of the trees of arguments and results: P("data") divides the first
    axis along the mesh's axis "data", and f gets the block of its place; P() gives all places the whole array. Inside,
    lax.psum(x, "data"), pmax, all_gather, psum_scatter, all_to_all, ppermute and axis_index speak of the places.

    A result whose spec does not name an axis must be the same along it, which types say: it is, if it was made from
    what is the same, by psum or pmax. The gradient by an array that all places share is the sum of what each gives.

    ShapeError for an axis that its places do not divide, ValueError for a result that differs where its spec says it
    does not, and for programs that differ between ranks.
    """
    options = dict(mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    if f is None:
        return functools.partial(shard_map, **options)
    check_callable("shard_map", f)
    del check_vma
    for name, value in options.items():
        if value is None:
            _plait.fail("ValueError", f"shard_map: there is no {name}", f"give {name}=...")
    if not isinstance(mesh, Mesh):
        _plait.fail(
            "ValueError", f"shard_map: the mesh is {mesh!r:.60}", "make one with plait.mesh"
        )

    def sharded(*args):
        with applying("shard_map", f):
            leaves, structure = flatten((args, {}))
            place = call_place(structure)
            arrays = to_arrays(leaves, structure, "shard_map", place)
            _, arguments = flatten(args)
            specs = in_specs if isinstance(in_specs, PartitionSpec) else tuple(in_specs)
            given = [_spec(each, "in_specs") for each in _for_leaves(specs, arguments, "in_specs")]
        flat = Flat("shard_map", f, structure)

        def named():
            found = _for_leaves(out_specs, flat.outputs, "out_specs")
            return [
                (_spec(each, "out_specs"), "the result" + flat.outputs.path(index))
                for index, each in enumerate(found)
            ]

        results = _plait.flat_shard_map(mesh._flat, flat, given, named, arrays, name_of(f), place)
        return unflatten(flat.outputs, results)

    return wraps("shard_map", f, sharded)


def _for_leaves(specs, structure, what):
    """The spec of each leaf: None is P()."""
    given, spec_structure = flatten(
        specs, lambda node: node is None or isinstance(node, PartitionSpec)
    )
    filled = unflatten(
        spec_structure, [PartitionSpec() if spec is None else spec for spec in given]
    )
    return _plait.broadcast_prefix(filled, structure, f"shard_map: {what}")


def _spec(spec, what):
    if not isinstance(spec, PartitionSpec):
        _plait.fail(
            "ValueError",
            f"shard_map: {what} has {spec!r:.60}",
            'give P("data") to divide the first axis, P() for the whole array',
        )
    return spec._names


def process_index():
    """The number of this process among those of its job, from 0 on."""
    return _plait.rank_and_size()[0]


def process_count():
    """How many processes the job has: 1 for one that is alone."""
    return _plait.rank_and_size()[1]
