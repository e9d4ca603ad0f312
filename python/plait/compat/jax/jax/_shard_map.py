"""shard_map and smap: plait's, with JAX's arguments and checks.

SPDX-License-Identifier: Apache-2.0
"""

import functools

from plait import _plait
from plait._functions import name_of, wraps
from plait._mesh import run_in_places
from plait._plait import flatten, unflatten

from jax._doors import refuse
from jax._narrow import entered
from jax.sharding import PartitionSpec, current_mesh, inside_mesh

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
    """plait.shard_map, over the mesh of set_mesh where none is given; specs are checked as in JAX.

    Along axes of the mesh that axis_names leaves out the places have the same.
    """
    options = dict(out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names)
    options |= dict(check_vma=check_vma and check_rep)
    if f is _missing or f is None:
        return functools.partial(shard_map, **options)
    if not callable(f):
        raise TypeError(
            f"shard_map requires a callable for its first argument, but got {f} of type {type(f)}."
        )

    def sharded(*args):
        found = current_mesh() if mesh is None else mesh
        if found is None or found.empty:
            raise ValueError(
                "The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to enter into a mesh context"
            )
        if not isinstance(axis_names, (set, frozenset)):
            raise TypeError(
                "`axis_names` argument of shard_map should be of type `frozenset` or `set`. Got type: "
                f"{type(axis_names)}"
            )
        around = set(getattr(current_mesh(), "manual_axes", ()))
        names = frozenset(axis_names) or frozenset(found.axis_names) - around
        if not names <= set(found.axis_names):
            raise ValueError(
                f"jax.shard_map requires axis_names={set(names)} to be a subset of mesh.axis_names="
                f"{tuple(found.axis_names)}"
            )
        specs = in_specs
        if specs is _infer:
            if found.size > 1:
                refuse(
                    "jax.shard_map",
                    "there are no in_specs, and types do not say here where arrays lie",
                    "give in_specs=...",
                )
            specs = PartitionSpec()
        specs = tuple(specs) if isinstance(specs, list) else specs
        args = entered(args)
        _check_specs("in_specs", f, specs, args, names)

        def call(*args):
            with inside_mesh(found, names | around):
                result = f(*args)
            _check_specs("out_specs", f, out_specs, result, names)
            return result

        call.__name__ = name_of(f)
        flat = found._flat.only([name for name in found.axis_names if name in names])
        if not isinstance(specs, (tuple, PartitionSpec)):
            specs = (specs,) * len(args)  # None: all arguments as they are
        return run_in_places(call, flat, specs, out_specs, args, options["check_vma"])

    return wraps("shard_map", f, sharded)


def smap(f=_missing, /, *, in_axes=_infer, out_axes, axis_name):
    """shard_map over one axis of the mesh of the context; in_axes and out_axes say which axes lie along it."""
    if f is _missing or f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")

    def specs(axes, what, kinds):
        leaves, structure = flatten(axes, lambda node: node is None)
        if not isinstance(axes, kinds) or not all(
            axis is None or isinstance(axis, int) for axis in leaves
        ):
            raise TypeError(
                f"smap {what} must be an int, None, jax.sharding.Infer, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got {axes}."
            )
        return unflatten(
            structure,
            [
                PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)
                for axis in leaves
            ],
        )

    given = (
        {}
        if in_axes is _infer
        else {"in_specs": specs(in_axes, "in_axes", (int, tuple, type(None)))}
    )
    return shard_map(
        f, **given, out_specs=specs(out_axes, "out_axes", object), axis_names={axis_name}
    )


def _check_specs(what, f, specs, tree, names):
    """ValueError where specs do not fit a tree of arrays, or name what is no axis."""
    given, spec_structure = flatten(specs, lambda node: node is None)
    specs = unflatten(spec_structure, [PartitionSpec() if spec is None else spec for spec in given])
    leaves, structure = flatten(tree)
    found = _plait.broadcast_prefix(specs, structure, f"shard_map {what}")
    for index, (spec, leaf) in enumerate(zip(found, leaves)):
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"shard_map {what} argument must be a pytree of `jax.sharding.PartitionSpec` instances, but:\n\n{what} "
                f"is {type(spec).__name__}: {spec!r:.60}\n\nCheck the {what} values passed to shard_map."
            )
        if spec.unreduced or spec.reduced:
            refuse(
                "jax.shard_map",
                f"{what} has {spec}: values that are summed only later are not in plait's drop-in",
                "sum with jax.lax.psum inside of the function",
            )
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
