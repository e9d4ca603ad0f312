"""jax.nn over plait's.

SPDX-License-Identifier: Apache-2.0
"""

import plait.nn as _nn
import plait.numpy as _numpy
from plait._plait import catalogue as _catalogue

from jax import _doors
from jax._dtypes import converted, creating, default_float
from jax._narrow import narrowing

for _name in _catalogue("nn"):
    globals()[_name] = narrowing(getattr(_nn, _name))
one_hot = creating(_nn.one_hot, default_float)


def dot_product_attention(query, key, value, *args, implementation=None, **options):
    """plait.nn.dot_product_attention; of the implementations "xla" is the one that there is."""
    if implementation not in (None, "xla"):
        _doors.refuse(
            "jax.nn.dot_product_attention", f"implementation={implementation!r}", "leave it out"
        )
    return narrowing(_nn.dot_product_attention)(query, key, value, *args, **options)


def log1mexp(x):
    """log(1 - exp(-x)) of positive numbers, without cancellation."""
    x = converted(x)
    is_near = x < 0.6931472
    near, far = _numpy.where(is_near, x, 1.0), _numpy.where(is_near, 1.0, x)
    return _numpy.where(is_near, _numpy.log(-_numpy.expm1(-near)), _numpy.log1p(-_numpy.exp(-far)))


_doors.load(__name__, "initializers")  # in the place of plait's
__getattr__ = _doors.lacking(__name__)
