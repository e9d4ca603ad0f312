"""What takes Python's indexing: ix_, r_ and c_, block, mask_indices, insert and delete.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as _np

from plait import _plait


def ix_(*args):
    """Index arrays that select the product of vectors of indices, each along an axis of its own; bools by position."""
    from plait import numpy

    result = []
    for axis, given in enumerate(args):
        array = _plait.to_array(given, "ix_")
        if array.ndim != 1:
            _plait.fail(
                "ShapeError", f"ix_: argument {axis} has shape {array.shape}", "give vectors"
            )
        array = numpy.nonzero(array)[0] if array.dtype == bool else array
        array = array.astype(numpy.int32) if array.dtype.kind == "f" and not array.size else array
        result.append(array.reshape([-1 if other == axis else 1 for other in range(len(args))]))
    return tuple(result)


def mask_indices(n, mask_func, k=0, *, size=None):
    """The indices, int32, of the elements of an n by n matrix that mask_func(matrix, k), such as triu, keeps."""
    from plait import numpy

    return numpy.nonzero(mask_func(numpy.ones((n, n)), k), size=size)


def _depth(arrays, place=""):
    """How deep lists are nested around arrays, which must be the same everywhere."""
    if not isinstance(arrays, list):
        if isinstance(arrays, tuple):
            _plait.fail("TreeError", f"block: arrays{place} is a tuple", "nest lists")
        return 0
    if not arrays:
        _plait.fail("ValueError", f"block: arrays{place} is an empty list", "leave it out")
    depths = [_depth(each, f"{place}[{number}]") for number, each in enumerate(arrays)]
    if len({*depths}) > 1:
        _plait.fail(
            "ValueError",
            f"block: the lists in arrays{place} are nested {depths[0]} deep and deeper",
            "nest all arrays equally deep",
        )
    return 1 + depths[0]


def block(arrays):
    """An array of blocks: nested lists of arrays, joined along the last axis within the innermost, and so on outwards."""
    from plait import numpy

    depth = _depth(arrays)
    leaves = []

    def collect(part):
        for each in part if isinstance(part, list) else ():
            collect(each)
        if not isinstance(part, list):
            leaves.append(_plait.to_array(part, "block"))

    collect(arrays)
    rank = max([depth, *(leaf.ndim for leaf in leaves)])
    leaves = iter([leaf.reshape((1,) * (rank - leaf.ndim) + leaf.shape) for leaf in leaves])

    def joined(part, level):
        if not isinstance(part, list):
            return next(leaves)
        return numpy.concatenate([joined(each, level + 1) for each in part], axis=level - depth)

    return joined(arrays, 0)


class _Joined:
    """r_ and c_: arrays, numbers and slices as ranges, joined by indexing.

    A string in front as "axis,ndim,start" says along which axis, with how many axes at least, and where the axes of
    arrays of fewer go.
    """

    def __init__(self, name, axis, ndim, start):
        self._name, self._options = name, (axis, ndim, start)

    def __repr__(self):
        return f"<plait.numpy.{self._name}>"

    def __getitem__(self, key):
        from plait import numpy

        items = list(key) if isinstance(key, tuple) else [key]
        options = list(self._options)
        if items and isinstance(items[0], str):
            options = self._read(items.pop(0))
        axis, ndim, start = options
        return numpy.concatenate([self._piece(item, ndim, start) for item in items], axis=axis)

    def _read(self, text):
        numbers = text.split(",")
        options = list(self._options)
        try:
            options[: len(numbers)] = [int(number) for number in numbers]
        except ValueError:
            numbers = ()
        if not 1 <= len(numbers) <= 3:
            _plait.fail(
                "ValueError",
                f"{self._name}: the directive {text!r} does not read",
                "write it as 'axis', 'axis,ndim' or 'axis,ndim,start'",
            )
        return options

    def _piece(self, item, ndim, start):
        from plait import numpy

        if isinstance(item, str):
            _plait.fail("ValueError", f"{self._name}: {item!r} is not in front", "put it first")
        if isinstance(item, slice):
            first, step = item.start or 0, item.step
            if isinstance(step, complex):
                array = numpy.linspace(first, item.stop, int(abs(step)))
            else:
                array = numpy.arange(first, item.stop, 1 if step is None else step)
        else:
            array = _plait.to_array(item, self._name)
        rank = array.ndim
        if rank >= ndim:
            return array
        array = array.reshape((1,) * (ndim - rank) + array.shape)
        if rank == 0 or start == -1:
            return array
        # The array's axes go to `start` among those of size 1.
        missing = ndim - rank
        place = start if start >= 0 else start + missing + 1
        return numpy.moveaxis(array, range(missing, ndim), range(place, place + rank))


r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)


def _known(array):
    """The value of an array as NumPy's, or None where it is traced."""
    try:
        return _np.asarray(array)
    except _plait.TracerError:
        return None


def _along(what, arr, axis):
    """(array, axis from 0), raveled for the axis None."""
    array = _plait.to_array(arr, what)
    if axis is None or array.ndim == 0:
        array, axis = array.ravel(), 0
    if not -array.ndim <= axis < array.ndim:
        _plait.fail(
            "IndexError",
            f"{what}: axis {axis} of an array of {array.ndim} axes",
            "name one of them",
        )
    return array, axis % array.ndim


