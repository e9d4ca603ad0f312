"""Sparse arrays by coordinates, under the names of jax.experimental.sparse.

>>> from plait import sparse
>>> matrix = sparse.BCOO.fromdense([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]])
>>> matrix @ plait.numpy.array([1.0, 2.0, 3.0])
Array([4., 1.], dtype=float32)

A BCOO is a tree of its data and indices, so jit, grad and vmap take it. The functions are C++ and come from the
catalogue, with their documentation.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names
from plait._bcoo import BCOO as BCOO
from plait._bcoo import grad as grad
from plait._bcoo import value_and_grad as value_and_grad
from plait._plait import catalogue as _catalogue

globals().update(_catalogue("sparse"))
__getattr__ = _names.missing(__name__, globals())
__all__ = sorted([*_catalogue("sparse"), "BCOO", "grad", "value_and_grad"])
