"""Structured control flow over trees, under JAX's names: cond, switch, while_loop, fori_loop, scan, map.

Functions may close over arrays; every transform goes into them.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import operator

import numpy as np

from plait import _plait
from plait._functions import (
    applying,
    check_callable,
    name_of,
    text_of,
    to_arrays,
)
from plait._plait import flatten, unflatten


def _leaves(transform, fun, what, tree):
    """The leaves of a tree as arrays, its structure, and their names in messages."""
    leaves, structure = flatten(tree)

    def place(index):
        return what + structure.path(index)

    with applying(transform, fun):
        return to_arrays(leaves, structure, transform, place), structure, place


def _flat(fun, *structures):
    """fun of trees of these structures as a function of all their leaves, concatenated."""
    counts = [structure.num_leaves for structure in structures]

    def call(leaves):
        args, begin = [], 0
        for structure, count in zip(structures, counts):
            args.append(unflatten(structure, leaves[begin : begin + count]))
            begin += count
        return fun(*args)

    return call


class _Result:
    """Calls fun and flattens its result; keeps the structure, which must always be the same."""

    def __init__(self, transform, call, what, expected=None):
        self.transform, self.call, self.what, self.expected = transform, call, what, expected

    def __call__(self, leaves):
        flat, structure = flatten(self.call(leaves))
        if self.expected is not None and structure != self.expected:
            _plait.fail(
                "TreeError",
                f"{self.transform}: {self.what} has the structure {structure}, where {self.expected} is needed",
                "return a tree of the same structure",
            )
        self.expected = structure
        return to_arrays(flat, structure, f"{self.transform}: {self.what}")


_not_equal = _plait.catalogue("numpy")["not_equal"]
_no_operand = object()


def _operands(transform, operands, operand):
    """The operands, or the one passed by keyword, as in JAX."""
    if operand is _no_operand:
        return operands
    if operands:
        _plait.fail(
            "ValueError",
            f"{transform}: there are operands by position and `operand`",
            "give all of them by position",
        )
    return (operand,)


def _select(transform, mode):
    """Whether all examples take part where they diverge; None: whichever is cheaper."""
    modes = {None: None, "partition": False, "select": True}
    if not (mode is None or isinstance(mode, str)) or mode not in modes:
        _plait.fail(
            "ValueError",
            f"{transform}: mode is {mode!r}",
            "give 'partition', 'select', or None",
        )
    return modes[mode]


def cond(pred, true_fun, false_fun, *operands, operand=_no_operand, mode=None):
    """true_fun(*operands) where pred, a bool scalar, is true; else false_fun(*operands).

    A number is true where it is not zero. operand= passes a single operand by keyword. Both functions are traced, and
    one runs. They return trees of the same structure, shapes and dtypes. The branch not taken contributes exactly zero
    to gradients. Under vmap, with a pred for each example, each takes its own branch: mode="partition" runs each branch
    on the examples that take it, mode="select" runs both on all of them, and None chooses the cheaper by estimate.
    debug.lane_work reports the cost.

    ShapeError when pred is not a scalar; ValueError for another mode; TreeError, ShapeError or DtypeError, which name
    the leaf, when results differ.
    """
    for fun in (true_fun, false_fun):
        check_callable("cond", fun)
    if not isinstance(pred, bool):
        leaves, _, _ = _leaves("cond", true_fun, "the predicate", pred)
        if len(leaves) == 1 and leaves[0].ndim == 0 and leaves[0].dtype != bool:
            pred = _not_equal(leaves[0], 0)
    return _branches(
        "cond", pred, (false_fun, true_fun), _operands("cond", operands, operand), mode
    )


def switch(index, branches, *operands, operand=_no_operand, mode=None):
    """branches[index](*operands); an index out of range is clamped. Otherwise like cond."""
    if not isinstance(branches, (tuple, list)):
        _plait.fail(
            "TreeError",
            f"switch: the branches are {text_of(branches)} of type {type(branches).__name__}",
            "give a list or tuple of functions",
        )
    for fun in branches:
        check_callable("switch", fun)
    if not branches:
        _plait.fail("ValueError", "switch: there are no branches", "give at least one function")
    return _branches("switch", index, branches, _operands("switch", operands, operand), mode)


def _branches(transform, index, branches, operands, mode):
    if _plait.is_jit_disabled():
        with contextlib.suppress(_plait.TracerError):
            return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    fun = branches[-1]
    select = _select(transform, mode)
    arrays, structure, _ = _leaves(transform, fun, "the operand", operands)
    first = None
    functions = []
    results = []

    for number, branch in enumerate(branches):
        result = _Result(
            transform,
            _flat(lambda args, branch=branch: branch(*args), structure),
            f"the result of `{name_of(branch)}`",
        )
        results.append(result)

        def run(leaves, result=result):
            nonlocal first
            arrays = result(leaves)
            if first is None:
                first = result.expected
            elif result.expected != first:
                _plait.fail(
                    "TreeError",
                    f"{transform}: the branches return different structures: {first} and {result.expected}",
                    "return a tree of the same structure from every branch",
                )
            return arrays

        functions.append(run)

    def place(number):
        return f"the output{first.path(number)}"

    outputs = _plait.flat_cond(index, functions, arrays, transform, name_of(fun), place, select)
    return unflatten(first, outputs)


def while_loop(cond_fun, body_fun, init_val, *, max_steps=None, checkpoints=None, mode=None):
    """Applies body_fun to a carry, starting with init_val, while cond_fun of it, a bool scalar, is true.

    The carry is a tree whose structure, shapes and dtypes stay the same; a weak dtype yields to a strong one. With
    max_steps, a loop that has not ended after that many steps is a ValueError. Under vmap, examples that have ended
    keep their carry and leave, so that only the others cost work; with mode="select" all take part until the last one
    ends.

    For reverse mode, each step keeps its residuals, however many steps there are. With checkpoints=k the loop keeps at
    most max(2, k) carries: those that begin segments, whose length doubles whenever the store is full. The backward
    pass recomputes one segment at a time and keeps its residuals: of n steps, for k > 1, a segment has at most n/(k //
    2) + 1. So each step is computed once more; forward mode recomputes nothing (online checkpointing: Stumm and Walther
    2010, New algorithms for optimal online checkpointing; here with segments of equal length).

    TreeError, ShapeError or DtypeError, which name the leaf, for a carry that changes; ValueError for checkpoints below
    1, or another mode.
    """
    check_callable("while_loop", cond_fun)
    check_callable("while_loop", body_fun)
    select = _select("while_loop", mode)
    arrays, structure, place = _leaves("while_loop", body_fun, "the carry", init_val)
    body = _Result(
        "while_loop",
        _flat(body_fun, structure),
        f"the carry that `{name_of(body_fun)}` returns",
        structure,
    )
    condition = _Result(
        "while_loop",
        _flat(cond_fun, structure),
        f"the result of `{name_of(cond_fun)}`",
        flatten(True)[1],
    )
    if _plait.is_jit_disabled():
        arrays, is_done, max_steps = _while_by_steps(condition, body, arrays, max_steps)
        if is_done:
            return unflatten(structure, arrays)
    outputs = _plait.flat_while(
        condition,
        body,
        arrays,
        max_steps,
        checkpoints,
        "while_loop",
        name_of(body_fun),
        place,
        select,
    )
    return unflatten(structure, outputs)


# Under disable_jit, loops whose conditions and bounds are known run as Python loops. Others stay loops, such as those
# of a vmap whose examples differ.


def _while_by_steps(condition, body, arrays, max_steps):
    """The carry, whether it is the last one, and how many steps may remain."""
    with contextlib.suppress(_plait.TracerError):
        while bool(condition(arrays)[0]):
            if max_steps == 0:
                return arrays, False, 0
            arrays = body(arrays)
            max_steps = None if max_steps is None else max_steps - 1
        return arrays, True, max_steps
    return arrays, False, max_steps


def _scan_by_steps(body, carry, arrays, length, reverse):
    """The last carry and the stacked ys; None where there is no step to give their types, or values are not known."""
    lengths = [array.shape[0] for array in arrays] or [length]
    if not isinstance(lengths[0], int) or lengths[0] < 1 or set(lengths) != {lengths[0]}:
        return None
    count, found = len(carry), []
    with contextlib.suppress(_plait.TracerError):
        for step in range(lengths[0])[:: -1 if reverse else 1]:
            results = body([*carry, *(array[step] for array in arrays)])
            carry = results[:count]
            found.append(results[count:])
        stack = _plait.catalogue("numpy")["stack"]
        return carry, [stack(each) for each in zip(*found[:: -1 if reverse else 1])]
    return None


def _num_unrolled(transform, unroll):
    """unroll as a number of steps; 0 for all of them."""
    if isinstance(unroll, bool):
        return 0 if unroll else 1
    if not hasattr(type(unroll), "__index__") or operator.index(unroll) < 0:
        _plait.fail(
            "ValueError",
            f"{transform}: unroll is {text_of(unroll)}",
            "give a number of steps, or a bool",
        )
    return min(operator.index(unroll), 2**62)


def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """The carry after body_fun(i, carry) for i from lower to upper - 1; it starts as init_val.

    Where both bounds are known while tracing, this is a scan, else a while_loop. i is int32, or of the bounds' dtype.
    unroll is as in scan; ValueError where the bounds are not known.
    """
    check_callable("fori_loop", body_fun)
    arrays, structure, place = _leaves("fori_loop", body_fun, "the carry", init_val)
    body = _Result(
        "fori_loop",
        lambda leaves: body_fun(leaves[0], unflatten(structure, leaves[1:])),
        f"the carry that `{name_of(body_fun)}` returns",
        structure,
    )
    steps = _num_unrolled("fori_loop", 1 if unroll is None else unroll)
    if _plait.is_jit_disabled():
        with contextlib.suppress(_plait.TracerError):
            carry = arrays
            for i in range(int(lower), int(upper)):
                carry = body([_plait.to_array(np.int32(i)), *carry])
            return unflatten(structure, carry)
    outputs = _plait.flat_fori_loop(lower, upper, body, arrays, steps, name_of(body_fun), place)
    return unflatten(structure, outputs)


def scan(f, init, xs=None, length=None, reverse=False, unroll=1, *, checkpoints=None):
    """carry, y = f(carry, x) for each slice x of xs along the first axis: the last carry, and the stacked ys.

    init and xs are trees; with xs=None, x is None and length is the number of steps. reverse=True begins with the last
    slice. unroll puts that many steps of f into one step of the loop, with the remainder after it; True or 0 unrolls
    all. The results are the same; a length that is a named size is not unrolled.

    For reverse mode, each step keeps its residuals. With checkpoints=k the loop is cut into k segments of equal length
    and keeps only their first carries; the backward pass recomputes one segment at a time and keeps its residuals. So
    each step is computed once more, and for n steps k = sqrt(n) needs the least memory, about that of 2 sqrt(n) steps
    (Chen et al. 2016, Training deep nets with sublinear memory cost). To keep every carry and nothing else, put f under
    plait.checkpoint.

    ShapeError when the arrays of xs differ in their first axis, or for checkpoints with a length that is a named size;
    TreeError, ShapeError or DtypeError, which name the leaf, for a carry that changes; ValueError for checkpoints below
    1.
    """
    check_callable("scan", f)
    num_unrolled = _num_unrolled("scan", unroll)
    carry, carry_structure, carry_place = _leaves("scan", f, "the carry", init)
    arrays, xs_structure, xs_place = _leaves("scan", f, "xs", xs)
    call = _flat(f, carry_structure, xs_structure)
    ys_structure = None

    def body(leaves):
        nonlocal ys_structure
        result = call(leaves)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            _plait.fail(
                "TreeError",
                f"scan: `{name_of(f)}` returned {text_of(result)} of type {type(result).__name__}",
                "return a pair, (carry, y)",
            )
        next_carry, structure = flatten(result[0])
        if structure != carry_structure:
            _plait.fail(
                "TreeError",
                f"scan: the carry that `{name_of(f)}` returns has the structure {structure}, "
                f"where {carry_structure} is needed",
                "return a tree of the same structure",
            )
        ys, ys_structure = flatten(result[1])
        return to_arrays(next_carry, structure, "scan: the carry") + to_arrays(
            ys, ys_structure, "scan: y"
        )

    def place(index):
        return carry_place(index) if index < len(carry) else xs_place(index - len(carry))

    if _plait.is_jit_disabled():
        found = _scan_by_steps(body, carry, arrays, length, reverse)
        if found is not None:
            return unflatten(carry_structure, found[0]), unflatten(ys_structure, found[1])
    last, ys = _plait.flat_scan(
        body,
        carry,
        arrays,
        length,
        bool(reverse),
        num_unrolled,
        checkpoints,
        "scan",
        name_of(f),
        place,
    )
    return unflatten(carry_structure, last), unflatten(ys_structure, ys)


def map(f, xs, *, batch_size=None):
    """f of each slice of xs along the first axis, stacked: one after the other, with the memory of one.

    With batch_size, that many slices are computed at a time, by vmap.
    """
    check_callable("map", f)
    if _plait.is_jit_disabled():
        return scan(lambda carry, x: (carry, f(x)), (), xs)[1]
    arrays, structure, place = _leaves("map", f, "xs", xs)
    call = _Result("map", _flat(f, structure), f"the result of `{name_of(f)}`")
    outputs = _plait.flat_map(call, arrays, batch_size, name_of(f), place)
    return unflatten(call.expected, outputs)


def associative_scan(fn, elems, reverse=False, axis=0):
    """Prefix results of an associative function fn(a, b) of trees along an axis, in logarithmic depth.

    fn works on whole arrays, element by element along the axis (Blelloch 1990, Prefix sums and their applications).
    ShapeError when the arrays of elems differ in the size of the axis.
    """
    check_callable("associative_scan", fn)
    arrays, structure, place = _leaves("associative_scan", fn, "elems", elems)
    call = _Result(
        "associative_scan",
        _flat(fn, structure, structure),
        f"the result of `{name_of(fn)}`",
        structure,
    )
    outputs = _plait.flat_associative_scan(call, arrays, bool(reverse), axis, name_of(fn), place)
    return unflatten(structure, outputs)
