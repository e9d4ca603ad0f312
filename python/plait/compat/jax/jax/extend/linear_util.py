"""jax.extend.linear_util: functions wrapped with what becomes of their arguments and results.

SPDX-License-Identifier: Apache-2.0
"""

import functools

from jax._doors import lacking


class StoreException(Exception):
    """A result read before its function was called."""


class Store:
    """A place for one value, written during a call."""

    def __init__(self):
        self._values = []

    def store(self, value):
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(value)

    @property
    def val(self):
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def reset(self):
        self._values.clear()

    def __bool__(self):
        return bool(self._values)


class WrappedFun:
    """A function with transformations around it; the last one applied is outermost."""

    def __init__(self, f, params=None, debug_info=None):
        self.f, self.params, self.debug_info = f, params or {}, debug_info

    @property
    def __name__(self):
        return getattr(self.f, "__name__", "fun")

    def call_wrapped(self, *args, **kwargs):
        return self.f(*args, **{**self.params, **kwargs})

    def wrap(self, function):
        return WrappedFun(function, None, self.debug_info)


def wrap_init(f, params=None, *, debug_info=None):
    """f as a WrappedFun."""
    return WrappedFun(f, params, debug_info)


def transformation2(around):
    """around(f, *parameters, *args) as a function of a WrappedFun and parameters."""

    @functools.wraps(around)
    def transform(fun, *parameters):
        return fun.wrap(functools.partial(around, fun.call_wrapped, *parameters))

    return transform


def transformation_with_aux2(around):
    """The same, where around(f, store, *parameters, *args) stores a value that is read after the call."""

    @functools.wraps(around)
    def transform(fun, *parameters):
        store = Store()

        def call(*args, **kwargs):
            store.reset()
            return around(fun.call_wrapped, store, *parameters, *args, **kwargs)

        return fun.wrap(call), lambda: store.val

    return transform


def _steps(around, inner, *parameters, **kwargs):
    """Runs a generator that yields (args, kwargs) for the inner function, then what the call returns."""
    steps = around(*parameters, **kwargs)
    args, keywords = next(steps)
    return steps.send(inner(*args, **keywords))


def transformation(around):
    """A generator as a transformation: it yields the inner function's arguments, and then the result."""

    @functools.wraps(around)
    def transform(fun, *parameters):
        return fun.wrap(
            lambda *args, **kwargs: _steps(around, fun.call_wrapped, *parameters, *args, **kwargs)
        )

    return transform


def transformation_with_aux(around):
    """The same, where the generator yields the result and a value that is read after the call."""

    @functools.wraps(around)
    def transform(fun, *parameters):
        store = Store()

        def call(*args, **kwargs):
            store.reset()
            result, aux = _steps(around, fun.call_wrapped, *parameters, *args, **kwargs)
            store.store(aux)
            return result

        return fun.wrap(call), lambda: store.val

    return transform


def merge_linear_aux(first, second):
    """Whether the first or the second value was stored, and that value."""
    try:
        return True, first()
    except StoreException:
        return False, second()


cache = functools.lru_cache(maxsize=None)
__getattr__ = lacking(__name__)
