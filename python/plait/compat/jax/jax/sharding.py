"""jax.sharding: where arrays lie. A program runs on one device here, so that every sharding is that device.

Meshes and partition specs are values that programs pass on; a mesh of one device places arrays on it, and one of several
is refused.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import enum

import numpy as np

from jax._doors import lacking, refuse, refused


class PartitionSpec(tuple):
    """Names of mesh axes for the axes of an array."""

    UNCONSTRAINED = object()

    def __new__(cls, *partitions, unreduced=frozenset(), reduced=frozenset()):
        return super().__new__(cls, partitions)

    def __repr__(self):
        return f"PartitionSpec{tuple.__repr__(self)}"


class AxisType(enum.Enum):
    """How an axis of a mesh is used."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class Mesh(contextlib.ContextDecorator):
    """Devices with named axes: one device."""

    def __init__(self, devices, axis_names, axis_types=None):
        self.devices = np.asarray(devices, dtype=object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.axis_types = axis_types or (AxisType.Auto,) * len(self.axis_names)
        self.axis_sizes = self.devices.shape
        if self.devices.size > 1:
            refuse(
                "jax.sharding.Mesh",
                f"a mesh of {self.devices.size} devices: programs of plait's drop-in run on one",
            )

    @property
    def shape(self):
        return dict(zip(self.axis_names, self.devices.shape))

    @property
    def size(self):
        return self.devices.size

    empty = property(lambda self: self.devices.size == 0)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __eq__(self, other):
        return isinstance(other, Mesh) and (self.axis_names, self.shape) == (
            other.axis_names,
            other.shape,
        )

    def __hash__(self):
        return hash((self.axis_names, self.devices.shape))


class AbstractMesh:
    """The shape of a mesh; that of no mesh is empty."""

    def __init__(self, axis_sizes=(), axis_names=(), axis_types=None):
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)
        self.axis_types = axis_types or (AxisType.Auto,) * len(self.axis_names)
        self.shape = dict(zip(self.axis_names, self.axis_sizes))
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
        self.mesh, self.spec = mesh, spec
        self._single = mesh.devices.flat[0] if isinstance(mesh, Mesh) else None

    def __repr__(self):
        return f"NamedSharding(mesh={self.mesh.shape}, spec={self.spec})"


AbstractDevice = AbstractMesh
make_single_device_sharding = SingleDeviceSharding


def get_abstract_mesh():
    """The mesh of the context: none."""
    return AbstractMesh()


def get_mesh():
    """The mesh of the context: none."""
    return Mesh(np.empty((), dtype=object).reshape(-1)[:0], ())


def reshard(x, sharding):
    """x on the only device."""
    return x


@contextlib.contextmanager
def set_mesh(mesh):
    """A context in which this mesh, of one device, is that of the program."""
    yield mesh


use_abstract_mesh = set_mesh
auto_axes = refused("jax.sharding.auto_axes", "explicit sharding is not in plait's drop-in")
explicit_axes = refused("jax.sharding.explicit_axes", "explicit sharding is not in plait's drop-in")


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


__getattr__ = lacking(__name__)
