"""The types of JAX's values over plait's: jax.Array is plait's Array, and a Tracer is one that is traced.

SPDX-License-Identifier: Apache-2.0
"""

import os
import re
import types

import numpy as np

import plait
from plait import _plait

from jax._config import config
from jax._doors import refuse
from jax._dtypes import canonical, converted

Array = plait.Array


class _StructType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, plait.ShapeDtypeStruct)

    def __subclasscheck__(cls, other):
        return issubclass(other, plait.ShapeDtypeStruct) or type.__subclasscheck__(cls, other)


class ShapeDtypeStruct(metaclass=_StructType):
    """Makes plait's ShapeDtypeStruct, and is the type of all; where arrays lie is not part of it."""

    def __new__(cls, shape, dtype, weak_type=False, *, sharding=None, vma=None, is_ref=False):
        return plait.ShapeDtypeStruct(shape, canonical(dtype), weak_type=weak_type)

    @staticmethod
    def like(x):
        """The type of an array, or of what has a shape and a dtype."""
        return plait.ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))


class ShapedArray(ShapeDtypeStruct):
    """The same by another name."""


class _TracerType(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Array) and not _plait.is_concrete(instance)


class Tracer(metaclass=_TracerType):
    """The type of arrays inside transforms; concrete arrays are no instances of it."""


class _JvpTracerType(type):
    def __instancecheck__(cls, instance):
        return _plait.is_of_this_trace(instance) and _plait.carries_tangent(instance)


class JVPTracer(metaclass=_JvpTracerType):
    """The type of arrays that carry a tangent of the innermost transform."""


class Trace:
    """The type of traces; one object stands for all of plait's."""

    @property
    def main(self):
        return self


_trace = Trace()


def find_top_trace(values):
    """The trace of some values."""
    return _trace


class _VaryingType(plait.ShapeDtypeStruct):
    """The type of a value that varies along axes of the mesh of shard_map: their names are vma."""

    vma = frozenset()


def typeof(x):
    """The type of a value: shape, dtype, whether the dtype is weak, and along which axes of a mesh it varies (vma)."""
    x = getattr(x, "__jax_array__", lambda: x)()
    aval = _plait.aval_of(x)
    if not isinstance(x, Tracer) or not (names := _plait.varying_axes(x)):
        return aval
    varying = _VaryingType(aval.shape, aval.dtype, weak_type=aval.weak_type)
    varying.vma = frozenset(names)
    return varying


# --- Devices -------------------------------------------------------------------------------------


