"""jax.sharding: where arrays lie. A program runs on one device here, so that every sharding is that device.

Meshes and partition specs are values that programs pass on; a mesh of one device places arrays on it, and one of several
is refused.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import contextlib
import enum
import threading

import numpy as np

from plait._functions import wraps

from jax._doors import lacking, refuse


class _Unconstrained(enum.Enum):
    """What a partition spec says of an axis that may be partitioned in any way: no name of an axis."""

    UNCONSTRAINED = enum.auto()

    def __repr__(self):
        return self.name


class PartitionSpec:
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
    """Devices with named axes: one device."""

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
        if self.devices.size > 1:
            refuse(
                "jax.sharding.Mesh",
                f"a mesh of {self.devices.size} devices: programs of plait's drop-in run on one",
            )

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
    is_multi_process = property(lambda self: False)
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
        self.are_all_axes_manual = self.are_all_axes_explicit = False
        self.are_all_axes_auto = True
        self.explicit_axes = self.manual_axes = ()


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
    """On the device of a mesh of one device."""

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

    def with_spec(self, spec):
        return NamedSharding(
            self.mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        )

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


AbstractDevice = AbstractMesh
make_single_device_sharding = SingleDeviceSharding


def get_abstract_mesh():
    """The mesh of set_mesh without its device; an empty one where there is none."""
    return _context.set[-1].abstract_mesh if _context.set else AbstractMesh()


def get_mesh():
    """The mesh of set_mesh; an empty one where there is none."""
    return _context.set[-1] if _context.set else Mesh(np.empty((), dtype=object), ())


def reshard(x, sharding):
    """x on the only device."""
    return x


class set_mesh:
    """Makes a mesh, of one device, that of the program: from now on, or in a context."""

    def __init__(self, mesh):
        self.mesh, self.before = mesh, (list(_context.every), list(_context.set))
        if isinstance(mesh, Mesh):
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
    """A mesh of these devices, which is one."""
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
