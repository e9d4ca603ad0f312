"""plait.info(): this installation, and what it found on the machine.

SPDX-License-Identifier: Apache-2.0
"""

import os
import platform
import sys


class Info(dict):
    """The facts, as a dict whose text is one line each."""

    def __repr__(self):
        width = max(len(key) for key in self)
        return "\n".join(f"{key:<{width}}  {value}" for key, value in self.items())


def info():
    """Version, processor, threads, backends, folders and the environment variables that plait reads."""
    import numpy

    from plait import _plait

    facts = Info(version=_plait.__version__)
    facts["python"] = f"{sys.version.split()[0]} on {platform.machine()}"
    facts["numpy"] = numpy.__version__
    facts.update(_plait.machine_info())
    variables = ("LOG", "THREADS", "CACHE_DIR", "MAX_ISA", "LLVM", "WAIT", "BY_SIZE")
    for name in ("PLAIT_" + variable for variable in variables):
        facts[name] = os.environ.get(name, "not set")
    return facts
