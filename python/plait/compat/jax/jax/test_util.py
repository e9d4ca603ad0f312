"""jax.test_util: derivatives checked against differences.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

import plait

from jax import _doors, tree_util
from jax._dtypes import converted
from jax._transforms import jvp, vjp

_TOLERANCES = {"float64": 1e-5, "complex128": 1e-5, "float32": 1e-2, "complex64": 1e-2}


def _is_wide(leaves):
    return all(x.dtype in (np.float64, np.complex128) for x in leaves)


def _tolerance(given, dtype):
    """What may differ, relative and absolute: a number, or one for each dtype."""
    default = _TOLERANCES.get(dtype.name, 0.2)
    if isinstance(given, dict):
        return {np.dtype(kind): number for kind, number in given.items()}.get(dtype, default)
    return default if given is None else given


def _compare(got, wanted, atol, rtol, what):
    for a, b in zip(tree_util.tree_leaves(got), wanted, strict=True):
        a = np.asarray(a)
        limits = {"atol": _tolerance(atol, a.dtype), "rtol": _tolerance(rtol, a.dtype)}
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(a.astype(wide), b, err_msg=what, **limits)


def _directions(leaves, seed):
    rng = np.random.RandomState(seed)

    def numbers(x):
        if x.dtype.kind not in "fcV":
            return np.zeros(x.shape, x.dtype)
        made = rng.randn(*x.shape)
        return np.asarray(made + 1j * rng.randn(*x.shape) if x.dtype.kind == "c" else made, x.dtype)

    return [plait.numpy.asarray(numbers(x)) for x in leaves]


def _difference(f, leaves, structure, direction, eps):
    """The central difference of f along a direction, as NumPy's arrays."""

    def at(step):
        moved = [x + step * v if x.dtype.kind in "fcV" else x for x, v in zip(leaves, direction)]
        return tree_util.tree_leaves(f(*tree_util.tree_unflatten(structure, moved)))

    step = eps or (1e-6 if _is_wide(leaves) else 1e-3)
    wide = [np.asarray(x) for x in at(step)], [np.asarray(x) for x in at(-step)]
    kinds = [np.complex128 if a.dtype.kind == "c" else np.float64 for a in wide[0]]
    return [(a.astype(k) - b.astype(k)) / (2 * step) for a, b, k in zip(*wide, kinds)]


def _parts(args):
    leaves, structure = tree_util.tree_flatten(tuple(args))
    return [converted(x) for x in leaves], structure


def check_jvp(f, f_jvp, args, atol=None, rtol=None, eps=None, err_msg=""):
    """Checks f_jvp(primals, tangents) of a function against its values and their differences."""
    leaves, structure = _parts(args)
    direction = _directions(leaves, 0)
    primals, tangents = (tree_util.tree_unflatten(structure, each) for each in (leaves, direction))
    out, tangent = f_jvp(primals, tangents)
    expected = tree_util.tree_leaves(f(*primals))
    _compare(out, [np.asarray(x) for x in expected], atol, rtol, f"{err_msg} primal")
    wanted = _difference(f, leaves, structure, direction, eps)
    _compare(tangent, wanted, atol, rtol, f"{err_msg} tangent")


def check_vjp(f, f_vjp, args, atol=None, rtol=None, eps=None, err_msg=""):
    """Checks f_vjp(*args), the value and the pullback, against the values of f and their differences."""
    leaves, structure = _parts(args)
    out, pull = f_vjp(*tree_util.tree_unflatten(structure, leaves))
    outputs, of_outputs = tree_util.tree_flatten(out)
    direction, cotangents = _directions(leaves, 0), _directions(outputs, 1)
    wanted = _difference(f, leaves, structure, direction, eps)
    pulled = tree_util.tree_leaves(pull(tree_util.tree_unflatten(of_outputs, cotangents)))

    def product(xs, ys):
        kept = [(np.asarray(x), np.asarray(y)) for x, y in zip(xs, ys, strict=True)]
        return sum(
            (np.sum(x.astype(np.complex128) * y) for x, y in kept if x.dtype.kind in "fcV"), 0.0
        ).real

    dtype = outputs[0].dtype if outputs else np.dtype(float)
    np.testing.assert_allclose(
        product(direction, pulled),
        product(cotangents, wanted),
        atol=_tolerance(atol, dtype),
        rtol=_tolerance(rtol, dtype),
        err_msg=f"{err_msg} cotangent",
    )


def check_grads(f, args, order, modes=("fwd", "rev"), atol=None, rtol=None, eps=None):
    """Checks derivatives of f up to an order against central differences, in each mode."""
    limits = {"atol": atol, "rtol": rtol, "eps": eps}

    def forward(primals, tangents):
        return jvp(f, primals, tangents)

    def backward(*args):
        out, pull = vjp(f, *args)
        leaves, structure = tree_util.tree_flatten(out)
        ones = [plait.numpy.ones(x.shape, x.dtype) for x in leaves]
        return pull(tree_util.tree_unflatten(structure, ones))

    for mode in (modes,) if isinstance(modes, str) else modes:
        if mode == "fwd":
            check_jvp(f, forward, args, **limits)
            if order > 1:
                check_grads(forward, (tuple(args), tuple(args)), order - 1, mode, **limits)
        elif mode == "rev":
            check_vjp(f, lambda *primals: vjp(f, *primals), args, **limits)
            if order > 1:
                check_grads(backward, args, order - 1, mode, **limits)
        else:
            _doors.refuse("jax.test_util.check_grads", f"mode {mode!r}", "give 'fwd' or 'rev'")


__getattr__ = _doors.lacking(__name__)
__all__ = ["check_grads", "check_jvp", "check_vjp"]