def num_places():
    """How many devices the CPU counts as: ranks of a job, or places of a mesh that a process has all by itself.

    The option jax_num_cpu_devices says it, or XLA_FLAGS=--xla_force_host_platform_device_count=8.
    """
    _, ranks = _plait.rank_and_size()
    if ranks > 1:
        return ranks
    wanted = config.read("jax_num_cpu_devices")
    if wanted > 0:
        return wanted
    found = re.findall(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    return max(int(found[-1]), 1) if found else 1


class Device:
    """A device of plait under JAX's attributes; the CPU is as many as there are places of a mesh."""

    process_index = host_id = task_id = 0

    def __init__(self, device, number=None):
        self._device = device
        self.platform = device.platform
        self.id = self.local_hardware_id = device.id if number is None else number
        if _plait.rank_and_size()[1] > 1:
            self.process_index = self.host_id = self.task_id = self.id
        self.device_kind = self.platform
        self.client = self

    @property
    def platform_version(self):
        return plait.__version__

    def memory_stats(self):
        return None

    def __eq__(self, other):
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def __str__(self):
        return f"{str(self._device).partition(':')[0]}:{self.id}"

    def __repr__(self):
        return f"{self.platform.capitalize()}Device(id={self.id})"


def devices(backend=None):
    """The devices of this process, those of one platform with backend."""
    every = []
    for device in plait.devices():
        if device.platform == "cpu":
            every += [Device(device, number) for number in range(num_places())]
        else:
            every.append(Device(device))
    wanted = backend if backend is not None else default_backend()
    found = [device for device in every if device.platform == {"gpu": "cuda"}.get(wanted, wanted)]
    if not found:
        raise RuntimeError(
            f"plait's drop-in for JAX has no backend {backend!r}: there are {sorted({d.platform for d in every})}"
        )
    return found


def local_devices(process_index=None, backend=None, host_id=None):
    """The devices of this process: all, or that of a rank."""
    found = devices(backend)
    rank, ranks = _plait.rank_and_size()
    number = rank if process_index is None else process_index
    return found if ranks == 1 else [d for d in found if d.process_index == number]


def default_backend():
    """The platform of the device on which new arrays lie."""
    return str(_plait.current_device()).partition(":")[0]


def device_count(backend=None):
    return len(devices(backend))


def local_device_count(backend=None):
    return len(local_devices(backend=backend))


def process_count(backend=None):
    return _plait.rank_and_size()[1]


def process_index(backend=None):
    return _plait.rank_and_size()[0]


host_count, host_id = process_count, process_index


def process_indices(backend=None):
    return list(range(process_count()))


def device_of(device):
    """The name of a device, given as JAX's devices and shardings are."""
    if device is None or isinstance(device, plait.PartitionSpec):
        return None
    device = getattr(device, "_single", device)
    device = getattr(device, "_device", device)
    if isinstance(device, (str, plait.Device)):
        return str(device)
    refuse("jax.device_put", f"{device!r:.60} is no single device", "give one of jax.devices()")


def device_put(x, device=None, *, src=None, donate=False, may_alias=None):
    """x, a tree of arrays and numbers, as arrays on a device, or of a tree of devices each on its own."""
    leaves, structure = _plait.flatten(x)
    if isinstance(device, (dict, list, tuple)):
        places = _plait.broadcast_prefix(device, structure, "jax.device_put: device")
    else:
        places = [device] * len(leaves)
    names = map(device_of, places)
    arrays = [
        plait.device_put(converted(leaf), name) if name else converted(leaf)
        for leaf, name in zip(leaves, names)
    ]
    return _plait.unflatten(structure, arrays)


def device_get(x):
    """x, a tree, with NumPy's arrays for its arrays; what is traced stays."""
    leaves, structure = _plait.flatten(x)
    return _plait.unflatten(
        structure,
        [
            leaf.__array__()
            if hasattr(leaf, "__array__") and (type(leaf) is not Array or _plait.is_concrete(leaf))
            else leaf
            for leaf in leaves
        ],
    )


def block_until_ready(x):
    """x, a tree, once its arrays are computed."""
    leaves, _ = _plait.flatten(x)
    for leaf in leaves:
        getattr(leaf, "block_until_ready", lambda: None)()
    return x


def copy_to_host_async(x):
    """x, a tree: arrays of the CPU are there already."""
    return x


# --- Attributes of JAX's arrays that plait's arrays have not ---------------------------------------


class _Shard:
    """The only part of an array: itself."""

    replica_id = 0

    def __init__(self, array):
        self.data, self.index = array, (slice(None),) * array.ndim
        self.device = next(iter(_devices(array)))


def _devices(array):
    name = str(array.device)
    return {next((d for d in devices() if str(d._device) == name), devices()[0])}


def _sharding(array):
    from jax.sharding import SingleDeviceSharding

    return SingleDeviceSharding(next(iter(_devices(array))))


def _view(array, dtype=None, type=None):
    """The bytes of an array under another dtype."""
    return array if dtype is None else plait.lax.bitcast_convert_type(array, dtype)


def _to_device(array, device, *, stream=None):
    return device_put(array, device)


def _choose(array, choices, out=None, mode="raise"):
    return plait.numpy.choose(array, choices, mode=mode)


_ATTRIBUTES = {
    "_trace": property(lambda array: _trace),
    "sharding": property(_sharding),
    "devices": _devices,
    "committed": property(lambda array: False),
    "is_fully_addressable": property(lambda array: True),
    "is_fully_replicated": property(lambda array: True),
    "addressable_shards": property(lambda array: [_Shard(array)]),
    "global_shards": property(lambda array: [_Shard(array)]),
    "addressable_data": lambda array, index: array,
    "copy_to_host_async": lambda array: None,
    "is_deleted": lambda array: False,
    "on_device_size_in_bytes": lambda array: array.nbytes,
    "to_device": _to_device,
    "unsafe_buffer_pointer": lambda array: np.asarray(array).ctypes.data,
    "view": _view,
    "choose": _choose,
    "tobytes": lambda array: np.asarray(array).tobytes(),
    "flat": property(lambda array: array.reshape(-1)),
}


def _update(aval, **changed):
    """A type with other parts."""
    values = {"shape": aval.shape, "dtype": aval.dtype, "weak_type": aval.weak_type} | changed
    return ShapeDtypeStruct(**values)


def _length(aval):
    if not aval.shape:
        raise TypeError("len() of unsized object")
    return aval.shape[0]


def _manual(aval):
    """What of a type is about axes over which code is manual."""
    return types.SimpleNamespace(varying=aval.vma, unreduced=frozenset(), reduced=frozenset())


_TYPE_ATTRIBUTES = {
    "__len__": _length,
    "mat": property(_manual),
    "sharding": None,
    "vma": frozenset(),
    "update": _update,
    "to_tangent_aval": lambda aval: aval,
    "strip_weak_type": lambda aval: _update(aval, weak_type=False),
    "str_short": lambda aval, *args, **kwargs: str(aval),
}


def add_attributes():
    """Gives plait's Array the attributes of JAX's that it has not; part of `import jax`."""
    # NumPy's functions give NumPy's arrays, and libraries take an array with .grad for PyTorch's.
    hidden = "__array_function__ __array_ufunc__ backward detach grad register_hook requires_grad"
    for name in hidden.split():
        if name in vars(Array):
            delattr(Array, name)
    Array.aval = property(typeof)
    for kind, attributes in ((Array, _ATTRIBUTES), (plait.ShapeDtypeStruct, _TYPE_ATTRIBUTES)):
        for name, value in attributes.items():
            if not hasattr(kind, name):
                setattr(kind, name, value)
