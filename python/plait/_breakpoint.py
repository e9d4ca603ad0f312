"""debug.breakpoint: a prompt in the middle of a program, with the current values of its variables.

The frames of the caller are recorded when the function is traced. Arrays among their variables are operands of a host
call, which opens the prompt each time the program reaches it.

SPDX-License-Identifier: Apache-2.0
"""

import cmd
import linecache
import pprint
import sys
import traceback
from typing import NamedTuple

from plait import _plait
from plait._functions import PACKAGE
from plait._plait import flatten, unflatten


class Frame(NamedTuple):
    """A user function stopped at a line; names are its variables, then those of its module."""

    filename: str
    line: int
    function: str
    variables: dict
    names: dict


def frames_here(depth, num_frames):
    """The user's frames, innermost first, and how many of them are inside plait's nearest transform."""
    frame = sys._getframe(depth)
    frames, inner, is_inner = [], 0, True
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        if frame.f_code.co_filename.startswith(PACKAGE):
            is_inner = False
        else:
            inner += is_inner
            code = frame.f_code
            frames.append(
                Frame(
                    code.co_filename,
                    frame.f_lineno,
                    code.co_name,
                    dict(frame.f_locals),
                    frame.f_globals,
                )
            )
        frame = frame.f_back
    return frames, inner


def taken_apart(frames, inner):
    """(arrays, together): arrays of inner frames, and the function from their values to frames.

    together must hold no tracer: a program must not keep alive the trace that made it.
    """
    arrays, parts = [], []
    for number, frame in enumerate(frames):
        for name, value in frame.variables.items():
            leaves, structure = flatten(value)
            places = {}
            for index, leaf in enumerate(leaves):
                if not isinstance(leaf, _plait.Array):
                    continue
                if number < inner:
                    places[index], leaves[index] = len(arrays), None
                    arrays.append(leaf)
                elif not _plait.is_concrete(leaf):
                    leaves[index] = repr(leaf)
            parts.append((number, name, leaves, structure, places))
    bare = [frame._replace(variables={}) for frame in frames]

    def together(values):
        made = [frame._replace(variables={}) for frame in bare]
        for number, name, leaves, structure, places in parts:
            now = list(leaves)
            for index, place in places.items():
                now[index] = values[place]
            made[number].variables[name] = unflatten(structure, now)
        return made

    return arrays, together


class Prompt(cmd.Cmd):
    """Commands on frames, as in pdb; anything else is an expression or a statement."""

    prompt = "(plait) "

    def __init__(self, frames, stdin, stdout):
        super().__init__(stdin=stdin or sys.stdin, stdout=stdout or sys.stdout)
        self.use_rawinput = stdin is None and stdout is None and sys.stdin.isatty()
        self.frames, self.at = frames, 0

    def run(self):
        self._say(self._position())
        self.cmdloop()

    def _say(self, text):
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def _position(self, at=None):
        frame = self.frames[self.at if at is None else at]
        text = linecache.getline(frame.filename, frame.line).strip()
        return f"> {frame.filename}({frame.line}){frame.function}()" + (
            f"\n-> {text}" if text else ""
        )

    def _evaluate(self, text, show):
        frame = self.frames[self.at]
        try:
            code = compile(text, "<prompt>", "eval")
        except SyntaxError:
            code = None
        try:
            if code is None:
                exec(compile(text, "<prompt>", "exec"), frame.names, frame.variables)  # noqa: S102
            else:
                value = eval(code, frame.names, frame.variables)  # noqa: S307
                if value is not None:
                    self._say(show(value))
        except Exception:
            self._say(traceback.format_exc(limit=0).rstrip())

    def do_p(self, text):
        """p expression: its value."""
        self._evaluate(text, repr)

    def do_pp(self, text):
        """pp expression: its value, over several lines."""
        self._evaluate(text, pprint.pformat)

    def default(self, line):
        if line == "EOF":
            return self.do_continue("")
        self._evaluate(line[1:] if line.startswith("!") else line, repr)

    def emptyline(self):
        pass

    def do_up(self, _):
        """u(p): to the caller's frame."""
        self._move(1)

    def do_down(self, _):
        """d(own): to the frame that was called."""
        self._move(-1)

    def _move(self, by):
        if not 0 <= self.at + by < len(self.frames):
            return self._say("*** Oldest frame" if by > 0 else "*** Newest frame")
        self.at += by
        self._say(self._position())

    def do_where(self, _):
        """w(here), bt: all frames, the oldest first."""
        for at in reversed(range(len(self.frames))):
            self._say(self._position(at))

    def do_list(self, _):
        """l(ist): the lines around this one."""
        frame = self.frames[self.at]
        for number in range(max(1, frame.line - 5), frame.line + 6):
            if text := linecache.getline(frame.filename, number):
                self._say(f"{number:4d} {'->' if number == frame.line else '  '} {text.rstrip()}")

    def do_args(self, _):
        """a(rgs): the variables of this frame."""
        for name, value in self.frames[self.at].variables.items():
            self._say(f"{name} = {value!r}")

    def do_continue(self, _):
        """c(ontinue): resumes the program."""
        return True

    def do_quit(self, _):
        """q(uit): ends the call with KeyboardInterrupt."""
        raise KeyboardInterrupt

    do_u, do_d, do_w, do_bt, do_l, do_a = do_up, do_down, do_where, do_where, do_list, do_args
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit
