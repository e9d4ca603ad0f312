"""Meshes and shard_map: one program in several places at once, which are the ranks of a job or all in this process.

SPDX-License-Identifier: Apache-2.0
"""

import contextvars
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


_mesh_of_context = contextvars.ContextVar("mesh", default=None)


def current_mesh():
    """The mesh of set_mesh, or None."""
    return _mesh_of_context.get()


class set_mesh:
    """Makes a mesh that of shard_map without mesh=, in a context: `with plait.set_mesh(mesh): ...`.

    A function under jit keeps the mesh with which it was traced.
    """

    def __init__(self, mesh):
        if not isinstance(mesh, Mesh):
            _plait.fail(
                "ValueError", f"set_mesh: the mesh is {mesh!r:.60}", "make one with plait.mesh"
            )
        self.mesh = mesh

    def __enter__(self):
        self._token = _mesh_of_context.set(self.mesh)
        return self.mesh

    def __exit__(self, *error):
        _mesh_of_context.reset(self._token)


def mesh(shape, axis_names):
    """A mesh of places: their numbers along axes, and the axes' names.

    In a job of several ranks (`plait run -n 8 script.py`) the places are the ranks, row-major, and there are as many.
    A process that is alone has all places, and runs them one after the other with the same bits. ValueError where shape,
    names and job do not fit.
    """
    return Mesh(shape, axis_names)


def shard_map(
    f=None,
    mesh=None,
    in_specs=None,
    out_specs=None,
    *,
    axis_names=frozenset(),
    check_vma=True,
):
    """f for one place of a mesh, as a function of whole arrays that runs in all places at once; without f, a decorator.

    in_specs and out_specs are P(...), or prefixes of the trees of arguments and results: P("data") divides the first
    axis along the mesh's axis "data", and f gets the block of its place; P() gives all places the whole array, and None
    passes a value of any type as it is. Inside, lax.psum(x, "data"), pmax, all_gather, psum_scatter, all_to_all,
    ppermute and axis_index speak of the places. Without mesh it is that of `with plait.set_mesh(mesh)`.

    A result whose spec does not name an axis must be the same along it, which types say: it is, if it was made from
    what is the same, by psum or pmax. The gradient by an array that all places share is the sum of what each gives.
    With check_vma=False types say nothing: results are the first place's where specs do not name an axis, and psum
    transposes to psum, as in JAX. With axis_names, f is over these axes only; along the others of the mesh all places
    have the same.

    ShapeError for an axis that its places do not divide, ValueError for a result that differs where its spec says it
    does not, and for programs that differ between ranks.
    """
    options = dict(mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    if f is None:
        return functools.partial(shard_map, **options, axis_names=axis_names, check_vma=check_vma)
    check_callable("shard_map", f)
    for name in ("in_specs", "out_specs"):
        if options[name] is None:
            _plait.fail("ValueError", f"shard_map: there is no {name}", f"give {name}=...")

    def sharded(*args):
        found = current_mesh() if mesh is None else mesh
        if found is None:
            _plait.fail(
                "ValueError",
                "shard_map: there is no mesh",
                "give mesh=..., or call it in `with plait.set_mesh(mesh)`",
            )
        if not isinstance(found, Mesh):
            _plait.fail(
                "ValueError", f"shard_map: the mesh is {found!r:.60}", "make one with plait.mesh"
            )
        specs = in_specs if isinstance(in_specs, PartitionSpec) else tuple(in_specs)
        flat = found._flat.only(list(axis_names)) if axis_names else found._flat
        return run_in_places(f, flat, specs, out_specs, args, check_vma)

    return wraps("shard_map", f, sharded)


class _Blocks(Flat):
    """A function of the leaves that specs are for; the others are passed as they are."""

    def __init__(self, transform, fun, structure, leaves, held):
        super().__init__(transform, fun, structure)
        self.leaves = [leaf if index in held else None for index, leaf in enumerate(leaves)]
        self.numbers = [index for index in range(len(leaves)) if index not in held]

    def __call__(self, blocks):
        _plait.mark_arguments(blocks)
        leaves = list(self.leaves)
        for number, block in zip(self.numbers, blocks):
            leaves[number] = block
        args, _ = unflatten(self.structure, leaves)
        return self.finish(self.fun(*args))


def run_in_places(f, mesh, in_specs, out_specs, args, check_vma):
    """What shard_map's function gives for args; the mesh is flat, and specs say which axes they divide."""
    with applying("shard_map", f):
        leaves, structure = flatten((args, {}))
        _, arguments = flatten(args)
        specs = _for_leaves(in_specs, arguments, "in_specs")
        held = {index for index, spec in enumerate(specs) if spec is _as_it_is}
        flat = _Blocks("shard_map", f, structure, leaves, held)
        of_leaf = call_place(structure)

        def place(index):
            return of_leaf(flat.numbers[index])

        for index in flat.numbers:
            if not _plait.is_array_like(leaves[index]):
                to_arrays(leaves[: index + 1], structure, "shard_map", of_leaf)
        arrays = [_plait.to_array(leaves[index], "shard_map") for index in flat.numbers]
        given = [_spec(specs[index], "in_specs") for index in flat.numbers]

    def named():
        found = _for_leaves(out_specs, flat.outputs, "out_specs")
        return [
            (_spec(each, "out_specs"), "the result" + flat.outputs.path(index))
            for index, each in enumerate(found)
        ]

    results = _plait.flat_shard_map(mesh, flat, given, named, arrays, name_of(f), place, check_vma)
    return unflatten(flat.outputs, results)


_as_it_is = PartitionSpec()  # stands for None


def _for_leaves(specs, structure, what):
    """The spec of each leaf; None is P() of results, and of arguments says that they are passed as they are."""
    given, spec_structure = flatten(
        specs, lambda node: node is None or isinstance(node, PartitionSpec)
    )
    whole = _as_it_is if what == "in_specs" else PartitionSpec()
    filled = unflatten(spec_structure, [whole if spec is None else spec for spec in given])
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
