"""plait.rules(): the rules of each primitive, and where they are defined.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _display, _plait

# The rule kinds of the matrix. A primitive that is not linear needs no transpose rule, and a basic one has no
# decomposition.
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

    _repr_html_ = _display.rules_html

    def __repr__(self):
        width = max((len(row[0]) for row in self), default=0)
        return "\n".join(
            f"{row[0]:<{width}}  {row[1]}{f'  {row[2]}:{row[3]}' if row[2] else ''}" for row in self
        )


class RuleMatrix(dict):
    """{primitive: {kind: (state, file, line)}}; its text is a table of where each rule is defined."""

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
    """The rules of primitives, with file and line: a rule, `family`, `decompose`, `refused: reason` or `missing`.

    rules() is the matrix of primitives and kinds of rules; rules("mask"), rules(plait.vmap) or rules(transform) list
    each primitive's rule of one kind; rules(plait.lax.sin) or rules("sin") list one primitive's rules of each kind.
    rules("cuda") or rules("onednn") list which primitives a backend runs itself, on the device that it is for: a
    `kernel`, or who runs it instead, and why.

    ValueError when there is no such kind, primitive or backend.
    """
    # Imported here, because _extend and this file depend on each other.
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
        claims = isinstance(of, str) and _claims(of)
        if claims:
            return claims
        kinds = ", ".join(sorted(_plait.rule_kinds()))
        _plait.fail(
            "ValueError",
            f"rules: there is no kind of rule, primitive or backend named {name!r:.60}",
            f"choose one of {kinds}, or a function of plait.lax",
        )
    kinds = [*KINDS, *(kind for kind in _plait.rule_kinds() if kind not in KINDS)]
    cells = [
        (kind, *cell) for kind in kinds for found, *cell in _plait.coverage(kind) if found == name
    ]
    # Of the other kinds, most primitives have nothing to say to most.
    return RuleTable(cell for cell in cells if cell[0] in KINDS or cell[1] != "missing")


def _claims(backend):
    """What a backend takes, by primitive; None where there is none of this name."""
    device = next((d for d in _plait.devices() if d.platform == backend), "cpu")
    try:
        report = _plait.conformance_of(backend, [], [], False, str(device), False)
    except _plait.ValueError:
        return None
    refused = {}
    for row in report.rows:
        reasons = refused.setdefault(row.primitive, {})
        if row.state == "refused":
            reasons.setdefault(row.detail, []).append(row.dtype.name)
    return RuleTable(
        (
            name,
            "; ".join(f"{why}: {' '.join(dtypes)}" for why, dtypes in reasons.items()) or "kernel",
            "",
            0,
        )
        for name, reasons in refused.items()
    )


def _matrix():
    matrix = RuleMatrix()
    for kind in KINDS:
        for name, *cell in _plait.coverage(kind):
            matrix.setdefault(name, {})[kind] = tuple(cell)
    return matrix
