"""Functions with their own derivative rules, and rematerialisation: custom_jvp, custom_vjp, checkpoint.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect

import numpy as np

from plait import _plait
from plait._functions import (
    Flat,
    applying,
    argument_place,
    call_place,
    check_callable,
    is_single,
    name_of,
    thread_local,
    to_arrays,
    wraps,
)
from plait._plait import flatten, unflatten


class _Custom:
    """Shared by custom_jvp and custom_vjp: arguments by position, some of which are not differentiated."""

    transform = ""
    # The depth to which a program holds a rule that is traced (under jit) and calls its own function again. Derivatives
    # of higher order differentiate the function's own equations.
    deepest = 3

    def __init__(self, fun, nondiff_argnums=()):
        check_callable(self.transform, fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.inside = thread_local()
        self.symbolic_zeros = False
        self.nondiff_argnums = (
            (nondiff_argnums,) if is_single(nondiff_argnums) else tuple(nondiff_argnums)
        )
        self.num_parameters = 0
        try:
            self.signature = inspect.signature(fun)
        except (TypeError, ValueError):  # a builtin without a signature
            return
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = self.signature.parameters.values()
        self.num_parameters = sum(parameter.kind in kinds for parameter in parameters)

    def __repr__(self):
        return f"<{self.transform} {name_of(self.fun)}>"

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def arguments(self, args, kwargs):
        """Positional arguments, separated from those fixed by nondiff_argnums."""
        if kwargs or len(args) < self.num_parameters:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError:
                self.fun(*args, **kwargs)
                raise
            bound.apply_defaults()
            args = bound.args
            if bound.kwargs:
                _plait.fail(
                    "ValueError",
                    f"{self.transform}: `{name_of(self.fun)}` takes keyword-only arguments: {', '.join(bound.kwargs)}",
                    "make them positional, or bind them with functools.partial",
                )
        for number in self.nondiff_argnums:
            if not -len(args) <= number < len(args):
                _plait.fail(
                    "ValueError",
                    f"{self.transform}: nondiff_argnums={self.nondiff_argnums!r}, but `{name_of(self.fun)}` was "
                    f"called with {len(args)} argument{'s' if len(args) != 1 else ''}",
                    "name positions of arguments that the call has",
                )
        fixed = {number % len(args): args[number] for number in self.nondiff_argnums}
        numbers = [index for index in range(len(args)) if index not in fixed]
        return args, fixed, tuple(args[index] for index in numbers), numbers

    def require_rule(self, rule):
        if rule is None:
            _plait.fail(
                "ValueError",
                f"{self.transform}: `{name_of(self.fun)}` has no rule yet",
                f"give it one with {name_of(self.fun)}.def{'jvp' if self.transform == 'custom_jvp' else 'vjp'}",
            )

    def is_plain(self, arrays, rules):
        """Whether this call applies the function itself; rules are those to be traced, one level deeper."""
        if not _plait.is_tracing() and not _plait.may_record():
            return True, rules
        if not _plait.stages_custom_rules(arrays):
            return False, rules
        if getattr(self.inside, "depth", 0) >= self.deepest:
            return True, rules
        return False, [self.nested(rule) for rule in rules]

    def nested(self, rule):
        """rule, one level deeper."""

        def deeper(*args):
            self.inside.depth = getattr(self.inside, "depth", 0) + 1
            try:
                return rule(*args)
            finally:
                self.inside.depth -= 1

        return deeper

    def merged(self, fixed, count):
        """The function of the dynamic arguments."""

        def fun(*dynamic):
            rest = iter(dynamic)
            return self.fun(*[fixed[i] if i in fixed else next(rest) for i in range(count)])

        return fun


class custom_jvp(_Custom):
    """A function whose derivative along tangents is given by f.defjvp(rule): rule(primals, tangents) returns (outputs,
    tangents of the outputs)."""

    transform = "custom_jvp"

    def __init__(self, fun, nondiff_argnums=()):
        super().__init__(fun, nondiff_argnums)
        self.rule = None

    def defjvp(self, jvp, symbolic_zeros=False):
        """Sets the rule; with nondiff_argnums it takes those arguments first.

        With symbolic_zeros, the tangent of what does not vary is a SymbolicZero, and so may be those that the rule
        returns. Such a rule is traced where somebody differentiates.
        """
        self.rule, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps):
        """Sets one rule for each argument: jvp(tangent, output, *primals), or None for zero."""
        if self.nondiff_argnums:
            _plait.fail(
                "ValueError",
                f"custom_jvp: defjvps gives rules of all arguments, and `{name_of(self.fun)}` has nondiff_argnums",
                "use defjvp",
            )

        def rule(primals, tangents):
            if len(jvps) != len(primals):
                _plait.fail(
                    "ValueError",
                    f"custom_jvp: defjvps gave `{name_of(self.fun)}` {len(jvps)} rules, and it was called with "
                    f"{len(primals)} argument{'s' if len(primals) != 1 else ''}",
                    "give one rule for each argument, or None",
                )
            output = self(*primals)
            total = None
            for jvp, tangent in zip(jvps, tangents):
                if jvp is None:
                    continue
                part = jvp(tangent, output, *primals)
                total = part if total is None else _tree_add(total, part)
            if total is None:
                leaves, structure = flatten(output)
                total = unflatten(structure, [_plait.zeros_like(leaf) for leaf in leaves])
            return output, total

        self.rule = rule

    def __call__(self, *args, **kwargs):
        self.require_rule(self.rule)
        with applying("custom_jvp", self.fun):
            args, fixed, dynamic, numbers = self.arguments(args, kwargs)
            leaves, structure = flatten(dynamic)
            arrays = to_arrays(leaves, structure, "custom_jvp", argument_place(structure, numbers))
        _, both = flatten((dynamic, {}))
        flat = Flat("custom_jvp", self.merged(fixed, len(args)), both)
        name = name_of(self.fun)
        out_structure = None

        def rule(*varies_and_leaves):
            nonlocal out_structure
            leaves = varies_and_leaves[-1]
            half = len(leaves) // 2
            given = leaves[half:]
            if self.symbolic_zeros:
                given = _with_symbolic_zeros(given, varies_and_leaves[0])
            primals, tangents = unflatten(structure, leaves[:half]), unflatten(structure, given)
            nondiff = [fixed[number % len(args)] for number in self.nondiff_argnums]
            result = self.rule(*nondiff, primals, tangents)
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                _plait.fail(
                    "TreeError",
                    f"the jvp rule of `{name}` returned {type(result).__name__}",
                    "return a pair: the outputs, and their tangents in the same structure",
                )
            outputs, out_structure = flatten(result[0])
            derivatives, derivative_structure = flatten(result[1])
            if derivative_structure != out_structure:
                _plait.fail(
                    "TreeError",
                    f"the jvp rule of `{name}` returned outputs of structure {out_structure} and tangents of "
                    f"{derivative_structure}",
                    "return tangents in the structure of the outputs",
                )
            outputs = to_arrays(outputs, out_structure, f"the jvp rule of `{name}`: the output")
            derivatives = [
                _plait.zeros_like(output)
                if output.dtype.kind in "iub" or isinstance(derivative, SymbolicZero)
                else _plait.convert(derivative, output.dtype)
                for output, derivative in zip(outputs, derivatives)
            ]
            return outputs + derivatives

        plain, rules = self.is_plain(arrays, [rule])
        if plain:
            return self.merged(fixed, len(args))(*_fresh(dynamic))
        outputs = _plait.flat_custom_jvp(flat, *rules, arrays, name, self.symbolic_zeros)
        return unflatten(out_structure if flat.outputs is None else flat.outputs, outputs)


class custom_vjp(_Custom):
    """A function whose reverse mode is given by f.defvjp(fwd, bwd): fwd returns (output, residuals), and bwd(residuals,
    cotangent) returns a tuple with a cotangent for each argument."""

    transform = "custom_vjp"

    def __init__(self, fun, nondiff_argnums=()):
        super().__init__(fun, nondiff_argnums)
        self.fwd = self.bwd = None

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        """Sets the rules; with nondiff_argnums bwd takes those arguments first, and fwd in their positions.

        Residuals may hold what is no array: it reaches bwd as it is. With symbolic_zeros, the leaves of fwd's arguments
        are CustomVJPPrimals, which say of each value whether a derivative with respect to it is wanted; cotangents are
        arrays, and bwd may return SymbolicZeros. Such rules are traced where somebody differentiates.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args, **kwargs):
        self.require_rule(self.fwd)
        with applying("custom_vjp", self.fun):
            args, fixed, dynamic, numbers = self.arguments(args, kwargs)
            leaves, structure = flatten(dynamic)
            arrays = to_arrays(leaves, structure, "custom_vjp", argument_place(structure, numbers))
        _, both = flatten((dynamic, {}))
        flat = Flat("custom_vjp", self.merged(fixed, len(args)), both)
        name = name_of(self.fun)
        nondiff = [fixed[number % len(args)] for number in self.nondiff_argnums]
        kept_residuals = out_structure = None

        def fwd(*varies_and_leaves):
            nonlocal kept_residuals, out_structure
            leaves = varies_and_leaves[-1]
            if self.symbolic_zeros:
                leaves = map(CustomVJPPrimal, leaves, varies_and_leaves[0])
            rest = iter(unflatten(structure, list(leaves)))
            result = self.fwd(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))])
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                _plait.fail(
                    "TreeError",
                    f"the fwd rule of `{name}` returned {type(result).__name__}",
                    "return a pair: the output, and residuals for bwd",
                )
            outputs, out_structure = flatten(result[0])
            if flat.outputs is not None and out_structure != flat.outputs:
                _plait.fail(
                    "TreeError",
                    f"the fwd rule of `{name}` returned an output of structure {out_structure}, and the function "
                    f"returns {flat.outputs}",
                    "return the function's output first",
                )
            kept_residuals = _Residuals(result[1])
            outputs = to_arrays(outputs, out_structure, f"the fwd rule of `{name}`: the output")
            return outputs, kept_residuals.arrays

        def bwd(leaves):
            count = len(kept_residuals.arrays)
            residuals = kept_residuals.tree(leaves[:count])
            cotangents = self.bwd(*nondiff, residuals, unflatten(out_structure, leaves[count:]))
            if not isinstance(cotangents, (tuple, list)):
                cotangents = (cotangents,)
            if len(cotangents) != len(dynamic):
                _plait.fail(
                    "TreeError",
                    f"the bwd rule of `{name}` returned {len(cotangents)} cotangents for {len(dynamic)} arguments",
                    "return a tuple with one cotangent for each argument, None where there is none",
                )
            result = []
            for number, argument, cotangent in zip(numbers, dynamic, cotangents):
                result += _cotangents_of(name, number, argument, cotangent)
            return result

        plain, rules = self.is_plain(arrays, [fwd, bwd])
        if plain:
            return self.merged(fixed, len(args))(*_fresh(dynamic))
        outputs = _plait.flat_custom_vjp(flat, *rules, arrays, name, self.symbolic_zeros)
        return unflatten(out_structure if flat.outputs is None else flat.outputs, outputs)


