"""jax.interpreters.mlir: plait does not lower to MLIR. A function given to lower a primitive is what runs it.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors
from jax._primitives import lowerings as _lowerings


class _Function:
    """The function behind a lowering."""

    def __init__(self, fun):
        self.fun = fun


def lower_fun(fun, multiple_results=True):
    """fun, as a lowering for register_lowering."""
    return _Function(fun)


def register_lowering(primitive, rule, platform=None, inline=True, cacheable=True):
    """Runs a primitive by the function of lower_fun. A rule that writes MLIR is not used: the implementation runs."""
    if isinstance(rule, _Function) and platform in (None, "cpu"):
        _lowerings[primitive] = rule.fun
    return rule


ir_constant = _doors.refused("jax.interpreters.mlir.ir_constant", "plait does not lower to MLIR")
aval_to_ir_type = _doors.refused(
    "jax.interpreters.mlir.aval_to_ir_type", "plait does not lower to MLIR"
)
__getattr__ = _doors.lacking(__name__)
