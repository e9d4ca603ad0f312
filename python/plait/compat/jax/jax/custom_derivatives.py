"""jax.custom_derivatives over plait's custom_jvp and custom_vjp.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect
import threading
import weakref

import numpy as np

import plait
from plait import _plait
from plait._plait import flatten, unflatten

from jax import _doors
from jax._transforms import closure_convert as closure_convert
from jax._narrow import entered
from jax.dtypes import float0
from jax.tree_util import Partial


def _positions(fun, nondiff_argnums, nondiff_argnames):
    """nondiff_argnums, with those of the arguments that are named."""
    numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
    names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
    if names:
        parameters = list(inspect.signature(fun).parameters)
        numbers += tuple(parameters.index(name) for name in names)
    return tuple(sorted(set(numbers)))


# --- Zeros by their type -------------------------------------------------------------------------


class SymbolicZero:
    """A tangent that is known to be zero: a type."""

    def __init__(self, aval):
        self.aval, self.shape, self.dtype = aval, aval.shape, aval.dtype
        self.ndim, self.size = len(aval.shape), aval.size


class CustomVJPPrimal:
    """An argument of a forward rule with symbolic zeros, and whether a derivative with respect to it is wanted."""

    def __init__(self, value, perturbed):
        self.value, self.perturbed = value, perturbed


def custom_vjp_primal_tree_values(tree):
    """The values of a tree of CustomVJPPrimal."""
    leaves, structure = flatten(tree, lambda node: isinstance(node, CustomVJPPrimal))
    return unflatten(
        structure, [leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf for leaf in leaves]
    )


def zero_from_primal(primal, symbolic_zeros=False):
    """Zero tangents of a tree of values."""
    leaves, structure = flatten(primal)
    if symbolic_zeros:
        return unflatten(structure, [SymbolicZero(_plait.aval_of(leaf)) for leaf in leaves])
    return unflatten(structure, [_plait.zeros_like(leaf) for leaf in leaves])


def _instantiated(tree):
    """A tree with arrays for its symbolic zeros."""
    leaves, structure = flatten(tree)
    return unflatten(
        structure,
        [
            _plait.zeros_like(leaf.aval) if isinstance(leaf, SymbolicZero) else leaf
            for leaf in leaves
        ],
    )


def _no_tangent(value, symbolic):
    """What a rule gets as the tangent of an integer, or of what does not vary."""
    aval = _plait.aval_of(value)
    return SymbolicZero(aval) if symbolic else np.zeros(aval.shape, float0)


# Arrays whose derivative is an error: they do not vary where a program is right. By id, while they live.
_fixed: dict[int, weakref.ref] = {}


def _fix(arrays):
    for array in arrays:
        number = id(array)
        _fixed[number] = weakref.ref(array, lambda _, number=number: _fixed.pop(number, None))


def _is_fixed(value):
    found = _fixed.get(id(value))
    return found is not None and found() is value


class _Symbolic:
    """Which leaves of the arguments carry tangents, in a call whose rules run at once; None elsewhere."""

    symbolic = False
    varying = threading.local()

    def __call__(self, *args, **kwargs):
        args, kwargs = entered((args, kwargs))
        _, _, dynamic, _ = self.arguments(args, kwargs)
        leaves = flatten(dynamic)[0]
        before = dict(vars(self.varying))
        try:
            arrays = [_plait.to_array(leaf) for leaf in leaves if _plait.is_array_like(leaf)]
            staged = _plait.stages_custom_rules(arrays)
            self.varying.flags = (
                [not _is_fixed(leaf) for leaf in leaves]
                if staged
                else list(map(_plait.carries_tangent, leaves))
            )
            self.varying.staged, self.varying.failed = staged, False
            result = super().__call__(*args, **kwargs)
            if staged and self.varying.failed:
                _fix(flatten(result)[0])
            return result
        finally:
            vars(self.varying).clear()
            vars(self.varying).update(before)

    def flags_of(self, leaves):
        """Whether a derivative with respect to each leaf is wanted, as far as is known."""
        flags = getattr(self.varying, "flags", None)
        if flags is None or len(flags) != len(leaves):
            flags = [True] * len(leaves)
        return [flag and _plait.is_differentiable(leaf) for flag, leaf in zip(flags, leaves)]


class custom_jvp(_Symbolic, plait.custom_jvp):
    """plait.custom_jvp; with symbolic_zeros, what does not vary has no tangent."""

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, _positions(fun, nondiff_argnums, nondiff_argnames))

    @property
    def jvp(self):
        return self.rule

    def defjvp(self, jvp, symbolic_zeros=False):
        self.symbolic = symbolic_zeros

        def rule(*args):
            *nondiff, primals, tangents = args
            leaves = flatten(primals)[0]
            given, structure = flatten(tangents)
            flags = (
                self.flags_of(leaves) if symbolic_zeros else map(_plait.is_differentiable, leaves)
            )
            given = [
                tangent if flag else _no_tangent(leaf, symbolic_zeros)
                for leaf, tangent, flag in zip(leaves, given, flags)
            ]
            try:
                outputs, derivatives = jvp(*nondiff, primals, unflatten(structure, given))
            except Exception as error:
                if not getattr(self.varying, "staged", True):
                    raise
                return self.failing(args, primals, error)
            return outputs, _instantiated(derivatives)

        super().defjvp(rule)
        return jvp

    def failing(self, args, primals, error):
        """The function, whose derivative fails when it runs.

        In a program every rule is traced, before it is known what varies: a rule that refuses to be differentiated must
        not fail before.
        """
        given = list(primals)
        for number, value in zip(self.nondiff_argnums, args):
            given.insert(number, value)
        outputs = self.fun(*given)
        self.varying.failed = True
        never = plait.numpy.zeros((), bool)  # made in the rule, which may capture nothing
        plait.check(never, f"the jvp rule of `{getattr(self, '__name__', 'f')}` failed: {error}")
        leaves, structure = flatten(outputs)
        return outputs, unflatten(structure, [_plait.zeros_like(leaf) for leaf in leaves])


class _Residuals:
    """Residuals: arrays as children, and what is no array as it is."""

    def __init__(self, tree):
        leaves, self.structure = flatten(tree)
        self.arrays = [leaf for leaf in leaves if isinstance(leaf, plait.Array)]
        self.others = [None if isinstance(leaf, plait.Array) else (leaf,) for leaf in leaves]

    def tree(self):
        arrays = iter(self.arrays)
        return unflatten(
            self.structure, [next(arrays) if other is None else other[0] for other in self.others]
        )

    @classmethod
    def restored(cls, data, arrays):
        self = cls(())
        (self.structure, self.others), self.arrays = data, list(arrays)
        return self


_plait.register_pytree_node(
    _Residuals, lambda kept: (kept.arrays, (kept.structure, kept.others)), _Residuals.restored
)


class custom_vjp(_Symbolic, plait.custom_vjp):
    """plait.custom_vjp; with symbolic_zeros, the forward rule is told what varies."""

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, _positions(fun, nondiff_argnums, nondiff_argnames))

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        self.symbolic = symbolic_zeros

        def told(*args):
            numbers = [i for i in range(len(args)) if i not in self.nondiff_argnums]
            leaves, structure = flatten(tuple(args[i] for i in numbers))
            wrapped = unflatten(
                structure, [CustomVJPPrimal(*pair) for pair in zip(leaves, self.flags_of(leaves))]
            )
            given = list(args)
            for number, value in zip(numbers, wrapped):
                given[number] = value
            return fwd(*given)

        def forward(*args):
            output, residuals = (told if symbolic_zeros else fwd)(*args)
            return output, _Residuals(residuals)

        def backward(*args):
            *nondiff, residuals, cotangents = args
            return _instantiated(bwd(*nondiff, residuals.tree(), cotangents))

        super().defvjp(forward, backward)


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


linear_call = _doors.refused(
    "jax.custom_derivatives.linear_call", "linear functions with given transposes"
)
_lacking = _doors.lacking(__name__)


def __getattr__(name):
    if name in ("custom_jvp_call_p", "custom_vjp_call_p"):
        from jax._primitives import existing

        return existing(name[:-2])
    return _lacking(name)
