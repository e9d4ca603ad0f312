"""plait.info(): this installation, and what it found on the machine.

SPDX-License-Identifier: Apache-2.0
"""

import os
import platform
import sys

from plait import _display


class Info(dict):
    """The facts, as a dict whose text is one line each."""

    _repr_html_ = _display.info_html

    def __repr__(self):
        width = max(len(key) for key in self)
        return "\n".join(f"{key:<{width}}  {value}" for key, value in self.items())


# Kinds of devices whose drivers come with their backend, and so are missing with it.
_KINDS = ("cuda",)


def _devices_line():
    from plait import _plait

    there = _plait.devices()
    words = [
        f"{name} ({name.device_kind})" if name.device_kind != name.platform else name
        for name in there
    ]
    parts = [", ".join(words)]
    for name, reason in _plait.missing_backends():
        if name in _KINDS:
            parts.append(f"{name}: {reason}")
    return "; ".join(parts)


def info():
    """Version, processor, threads, backends, devices, and the environment variables that plait reads.

    The line of the devices also says which kinds are not there, and why: "cuda: libcuda.so.1 is not installed".
    """
    import numpy

    from plait import _plait

    facts = Info(version=_plait.__version__)
    facts["python"] = f"{sys.version.split()[0]} on {platform.machine()}"
    facts["numpy"] = numpy.__version__
    facts.update(_plait.machine_info())
    facts["devices"] = _devices_line()
    variables = (
        "LOG",
        "THREADS",
        "CACHE_DIR",
        "MAX_ISA",
        "LLVM",
        "WAIT",
        "BY_SIZE",
        "DEVICE_MEMORY",
        "DEVICE_CACHE",
    )
    for name in ("PLAIT_" + variable for variable in variables):
        facts[name] = os.environ.get(name, "not set")
    return facts
