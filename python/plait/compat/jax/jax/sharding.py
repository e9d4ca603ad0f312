"""jax.sharding: where arrays lie.

Outside of shard_map arrays are whole in each process, wherever a sharding says that they lie. Meshes say in how many
places shard_map runs: the ranks of a job, or the devices as which the CPU counts (jax_num_cpu_devices).

SPDX-License-Identifier: Apache-2.0
"""

import collections
import contextlib
import enum
import math
import threading

import numpy as np

import plait
from plait import _plait
from plait._functions import wraps

from jax._arrays import process_count
from jax._doors import lacking, refuse


class _Unconstrained(enum.Enum):
    """What a partition spec says of an axis that may be partitioned in any way: no name of an axis."""

    UNCONSTRAINED = enum.auto()

    def __repr__(self):
        return self.name


class PartitionSpec(plait.PartitionSpec):
    """Names of mesh axes for the axes of an array."""

    UNCONSTRAINED = _Unconstrained.UNCONSTRAINED

    def __init__(self, *partitions, unreduced=frozenset(), reduced=frozenset()):
        self._partitions = partitions
        self.unreduced, self.reduced = frozenset(unreduced), frozenset(reduced)

    def __iter__(self):
        return iter(self._partitions)

    def __len__(self):
        return len(self._partitions)

    def __getitem__(self, index):
        return self._partitions[index]

    def __add__(self, other):
        return PartitionSpec(*self, *other)

    def _key(self):
        return self._partitions, self.unreduced, self.reduced

    def __eq__(self, other):
        return isinstance(other, PartitionSpec) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"P{self._partitions!r}"

    def index(self, value):
        return self._partitions.index(value)

    def update(self, **changed):
        """A spec with other unreduced or reduced axes, or partitions."""
        partitions = changed.pop("partitions", self._partitions)
        sets = {"unreduced": self.unreduced, "reduced": self.reduced} | changed
        return PartitionSpec(*partitions, **sets)


class AxisType(enum.Enum):
    """How an axis of a mesh is used."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self):
        return self.name


class _MeshOfContext(threading.local):
    """The meshes of the contexts around a call: those of set_mesh say what get_mesh gives, others a name for specs."""

    def __init__(self):
        self.every, self.set = [], []


_context = _MeshOfContext()


def current_mesh():
    """The mesh of the context, or None."""
    return _context.every[-1] if _context.every else None


class Mesh(contextlib.ContextDecorator):
    """Devices with named axes."""

    def __init__(self, devices, axis_names, axis_types=None):
        self.devices = np.asarray(devices, dtype=object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {self.devices.ndim} and len(axis_names) == "
                f"{len(self.axis_names)}."
            )
        types = (axis_types,) if isinstance(axis_types, AxisType) else axis_types
        self.axis_types = tuple(types or (AxisType.Auto,) * len(self.axis_names))
        self.axis_sizes = self.devices.shape

    @property
    def _flat(self):
        """plait's mesh of these places."""
        ids = [device.id for device in self.devices.flat]
        if len(set(ids)) < len(ids):
            raise ValueError(f"a mesh of devices {ids}: one of them is there twice")
        if process_count() > 1 and ids != list(range(len(ids))):
            refuse(
                "jax.sharding.Mesh",
                f"devices in the order {ids}: in a job the places of a mesh are the ranks, row by row",
                "give jax.devices() in their order, or use jax.make_mesh",
            )
        return _plait.FlatMesh(list(self.devices.shape), list(self.axis_names))

    @property
    def shape(self):
        return collections.OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self):
        return tuple(zip(self.axis_names, self.devices.shape))

    @property
    def abstract_mesh(self):
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def local_devices(self):
        return list(self.devices.flat)

    @property
    def device_ids(self):
        return np.vectorize(lambda device: device.id, otypes=[int])(self.devices)

    size = property(lambda self: self.devices.size)
    empty = property(lambda self: self.devices.ndim == 0 or self.devices.size == 0)
    is_multi_process = property(lambda self: process_count() > 1)
    local_mesh = property(lambda self: self)

    def __enter__(self):
        _context.every.append(self)
        return self

    def __exit__(self, *error):
        _context.every.pop()

    def __eq__(self, other):
        return isinstance(other, Mesh) and (self.shape_tuple, self.axis_types) == (
            other.shape_tuple,
            other.axis_types,
        )

    def __hash__(self):
        return hash((self.shape_tuple, self.axis_types))

    def __str__(self):
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"Mesh({sizes}, axis_types={self.axis_types})" if sizes else "Mesh()"

    def __repr__(self):
        types = f", axis_types={self.axis_types}" if self.axis_names else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"


