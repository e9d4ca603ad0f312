"""A loop that plait.script traces: its variables become the carry of lax.while_loop or lax.scan.

The body is traced once, on the initial values of the variables. Python numbers yield to the types that the body gives
them, with one more trace; other changes of type are lax's error, which names the variable.
SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._plait import flatten, unflatten
from plait._script_state import (
    Output,
    Traced,
    Undefined,
    aval_of,
    filler,
    is_same,
    is_undefined,
    packed,
    type_of,
    unpacked,
    where,
)

# A number meets a bool, an integer, a float: types only widen, at most this often.
MOST_TRACES = 4


class _Entry:
    """A variable at the beginning of the loop: a structure with leaves, whose arrays are carried."""

    def __init__(self, value):
        self.leaves, self.structure = flatten(value)
        self.arrays = [
            _plait.to_array(leaf) if _plait.is_array_like(leaf) else None for leaf in self.leaves
        ]

    def carried(self):
        return [array for array in self.arrays if array is not None]

    def value(self, arrays):
        """The variable, with its arrays replaced."""
        arrays = iter(arrays)
        leaves = [
            leaf if array is None else next(arrays) for leaf, array in zip(self.leaves, self.arrays)
        ]
        return unflatten(self.structure, leaves)


class Loop:
    """The body of a loop, and its carry."""

    def __init__(self, what, variables):
        self.what, self.variables = what, variables
        self.entries = {}
        for name in variables.names:
            value = variables.before[name]
            self.entries[name] = None if is_undefined(value) else _Entry(value)

    # --- The body ---

    def trace(self, step, *avals):
        """Traces step(*arrays of these avals), which runs the body once and returns a list of arrays."""
        self.num_inputs = len(avals)

        def run(arrays):
            return list(step(*arrays[: len(avals)])), self.variables.read()

        for _ in range(MOST_TRACES):
            carried = [array for entry in self._known() for array in entry.carried()]
            inputs = [*avals, *map(_plait.aval_of, carried)]
            self.body = Traced(self.variables, self._values, inputs, run)
            self._check()
            if not self._widen():
                return

    def _known(self):
        return [entry for entry in self.entries.values() if entry]

    def _values(self, arrays):
        """The variables at the beginning of an iteration, from the inputs of the traced function."""
        arrays = iter(arrays[self.num_inputs :])
        values = {}
        for name, entry in self.entries.items():
            if entry:
                values[name] = entry.value([next(arrays) for _ in entry.carried()])
            else:
                values[name] = Undefined(
                    name, f"is first assigned in the traced {self.what} at {where()}"
                )
        return values

    def _check(self):
        """The variables at the end of an iteration must have the structure that they had before."""
        for name, entry in self.entries.items():
            after = self.body.values[name]
            if not entry:
                continue
            if after is None:
                self._fail(name, entry, "nothing in some cases")
            same = after.structure == entry.structure
            for leaf, array, end in zip(entry.leaves, entry.arrays, after.leaves if same else ()):
                is_array = isinstance(end, Output) or _plait.is_array_like(end)
                same = same and (is_array if array is not None else is_same(leaf, end))
            if not same:
                self._fail(name, entry, type_of(unflatten(after.structure, after.original)))

    def _fail(self, name, entry, after):
        before = type_of(unflatten(entry.structure, entry.leaves))
        label = self.variables.label(name)
        _plait.fail(
            "TreeError",
            f"{label if label.startswith('the ') else f'`{name}`'} is {before} before the traced {self.what} and "
            f"{after} after an iteration",
            "give it before the loop the structure that it has afterwards, such as zeros of that shape",
        )

    def _widen(self):
        """Converts Python numbers, which yield, to the types that they have after an iteration."""
        from plait import numpy

        changed = False
        for name, entry in self.entries.items():
            ends = self.body.values[name].leaves if entry else ()
            for index, end in enumerate(ends):
                array = entry.arrays[index]
                if array is None:
                    continue
                before, after = _plait.aval_of(array), aval_of(end)
                wider = numpy.result_type(before, after)
                if not before.weak_type or (after.weak_type and wider == before.dtype):
                    continue
                if after.weak_type:
                    entry.arrays[index] = array + (0j if wider.kind == "c" else 0.0)
                else:
                    entry.arrays[index] = _plait.convert(array, wider)
                changed = True
        return changed

    # --- The carry: the arrays of each variable by its name, so that messages of lax name it ---

    def _initial(self):
        carry = {}
        for name, entry in self.entries.items():
            after = self.body.values[name]
            if entry:
                arrays = entry.carried()
            elif after is None:
                continue
            else:
                arrays = [filler(aval_of(leaf)) for leaf in after.leaves if _is_array(leaf)]
            if arrays:
                carry[self.variables.label(name)] = packed(arrays)
        return carry

    def _advance(self, inputs, carry):
        """Runs the traced body: what step returned, and the carry after it."""
        arrays = [*inputs]
        for name, entry in self.entries.items():
            if entry and entry.carried():
                arrays += unpacked(carry[self.variables.label(name)])
        outputs = self.body(arrays)
        following = {}
        for name, entry in self.entries.items():
            label = self.variables.label(name)
            if label in carry:
                ends = [end for end in self.body.values[name].leaves if _is_array(end)]
                following[label] = packed([_array_of(end, outputs) for end in ends])
        return outputs[: self.body.num_outputs], following

    def _finish(self, carry, ran):
        """Assigns the variables; ran says that there was definitely an iteration."""
        values = {}
        for name, entry in self.entries.items():
            arrays = unpacked(carry.get(self.variables.label(name), []))
            after = self.body.values[name]
            if entry:
                values[name] = entry.value(arrays)
            elif after is not None and (ran or name in self.variables.filled):
                found = iter(arrays)
                leaves = [next(found) if _is_array(leaf) else leaf for leaf in after.leaves]
                values[name] = unflatten(after.structure, leaves)
            else:
                why = (
                    "which may end without an iteration"
                    if after
                    else "where not every case assigns it"
                )
                values[name] = Undefined(
                    name, f"is first assigned in the traced {self.what} at {where()}, {why}"
                )
        self.variables.write(values)

    # --- Running ---

    def run_while(self, going):
        """step returns whether to continue; going is that for the first iteration."""
        from plait import lax

        def body(state):
            (going,), carry = self._advance((), state[1])
            return going, carry

        _, carry = lax.while_loop(lambda state: state[0], body, (going, self._initial()))
        self._finish(carry, False)

    def run_indexed(self, items, *stopped):
        """A loop with an iteration counter; stopped, if given, is the result of the step: whether to stop."""
        from plait import lax, numpy

        def condition(state):
            index, _, *stopped = state
            going = index < items.length
            return numpy.logical_and(going, numpy.logical_not(stopped[0])) if stopped else going

        def body(state):
            index, carry, *_ = state
            rows = [lax.dynamic_index_in_dim(array, index, 0, False) for array in items.arrays()]
            stopped, carry = self._advance((index, *rows), carry)
            return index + 1, carry, *stopped

        state = (_plait.to_array(0), self._initial(), *stopped)
        carry = lax.while_loop(condition, body, state)[1]
        known = all(_plait.is_known(flag) and not flag for flag in stopped)
        self._finish(carry, known and isinstance(items.length, int))

    def run_scan(self, items):
        """A loop over all items."""
        from plait import lax

        def body(state, rows):
            index, carry = state
            _, carry = self._advance((index, *rows), carry)
            return (index + 1, carry), None

        state, arrays = (_plait.to_array(0), self._initial()), items.arrays()
        length = None if arrays else items.length
        (_, carry), _ = lax.scan(body, state, arrays, length)
        self._finish(carry, isinstance(items.length, int))


def _is_array(leaf):
    return isinstance(leaf, Output) or _plait.is_array_like(leaf)


def _array_of(end, outputs):
    return outputs[end.index] if isinstance(end, Output) else _plait.to_array(end)
