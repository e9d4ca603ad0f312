"""jax.experimental.sparse: sparse arrays are not here.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors


class JAXSparse:
    """The type of sparse arrays, of which there are none here."""

    def __init__(self, *args, **kwargs):
        _doors.refuse(
            "jax.experimental.sparse", "sparse arrays", "use dense ones, or functions of vectors"
        )


class BCOO(JAXSparse):
    """The type of sparse arrays of coordinates, of which there are none here."""


class BCSR(JAXSparse):
    """The type of sparse arrays of rows, of which there are none here."""


__getattr__ = _doors.lacking(__name__)
