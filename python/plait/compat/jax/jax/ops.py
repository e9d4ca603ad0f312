"""jax.ops: plait's reductions of segments.

SPDX-License-Identifier: Apache-2.0
"""

import plait.ops as _ops
from plait._plait import catalogue as _catalogue

from jax import _doors
from jax._narrow import narrowing as _narrowing

for _name in _catalogue("ops"):
    globals()[_name] = _narrowing(getattr(_ops, _name))
__getattr__ = _doors.lacking(__name__)