class SymbolicZero:
    """A tangent or cotangent that is known to be zero: of the shape and dtype of an array or type."""

    def __init__(self, aval):
        self.aval, self.shape, self.dtype = aval, aval.shape, aval.dtype
        self.ndim, self.size = len(aval.shape), aval.size

    def __repr__(self):
        return f"SymbolicZero({self.aval})"


class CustomVJPPrimal:
    """An argument of a fwd rule with symbolic zeros: its value, and whether a derivative with respect to it is wanted."""

    def __init__(self, value, perturbed):
        self.value, self.perturbed = value, perturbed


def _with_symbolic_zeros(tangents, varies):
    return [
        tangent if flag else SymbolicZero(_plait.aval_of(tangent))
        for tangent, flag in zip(tangents, varies)
    ]


class _Residuals:
    """A tree of residuals: its arrays, and what is no array."""

    def __init__(self, tree):
        leaves, self.structure = flatten(tree)
        kinds = (_plait.Array, np.ndarray, np.generic)
        self.arrays = [_plait.to_array(leaf) for leaf in leaves if isinstance(leaf, kinds)]
        self.others = [None if isinstance(leaf, kinds) else (leaf,) for leaf in leaves]

    def tree(self, arrays):
        """The same tree with other arrays."""
        arrays = iter(arrays)
        return unflatten(
            self.structure, [other[0] if other else next(arrays) for other in self.others]
        )


