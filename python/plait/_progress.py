"""Progress of long work: set_progress.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait

__all__ = ["set_progress"]


def set_progress(callback="line", after=1.0):
    """Who is told how far long work is: tracing, compiling, maps in chunks, verifying files.

    At first, work that takes longer than a second is one line on standard error, where that is a terminal; "line" is
    that again, and None silences it. A function is called as callback(what, done, total, seconds, is_last), at most
    ten times a second and once at the end, for work that takes longer than after seconds; total is None where it is
    not known. What it raises is reported as that of a finalizer is, and the work goes on.

    DtypeError for what is none of these.
    """
    if isinstance(callback, str) and callback == "line":
        _plait.reset_progress()
    elif callback is None or callable(callback):
        _plait.set_progress(callback, float(after))
    else:
        _plait.fail(
            "DtypeError",
            f"set_progress: the callback is {callback!r:.60}",
            'give a function, None, or "line"',
        )
