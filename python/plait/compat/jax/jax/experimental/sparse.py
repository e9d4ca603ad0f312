"""jax.experimental.sparse over plait.sparse: arrays by coordinates without batch axes.

SPDX-License-Identifier: Apache-2.0
"""

import plait.sparse as _sparse

from jax import _doors
from jax._narrow import arrays_narrowed, narrowing


class _Kind(type):
    """Classes whose instances are those of plait."""

    def __instancecheck__(cls, value):
        return isinstance(value, _sparse.BCOO) and cls.__name__ != "BCSR"

    def __call__(cls, args, **options):
        if cls.__name__ != "BCOO":
            _doors.refuse("jax.experimental.sparse", f"{cls.__name__} arrays", "use BCOO")
        return _sparse.BCOO(arrays_narrowed(args), **options)


class JAXSparse(metaclass=_Kind):
    """The type of sparse arrays."""


class BCOO(JAXSparse):
    """Sparse arrays by coordinates: plait.sparse.BCOO."""

    fromdense = staticmethod(narrowing(_sparse.BCOO.fromdense))
    empty = staticmethod(_sparse.BCOO.empty)


class BCSR(JAXSparse):
    """The type of sparse arrays of rows, of which there are none here."""


__getattr__ = _doors.door(globals(), "plait.sparse")