class AbstractMesh:
    """The shape of a mesh; that of no mesh is empty."""

    def __init__(self, axis_sizes=(), axis_names=(), axis_types=None):
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        self.axis_types = axis_types or (AxisType.Auto,) * len(self.axis_names)
        self.shape = dict(zip(self.axis_names, self.axis_sizes))
        self.size = int(np.prod(self.axis_sizes))
        self.empty = not self.axis_names
        self.axis_types = tuple(self.axis_types)
        self.explicit_axes = self._axes_of(AxisType.Explicit)
        self.manual_axes = self._axes_of(AxisType.Manual)
        self.auto_axes = self._axes_of(AxisType.Auto)
        count = len(self.axis_names)
        self.are_all_axes_manual = count == len(self.manual_axes) > 0
        self.are_all_axes_explicit = count == len(self.explicit_axes) > 0
        self.are_all_axes_auto = count == len(self.auto_axes)
        self.shape_tuple = tuple(zip(self.axis_names, self.axis_sizes))

    def _axes_of(self, kind):
        return tuple(name for name, each in zip(self.axis_names, self.axis_types) if each is kind)

    @property
    def abstract_mesh(self):
        return self

    @property
    def _flat(self):
        return _plait.FlatMesh(list(self.axis_sizes), list(self.axis_names))

    def __eq__(self, other):
        return isinstance(other, AbstractMesh) and (self.shape_tuple, self.axis_types) == (
            other.shape_tuple,
            other.axis_types,
        )

    def __hash__(self):
        return hash((self.shape_tuple, self.axis_types))

    def __repr__(self):
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"AbstractMesh({sizes}, axis_types={self.axis_types})"


class Sharding:
    """Where an array lies."""

    _single = None
    is_fully_addressable = is_fully_replicated = True
    memory_kind = None

    @property
    def device_set(self):
        return {self._single}

    addressable_devices = device_set
    num_devices = 1

    def is_equivalent_to(self, other, ndim):
        return isinstance(other, Sharding) and self._single == other._single

    def shard_shape(self, global_shape):
        return tuple(global_shape)

    def devices_indices_map(self, global_shape):
        """The part of an array that lies on each device: all of it."""
        return {self._single: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def with_memory_kind(self, kind):
        return self

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self):
        return hash((type(self), self._single))


class SingleDeviceSharding(Sharding):
    """On one device."""

    def __init__(self, device, *, memory_kind=None):
        self._single = device

    def __repr__(self):
        return f"SingleDeviceSharding(device={self._single!r})"


class NamedSharding(Sharding):
    """On the devices of a mesh, divided as a spec says."""

    def __init__(self, mesh, spec, *, memory_kind=None):
        for part in spec:
            for axis in part if isinstance(part, tuple) else (part,):
                known = (None, PartitionSpec.UNCONSTRAINED, *mesh.axis_names)
                if axis not in known:
                    raise ValueError(
                        f"Resource axis: {axis} of {spec} is not found in mesh: {mesh.axis_names}."
                    )
        self.mesh, self.spec = mesh, spec
        self._single = mesh.devices.flat[0] if isinstance(mesh, Mesh) else None

    @property
    def device_set(self):
        return set(self.mesh.devices.flat)

    @property
    def num_devices(self):
        return self.mesh.size

    @property
    def is_fully_replicated(self):
        return all(self._parts(part) == 1 for part in self.spec)

    def _axes(self, part):
        names = part if isinstance(part, tuple) else (part,)
        return [name for name in names if name in self.mesh.axis_names]

    def _parts(self, part):
        return math.prod(self.mesh.shape[name] for name in self._axes(part))

    def shard_shape(self, global_shape):
        """The shape of the part of an array that a device has. ValueError where parts do not divide it."""
        sizes = list(global_shape)
        for axis, part in enumerate(self.spec):
            count = self._parts(part)
            if sizes[axis] % count:
                raise ValueError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {count} times, but the dimension "
                    f"size is {sizes[axis]} (full shape: {tuple(global_shape)}, per-dimension tiling factors: "
                    f"{[self._parts(each) for each in self.spec]} should evenly divide the shape)"
                )
            sizes[axis] //= count
        return tuple(sizes)

    def devices_indices_map(self, global_shape):
        """The part of an array that lies on each device."""
        found, sizes = {}, self.shard_shape(global_shape)
        for place, device in np.ndenumerate(self.mesh.devices):
            at = dict(zip(self.mesh.axis_names, place))
            index = [slice(None)] * len(global_shape)
            for axis, part in enumerate(self.spec):
                number = 0
                for name in self._axes(part):
                    number = number * self.mesh.shape[name] + at[name]
                if self._axes(part):
                    index[axis] = slice(number * sizes[axis], (number + 1) * sizes[axis])
            found[device] = tuple(index)
        return found

    addressable_devices_indices_map = devices_indices_map

    def with_spec(self, spec):
        return NamedSharding(
            self.mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        )

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


