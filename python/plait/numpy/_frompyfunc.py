"""ufunc and frompyfunc: functions of scalars with the methods of NumPy's ufuncs.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._functions import check_callable, name_of
from plait.numpy._ufuncs import _refuse_out
from plait.numpy._vectorize import vectorize


class ufunc:
    """A function of nin scalars over arrays, by vmap: what frompyfunc gives.

    With nin = 2 and nout = 1 it reduces and accumulates from the left, element by element along an axis.
    """

    def __init__(self, func, nin, nout, *, identity=None, name=None):
        check_callable("frompyfunc", func)
        if nin < 1 or nout < 1:
            _plait.fail(
                "ValueError", f"frompyfunc: {nin} inputs and {nout} outputs", "give one or more"
            )
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nin + nout, identity
        self.__name__, self.__doc__ = name or name_of(func), func.__doc__
        self._call = vectorize(func)

    def __repr__(self):
        return f"<plait.numpy.ufunc {self.__name__!r}>"

    def __call__(self, *args):
        if len(args) != self.nin:
            _plait.fail(
                "DtypeError",
                f"{self.__name__}: takes {self.nin} arrays, and {len(args)} were given",
                "give as many",
            )
        return self._call(*args)

    def _folding(self, method):
        if self.nin != 2 or self.nout != 1:
            _plait.fail(
                "ValueError",
                f"{self.__name__}.{method}: of {self.nin} inputs and {self.nout} outputs",
                "make it of a function of two scalars that returns one",
            )

    def outer(self, A, B):
        """The function of every element of A with every element of B, of shape A.shape + B.shape."""
        self._folding("outer")
        A, B = _plait.to_array(A, self.__name__), _plait.to_array(B, self.__name__)
        return self(A.reshape(A.shape + (1,) * B.ndim), B)

    def _rows(self, method, a, axis, dtype):
        from plait import numpy

        self._folding(method)
        a = _plait.to_array(a, self.__name__)
        a = a if dtype is None else a.astype(dtype)
        if not -a.ndim <= axis < a.ndim:
            _plait.fail(
                "IndexError", f"{self.__name__}.{method}: axis {axis} of {a.ndim} axes", "name one"
            )
        return numpy.moveaxis(a, axis, 0)

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        """The function over an axis (None: all in a row), from initial, the identity or the first element on."""
        from plait import lax, numpy

        _refuse_out(f"{self.__name__}.reduce", out)
        array = _plait.to_array(a, self.__name__)
        if axis is None:
            shape = (1,) * array.ndim
            mask = None if where is None else numpy.broadcast_to(where, array.shape).ravel()
            result = self.reduce(array.ravel(), 0, dtype, None, False, initial, mask)
            return result.reshape(shape) if keepdims else result
        rows = self._rows("reduce", array, axis, dtype)
        initial = self.identity if initial is None else initial
        if initial is None and (where is not None or not rows.shape[0]):
            _plait.fail(
                "ValueError",
                f"{self.__name__}.reduce: there is nothing to begin with",
                "give initial",
            )
        first, rest = (rows[0], rows[1:]) if initial is None else (
            numpy.full(rows.shape[1:], initial, rows.dtype), rows)  # fmt: skip
        mask = (
            numpy.ones(rest.shape, bool)
            if where is None
            else numpy.moveaxis(numpy.broadcast_to(where, array.shape), axis, 0).astype(bool)
        )

        def step(carry, row):
            value, keep = row
            return numpy.where(keep, self(carry, value).astype(carry.dtype), carry), None

        result, _ = lax.scan(step, first, (rest, mask))
        return numpy.expand_dims(result, axis) if keepdims else result

    def accumulate(self, a, axis=0, dtype=None, out=None):
        """The function of each element along an axis with all before it."""
        from plait import lax, numpy

        _refuse_out(f"{self.__name__}.accumulate", out)
        rows = self._rows("accumulate", a, axis, dtype)

        def step(carry, row):
            value = self(carry, row).astype(carry.dtype)
            return value, value

        _, others = lax.scan(step, rows[0], rows[1:])
        return numpy.moveaxis(numpy.concatenate([rows[:1], others]), 0, axis)

    def at(self, a, indices, b=None, *, inplace=True):
        """a with the function of it, and of b, at indices, one after the other. ValueError unless inplace=False."""
        from plait import lax, numpy

        if inplace:
            _plait.fail(
                "ValueError", f"{self.__name__}.at: arrays are not written to", "pass inplace=False and use the result"
            )  # fmt: skip
        a = _plait.to_array(a, self.__name__)
        places = numpy.arange(a.size).reshape(a.shape)[indices]
        values = () if b is None else (numpy.broadcast_to(b, places.shape).ravel(),)

        def step(flat, row):
            place, *value = row
            return flat.at[place].set(self(flat[place], *value).astype(flat.dtype)), None

        flat, _ = lax.scan(step, a.ravel(), (places.ravel(), *values))
        return flat.reshape(a.shape)


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A ufunc of a function of nin scalars, which returns nout of them: over arrays, with reduce, accumulate, outer, at."""
    return ufunc(func, nin, nout, identity=identity)
