"""jax.scipy.linalg over plait's.

SPDX-License-Identifier: Apache-2.0
"""

import functools as _functools

import plait.scipy.linalg as _linalg

from jax._doors import door
from jax._narrow import narrowing as _narrowing


@_functools.wraps(_linalg.solve_triangular)
def _solve_triangular(a, b, trans=0, *args, **options):
    return _linalg.solve_triangular(
        a, b, int(trans) if isinstance(trans, bool) else trans, *args, **options
    )


solve_triangular = _narrowing(_solve_triangular)
__getattr__ = door(globals(), "plait.scipy.linalg")
