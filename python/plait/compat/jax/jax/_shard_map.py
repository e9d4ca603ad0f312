"""shard_map and smap on one device: a mesh whose axes have size 1, so that a function gets its arguments whole.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import plait
from plait import _plait
from plait._functions import name_of, wraps
from plait._plait import flatten, unflatten

from jax.sharding import PartitionSpec, current_mesh

_missing = object()


class Infer:
    """Stands for specs that are those of the arguments; its instance is jax.sharding.Infer in signatures."""

    def __repr__(self):
        return "jax.sharding.Infer"


_infer = Infer()


def shard_map(
    f=_missing,
    /,
    *,
    out_specs,
    in_specs=_infer,
    mesh=None,
    axis_names=frozenset(),
    check_vma=True,
    check_rep=True,
):
    """f on the one device of a mesh, with the names of the mesh's axes bound, so that lax.psum and its like apply.

    The specs say how arrays lie on several devices; on one, f takes and gives whole arrays. They are checked as in JAX.
    """
    options = dict(out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names)
    if f is _missing:
        return functools.partial(shard_map, **options)

    def sharded(*args):
        found = current_mesh() if mesh is None else mesh
        if found is None or found.empty:
            raise ValueError(
                "The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context"
            )
        names = frozenset(axis_names) or frozenset(found.axis_names)
        for name in names - set(found.axis_names):
            raise ValueError(f"shard_map: axis_names has {name!r}, and the mesh has {found.shape}")
        if in_specs is not _infer:
            specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
            _check_specs("in_specs", f, specs, args, names)

        def call(*args):
            result = f(*args)
            _check_specs("out_specs", f, out_specs, result, names)
            return result

        return _with_axes(call, sorted(names, key=found.axis_names.index), args)

    return wraps("shard_map", f, sharded)


def smap(f=_missing, /, *, in_axes=_infer, out_axes, axis_name):
    """shard_map over one axis of the mesh of the context; in_axes and out_axes say which axes lie along it."""
    if f is _missing:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)

    def sharded(*args):
        return shard_map(f, out_specs=PartitionSpec(), axis_names={axis_name})(*args)

    return wraps("smap", f, sharded)


def _with_axes(f, names, args):
    """f(*args) under named axes of size 1."""
    leaves, structure = flatten(args)
    arrays = [leaf if _plait.is_array_like(leaf) else None for leaf in leaves]
    out_structure = None

    def of_arrays(arrays):
        nonlocal out_structure
        given = [leaf if array is None else array for leaf, array in zip(leaves, arrays)]
        found, out_structure = flatten(f(*unflatten(structure, given)))
        return [_plait.to_array(leaf) for leaf in found]

    for name in reversed(names):
        of_arrays = plait.vmap(of_arrays, in_axes=None, axis_name=name, axis_size=1)
    rows = of_arrays(arrays)
    return unflatten(out_structure, [row.reshape(row.shape[len(names) :]) for row in rows])


def _check_specs(what, f, specs, tree, names):
    """ValueError where specs do not fit a tree of arrays, or name what is no axis."""
    given, spec_structure = flatten(specs, lambda node: node is None)
    specs = unflatten(spec_structure, [PartitionSpec() if spec is None else spec for spec in given])
    leaves, structure = flatten(tree)
    found = _plait.broadcast_prefix(specs, structure, f"shard_map {what}")
    for index, (spec, leaf) in enumerate(zip(found, leaves)):
        used = [axis for part in spec for axis in (part if isinstance(part, tuple) else (part,))]
        for axis in used:
            if axis not in names and axis not in (None, PartitionSpec.UNCONSTRAINED):
                raise ValueError(
                    f"shard_map {what} argument must refer to an axis marked as manual ({set(names)}), but:\n\n"
                    f"{what} refers to {axis!r}\n\nCheck the {what} values passed to shard_map."
                )
        shape = tuple(getattr(leaf, "shape", ()))
        if len(spec) > len(shape):
            raise ValueError(
                f"shard_map applied to the function {name_of(f)!r} was given an {what} entry which is too long to be "
                f"compatible with the corresponding value{structure.path(index)}: {what} is {spec} which has length "
                f"{len(spec)}, but the value has shape {shape}, which has rank {len(shape)}"
            )
