"""jax.custom_derivatives over plait's custom_jvp and custom_vjp.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect

import plait
from plait import _plait
from plait._plait import flatten, unflatten

from jax import _doors
from jax._transforms import closure_convert as closure_convert
from jax.tree_util import Partial


def _positions(fun, nondiff_argnums, nondiff_argnames):
    """nondiff_argnums, with those of the arguments that are named."""
    numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
    names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
    if names:
        parameters = list(inspect.signature(fun).parameters)
        numbers += tuple(parameters.index(name) for name in names)
    return tuple(sorted(set(numbers)))


class custom_jvp(plait.custom_jvp):
    """plait.custom_jvp."""

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, _positions(fun, nondiff_argnums, nondiff_argnames))

    @property
    def jvp(self):
        return self.rule


class custom_vjp(plait.custom_vjp):
    """plait.custom_vjp."""

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, _positions(fun, nondiff_argnums, nondiff_argnames))


def custom_gradient(fun):
    """fun returns its value and the function from a cotangent to those of the arguments."""

    @custom_vjp
    @functools.wraps(fun)
    def function(*args):
        return fun(*args)[0]

    def forward(*args):
        value, rule = fun(*args)
        leaves, structure = flatten(value)
        kept = []

        def of_cotangent(*cotangents):
            found, kept_structure = flatten(rule(unflatten(structure, list(cotangents))))
            kept[:] = [kept_structure]
            return [_plait.to_array(leaf) for leaf in found]

        converted, consts = closure_convert(of_cotangent, *leaves)
        return value, Partial(_Pull(converted, kept[0]), *consts)

    def backward(pull, cotangent):
        found = pull(cotangent)
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    function.defvjp(forward, backward)
    return function


class _Pull:
    """A pullback as a function of its captured arrays and a cotangent."""

    def __init__(self, converted, structure):
        self.converted, self.structure = converted, structure

    def __call__(self, *consts_and_cotangent):
        *consts, cotangent = consts_and_cotangent
        leaves, _ = flatten(cotangent)
        return unflatten(self.structure, self.converted(*leaves, *consts))


class SymbolicZero:
    """A tangent that is known to be zero; rules get arrays here, so that none is of this type."""

    def __init__(self, aval):
        self.aval = aval


class CustomVJPPrimal:
    """An argument of a forward rule with symbolic zeros, of which there are none here."""

    def __init__(self, value, perturbed):
        self.value, self.perturbed = value, perturbed


def custom_vjp_primal_tree_values(tree):
    """The values of a tree of CustomVJPPrimal."""
    is_primal = lambda leaf: isinstance(leaf, CustomVJPPrimal)  # noqa: E731
    leaves, structure = flatten(tree, is_primal)
    return unflatten(structure, [leaf.value if is_primal(leaf) else leaf for leaf in leaves])


def zero_from_primal(primal, symbolic_zeros=False):
    """A zero tangent of a value."""
    return _plait.zeros_like(primal)


linear_call = _doors.refused(
    "jax.custom_derivatives.linear_call", "linear functions with given transposes"
)
_lacking = _doors.lacking(__name__)


def __getattr__(name):
    if name in ("custom_jvp_call_p", "custom_vjp_call_p"):
        from jax._primitives import existing

        return existing(name[:-2])
    return _lacking(name)
