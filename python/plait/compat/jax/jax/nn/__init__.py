"""jax.nn over plait's.

SPDX-License-Identifier: Apache-2.0
"""

import plait.nn as _nn
from plait._plait import catalogue as _catalogue

from jax import _doors
from jax._dtypes import creating, default_float
from jax._narrow import narrowing

for _name in _catalogue("nn"):
    globals()[_name] = narrowing(getattr(_nn, _name))
one_hot = creating(_nn.one_hot, default_float)
_doors.load(__name__, "initializers")  # in the place of plait's
__getattr__ = _doors.lacking(__name__)
