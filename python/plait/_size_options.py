"""Options on named sizes in the form that the C++ side takes: constraints, buckets, bounds.

SPDX-License-Identifier: Apache-2.0
"""

from plait import _plait
from plait._functions import integers, text_of


def constraint_texts(transform, constraints):
    """Texts such as "t % 8 == 0" as a list; a single text is allowed."""
    if isinstance(constraints, str):
        return [constraints]
    try:
        constraints = list(constraints)
    except TypeError:
        constraints = [constraints]
    for text in constraints:
        if not isinstance(text, str):
            _plait.fail(
                "DtypeError",
                f"{transform}: constraints holds {text_of(text)} of type {type(text).__name__}",
                'give texts, as constraints=["b > 0", "t % 8 == 0"]',
            )
    return constraints


def size_options(constraints, buckets, bound, executables):
    """The options of jit on sizes as one dict."""
    return {
        "constraints": constraint_texts("jit", constraints),
        "buckets": _buckets(buckets),
        "bound": _bound(bound),
        "executables": _count(executables),
    }


def _buckets(buckets):
    """A list for each size, "" for all others; an empty list means the powers of two."""
    if buckets is None or buckets is False:
        return {}
    if not isinstance(buckets, dict):
        return {"": _bucket_list(buckets)}
    return {_name("buckets", name): _bucket_list(value) for name, value in buckets.items()}


def _bucket_list(value):
    if value is True:
        return []
    sizes = list(integers("jit", "buckets", value))
    if not sizes:
        _plait.fail(
            "ValueError", "jit: buckets holds no sizes", "give some, or True: powers of two"
        )
    return sizes


def _bound(bound):
    if bound is None:
        return {}
    if not isinstance(bound, dict):
        _plait.fail(
            "DtypeError",
            f"jit: bound is {text_of(bound)} of type {type(bound).__name__}",
            'give the bound of each size by its name: bound={"b": 512}',
        )
    return {
        _name("bound", name): integers("jit", "bound", value)[0] for name, value in bound.items()
    }


def _name(what, name):
    if not isinstance(name, str):
        _plait.fail(
            "DtypeError", f"jit: {what} holds the key {text_of(name)}", "name sizes by texts"
        )
    return name


def _count(executables):
    count = integers("jit", "executables", executables)
    if len(count) != 1 or count[0] < 1:
        _plait.fail("ValueError", f"jit: executables is {text_of(executables)}", "give 1 or more")
    return count[0]
