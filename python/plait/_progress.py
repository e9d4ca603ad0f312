"""Progress of long work: set_progress, and the bar that rich draws.

SPDX-License-Identifier: Apache-2.0
"""

import atexit
import os

from plait import _display, _plait

__all__ = ["set_progress"]


def set_progress(callback="bar", after=1.0):
    """Sets the receiver of the progress of long work: tracing, compiling, maps in chunks, verifying files.

    By default, work that takes longer than a second is shown: in a notebook as a bar below the cell, and on standard
    error, where that is a terminal, as a bar where the package rich is installed ("bar"), else as one line ("line"). None silences it. A function is called as
    callback(what, done, total, seconds, is_last), at most ten times a second and once at the end, for work that takes
    longer than after seconds; total is None where it is not known. Its exceptions are reported like those of a
    finalizer, and the work continues.

    DtypeError for anything else.
    """
    if callback is None or callable(callback):
        _plait.set_progress(callback, float(after))
    elif isinstance(callback, str) and callback in ("bar", "line"):
        bars = _display.NotebookBars if _display.is_notebook() else _Bars if os.isatty(2) else None
        is_bar = callback == "bar" and bars
        _plait.set_progress(bars(), float(after)) if is_bar else _plait.reset_progress()
    else:
        _plait.fail(
            "DtypeError",
            f"set_progress: the callback is {callback!r:.60}",
            'give a function, None, "bar" or "line"',
        )


class _Bars:
    """A bar for the work of each thread. The first message imports rich; without it, progress is a line."""

    def __init__(self):
        import threading

        self.lock, self.thread = threading.Lock(), threading.get_ident
        self.display = None
        self.bars = {}  # by thread

    def __call__(self, what, done, total, seconds, is_last):
        with self.lock:
            if self.display is None and not self._start():
                _plait.reset_progress()
                return
            thread = self.thread()
            if thread not in self.bars:
                self.bars[thread] = self.display.add_task(what, total=total)
            self.display.update(self.bars[thread], completed=done)
            if is_last:
                self.display.remove_task(self.bars.pop(thread))
            self.display.refresh()
            if not self.bars:
                self.display.stop()
                self.display = None

    def _start(self):
        try:
            from rich import console, progress
        except ImportError:
            return False
        self.display = progress.Progress(
            progress.TextColumn("plait: {task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=console.Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self.display.start()
        return True


if os.isatty(2) or _display.is_notebook():
    set_progress()
    atexit.register(_plait.reset_progress)  # work of other threads may outlive Python
