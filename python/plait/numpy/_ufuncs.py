"""The methods of NumPy's ufuncs on catalogued functions: add.outer, add.reduce, add.accumulate, add.at.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait

# What folds as each function does: (reduction, running reduction, name of the update in x.at[i]).
FOLDS = {
    "add": ("sum", "cumsum", "add"),
    "multiply": ("prod", "cumprod", "multiply"),
    "maximum": ("max", "cummax", "max"),
    "minimum": ("min", "cummin", "min"),
    "logical_and": ("all", None, None),
    "logical_or": ("any", None, None),
    "logaddexp": ("logsumexp", None, None),
    "subtract": (None, None, "subtract"),
    "divide": (None, None, "divide"),
    "true_divide": (None, None, "divide"),
    "power": (None, None, "power"),
    "pow": (None, None, "power"),
}
BINARY = (
    "add subtract multiply divide true_divide floor_divide power pow float_power remainder mod fmod maximum minimum "
    "fmax fmin logaddexp logaddexp2 arctan2 atan2 hypot copysign nextafter heaviside bitwise_and bitwise_or bitwise_xor "
    "left_shift right_shift logical_and logical_or logical_xor equal not_equal less less_equal greater greater_equal"
).split()


def _refuse_out(name, out):
    if out is not None:
        _plait.fail(
            "ValueError",
            f"{name}: argument 'out' is given",
            "arrays are not written to: use the result",
        )


def _outer(name, function):
    def outer(a, b):
        a, b = _plait.to_array(a, name), _plait.to_array(b, name)
        return function(a.reshape(a.shape + (1,) * b.ndim), b)

    outer.__doc__ = (
        f"{name} of every element of a with every element of b, of shape a.shape + b.shape."
    )
    return outer


def _reduce(name, reduction):
    def reduce(a, axis=0, dtype=None, out=None, keepdims=False, **options):
        _refuse_out(f"{name}.reduce", out)
        a = _plait.to_array(a, name)
        a = a if dtype is None else a.astype(dtype)
        return reduction(a, axis=axis, keepdims=keepdims, **options)

    reduce.__doc__ = f"{name} over an axis (0; None: all), as numpy.{reduction.__name__}."
    return reduce


def _accumulate(name, running):
    def accumulate(a, axis=0, dtype=None, out=None):
        _refuse_out(f"{name}.accumulate", out)
        a = _plait.to_array(a, name)
        a = a if dtype is None else a.astype(dtype)
        return running(a, axis=axis)

    accumulate.__doc__ = f"{name} of each element along an axis with all before it."
    return accumulate


def _at(name, update):
    def at(a, indices, b, *, inplace=False):
        if inplace:
            _plait.fail(
                "ValueError",
                f"{name}.at: arrays are not written to",
                "use the result, with inplace=False",
            )
        return getattr(_plait.to_array(a, name).at[indices], update)(b)

    at.__doc__ = f"a with {name} of it and b at these indices: a.at[indices].{update}(b)."
    return at


def add_methods(numpy, lax, nn):
    """Gives the functions of a namespace (a dict) their methods; lax and nn hold what numpy lacks."""
    for name in BINARY:
        function = numpy[name]
        function.outer = _outer(name, function)
        reduction, running, update = FOLDS.get(name, (None, None, None))
        if reduction:
            function.reduce = _reduce(
                name, numpy[reduction] if reduction in numpy else nn[reduction]
            )
        if running:
            function.accumulate = _accumulate(
                name, numpy[running] if running in numpy else lax[running]
            )
        if update:
            function.at = _at(name, update)