def _positions(what, obj, size):
    """Indices as NumPy's array where they are known, or as a traced one; slices and bools by position."""
    if isinstance(obj, slice):
        return _np.arange(size)[obj]
    given = obj if isinstance(obj, _plait.Array) else _np.asarray(obj)
    known = _known(given) if isinstance(given, _plait.Array) else given
    index = given if known is None else known
    if index.dtype == bool:
        if known is None or known.shape != (size,):
            _plait.fail(
                "ShapeError" if known is not None else "TracerError",
                f"{what}: a mask of shape {tuple(index.shape)} for an axis of size {size}",
                "give one known bool for each element",
            )
        return _np.flatnonzero(known)
    if index.dtype.kind not in "iu":
        if index.size:
            _plait.fail("DtypeError", f"{what}: indices of dtype {index.dtype}", "give integers")
        index = known.astype(_np.int32)
    if known is not None and ((index < -size) | (index >= size + (what == "insert"))).any():
        _plait.fail(
            "IndexError",
            f"{what}: an index in {_np.ravel(index).tolist()} lies outside of an axis of size {size}",
            f"give indices from -{size} to {size - (what == 'delete')}",
        )
    return index


_FEW = 8  # places between which slices are joined; more are indices


def _few_places(index, size):
    """Known positions, so few that slices between them cost less than indices, from 0; otherwise None."""
    if not isinstance(index, _np.ndarray) or index.size > _FEW or not isinstance(size, int):
        return None
    return [place + size if place < 0 else place for place in index.ravel().tolist()]


def _slices(array, axis, bounds):
    """The slices along an axis between pairs of bounds that hold anything."""
    whole = (slice(None),) * axis
    return [array[(*whole, slice(start, stop))] for start, stop in bounds if start < stop]


def delete(arr, obj, axis=None, *, assume_unique_indices=False):
    """arr without its elements (or rows along an axis) at obj: an index, several, a slice or a mask of bools.

    Under jit the size of the result depends on a traced mask, or on traced indices unless it is one, or
    assume_unique_indices says that they differ.
    """
    from plait import numpy

    array, axis = _along("delete", arr, axis)
    size = array.shape[axis]
    if (
        isinstance(obj, _plait.Array)
        and obj.dtype == bool
        and obj.shape == (size,)
        and _known(obj) is None
    ):
        return numpy.compress(~obj, array, axis)
    index = _positions("delete", obj, size)
    places = _few_places(index, size)
    if places:
        places = sorted(set(places))
        bounds = zip([0, *(place + 1 for place in places)], [*places, size])
        kept = _slices(array, axis, bounds) or [array[(*(slice(None),) * axis, slice(0, 0))]]
        return kept[0].copy() if len(kept) == 1 else numpy.concatenate(kept, axis)
    if isinstance(index, _np.ndarray):
        kept = _np.delete(_np.arange(size), index)
        return numpy.take(array, kept.astype(_np.int32), axis)
    if index.ndim and not assume_unique_indices:
        return numpy.compress(numpy.ones(size, bool).at[index.ravel()].set(False), array, axis)
    index = index.ravel()
    index = numpy.sort(numpy.where(index < 0, index + size, index))
    # The ith deleted element, of i deleted before it, is passed by all places from its own less i.
    places = numpy.arange(size - index.size)
    passed = index - numpy.arange(index.size, dtype=index.dtype)
    return numpy.take(array, places + numpy.searchsorted(passed, places, "right"), axis)


def _around(array, places, values, axis):
    """The parts of an array and the values that go in before these places, in order along an axis."""
    order = sorted(range(len(places)), key=places.__getitem__)
    parts, start = [], 0
    for number in order:
        parts += _slices(array, axis, [(start, places[number])])
        parts += [values] if len(places) == 1 else _slices(values, axis, [(number, number + 1)])
        start = places[number]
    return parts + _slices(array, axis, [(start, array.shape[axis])])


def insert(arr, obj, values, axis=None):
    """arr with values put in along an axis (None: of the elements in a row) before the places obj.

    obj: an index, several, a slice or a mask of bools, by places in arr; indices may be traced. values broadcast to the
    rows that go in, and take arr's dtype. Before one index several rows may go in.
    """
    from plait import numpy

    array, axis = _along("insert", arr, axis)
    size = array.shape[axis]
    index = _positions("insert", obj, size)
    values = _plait.to_array(values, "insert")
    values = values.reshape((1,) * (array.ndim - values.ndim) + values.shape)
    if index.ndim == 0 and axis > 0:
        values = numpy.moveaxis(values, 0, axis)
    places = _few_places(index, size)
    if not places:
        index = numpy.ravel(index)
    count = values.shape[axis] if index.size == 1 else index.size
    shape = array.shape[:axis] + (count,) + array.shape[axis + 1 :]
    values = numpy.broadcast_to(values.astype(array.dtype), shape)
    if places:
        return numpy.concatenate(_around(array, places, values, axis), axis)
    index = numpy.broadcast_to(numpy.where(index < 0, index + size, index), (count,))
    order = numpy.argsort(index)
    places = numpy.arange(size)
    old = places + numpy.searchsorted(index[order], places, "right").astype(places.dtype)
    new = index[order] + numpy.arange(count, dtype=index.dtype)
    start = (slice(None),) * axis
    result = numpy.zeros(
        array.shape[:axis] + (size + count,) + array.shape[axis + 1 :], array.dtype
    )
    result = result.at[(*start, old)].set(array, unique_indices=True)
    return result.at[(*start, new)].set(numpy.take(values, order, axis), unique_indices=True)
