"""The private bridge of JAX to devices, as far as libraries reach into it.

SPDX-License-Identifier: Apache-2.0
"""

import functools

from jax._doors import lacking
from jax.extend.backend import backends as backends, get_backend as _get_backend

_backends: dict = {}  # none is ever being started: plait's devices are there
get_backend = functools.lru_cache(maxsize=None)(_get_backend)

__getattr__ = lacking(__name__)
