"""jax.profiler: names of what runs. plait.profile(f, *args) is plait's profiler.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import functools

import plait

from jax import _doors


class TraceAnnotation(contextlib.ContextDecorator):
    """A context that names the equations traced in it."""

    def __init__(self, name, **kwargs):
        self._scope = plait.named_scope(name)

    def __enter__(self):
        self._scope.__enter__()
        return self

    def __exit__(self, *error):
        return self._scope.__exit__(*error)


class StepTraceAnnotation(TraceAnnotation):
    """The same, for a step of training."""


def annotate_function(func, name=None, **kwargs):
    """func, whose equations carry a name."""

    @functools.wraps(func)
    def annotated(*args, **keywords):
        with TraceAnnotation(name or func.__name__):
            return func(*args, **keywords)

    return annotated


start_trace = _doors.refused(
    "jax.profiler.start_trace", "profiles of a process; plait.profile(f, *args) makes one"
)
stop_trace = _doors.refused(
    "jax.profiler.stop_trace", "profiles of a process; plait.profile(f, *args) makes one"
)
trace = _doors.refused(
    "jax.profiler.trace", "profiles of a process; plait.profile(f, *args) makes one"
)
start_server = _doors.refused("jax.profiler.start_server", "a server of profiles")
__getattr__ = _doors.lacking(__name__)
