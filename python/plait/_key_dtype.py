"""The dtype of keys of random numbers, which NumPy does not have.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np


class extended(_np.generic):
    """The kind of dtypes that are not NumPy's."""


class prng_key(extended):
    """The kind of dtypes of random keys: issubdtype(key.dtype, prng_key)."""


class KeyDType:
    """The dtype of arrays of keys, printed as key<fry>: an opaque element of eight bytes."""

    name, itemsize, kind, char, type = "key<fry>", 8, "V", "V", prng_key
    alignment, isbuiltin, fields, names, shape, ndim = 8, 0, None, None, (), 0

    def __repr__(self):
        return self.name

    def __reduce__(self):
        return "KEY"


KEY = KeyDType()