def _cotangents_of(name, number, argument, cotangent):
    """The leaves of a bwd rule's result for an argument, as arrays of the argument's types."""
    values, structure = flatten(argument)
    if cotangent is None:
        return [_zeros(value) for value in values]
    given, given_structure = flatten(cotangent)
    if given_structure != structure:
        given = _plait.broadcast_prefix(cotangent, structure, f"the bwd rule of `{name}`")
    result = []
    for index, (value, leaf) in enumerate(zip(values, given)):
        aval = _plait.aval_of(value)
        if leaf is None or isinstance(leaf, SymbolicZero) or aval.dtype.kind in "iub":
            result.append(_zeros(value))
            continue
        leaf = _plait.to_array(leaf, f"the bwd rule of `{name}`")
        if leaf.shape != aval.shape:
            _plait.fail(
                "ShapeError",
                f"the bwd rule of `{name}` returned a cotangent of shape {leaf.shape} for argument "
                f"{number}{structure.path(index)}, which has shape {aval.shape}",
                "return cotangents of the arguments' shapes",
            )
        result.append(_plait.convert(leaf, aval.dtype))
    return result


def _fresh(tree):
    """A copy of the tree with new array handles: writes of the function do not reach its caller."""
    leaves, structure = flatten(tree)
    return unflatten(
        structure, [leaf.copy() if isinstance(leaf, _plait.Array) else leaf for leaf in leaves]
    )


