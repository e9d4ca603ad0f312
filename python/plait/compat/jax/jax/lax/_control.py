"""Control flow with JAX's forms of arguments.

SPDX-License-Identifier: Apache-2.0
"""

import plait.lax as _lax
import plait.numpy as _numpy

from jax._dtypes import dtype_of
from jax._narrow import entered

_none = object()


def switch(index, branches, *operands, operand=_none):
    """plait.lax.switch."""
    operands = operands if operand is _none else (operand,)
    return _lax.switch(index, branches, *entered(operands))


def cond(pred, true_fun, false_fun, *operands, operand=_none, linear=None):
    """plait.lax.cond; also with an operand for each function, as cond(pred, x, f, y, g)."""
    if not (callable(true_fun) and callable(false_fun)):
        first, on_true, second, on_false = true_fun, false_fun, *operands
        return _lax.cond(
            pred, lambda x, y: on_true(x), lambda x, y: on_false(y), *entered((first, second))
        )
    operands = operands if operand is _none else (operand,)
    return _lax.cond(pred, true_fun, false_fun, *entered(operands))


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False):
    """plait.lax.scan; steps are not unrolled."""
    return _lax.scan(f, entered(init), entered(xs), length, reverse)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """plait.lax.fori_loop; steps are not unrolled. Bounds may be floats, and then so is the index."""
    if any(dtype_of(bound).kind == "f" for bound in (lower, upper)):
        _, _, outputs = while_loop(
            lambda state: state[0] < state[1],
            lambda state: (state[0] + 1, state[1], body_fun(state[0], state[2])),
            (*_numpy.broadcast_arrays(lower * 1.0, upper * 1.0), init_val),
        )
        return outputs
    return _lax.fori_loop(lower, upper, body_fun, entered(init_val))


def while_loop(cond_fun, body_fun, init_val):
    """plait.lax.while_loop."""
    return _lax.while_loop(cond_fun, body_fun, entered(init_val))


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """plait.lax.custom_root."""
    return _lax.custom_root(f, entered(initial_guess), solve, tangent_solve, has_aux)


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """plait.lax.custom_linear_solve."""
    return _lax.custom_linear_solve(matvec, entered(b), solve, transpose_solve, symmetric, has_aux)
