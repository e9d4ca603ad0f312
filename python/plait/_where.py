"""numpy.where with functions: the element-wise form of cond.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._control import _flat, _leaves, _Result
from plait._functions import name_of
from plait._plait import unflatten


def where_functions(condition, f, g, *xs):
    """f(*xs) where condition is true, else g(*xs), element by element: numpy.where with functions.

    condition and the arrays of xs, which may be trees, are broadcast to one shape, and f and g get scalars. They return
    trees of scalars of one structure and dtype; one of them may be an array or a number instead. The function that an
    element does not take contributes exactly zero to derivatives of any order, and never NaN.
    """
    fun = f if callable(f) else g
    (condition,), _, _ = _leaves("where", fun, "the condition", condition)
    arrays, structure, _ = _leaves("where", fun, "the argument", (f if not callable(f) else None,
                                   g if not callable(g) else None, xs))  # fmt: skip
    results = []

    def taking(function, place):
        def call(values):
            return function(*values[2]) if callable(function) else values[place]

        result = _Result("where", _flat(call, structure), f"the result of `{name_of(fun)}`")
        results.append(result)

        def run(leaves):
            arrays = result(leaves)
            first, *others = [each.expected for each in results if each.expected is not None]
            if others and others[0] != first:
                _plait.fail(
                    "TreeError",
                    f"where: the functions return different structures: {first} and {others[0]}",
                    "return a tree of the same structure from both",
                )
            return arrays

        return run

    def place(number):
        return f"the output{results[0].expected.path(number)}"

    outputs = _plait.flat_where(condition, taking(f, 0), taking(g, 1), arrays, name_of(fun), place)
    return unflatten(results[0].expected, outputs)
