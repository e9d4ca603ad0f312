"""jax.nn.initializers over plait's.

SPDX-License-Identifier: Apache-2.0
"""

from collections.abc import Callable
from typing import Any

import plait.nn.initializers as _initializers

from jax import _doors
from jax._dtypes import canonical

Initializer = Callable[..., Any]


def _with_dtype(initializer, reads_key=True):
    """An initializer (key, shape, dtype) whose dtype is JAX's, and which takes where the array should lie."""

    def init(key, shape, dtype=float, out_sharding=None):
        return initializer(key if reads_key else 0, shape, canonical(dtype))

    return init


def _making(name):
    make = getattr(_initializers, name)

    def made(*args, dtype=float, **kwargs):
        initialize = _with_dtype(make(*args, **kwargs), name != "constant")

        def init(key, shape, dtype=dtype, out_sharding=None):
            return initialize(key, shape, dtype)

        return init

    made.__name__, made.__doc__ = name, make.__doc__
    return made


zeros, ones = (_with_dtype(make, False) for make in (_initializers.zeros, _initializers.ones))
zeros.__name__, ones.__name__ = "zeros", "ones"
for _name in (
    "constant glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform lecun_normal "
    "lecun_uniform normal orthogonal delta_orthogonal truncated_normal uniform variance_scaling xavier_normal "
    "xavier_uniform"
).split():
    if hasattr(_initializers, _name):
        globals()[_name] = _making(_name)
    else:
        globals()[_name] = _doors.refused(
            f"jax.nn.initializers.{_name}", "plait has no such initializer"
        )
__getattr__ = _doors.lacking(__name__)
