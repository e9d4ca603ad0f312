"""Control flow with JAX's forms of arguments.

SPDX-License-Identifier: Apache-2.0
"""

import plait.lax as _lax


_none = object()
switch = _lax.switch


def cond(pred, true_fun, false_fun, *operands, operand=_none, linear=None):
    """plait.lax.cond; also with an operand for each function, as cond(pred, x, f, y, g)."""
    if not (callable(true_fun) and callable(false_fun)):
        true_operand, true_fun, false_operand, false_fun = true_fun, false_fun, *operands
        return _lax.cond(
            pred, lambda x, y: true_fun(x), lambda x, y: false_fun(y), true_operand, false_operand
        )
    if operand is not _none:
        operands = (operand,)
    return _lax.cond(pred, true_fun, false_fun, *operands)


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False):
    """plait.lax.scan; steps are not unrolled."""
    return _lax.scan(f, init, xs, length, reverse)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """plait.lax.fori_loop; steps are not unrolled."""
    return _lax.fori_loop(lower, upper, body_fun, init_val)


def while_loop(cond_fun, body_fun, init_val):
    """plait.lax.while_loop; a condition of shape () that is a number is true where it is not zero."""
    return _lax.while_loop(cond_fun, body_fun, init_val)
