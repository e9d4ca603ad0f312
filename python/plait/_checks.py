"""Checks of values while a program runs, and of functions: check, first_nan, grad_check.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from plait import _plait
from plait._functions import argument_place, call_place, check_callable, composition_of, name_of
from plait._plait import flatten, unflatten

__all__ = ["check", "first_nan", "grad_check"]


def check(pred, message, *values):
    """Raises ValueError with message, when the program runs, unless pred, a bool array, is true everywhere.

    Each "{}" in message stands for one of values; the remaining values follow the message. Values of the shape of pred
    are shown at the first element that fails. It works under every transform, in program order: under vmap the error
    names the example, under mask padding is not checked, and it has no derivative. DtypeError when pred is not bool.
    """
    if not isinstance(message, str):
        _plait.fail(
            "DtypeError",
            f"check: the message is {message!r:.60}",
            'call it as check(x > 0, "x is {}", x)',
        )
    _plait.check(pred, message, values)


class FirstNan:
    """Where a function first makes a NaN: the result of first_nan.

    equation is its text, source the user's line, and element the indices of the first NaN in the equation's result.
    transforms is the path of enclosing equations, outermost first: the transforms of f, calls, "scan, step 3", "cond,
    branch 1", "vmap, example 2", "mask, n = 2". Where vmap has merged the examples, element includes the index of the
    example.
    """

    def __init__(self, text, equation, source, transforms, element):
        self.text, self.equation, self.source = text, equation, source
        self.transforms, self.element = transforms, element

    def __repr__(self):
        return self.text


def first_nan(f, *args, **kwargs):
    """The first equation that makes a NaN when f(*args, **kwargs) runs, as a FirstNan, or None.

    f is traced, with its transforms, and its program runs one equation at a time, on the kernels to which jit compiles
    it. A loop, a branch or a call that makes one is searched: it runs again, and so do its prints. An equation that
    only propagates a NaN of its operands does not count; if an argument holds one, the result names the argument.
    """
    check_callable("first_nan", f)
    from plait._transforms import make_jaxpr

    leaves, structure = flatten((args, kwargs))
    path = composition_of(f)
    for index, leaf in enumerate(leaves):
        value = np.asarray(leaf)
        if value.dtype.kind in "fc" and np.isnan(value).any():
            element = tuple(int(i) for i in np.argwhere(np.isnan(value))[0])
            text = f"NaN first at element {element} of {call_place(structure)(index)}"
            return FirstNan(text, "", "", [path], element)
    traced = make_jaxpr(f)(*args, **kwargs)
    arrays = [_plait.to_array(leaf, "first_nan") for leaf in leaves] + list(traced.consts)
    found = _plait.first_nan(traced.jaxpr, arrays)
    if found is None:
        return None
    text, equation, source, calls, element = found
    return FirstNan(f"{text}\n  while applying {path}", equation, source, [path, *calls], element)


def grad_check(f, args, modes=("fwd", "rev"), order=1, *, rtol=1e-5, atol=1e-6, most=64):
    """Compares derivatives of f(*args) with respect to its floating arguments with finite differences in float64.

    args is a tuple of trees, whose floating leaves are taken as float64; f returns a tree of arrays. modes selects
    forward mode (jvp) and reverse mode (vjp). order is the highest derivative: each further one compares those of the
    gradient along fixed random weights. Differences are central and of fourth order in the step. In arguments with more
    than `most` elements, that many elements are tried. ValueError names the argument's path and the worst element.
    """
    check_callable("grad_check", f)
    if not isinstance(args, (tuple, list)):
        args = (args,)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or not set(modes) <= {"fwd", "rev"}:
        _plait.fail("ValueError", f"grad_check: modes are {modes!r}", 'choose from "fwd" and "rev"')
    if not isinstance(order, int) or order < 1:
        _plait.fail(
            "ValueError", f"grad_check: order is {order!r}", "give an integer of at least 1"
        )
    leaves, structure = flatten(tuple(args))
    wrt, values = [], []
    for index, leaf in enumerate(leaves):
        if _plait.is_array_like(leaf) and _plait.is_differentiable(_plait.to_array(leaf)):
            value = np.asarray(leaf)
            wrt.append(index)
            values.append(value.astype(np.complex128 if value.dtype.kind == "c" else np.float64))
    if any(value.dtype.kind == "c" for value in values):
        _plait.fail(
            "DtypeError", "grad_check: an argument is complex", "check its real and imaginary parts"
        )
    if not wrt:
        _plait.fail(
            "ValueError",
            f"grad_check: `{name_of(f)}` is given no floating array",
            "give it one to differentiate by",
        )

    def flat(*values):
        given = list(leaves)
        for index, value in zip(wrt, values):
            given[index] = value
        outputs, _ = flatten(f(*unflatten(structure, given)))
        outputs = [_plait.to_array(output, "grad_check") for output in outputs]
        return [output for output in outputs if _plait.is_differentiable(output)]

    place = argument_place(structure)
    places = [place(index) for index in wrt]
    name = name_of(f)
    for number in range(1, order + 1):
        what = name if number == 1 else f"derivative {number - 1} of {name}"
        _compare(flat, values, places, modes, what, rtol, atol, most)
        flat = _weighted_gradient(flat, values)


def _weights(outputs):
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 1.5, output.shape) for output in outputs]


def _weighted_gradient(flat, values):
    """The gradient of the sum of f's outputs with fixed weights, as a function of the same arguments."""
    from plait._derivatives import vjp

    weights = _weights(flat(*values))

    def gradient(*values):
        outputs, pull = vjp(flat, *values)
        return list(pull([_cast(weight, output) for weight, output in zip(weights, outputs)]))

    return gradient


