"""plait.rules(): which primitive has which rule, and where it is written.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait

# What transforms ask of primitives. A primitive that is not linear needs no transpose rule, and one that is not
# made of others has no decomposition.
KINDS = ("abstract", "eval", "jvp", "transpose", "batch", "mask", "decompose")
OPTIONAL = ("transpose", "decompose")
KIND_OF = {
    "jvp": "jvp",
    "linearize": "jvp",
    "grad": "transpose",
    "value_and_grad": "transpose",
    "vjp": "transpose",
    "linear_transpose": "transpose",
    "vmap": "batch",
    "mask": "mask",
}


class RuleTable(list):
    """Rows (name, state, file, line); its text is a table."""

    def __repr__(self):
        width = max((len(row[0]) for row in self), default=0)
        return "\n".join(
            f"{row[0]:<{width}}  {row[1]}{f'  {row[2]}:{row[3]}' if row[2] else ''}" for row in self
        )


class RuleMatrix(dict):
    """{primitive: {kind: (state, file, line)}}; its text is a table of where each rule is written."""

    def __repr__(self):
        rows, notes = [["primitive", *KINDS]], []
        for name, cells in self.items():
            rows.append([name])
            for kind in KINDS:
                state, file, line = cells[kind]
                rows[-1].append(_cell(kind, state, file, line))
                if state.startswith("refused"):
                    notes.append(f"{name}, {kind}: {state}")
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths)).rstrip() for row in rows]
        return "\n".join(lines + notes)


def _cell(kind, state, file, line):
    if state == "missing":
        return "-" if kind in OPTIONAL else state
    if state == "rule":
        return f"{file.rpartition('/')[2]}:{line}"
    return state.partition(":")[0]


def rules(of=None):
    """Who has which rule, with file and line: a rule, `family`, `decompose`, `refused: reason` or `missing`.

    rules() is the matrix of primitives and kinds of rules; rules("mask"), rules(plait.vmap) or
    rules(transform) list what each primitive says to one kind; rules(plait.lax.sin) or rules("sin") what one
    primitive says to each.

    ValueError when there is no such kind or primitive.
    """
    # Here, because _extend and this file name each other's things.
    from plait._extend import Transform, primitive_name

    if of is None:
        return _matrix()
    if isinstance(of, Transform):
        return RuleTable(of.coverage())
    if not isinstance(of, str) and getattr(of, "__module__", "").startswith("plait"):
        of = KIND_OF.get(getattr(of, "__name__", None), of)
    if isinstance(of, str) and of in _plait.rule_kinds():
        return RuleTable(_plait.coverage(of))
    name = primitive_name(of)
    if not _plait.has_primitive(name):
        kinds = ", ".join(sorted(_plait.rule_kinds()))
        _plait.fail(
            "ValueError",
            f"rules: there is no kind of rule and no primitive named {name!r:.60}",
            f"choose one of {kinds}, or a function of plait.lax",
        )
    return RuleTable((kind, *cell) for kind, cell in _matrix()[name].items())


def _matrix():
    matrix = RuleMatrix()
    for kind in KINDS:
        for name, *cell in _plait.coverage(kind):
            matrix.setdefault(name, {})[kind] = tuple(cell)
    return matrix