AbstractDevice = AbstractMesh
make_single_device_sharding = SingleDeviceSharding


def get_abstract_mesh():
    """The mesh of set_mesh without its devices; an empty one where there is none."""
    return _context.set[-1].abstract_mesh if _context.set else AbstractMesh()


def inside_mesh(mesh, manual):
    """A context of code inside shard_map: the mesh, of which some axes are manual."""
    types = [
        AxisType.Manual if name in manual else kind
        for name, kind in zip(mesh.axis_names, mesh.axis_types)
    ]
    return set_mesh(AbstractMesh(mesh.axis_sizes, mesh.axis_names, tuple(types)))


def get_mesh():
    """The mesh of set_mesh; an empty one where there is none."""
    return _context.set[-1] if _context.set else Mesh(np.empty((), dtype=object), ())


def reshard(x, sharding):
    """x, which is whole in each process."""
    return x


class set_mesh:
    """Makes a mesh that of the program: from now on, or in a context."""

    def __init__(self, mesh):
        self.mesh, self.before = mesh, (list(_context.every), list(_context.set))
        if isinstance(mesh, (Mesh, AbstractMesh)):
            _context.every.append(mesh)
            _context.set.append(mesh)

    def __enter__(self):
        return self.mesh

    def __exit__(self, *error):
        _context.every[:], _context.set[:] = self.before


use_abstract_mesh = set_mesh


def auto_axes(fun=None, *, axes=None, out_sharding=None):
    """fun: on one device nobody has to say where its results lie."""

    def decorate(fun):
        def of_arrays(*args, out_sharding=None, **kwargs):
            return fun(*args, **kwargs)

        return wraps("auto_axes", fun, of_arrays)

    return decorate if fun is None else decorate(fun)


def explicit_axes(fun=None, *, axes=None, in_sharding=None):
    """fun: on one device nobody has to say where its arguments lie."""

    def decorate(fun):
        def of_arrays(*args, in_sharding=None, **kwargs):
            return fun(*args, **kwargs)

        return wraps("explicit_axes", fun, of_arrays)

    return decorate if fun is None else decorate(fun)


def make_mesh(axis_shapes, axis_names, axis_types=None, *, devices=None):
    """A mesh of these devices."""
    from jax._arrays import devices as every

    found = np.empty(int(np.prod(axis_shapes)), dtype=object)
    given = list(devices) if devices is not None else every()
    if len(found) > len(given):
        raise ValueError(
            f"Number of devices {len(given)} must be >= the product of mesh_shape {tuple(axis_shapes)}"
        )
    found[:] = given[: len(found)]
    return Mesh(found.reshape(axis_shapes), axis_names, axis_types)


# --- Arrays from the parts of devices: one part ----------------------------------------------------


def make_array_from_callback(shape, sharding, data_callback, *, dtype=None):
    """The array of a shape, of which data_callback gives the part at an index: all of it."""
    from jax._arrays import device_put

    data = data_callback((slice(None),) * len(shape))
    return device_put(data if dtype is None else np.asarray(data, dtype), sharding)


def make_array_from_process_local_data(sharding, local_data, global_shape=None, *, dtype=None):
    """local_data, which is all there is, as an array."""
    from jax._arrays import device_put

    return device_put(local_data if dtype is None else np.asarray(local_data, dtype), sharding)


def make_array_from_single_device_arrays(shape, sharding, arrays, *, dtype=None):
    """The array of one part."""
    if len(arrays) != 1 or tuple(arrays[0].shape) != tuple(shape):
        raise ValueError(
            f"an array of shape {tuple(shape)} on one device has one part of this shape, and there are parts of "
            f"shapes {[tuple(array.shape) for array in arrays]}"
        )
    return arrays[0]


__getattr__ = lacking(__name__)