def _zeros(value):
    return _plait.zeros_like(_plait.aval_of(value))


def _tree_add(a, b):
    left, structure = flatten(a)
    right, _ = flatten(b)
    return unflatten(structure, [x + y for x, y in zip(left, right)])


def checkpoint(fun=None, *, policy=None, prevent_cse=True, static_argnums=()):
    """fun with rematerialisation: its derivatives recompute results from its arguments instead of storing them.

    policy says which results are stored nevertheless: one of plait.checkpoint_policies, or a function of the name of a
    primitive.
    """
    if fun is None:
        return lambda fun: checkpoint(fun, policy=policy, static_argnums=static_argnums)
    check_callable("checkpoint", fun)
    del prevent_cse
    if policy is None:
        policy = _plait.nothing_saveable()
    elif not isinstance(policy, _plait.Policy):
        check_callable("checkpoint: policy", policy)
        policy = _plait.make_policy(name_of(policy), policy)
    static = (static_argnums,) if is_single(static_argnums) else tuple(static_argnums)

    def recomputed(*args, **kwargs):
        fixed = {number % len(args): args[number] for number in static}
        numbers = [index for index in range(len(args)) if index not in fixed]
        dynamic = tuple(args[index] for index in numbers)

        def merged(*dynamic, **kwargs):
            rest = iter(dynamic)
            return fun(
                *[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **kwargs
            )

        leaves, structure = flatten((dynamic, kwargs))
        with applying("checkpoint", fun):
            arrays = to_arrays(leaves, structure, "checkpoint", call_place(structure, numbers))
        flat = Flat("checkpoint", merged, structure)
        outputs = _plait.flat_checkpoint(flat, arrays, policy, name_of(fun))
        return unflatten(flat.outputs, outputs)

    return wraps("checkpoint", fun, recomputed)


class checkpoint_policies:
    """Policies for checkpoint: which results are stored instead of being recomputed."""

    nothing_saveable = _plait.nothing_saveable()
    everything_saveable = _plait.everything_saveable()
    dots_saveable = _plait.dots_saveable()
    checkpoint_dots = dots_saveable
    dots_with_no_batch_dims_saveable = _plait.dots_with_no_batch_dims_saveable()
    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable
    save_only_these_names = staticmethod(_plait.save_only_these_names)
    save_any_names_but_these = staticmethod(_plait.save_any_names_but_these)
    save_anything_except_these_names = staticmethod(_plait.save_anything_except_these_names)
    save_from_both_policies = staticmethod(_plait.save_from_both_policies)
