"""Derivatives of eager programs: variables, whose operations are recorded, and no_grad.

The tape is in C++ (transforms/tape.cpp, transforms/backward.cpp); backward, grad, detach and register_hook are
methods of Array.

SPDX-License-Identifier: Apache-2.0
"""

import functools

from plait import _plait


def variable(value):
    """A variable with this value, a real floating-point array: operations on it are recorded.

    y.backward() adds the derivative of y to x.grad for every variable x on which y depends. The numbers are those of
    plait.grad, to the bit. vmap, grad and jit of functions that use variables are recorded too.

    Writing to a variable (x[i] = v, x += v) is an error while operations are recorded, because its gradient is that of
    one value; under plait.no_grad() it updates the variable.

    DtypeError for integers and complex numbers, TracerError for a traced value.
    """
    return _plait.variable(value)


class no_grad:
    """A context, and a decorator, in which this thread records nothing.

    >>> with plait.no_grad():
    ...     w -= 0.1 * w.grad
    """

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(_plait.set_recording(False))

    def __exit__(self, *_):
        _plait.set_recording(self._before.pop())

    def __call__(self, fun):
        @functools.wraps(fun)
        def without_grad(*args, **kwargs):
            with no_grad():
                return fun(*args, **kwargs)

        return without_grad
