"""Names that are not there, and those that were meant.

SPDX-License-Identifier: Apache-2.0
"""

import functools


def suggestion(name, names):
    """ "; did you mean 'x'?" for the name that is most like it, or nothing."""
    return _most_like(name, tuple(names))


@functools.lru_cache(256)  # hasattr asks again and again
def _most_like(name, names):
    import difflib

    names = [each for each in names if not each.startswith("_")]
    lower = {each.lower(): each for each in reversed(names)}
    found = difflib.get_close_matches(name.lower(), lower, 1, 0.7)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""


def missing(module, namespace, lazy=()):
    """The __getattr__ of a module for names that it has not; lazy ones are there without being in its namespace."""

    def __getattr__(name):
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("_"):
            text += suggestion(name, [*namespace, *lazy])
        raise AttributeError(text)

    return __getattr__
