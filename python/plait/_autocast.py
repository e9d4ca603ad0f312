"""autocast: products in 16 bits, numerically sensitive operations in float32.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._extend import primitive_name
from plait._functions import Flat, applying, call_place, check_callable, name_of, to_arrays, wraps
from plait._plait import flatten, unflatten

__all__ = ["AutocastPolicy", "autocast"]


class AutocastPolicy:
    """What autocast computes in which dtype.

    dtype is that of products, convolutions and attention: bfloat16 or float16. low and full list primitives and
    composites, as functions of plait.lax and plait.nn or by name, that compute in dtype, or in float32, regardless of
    the default.
    """

    def __init__(self, dtype="bfloat16", low=(), full=()):
        self.dtype = dtype
        self.low, self.full = (
            tuple(primitive_name(name) for name in ([names] if isinstance(names, str) else names))
            for names in (low, full)
        )

    def __repr__(self):
        return f"AutocastPolicy({self.dtype!r}, low={self.low}, full={self.full})"


def autocast(f, policy="bfloat16"):
    """f, with its float32 products computed in 16 bits; arguments and results keep their dtypes.

    policy is "bfloat16" or "float16" (or such a dtype), or an AutocastPolicy. Operands of matmul, conv and attention
    are cast to it. Movement, simple arithmetic and activations stay in it where their operands are in it. Reductions,
    exponentials, softmax, normalisations and losses are computed in float32, and so are operations that combine float32
    parameters with 16-bit results. Other dtypes are left alone. The casts are equations of the program; programs inside
    it (jit, custom rules, loops) are rewritten alike. It composes with every transform in any order, and gradients have
    the dtypes of the arguments. With float16, scale the loss: see plait.optim.loss_scale_init. ValueError for another
    dtype, and for unknown names.
    """
    check_callable("autocast", f)
    if not isinstance(policy, AutocastPolicy):
        policy = AutocastPolicy(policy)

    def cast(*args, **kwargs):
        leaves, structure = flatten((args, kwargs))
        with applying("autocast", f):
            arrays = to_arrays(leaves, structure, "autocast", call_place(structure))
        flat = Flat("autocast", f, structure)
        outputs = _plait.flat_autocast(
            flat, arrays, policy.dtype, policy.low, policy.full, name_of(f)
        )
        return unflatten(flat.outputs, outputs)

    return wraps("autocast", f, cast)
