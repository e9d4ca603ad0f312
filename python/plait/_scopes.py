"""What holds around a part of a program: names (named_scope), default dtypes, jit switched off.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import functools
import inspect

from plait import _plait


class _Reentrant(contextlib.ContextDecorator):
    """A context that may be entered again inside itself: each time, a new scope of C++ is."""

    def __init__(self):
        self._entered = []

    def __enter__(self):
        scope = self._scope()
        scope.__enter__()
        self._entered.append(scope)
        return self

    def __exit__(self, *_):
        self._entered.pop().__exit__()
        return False


class named_scope(_Reentrant):  # noqa: N801, a function to its users
    """A context, or a decorator, in which traced equations belong to a scope of this name.

    Scopes nest: inside named_scope("encoder") and named_scope("attention"), equations are in "encoder/attention".
    Transforms keep them. Summaries, pictures and profiles group by scope; the results of programs do not depend on it.
    ValueError for an empty name, or one that is not a string.
    """

    def __init__(self, name):
        if not isinstance(name, str) or not name:
            _plait.fail(
                "ValueError",
                f"named_scope: the name is {name!r:.60}",
                'give a scope a name: with named_scope("attention"):',
            )
        super().__init__()
        self.name = name.encode("utf-8", "backslashreplace").decode()

    def _scope(self):
        return _plait.NamedScope(self.name)


class default_dtypes(_Reentrant):  # noqa: N801, a function to its users
    """A context, or a decorator, in which other dtypes are the default: float "float64", int "int64".

        with plait.default_dtypes(float="float64", int="int64"):
            x = np.linspace(0, 1, 5)  # float64

    They are those of creation (zeros, arange, random.normal), of integers that become floats (sin of an int32 array),
    of indices and counts in results (argmax), and of Python's numbers and lists in arrays of their own; complex numbers
    follow float. float is "float32" or "float64", int is "int32" or "int64"; what is not given stays as it is. Arrays
    keep their dtypes, and Python's numbers still yield to them. The scope is this thread's. A jitted function is traced
    once for each pair of defaults it is called under; what it was traced with stands in its jaxpr, and saved programs
    run as they were traced. A decorated generator, coroutine or class method runs in the scope whenever its own code
    runs, and leaves that of its caller alone. ValueError for other dtypes.
    """

    def __init__(self, *, float=None, int=None):
        super().__init__()
        self.float, self.int = float, int
        with self:
            pass  # a wrong dtype is an error here

    def _scope(self):
        return _plait.DefaultDTypes(self.float, self.int)

    def __call__(self, f):
        if inspect.isgeneratorfunction(f):

            @functools.wraps(f)
            def steps(*args, **kwargs):
                return (yield from _stepped(self, f(*args, **kwargs)))

            return steps
        if inspect.iscoroutinefunction(f):

            @functools.wraps(f)
            async def awaited(*args, **kwargs):
                return await _Awaited(self, f(*args, **kwargs))

            return awaited
        return super().__call__(f)


class _Awaited:
    """What a coroutine gives, with each of its steps inside a scope."""

    def __init__(self, scope, coroutine):
        self.scope, self.coroutine = scope, coroutine

    def __await__(self):
        return _stepped(self.scope, self.coroutine.__await__())


def _stepped(scope, generator):
    """The same generator, with each of its steps inside a scope, and none of its caller's."""
    step, given = generator.send, None
    try:
        while True:
            with type(scope)(float=scope.float, int=scope.int):
                try:
                    value = step(given)
                except StopIteration as end:
                    return end.value
            try:
                step, given = generator.send, (yield value)
            except GeneratorExit:
                raise
            except BaseException as error:
                step, given = generator.throw, error
    finally:
        with type(scope)(float=scope.float, int=scope.int):
            generator.close()


@contextlib.contextmanager
def disable_jit(disable=True):
    """A context in which jitted functions run uncompiled, so that a debugger sees every line.

    It applies to this thread. Loops and branches of plait.lax run as Python's where their bounds and conditions are
    known, so that a debugger sees every step; under vmap they may not be known.
    """
    before = _plait.set_jit_disabled(bool(disable))
    try:
        yield
    finally:
        _plait.set_jit_disabled(before)
