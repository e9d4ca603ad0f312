"""Pictures and profiles of programs: draw, profile.

SPDX-License-Identifier: Apache-2.0
"""

import inspect

from plait import _display, _plait
from plait._functions import check_callable, file_path, name_of, plain_text
from plait._plait import flatten
from plait._programs import Entry, Program
from plait._transforms import ClosedJaxpr, make_jaxpr

__all__ = ["Profile", "draw", "profile"]

COLORS = ("kind", "bytes", "time", "backend")
GROUPS = ("line", "scope", "transforms", "primitive", "backend")


def draw(fun, *args, path=None, color="kind", profile=None, title=None):
    """Draws the program of fun for these arguments: one page, or an SVG where the path ends in ".svg".

    Boxes are named scopes, calls, loops and branches, which fold; edges carry shapes. The page needs no network: it
    searches (/), colours boxes by kind, bytes, time or backend, and shows an equation, with its line, on a click. In
    large programs only the unfolded part is laid out.

    Arguments are values or specs, as for make_jaxpr; fun may be a jaxpr, or an entry of a saved program. color is the
    initial colouring: "kind", "bytes", "time" or "backend". The last two need a profile: the result of plait.profile,
    or True, which measures one; by default they measure one. Times and backends are those of the compiled steps, by
    line.

    Without a path, the page is returned as text, which notebooks show. ValueError for an unknown color, and for a measurement with specs as
    arguments; FileError (an OSError) where the path cannot be written.
    """
    if color not in COLORS:
        _plait.fail(
            "ValueError", f"draw: color is {color!r:.60}", f"give one of {', '.join(COLORS)}"
        )
    jaxpr, inputs, options = _traced("draw", fun, args)
    if profile is True or (profile is None and color in ("time", "backend")):
        profile = Profile(_measured("draw", jaxpr, inputs, options["title"], 0))
    options |= {
        "title": options["title"] if title is None else plain_text(title),
        "color": color,
        "profile": profile._data if profile else None,
    }
    if path is None:
        return _display.Page(_plait.draw_html(jaxpr, options))
    _plait.draw(jaxpr, file_path("draw", path), options)
    return None


def profile(fun, *args, runs=None):
    """The time of each step of fun(*args) when it runs compiled, as a Profile.

    The program is compiled by every backend, generated loops included, and runs as under jit: for about 0.3 s, or runs
    times. Figures are medians. Steps are compared with the machine's limits (memory copies, multiply-adds), which are
    measured once. Their time is attributed to lines, named scopes and transforms; that of several equations in one
    kernel in proportion to their cost. fun may be a jaxpr.

    ValueError for specs in place of arguments.
    """
    jaxpr, inputs, options = _traced("profile", fun, args)
    if runs is not None and (not isinstance(runs, int) or not 1 <= runs <= 100_000):
        _plait.fail(
            "ValueError", f"profile: runs is {runs!r:.60}", "give a number from 1 to 100000"
        )
    return Profile(_measured("profile", jaxpr, inputs, options["title"], runs or 0))


def _measured(what, jaxpr, inputs, name, runs):
    if inputs is None:
        _plait.fail(
            "ValueError",
            f"{what}: there is nothing to run the program on, and times are to be measured",
            "give arguments with values, not specs or a jaxpr alone",
        )
    return _plait.profile(jaxpr, inputs, name, runs)


def _traced(what, fun, args):
    """The jaxpr of fun for arguments, its inputs if they have values, and their names."""
    options = {"title": "program", "input_names": [], "output_names": []}
    leaves, structure = flatten((args, {}))
    if isinstance(fun, (ClosedJaxpr, _plait.Jaxpr)):
        jaxpr, consts = (fun, []) if isinstance(fun, _plait.Jaxpr) else (fun.jaxpr, fun.consts)
        return jaxpr, leaves + consts if args or not jaxpr.in_avals else None, options
    check_callable(what, fun)
    if isinstance(fun, Program) and len(fun) == 1:
        (fun,) = fun.entries.values()
    if isinstance(fun, Entry) and not args:
        return fun.jaxpr, None, options | {"title": name_of(fun)}
    closed = make_jaxpr(fun)(*args)
    has_values = all(_plait.is_array_like(leaf) for leaf in leaves)
    names = _argument_names(fun, len(args))
    options["title"] = name_of(fun)
    options["input_names"] = [
        _input_name(names, structure.path(index)) for index in range(structure.num_leaves)
    ] + [f"captured {index}" for index in range(len(closed.consts))]
    options["output_names"] = [
        f"out{closed.out_tree.path(index)}" for index in range(closed.out_tree.num_leaves)
    ]
    return closed.jaxpr, leaves + closed.consts if has_values else None, options


def _argument_names(fun, count):
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [parameter.name for parameter in parameters if parameter.kind in kinds]
    return names + [f"argument {index}" for index in range(len(names), count)]


def _input_name(names, path):
    """ "[0][1]['w']", a path in (args, kwargs), as "params['w']"."""
    number, _, rest = path.removeprefix("[0][").partition("]")
    return names[int(number)] + rest


class Profile:
    """The time of each step of a program: the result of plait.profile. Its text is a table."""

    _repr_html_ = _display.profile_html

    def __init__(self, data):
        self._data = data

    @property
    def seconds(self):
        """The time of a call, in seconds: the median."""
        return self._data.seconds

    def by(self, what):
        """Seconds by "line", "scope", "transforms", "primitive" or "backend", as a dict, in descending order."""
        if what not in GROUPS:
            _plait.fail(
                "ValueError", f"profile: by is {what!r:.60}", f"give one of {', '.join(GROUPS)}"
            )
        return dict(self._data.by(what))

    def json(self):
        """The whole profile as JSON text: the machine's limits, and steps with their equations and lines."""
        return self._data.json()

    def trace(self, path):
        """Writes one call as a trace that ui.perfetto.dev and chrome://tracing open."""
        self._data.write_trace(file_path("trace", path))

    def flame(self, path):
        """Writes a flame graph, by scopes, lines or steps, as one page that needs no network."""
        self._data.write_flame(file_path("flame", path))

    def __str__(self):
        return str(self._data)

    __repr__ = __str__
