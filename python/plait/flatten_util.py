"""Trees of arrays as one vector.

SPDX-License-Identifier: Apache-2.0
"""

import math as _math

from plait import _names, _plait

__all__ = ["ravel_pytree"]
__getattr__ = _names.missing(__name__, globals())


def ravel_pytree(pytree):
    """(vector, unravel): the leaves of a tree concatenated, and the function that restores the tree.

    The leaves are arrays or numbers; the vector has the dtype to which they promote, float32 for a tree without leaves.
    unravel(vector) takes a vector of that size and dtype (under any transform) and gives each leaf its own shape and
    dtype; ShapeError or DtypeError for another vector. TreeError for a leaf that is not an array.
    """
    from plait import numpy
    from plait._functions import to_arrays

    leaves, structure = _plait.flatten(pytree)
    arrays = to_arrays(leaves, structure, "ravel_pytree")
    shapes = [array.shape for array in arrays]
    dtypes = [array.dtype for array in arrays]
    sizes = [_math.prod(shape) for shape in shapes]
    if arrays:
        vector = numpy.concatenate([array.reshape(-1) for array in arrays])
    else:
        vector = numpy.zeros(0)

    def unravel(vector):
        vector = _plait.to_array(vector, "unravel")
        if vector.shape != (sum(sizes),):
            _plait.fail(
                "ShapeError",
                f"unravel: an array of shape {vector.shape} for a tree of {sum(sizes)} elements",
                "give a vector of that size",
            )
        if vector.dtype != expected:
            _plait.fail(
                "DtypeError",
                f"unravel: a vector of dtype {vector.dtype.name}, where that of the tree has {expected.name}",
                "convert it with astype",
            )
        parts, start = [], 0
        for shape, dtype, size in zip(shapes, dtypes, sizes):
            part = vector[start : start + size].reshape(shape)
            parts.append(part if dtype == expected else part.astype(dtype))
            start += size
        return _plait.unflatten(structure, parts)

    expected = vector.dtype
    return vector, unravel
