"""jax.monitoring: events that libraries record; listeners hear those of this process.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors

_listeners: dict = {"event": [], "duration": [], "time_span": [], "scalar": []}


def _recording(kind):
    def record(event, *values, **metadata):
        for listener in list(_listeners[kind]):
            listener(event, *values, **metadata)

    record.__doc__ = f"Tells the listeners of kind {kind} of an event."
    return record


def _registering(kind):
    def register(callback):
        _listeners[kind].append(callback)

    register.__doc__ = f"Adds a listener of kind {kind}."
    return register


record_event, record_event_duration_secs = _recording("event"), _recording("duration")
record_event_time_span, record_scalar = _recording("time_span"), _recording("scalar")
register_event_listener, register_event_duration_secs_listener = (
    _registering("event"),
    _registering("duration"),
)
register_event_time_span_listener, register_scalar_listener = (
    _registering("time_span"),
    _registering("scalar"),
)


def clear_event_listeners():
    """Removes all listeners."""
    for listeners in _listeners.values():
        listeners.clear()


__getattr__ = _doors.lacking(__name__)
