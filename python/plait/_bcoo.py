"""BCOO, the type of sparse arrays, over the catalogue's functions.

SPDX-License-Identifier: Apache-2.0
"""

import types

from plait import _derivatives, _plait, tree
from plait import numpy as pnp
from plait._functions import check_argnums, check_callable, is_single, refuse
from plait.tree import GetAttrKey, register_pytree_with_keys

_sparse = types.SimpleNamespace(**_plait.catalogue("sparse"))


def _two_sparse(operator):
    problem = f"BCOO: {operator} of two sparse arrays is not there"
    _plait.fail("DtypeError", problem, "call todense on one of them")


def _no_dense(operator, other):
    """For an operand that is no BCOO: an array or a number has no zeros to leave out."""
    if _plait.is_array_like(other):
        problem = f"BCOO: {operator} with a {type(other).__name__}, which is dense"
        _plait.fail("DtypeError", problem, "call todense first")
    return NotImplemented


class BCOO:
    """A sparse array: data[i] is what it holds at indices[i], entries of one place are added.

    BCOO((data, indices), shape=shape) with data [nse, *dense] and indices [nse, number of sparse axes]; an index
    outside of the shape is padding. Products with arrays are @, elementwise ones *, and A + B is that of BCOOs; todense
    gives an array. sparse.grad gives the gradient with respect to a BCOO as a BCOO.
    """

    # NumPy's operators leave the work to those below.
    __array_ufunc__ = None
    __slots__ = ("data", "indices", "shape")

    def __init__(self, args, *, shape, indices_sorted=False, unique_indices=False):
        # The promises are JAX's; nothing here needs them.
        if not isinstance(args, (tuple, list)) or len(args) != 2:
            refuse("BCOO", "the first argument", args, "give (data, indices)")
        if not isinstance(shape, (tuple, list)):
            refuse("BCOO", "shape", shape, "give a tuple of sizes")
        data, indices = args
        self.data, self.indices = pnp.asarray(data), pnp.asarray(indices)
        self.shape = tuple(shape)
        is_sound = self.data.ndim >= 1 and self.indices.ndim == 2
        dense = self.data.shape[1:]
        if not (
            is_sound
            and self.indices.shape == (len(self.data), len(self.shape) - len(dense))
            and self.shape[len(self.shape) - len(dense) :] == dense
        ):
            _plait.fail(
                "ShapeError",
                f"BCOO: data of shape {self.data.shape} and indices of shape {self.indices.shape} for a sparse array "
                f"of shape {self.shape}",
                "give data [nse, *dense] and indices [nse, number of sparse axes]; vmap maps batches",
            )
        if self.indices.dtype.kind not in "iu":
            _plait.fail(
                "DtypeError", f"BCOO: indices of dtype {self.indices.dtype}", "give integers"
            )

    @classmethod
    def _make(cls, parts):
        result = object.__new__(cls)
        result.data, result.indices, result.shape = parts
        return result

    __plait_argument__ = property(lambda self: (self.data, self.indices, self.shape))

    @classmethod
    def fromdense(cls, mat, *, nse=None, n_batch=0, n_dense=0, index_dtype=None):
        """The elements of an array that are not zero; see bcoo_fromdense. ValueError for batch axes, which vmap maps."""
        if n_batch:
            _plait.fail(
                "ValueError",
                f"BCOO.fromdense: n_batch is {n_batch!r}",
                "map it: plait.vmap(lambda m: BCOO.fromdense(m, nse=nse))",
            )
        return _sparse.bcoo_fromdense(mat, nse, n_dense)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense=0, n_batch=0):
        """A sparse array of SciPy's, of any format, as a BCOO. ValueError for dense and batch axes, which it has not."""
        if n_dense or n_batch:
            _plait.fail(
                "ValueError",
                f"BCOO.from_scipy_sparse: {n_dense!r} dense and {n_batch!r} batch axes",
                "leave them out: SciPy's axes are all sparse",
            )
        mat = mat.tocoo()
        indices = pnp.stack([pnp.asarray(axis) for axis in mat.coords], 1)
        if index_dtype is not None:
            indices = indices.astype(index_dtype)
        return cls((pnp.asarray(mat.data), indices), shape=mat.shape)

    @classmethod
    def empty(cls, shape, *, dtype=None):
        """A sparse array of this shape without entries."""
        return cls((pnp.zeros(0, dtype), pnp.zeros((0, len(shape)), "int32")), shape=shape)

    dtype = property(lambda self: self.data.dtype, doc="The dtype of the data.")
    ndim = property(lambda self: len(self.shape), doc="The number of axes.")
    nse = property(lambda self: self.data.shape[0], doc="The number of entries.")
    n_dense = property(
        lambda self: self.data.ndim - 1, doc="The number of dense axes, the last ones."
    )
    n_sparse = property(lambda self: self.ndim - self.n_dense, doc="The number of sparse axes.")
    T = property(lambda self: self.transpose(), doc="The transpose.")

    @property
    def size(self):
        """The number of elements, zeros included."""
        size = 1
        for length in self.shape:
            size = size * length
        return size

    def todense(self):
        """The array of this shape."""
        return _sparse.bcoo_todense(self)

    def transpose(self, axes=None):
        """Axes permuted, or in reverse order."""
        order = range(self.ndim)[::-1] if axes is None else axes
        return _sparse.bcoo_transpose(self, tuple(order))

    def sum(self, axis=None):
        """The sums over axes, all by default, as a BCOO."""
        return _sparse.bcoo_reduce_sum(self, axis)

    def sum_duplicates(self, nse=None):
        """The same array with its indices in order and each once; see bcoo_sum_duplicates."""
        return _sparse.bcoo_sum_duplicates(self, nse)

    def astype(self, dtype):
        """The same array with data of another dtype."""
        return self._make((self.data.astype(dtype), self.indices, self.shape))

    def __matmul__(self, other):
        if isinstance(other, BCOO):
            _two_sparse("@")
        if not _plait.is_array_like(other):
            return NotImplemented
        other = pnp.asarray(other)
        numbers = ((self.ndim - 1,), (max(other.ndim - 2, 0),)), ((), ())
        return _sparse.bcoo_dot_general(self, other, dimension_numbers=numbers)

    def __rmatmul__(self, other):
        if not _plait.is_array_like(other):
            return NotImplemented
        other = pnp.asarray(other)
        numbers = ((other.ndim - 1,), (max(self.ndim - 2, 0),)), ((), ())
        return _sparse.bcoo_dot_general(other, self, dimension_numbers=numbers)

    def __mul__(self, other):
        if isinstance(other, BCOO):
            _two_sparse("*")
        if not _plait.is_array_like(other):
            return NotImplemented
        return _sparse.bcoo_multiply_dense(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, BCOO) or not _plait.is_array_like(other):
            return NotImplemented
        return _sparse.bcoo_multiply_dense(self, 1 / pnp.asarray(other))

    def __neg__(self):
        return self._make((-self.data, self.indices, self.shape))

    def __add__(self, other):
        return _sparse.bcoo_add(self, other) if isinstance(other, BCOO) else _no_dense("+", other)

    def __sub__(self, other):
        return _sparse.bcoo_add(self, -other) if isinstance(other, BCOO) else _no_dense("-", other)

    def __radd__(self, other):
        return _no_dense("+", other)

    def __rsub__(self, other):
        return _no_dense("-", other)

    def __repr__(self):
        return f"BCOO({self.dtype}{list(self.shape)}, nse={self.nse})"


