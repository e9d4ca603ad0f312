"""What the modules of the drop-in are made of: names taken from plait's modules, and names that are refused.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import importlib
import sys

from plait import _plait


def lacking(module, lazy=()):
    """The __getattr__ of a module: imports those submodules that are named, and says what the drop-in has not got."""

    def __getattr__(name):
        if name in lazy:
            return importlib.import_module(f"{module}.{name}")
        raise AttributeError(
            f"module {module!r} has no attribute {name!r}: plait's drop-in for JAX has not got it"
        )

    return __getattr__


def load(module, *names):
    """Imports submodules, which then are attributes of a module instead of what was under their names."""
    for name in names:
        importlib.import_module(f"{module}.{name}")


def take(namespace, source, names):
    """Puts those of some names that a module has into a namespace; names are text, or pairs (name here, name there)."""
    for name in names.split():
        here, _, there = name.partition("=")
        if hasattr(source, there or here):
            namespace[here] = getattr(source, there or here)


def refuse(name, what, fix=""):
    """Raises plait's error for what the drop-in has not got."""
    _plait.fail(
        "ValueError", f"{name}: {what}", fix or "see docs/jax_libraries.md for what the drop-in has"
    )


def refused(name, what):
    """A function under a name that libraries import, which raises when it is called."""

    def function(*args, **kwargs):
        refuse(name, what)

    function.__name__ = function.__qualname__ = name.rpartition(".")[2]
    function.__doc__ = f"Not in plait's drop-in: {what}."
    return function


def refuse_options(name, **options):
    """Refuses options of JAX that are given and mean nothing here."""
    for option, value in options.items():
        if value is not None:
            refuse(name, f"{option}={value!r:.60} is not in plait's drop-in", "leave it out")


def public(namespace):
    """The public names of a module, for __all__."""
    modules = type(sys)
    return sorted(
        name
        for name, value in namespace.items()
        if not name.startswith("_") and not isinstance(value, modules)
    )


def door(namespace, source):
    """Puts every public name of a module of plait into that of JAX, and its submodules' names; what comes later comes too."""
    try:
        module = importlib.import_module(source)
    except ModuleNotFoundError as error:
        if not source.startswith(error.name or " "):
            raise
        return lacking(namespace["__name__"])
    from jax._narrow import narrowing

    for name in getattr(module, "__all__", None) or dir(module):
        value = getattr(module, name)
        if not name.startswith("_") and not isinstance(value, type(sys)):
            is_function = callable(value) and not isinstance(value, type)
            namespace.setdefault(name, narrowing(value) if is_function else value)
    namespace.setdefault("__all__", public(namespace))
    return lacking(namespace["__name__"])


def listed(function):
    """A function whose results are a list, where plait's are a tuple."""

    @functools.wraps(function)
    def call(*args, **keywords):
        found = function(*args, **keywords)
        return list(found) if isinstance(found, tuple) else found

    return call
