"""Implicit differentiation: custom_linear_solve and custom_root.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._functions import check_callable, name_of, to_arrays
from plait._plait import flatten, unflatten


class Unknowns:
    """The tree of unknowns of a system, and its functions as functions of leaves."""

    def __init__(self, transform, argument, tree):
        self.transform = transform
        leaves, self.structure = flatten(tree)
        self.arrays = to_arrays(leaves, self.structure, f"{transform}: {argument}")

    def leaves_of(self, tree, what):
        leaves, structure = flatten(tree)
        if structure != self.structure:
            _plait.fail(
                "TreeError",
                f"{self.transform}: {what} gives a tree of structure {structure}, and the unknowns have {self.structure}",
                "return a tree like the unknowns",
            )
        return to_arrays(leaves, structure, f"{self.transform}: what {what} gives")

    def tree(self, leaves):
        return unflatten(self.structure, leaves)

    def flat(self, fun, what):
        return lambda leaves: self.leaves_of(fun(self.tree(leaves)), what)

    def solver(self, solve, what):
        def flat(f, leaves):
            def fun(tree):
                return self.tree(f(self.leaves_of(tree, f"the argument of {what}'s function")))

            return self.leaves_of(solve(fun, self.tree(leaves)), what)

        return flat


def _refuse_aux(transform, has_aux):
    if has_aux:
        _plait.fail(
            "MissingRuleError",
            f"{transform}: has_aux=True is not supported",
            "return the solution alone",
        )


def custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False):
    """The x with matvec(x) = b, for a linear matvec, found by solve(matvec, b).

    b and x are trees of arrays of the same shapes. Derivatives follow from the equation: they solve the same system for
    other right-hand sides, and neither store nor differentiate the steps of the solver. Arrays that solve uses beyond
    matvec and b have no tangent. Under a transform the functions are traced, and values are not known in them. Reverse
    mode needs transpose_solve(vecmat, b), where vecmat is the transpose of matvec, or symmetric=True; MissingRuleError
    otherwise.
    """
    transform = "custom_linear_solve"
    _refuse_aux(transform, has_aux)
    for fun in (matvec, solve) if transpose_solve is None else (matvec, solve, transpose_solve):
        check_callable(transform, fun)
    unknowns = Unknowns(transform, "b", b)
    outputs = _plait.flat_custom_linear_solve(
        unknowns.flat(matvec, "matvec"),
        unknowns.arrays,
        unknowns.solver(solve, "solve"),
        None if transpose_solve is None else unknowns.solver(transpose_solve, "transpose_solve"),
        symmetric,
        name_of(matvec),
    )
    return unknowns.tree(outputs)


def custom_root(f, initial_guess, solve, tangent_solve, has_aux=False):
    """The x with f(x) = 0, found by solve(f, initial_guess), and differentiated by the equation.

    x is a tree like initial_guess, and f returns one like it. Derivatives are with respect to the arrays that f uses
    beyond x: with g the linearization of f at x, tangent_solve(g, y) gives the t with g(t) = y. For reverse mode it
    must be linear in y, as y / g(1.0) or custom_linear_solve(g, y, ...) is. The guess has no derivative. Outside jit,
    solve may branch on values.
    """
    transform = "custom_root"
    _refuse_aux(transform, has_aux)
    for fun in (f, solve, tangent_solve):
        check_callable(transform, fun)
    unknowns = Unknowns(transform, "initial_guess", initial_guess)
    outputs = _plait.flat_custom_root(
        unknowns.flat(f, f"`{name_of(f)}`"),
        unknowns.arrays,
        unknowns.solver(solve, "solve"),
        unknowns.solver(tangent_solve, "tangent_solve"),
        name_of(f),
    )
    return unknowns.tree(outputs)
