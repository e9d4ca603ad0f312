"""Functions with derivative rules of their own, and recomputation: custom_jvp, custom_vjp, checkpoint.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import inspect
import threading

from plait import _plait
from plait._functions import Flat, check_callable, name_of, to_arrays, wraps
from plait._plait import flatten, unflatten


class _Custom:
    """What custom_jvp and custom_vjp share: arguments by position, some of them not differentiated."""

    transform = ""
    # A rule is traced with the function, and mostly calls it again. So deep the rule is there in derivatives
    # of derivatives; below, the function's own equations are differentiated.
    deepest = 3

    def __init__(self, fun, nondiff_argnums=()):
        check_callable(self.transform, fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.inside = threading.local()
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def arguments(self, args, kwargs):
        """Positional arguments, those fixed by nondiff_argnums apart."""
        if kwargs:
            try:
                bound = inspect.signature(self.fun).bind(*args, **kwargs)
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
        fixed = {number % len(args): args[number] for number in self.nondiff_argnums}
        dynamic = tuple(arg for index, arg in enumerate(args) if index not in fixed)
        return args, fixed, dynamic

    def require_rule(self, rule):
        if rule is None:
            _plait.fail(
                "ValueError",
                f"{self.transform}: `{name_of(self.fun)}` has no rule yet",
                f"give it one with {name_of(self.fun)}.def{'jvp' if self.transform == 'custom_jvp' else 'vjp'}",
            )

    def is_plain(self):
        """Whether this call applies the function itself, without its rule."""
        return not _plait.is_tracing() or getattr(self.inside, "depth", 0) >= self.deepest

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
    """A function whose derivative along tangents is given by f.defjvp(rule): rule(primals, tangents) returns
    (outputs, tangents of the outputs)."""

    transform = "custom_jvp"

    def __init__(self, fun, nondiff_argnums=()):
        super().__init__(fun, nondiff_argnums)
        self.rule = None

    def defjvp(self, jvp):
        self.rule = jvp
        return jvp

    def defjvps(self, *jvps):
        """One rule for each argument: jvp(tangent, output, *primals), or None for zero."""

        def rule(primals, tangents):
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
        args, fixed, dynamic = self.arguments(args, kwargs)
        leaves, structure = flatten(dynamic)
        arrays = to_arrays(leaves, structure, "custom_jvp: the argument")
        if self.is_plain():
            return self.fun(*args)
        _, both = flatten((dynamic, {}))
        flat = Flat("custom_jvp", self.merged(fixed, len(args)), both)
        name = name_of(self.fun)

        def rule(leaves):
            half = len(leaves) // 2
            primals, tangents = (
                unflatten(structure, leaves[:half]),
                unflatten(structure, leaves[half:]),
            )
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
                if output.dtype.kind in "iub"
                else _plait.convert(derivative, output.dtype)
                for output, derivative in zip(outputs, derivatives)
            ]
            return outputs + derivatives

        outputs = _plait.flat_custom_jvp(flat, self.nested(rule), arrays, name)
        return unflatten(flat.outputs, outputs)


class custom_vjp(_Custom):
    """A function whose reverse mode is given by f.defvjp(fwd, bwd): fwd returns (output, residuals), and
    bwd(residuals, cotangent) a tuple with a cotangent for each argument."""

    transform = "custom_vjp"

    def __init__(self, fun, nondiff_argnums=()):
        super().__init__(fun, nondiff_argnums)
        self.fwd = self.bwd = None

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args, **kwargs):
        self.require_rule(self.fwd)
        args, fixed, dynamic = self.arguments(args, kwargs)
        leaves, structure = flatten(dynamic)
        arrays = to_arrays(leaves, structure, "custom_vjp: the argument")
        if self.is_plain():
            return self.fun(*args)
        _, both = flatten((dynamic, {}))
        flat = Flat("custom_vjp", self.merged(fixed, len(args)), both)
        name = name_of(self.fun)
        nondiff = [fixed[number % len(args)] for number in self.nondiff_argnums]
        residual_structure = None

        def fwd(leaves):
            nonlocal residual_structure
            rest = iter(unflatten(structure, leaves))
            result = self.fwd(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))])
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                _plait.fail(
                    "TreeError",
                    f"the fwd rule of `{name}` returned {type(result).__name__}",
                    "return a pair: the output, and residuals for bwd",
                )
            outputs, out_structure = flatten(result[0])
            if out_structure != flat.outputs:
                _plait.fail(
                    "TreeError",
                    f"the fwd rule of `{name}` returned an output of structure {out_structure}, and the function "
                    f"returns {flat.outputs}",
                    "return the function's output first",
                )
            residuals, residual_structure = flatten(result[1])
            return outputs + to_arrays(
                residuals, residual_structure, f"the fwd rule of `{name}`: the residual"
            )

        def bwd(leaves):
            count = residual_structure.num_leaves
            residuals = unflatten(residual_structure, leaves[:count])
            cotangents = self.bwd(*nondiff, residuals, unflatten(flat.outputs, leaves[count:]))
            if not isinstance(cotangents, (tuple, list)):
                cotangents = (cotangents,)
            if len(cotangents) != len(dynamic):
                _plait.fail(
                    "TreeError",
                    f"the bwd rule of `{name}` returned {len(cotangents)} cotangents for {len(dynamic)} arguments",
                    "return a tuple with one cotangent for each argument, None where there is none",
                )
            result = []
            for argument, cotangent in zip(dynamic, cotangents):
                values, value_structure = flatten(argument)
                if cotangent is None:
                    result += [_zeros(value) for value in values]
                    continue
                given, given_structure = flatten(cotangent)
                if given_structure != value_structure:
                    given = _plait.broadcast_prefix(
                        cotangent, value_structure, f"the bwd rule of `{name}`"
                    )
                for value, leaf in zip(values, given):
                    zero = leaf is None or _plait.aval_of(value).dtype.kind in "iub"
                    result.append(
                        _zeros(value) if zero else _plait.convert(leaf, _plait.aval_of(value).dtype)
                    )
            return result

        outputs = _plait.flat_custom_vjp(flat, self.nested(fwd), self.nested(bwd), arrays, name)
        return unflatten(flat.outputs, outputs)


def _zeros(value):
    return _plait.zeros_like(_plait.aval_of(value))


def _tree_add(a, b):
    left, structure = flatten(a)
    right, _ = flatten(b)
    return unflatten(structure, [x + y for x, y in zip(left, right)])


def checkpoint(fun=None, *, policy=None, prevent_cse=True, static_argnums=()):
    """fun, whose derivatives are computed from its arguments again instead of from stored results.

    policy says which results are stored all the same: one of plait.checkpoint_policies, or a function of
    the name of a primitive.
    """
    if fun is None:
        return lambda fun: checkpoint(fun, policy=policy, static_argnums=static_argnums)
    check_callable("checkpoint", fun)
    del prevent_cse
    if policy is None:
        policy = _plait.nothing_saveable()
    elif not isinstance(policy, _plait.Policy):
        policy = _plait.make_policy(name_of(policy), policy)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    def recomputed(*args, **kwargs):
        fixed = {number % len(args): args[number] for number in static}
        dynamic = tuple(arg for index, arg in enumerate(args) if index not in fixed)

        def merged(*dynamic, **kwargs):
            rest = iter(dynamic)
            return fun(
                *[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **kwargs
            )

        leaves, structure = flatten((dynamic, kwargs))
        arrays = to_arrays(leaves, structure, "checkpoint: the argument")
        flat = Flat("checkpoint", merged, structure)
        outputs = _plait.flat_checkpoint(flat, arrays, policy, name_of(fun))
        return unflatten(flat.outputs, outputs)

    return wraps("checkpoint", fun, recomputed)


class checkpoint_policies:
    """Policies for checkpoint: what is stored instead of being computed again."""

    nothing_saveable = _plait.nothing_saveable()
    everything_saveable = _plait.everything_saveable()
    dots_saveable = _plait.dots_saveable()
    checkpoint_dots = dots_saveable
    save_only_these_names = staticmethod(_plait.save_only_these_names)
