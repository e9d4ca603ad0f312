"""Devices: their names, the current one, and moving arrays.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib

from plait import _plait


class Device(str):
    """The name of a device: "cpu:0". It is a str, with the parts of the name."""

    __slots__ = ()

    @property
    def platform(self):
        """The kind of device: "cpu"."""
        return self.partition(":")[0]

    @property
    def id(self):
        """Which of its kind: 0."""
        return int(self.partition(":")[2])

    @property
    def device_kind(self):
        """The device in words, where its driver gives any."""
        return _plait.describe_device(self) or self.platform

    def memory_stats(self):
        """The device's memory in bytes, by JAX's names; None where its driver does not count.

        bytes_in_use, and at most peak_bytes_in_use, are of arrays and programs; bytes_limit, what may be in use;
        num_allocs and largest_alloc_size, what was asked for since the process began; pool_bytes, what was taken from
        the device, in use or kept for later; largest_free_block_bytes, of what is kept. The CPU has bytes_in_use and
        pool_bytes.
        """
        return _plait.memory_stats_of(self)


def devices(platform=None):
    """The devices there are, the CPU first, or those of one platform ("cpu").

    BackendError, naming the devices there are, for a platform of which there is none.
    """
    found = [one for one in _plait.devices() if platform in (None, one.platform)]
    if not found:
        _plait.describe_device(platform)  # raises
    return found


def device_put(x, device=None):
    """x, a tree of arrays and numbers, with its arrays on a device: itself, or a copy where they lie elsewhere.

    device is a name ("cpu", "cpu:0") or one of devices(); the current device without one. An array that was put on a
    device stays there: an operation on arrays of two devices is an error. In a transform, values stay where they are
    traced.
    """
    name = str(_plait.current_device() if device is None else device)
    leaves, structure = _plait.flatten(x)
    moved = [_plait.device_put(leaf, name) for leaf in leaves]
    return _plait.unflatten(structure, moved)


def put_arrays(x, name):
    """x, a tree, with those of its leaves that are arrays or numbers on a device, as jit(device=name) puts them."""
    leaves, structure = _plait.flatten(x)
    moved = [
        _plait.device_put(leaf, name) if _plait.is_array_like(leaf) else leaf for leaf in leaves
    ]
    return _plait.unflatten(structure, moved)


@contextlib.contextmanager
def default_device(device):
    """A context in which this thread makes new arrays on a device, and computes there what no argument decides."""
    before = _plait.set_current_device(str(device))
    try:
        yield
    finally:
        _plait.set_current_device(before)


def block_until_ready(x):
    """x, a tree of arrays, once it has been computed. Raises what failed on the way."""
    leaves, _ = _plait.flatten(x)
    for leaf in leaves:
        if isinstance(leaf, _plait.Array):
            leaf.block_until_ready()
    return x
