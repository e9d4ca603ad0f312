"""How notebooks show plait's objects: tables of arrays, programs with their pictures, profiles.

Notebooks ask an object for _repr_html_ and its like, and show its text where that gives None or there is
none. Nothing here is asked for, or imports more, elsewhere.

SPDX-License-Identifier: Apache-2.0
"""

import re

from plait import _plait

NUM_SHOWN = 10  # rows and columns of an array; of longer ones, the first and the last half of that
LARGEST_PICTURE = 400  # equations; larger programs are for plait.draw, whose boxes fold
STYLES = (
    ("comment", r"  # .*$", "#8b95a7"),
    ("type", r"\b(?:f|bf|i|u|c|key|bool)\d*\[[^\]\n]*\]", "#2f6f9f"),
    ("word", r"\b(?:lambda|let|in)\b", "#8250b4"),
    ("primitive", r"(?<= = )\w+", "#b4541f"),
)


def _escaped(text):
    import html

    return html.escape(str(text), quote=False)


def _preformatted(text):
    return f'<pre style="font-family:monospace;line-height:1.35;margin:0">{text}</pre>'


def _table(rows, head=(), caption=""):
    """A table of texts, of which rows hold as many as head."""

    def row(kind, cells):
        style = "text-align:right;padding:1px 8px"
        return (
            "<tr>"
            + "".join(f'<{kind} style="{style}">{_escaped(c)}</{kind}>' for c in cells)
            + "</tr>"
        )

    top = f"<thead>{row('th', head)}</thead>" if head else ""
    body = "".join(row("td", cells) for cells in rows)
    caption = f'<div style="color:#8b95a7">{_escaped(caption)}</div>' if caption else ""
    return f"<div>{caption}<table>{top}<tbody>{body}</tbody></table></div>"


def _framed(page, height):
    """A page with scripts of its own inside that of the notebook."""
    import html

    style = f"width:100%;height:{height}px;border:1px solid #8b95a755"
    return f'<iframe srcdoc="{html.escape(page)}" style="{style}"></iframe>'


class Page(str):
    """The text of an HTML page, which notebooks show."""

    def _repr_html_(self):
        return _framed(self, 560)


# --- Arrays -----------------------------------------------------------------------------------------


def _ends(size):
    """Which indices are shown, with None for those left out."""
    if size <= NUM_SHOWN:
        return list(range(size))
    half = NUM_SHOWN // 2
    return [*range(half), None, *range(size - half, size)]


def _number(value):
    return f"{value:.6g}" if value.dtype.kind in "fcV" else str(value)


def array_html(array):
    """The values in a table, for up to two dimensions; None, which leaves it to the text, elsewhere."""
    import numpy as np

    if not 1 <= array.ndim <= 2 or array.size == 0:
        return None
    try:
        values = np.atleast_2d(np.asarray(array))
    except Exception:  # values that are not known, or are gone: the text says so
        return None
    columns = _ends(values.shape[1])
    rows = [
        ["⋮" if i is None or j is None else _number(values[i, j]) for j in columns]
        for i in _ends(values.shape[0])
    ]
    dims = ", ".join(map(str, array.shape))
    return _table(rows, caption=f"{array.dtype} [{dims}] on {array.device}")


# --- Programs ---------------------------------------------------------------------------------------


def _highlighted(text):
    pattern = re.compile("|".join(f"(?P<{name}>{form})" for name, form, _ in STYLES), re.M)
    colors = {name: color for name, _, color in STYLES}
    parts, end = [], 0
    for found in pattern.finditer(text):
        parts.append(_escaped(text[end : found.start()]))
        parts.append(f'<span style="color:{colors[found.lastgroup]}">{_escaped(found[0])}</span>')
        end = found.end()
    return "".join(parts) + _escaped(text[end:])


def jaxpr_svg(jaxpr):
    """The picture of a program, as draw makes it; None for a large one."""
    import pathlib
    import tempfile

    from plait._profile import draw

    if len(jaxpr.eqns) > LARGEST_PICTURE:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.svg"
        draw(jaxpr, path=path)
        return path.read_text()


def jaxpr_html(jaxpr):
    """The program in colours, and its picture below, folded."""
    text = _preformatted(_highlighted(str(jaxpr)))
    picture = jaxpr_svg(jaxpr)
    if picture is None:
        return text
    return f"{text}<details><summary>picture</summary>{picture}</details>"


def difference_html(difference):
    """Equations that only one program has, in red and green."""
    colors = {"-": "#c0392b", "+": "#1e8449", "~": "#8250b4"}
    lines = [
        f'<span style="color:{colors[line[0]]}">{_escaped(line)}</span>'
        if line[:1] in colors
        else _escaped(line)
        for line in str(difference).splitlines()
    ]
    return _preformatted("\n".join(lines))


def summary_html(summary):
    """A row for each named scope."""
    head = ("scope", "outputs", "parameters", "equations", "FLOPs", "bytes", "live bytes")
    rows = [
        (
            "\u2003" * row.depth + (row.name or "all"),
            " ".join(map(str, row.outputs)),
            f"{row.parameters:,}",
            f"{row.equations:,}",
            f"{row.flops:,.0f}",
            f"{row.bytes_read + row.bytes_written:,.0f}",
            f"{row.live_bytes:,}",
        )
        for row in summary.rows
    ]
    return _table(rows, head)


def profile_html(profile):
    """The table of the steps, and the flame graph below."""
    return _preformatted(_escaped(profile)) + _framed(profile._data.flame(), 320)


def rules_html(rules):
    return _preformatted(_escaped(rules))


def info_html(info):
    return _table(info.items())


# --- Progress ---------------------------------------------------------------------------------------


def is_notebook():
    """Whether a kernel runs this process, which shows what its cells display."""
    import sys

    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class NotebookBars:
    """The receiver of progress that shows a bar below the cell, for the work of each thread."""

    def __init__(self):
        self.displays = {}  # by thread

    def __call__(self, what, done, total, seconds, is_last):
        import importlib
        import threading

        display = importlib.import_module("IPython.display")  # type checkers need no IPython
        thread = threading.get_ident()
        bar = display.HTML("" if is_last else progress_html(what, done, total, seconds))
        shown = self.displays.get(thread)
        if shown:
            shown.update(bar)
        elif not is_last:
            self.displays[thread] = display.display(bar, display_id=True)
        if is_last:
            self.displays.pop(thread, None)


def progress_html(what, done, total, seconds):
    bar = (
        f'<progress value="{done}" max="{total}"></progress> {done}/{total}' if total else str(done)
    )
    return f"<div>plait: {_escaped(what)} {bar}, {seconds:.0f} s</div>"


def set_up():
    """Gives the types of C++ their methods; those of Python have them in their files."""
    _plait.Array._repr_html_ = array_html
    _plait.Jaxpr._repr_html_, _plait.Jaxpr._repr_svg_ = jaxpr_html, jaxpr_svg
    _plait.Summary._repr_html_ = summary_html
    _plait.Difference._repr_html_ = difference_html
