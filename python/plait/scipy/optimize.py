"""Minimisation by quasi-Newton methods, under SciPy's names.

The loops are C++, and lax.while_loop's: minimize runs under jit and vmap, and is differentiated.

SPDX-License-Identifier: Apache-2.0
"""

from collections.abc import Mapping as _Mapping
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple

from plait import _names, _plait
from plait._functions import check_callable as _check_callable
from plait._functions import integers as _integers
from plait._functions import name_of as _name_of
from plait._functions import refuse as _refuse
from plait._functions import text_of as _text_of
from plait._plait import Array as _Array

__all__ = ["OptimizeResults", "minimize"]


class OptimizeResults(_NamedTuple):
    """What minimize found: the place, whether and how it ended, and the function, its gradient and the inverse of its second derivatives there."""

    x: _Array
    success: _Array
    status: _Array
    fun: _Array
    jac: _Array
    hess_inv: _Any
    nfev: _Array
    njev: _Array
    nit: _Array


_OPTIONS = {
    "BFGS": ("gtol", "norm", "maxiter", "line_search_maxiter"),
    "L-BFGS": ("gtol", "norm", "maxiter", "maxls", "maxcor"),
}
_METHODS = {
    "bfgs": "BFGS",
    "l-bfgs": "L-BFGS",
    "l-bfgs-experimental-do-not-rely-on-this": "L-BFGS",
}


def minimize(fun, x0, args=(), *, method="BFGS", tol=None, options=None):
    """The x, a vector, where fun(x, *args), a real number, is least near x0: OptimizeResults.

    method: 'BFGS', or 'L-BFGS', which needs less memory (and is JAX's 'l-bfgs-experimental-do-not-rely-on-this'); both
    search along lines until the strong Wolfe conditions hold. It ends where the norm of the gradient is below tol. options
    is a dict: gtol, what tol is where it is not given, 1e-5; norm, the order of the norm, inf; maxiter, by default 200 for
    each unknown; line_search_maxiter, 20, or maxls for L-BFGS; maxcor, 10, the pairs that L-BFGS remembers. status is 0
    for success, 1 after maxiter steps, 3 where no lower value lies along the gradient. hess_inv is None for L-BFGS.

    Under vmap each example takes its own steps. Derivatives, in both modes, are with respect to args and arrays that fun
    uses: those of the minimum, as the root of the gradient. They keep no steps; x0 and hess_inv have none.

    ShapeError for an x0 that is not a vector, or a fun whose result is not a number; ValueError for another method or option.
    """
    _check_callable("minimize", fun)
    if not isinstance(args, tuple):
        _refuse("minimize", "args", args, "give a tuple of arguments, as in args=(data,)")
    name = _METHODS.get(method.lower()) if isinstance(method, str) else None
    if name is None:
        _plait.fail(
            "ValueError",
            f"minimize: method is {_text_of(method)}",
            "choose 'BFGS' or 'L-BFGS'",
        )
    if not isinstance(options, _Mapping) and options is not None:
        _refuse("minimize", "options", options, "give a dict, as in options={'maxiter': 100}")
    given = {key: value for key, value in (options or {}).items() if value is not None}
    for option, value in given.items():
        if option not in _OPTIONS[name]:
            _plait.fail(
                "ValueError",
                f"minimize: {name} has no option {_text_of(option)}",
                f"give some of {', '.join(_OPTIONS[name])}",
            )
        if option == "norm" and not isinstance(value, (int, float)):
            _refuse("minimize", option, value, "give a number, as in norm=2")
        if option not in ("gtol", "norm"):
            (given[option],) = _integers("minimize", option, value)
    if "maxls" in given:
        given["line_search_maxiter"] = given.pop("maxls")
    found = _plait.flat_minimize(
        lambda leaves: [fun(leaves[0], *args)], x0, name, tol, given, _name_of(fun)
    )
    return OptimizeResults(*found)


__getattr__ = _names.missing(__name__, globals())