def _cast(weight, output):
    return _plait.convert(_plait.to_array(weight), output.dtype)


def _compare(flat, values, places, modes, what, rtol, atol, most):
    from plait._derivatives import jvp, vjp

    outputs = flat(*values)
    if not outputs:
        _plait.fail(
            "ValueError",
            f"grad_check: `{what}` returns no floating array",
            "return what it computes",
        )
    weights = _weights(outputs)
    gradients = None
    if "rev" in modes:
        _, pull = vjp(flat, *values)
        cotangents = [_cast(weight, output) for weight, output in zip(weights, outputs)]
        gradients = [np.asarray(gradient, np.float64) for gradient in pull(cotangents)]
    worst = {}
    for number, value in enumerate(values):
        count = min(value.size, most)
        for flat_index in np.linspace(0, value.size - 1, count).astype(int) if count else ():
            element = tuple(int(i) for i in np.unravel_index(flat_index, value.shape))
            expected = _difference(flat, values, number, element)
            if "fwd" in modes:
                directions = [np.zeros_like(each) for each in values]
                directions[number][element] = 1
                _, pushed = jvp(flat, tuple(values), tuple(directions))
                found = [np.asarray(tangent, np.float64) for tangent in pushed]
                for given, wanted in zip(found, expected):
                    _note(worst, "fwd", number, element, given, wanted, rtol, atol)
            if "rev" in modes:
                wanted = sum(np.sum(weight * each) for weight, each in zip(weights, expected))
                given = gradients[number][element]
                _note(worst, "rev", number, element, given, wanted, rtol, atol)
    for mode, (_, number, element, given, wanted) in worst.items():
        kind = "forward" if mode == "fwd" else "reverse"
        at = f" at element {element if len(element) > 1 else element[0]}" if element else ""
        _plait.fail(
            "ValueError",
            f"grad_check: by {kind} mode the derivative of `{what}` by {places[number]}{at} is {given:.9g}, and "
            f"differences give {wanted:.9g}",
            "correct the rule of what it calls, or check where the function is smooth and float64 throughout",
        )


def _difference(flat, values, number, element):
    """The derivative of the outputs with respect to one element: (8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h."""
    step = 1e-3 * max(1.0, abs(float(values[number][element])))

    def at(offset):
        moved = list(values)
        moved[number] = values[number].copy()
        moved[number][element] += offset
        return [np.asarray(output, np.float64) for output in flat(*moved)]

    near, far = (
        [high - low for high, low in zip(at(distance), at(-distance))]
        for distance in (step, 2 * step)
    )
    return [(8 * a - b) / (12 * step) for a, b in zip(near, far)]


def _note(worst, mode, number, element, given, wanted, rtol, atol):
    """Records the largest excess over the tolerance."""
    error = np.abs(given - wanted) - (atol + rtol * np.abs(wanted))
    error = np.where(np.isnan(error), np.inf, error)
    if error.size == 0:
        return
    place = np.unravel_index(np.argmax(error), error.shape)
    if error[place] > 0 and (mode not in worst or error[place] > worst[mode][0]):
        worst[mode] = (
            error[place],
            number,
            element,
            float(np.asarray(given)[place]),
            float(np.asarray(wanted)[place]),
        )
