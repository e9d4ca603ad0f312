"""Misspelled names, and suggestions.

SPDX-License-Identifier: Apache-2.0
"""

import functools


def suggestion(name, names):
    """ "; did you mean 'x'?" for the most similar name, or nothing."""
    return _most_like(name, tuple(names))


@functools.lru_cache(256)  # hasattr asks repeatedly
def _most_like(name, names):
    import difflib

    names = [each for each in names if not each.startswith("_")]
    lower = {each.lower(): each for each in reversed(names)}
    found = difflib.get_close_matches(name.lower(), lower, 1, 0.7)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""


def missing(module, namespace, lazy=()):
    """The __getattr__ of a module for missing names; lazy names exist without being in its namespace."""

    def __getattr__(name):
        text = f"module {module!r} has no attribute {name!r}"
        if not name.startswith("_"):
            text += suggestion(name, [*namespace, *lazy])
        raise AttributeError(text)

    return __getattr__
