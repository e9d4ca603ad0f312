"""jax.test_util: derivatives checked against differences.

SPDX-License-Identifier: Apache-2.0
"""

import plait

from jax import _doors


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """Checks derivatives of f up to an order against central differences, in each mode."""
    import numpy as np

    from jax import tree_util
    from jax._transforms import jvp, vjp

    modes = (modes,) if isinstance(modes, str) else modes
    flat, structure = tree_util.tree_flatten(tuple(args))
    flat = [plait.numpy.asarray(x) for x in flat]
    wide = all(x.dtype in (np.float64, np.complex128) for x in flat)
    tol = 1e-5 if wide else 2e-2
    atol, rtol, eps = atol or tol, rtol or tol, eps or (1e-6 if wide else 1e-3)

    def call(*values):
        return f(*tree_util.tree_unflatten(structure, list(values)))

    rng = np.random.RandomState(0)
    direction = [plait.numpy.asarray(np.asarray(rng.randn(*x.shape), x.dtype)) for x in flat]
    ahead = call(*(x + eps * v for x, v in zip(flat, direction)))
    behind = call(*(x - eps * v for x, v in zip(flat, direction)))
    expected = [
        (np.asarray(a) - np.asarray(b)) / (2 * eps) for a, b in zip(_leaves(ahead), _leaves(behind))
    ]
    out, tangent = jvp(call, tuple(flat), tuple(direction))
    if "fwd" in modes:
        for want, got in zip(expected, _leaves(tangent)):
            np.testing.assert_allclose(np.asarray(got), want, atol=atol, rtol=rtol)
    if "rev" in modes:
        out, pull = vjp(call, *flat)
        cotangent = [
            plait.numpy.asarray(np.asarray(rng.randn(*x.shape), x.dtype)) for x in _leaves(out)
        ]
        pulled = pull(tree_util.tree_unflatten(tree_util.tree_structure(out), cotangent))
        left = sum(np.vdot(np.asarray(ct), want) for ct, want in zip(cotangent, expected))
        right = sum(np.vdot(np.asarray(v), np.asarray(ct)) for v, ct in zip(direction, pulled))
        np.testing.assert_allclose(right, left, atol=atol, rtol=rtol)
    if order > 1:
        check_grads(
            lambda *xs: jvp(f, tuple(xs), tuple(plait.numpy.ones_like(x) for x in xs))[1],
            args,
            order - 1,
            modes,
            atol,
            rtol,
            eps,
        )


def _leaves(tree):
    from jax import tree_util

    return tree_util.tree_leaves(tree)


__getattr__ = _doors.lacking(__name__)