register_pytree_with_keys(
    BCOO,
    lambda mat: (
        ((GetAttrKey("data"), mat.data), (GetAttrKey("indices"), mat.indices)),
        mat.shape,
    ),
    lambda shape, parts: BCOO._make((*parts, shape)),
    lambda mat: ((mat.data, mat.indices), mat.shape),
)
for _name in "bcoo_fromdense bcoo_transpose bcoo_reduce_sum bcoo_sum_duplicates bcoo_multiply_dense bcoo_add eye".split():
    _plait.name_results(getattr(_sparse, _name), BCOO)


def _is_sparse(leaf):
    return isinstance(leaf, BCOO)


def _of_data(pytree):
    """The tree with the data of each BCOO in its place."""
    return tree.map(
        lambda leaf: leaf.data if _is_sparse(leaf) else leaf, pytree, is_leaf=_is_sparse
    )


def _with_data(like, data):
    """The tree whose BCOOs have the indices of those of like, and other data."""

    def made(leaf, new):
        return BCOO._make((new, leaf.indices, leaf.shape)) if _is_sparse(leaf) else new

    return tree.map(made, like, data, is_leaf=_is_sparse)


def value_and_grad(fun, argnums=0, has_aux=False):
    """plait.value_and_grad where the gradient with respect to a BCOO is one with the same indices."""
    check_callable("sparse.value_and_grad", fun)

    def function(*args, **kwargs):
        numbers = check_argnums("sparse.value_and_grad", fun, argnums, args)
        chosen = [args[number] for number in numbers]

        def on_data(*data):
            whole = list(args)
            for number, arg, new in zip(numbers, chosen, data):
                whole[number] = _with_data(arg, new)
            return fun(*whole, **kwargs)

        of_all = _derivatives.value_and_grad(on_data, tuple(range(len(numbers))), has_aux)
        value, slopes = of_all(*map(_of_data, chosen))
        slopes = tuple(_with_data(arg, slope) for arg, slope in zip(chosen, slopes))
        return value, slopes[0] if is_single(argnums) else slopes

    return function


def grad(fun, argnums=0, has_aux=False):
    """plait.grad where the gradient with respect to a BCOO is one with the same indices."""
    both = value_and_grad(fun, argnums, has_aux)

    def function(*args, **kwargs):
        value, slopes = both(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return function
