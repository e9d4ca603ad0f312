"""Looking at values while a program runs, under every transform.

SPDX-License-Identifier: Apache-2.0
"""

import sys as _sys
from typing import NamedTuple as _NamedTuple


from plait import _names, _plait
from plait._host import _Island

__getattr__ = _names.missing(__name__, globals())
__all__ = ["LaneWork", "breakpoint", "callback", "lane_work", "print"]


class LaneWork(_NamedTuple):
    """How often bodies of vmapped control flow were applied to an example: to one that needed it, and in all."""

    live: int
    all: int


def lane_work():
    """The cost of vmapped cond, switch and while_loop so far, in all threads, forwards and backwards.

    Bodies run on the examples that need them, padded to the batch's size halved a number of times: `all` is at most
    twice `live`, except for mode="select", which is not counted.
    """
    return LaneWork(*_plait.lane_work())


def callback(callback, *args, ordered=False, **kwargs):
    """Calls callback(*args, **kwargs) each time the program runs, for its effect; its result is dropped.

    Arrays in args and kwargs, which are trees, arrive as NumPy arrays; other leaves are passed as they are. Under jit
    it is called at each run, in program order (with or without ordered); under vmap once for each example; under mask
    with the real elements; under differentiation with the values. DtypeError when callback is not a function; HostError
    at run time where it raises, with that as its cause.
    """
    from plait._functions import check_callable, name_of

    check_callable("debug.callback", callback)

    def run(args, kwargs):
        callback(*args, **kwargs)

    _Island(run, None, ordered=True, batched=False, name=name_of(callback))(args, kwargs)


def print(fmt, *args, ordered=False, **kwargs):
    """Prints fmt.format(*args, **kwargs) with the values of arrays each time the program runs, like callback.

    Under jit the text appears at each run; under vmap once for each example; padding is not printed. DtypeError when
    fmt is not a string.
    """
    if not isinstance(fmt, str):
        _plait.fail(
            "DtypeError",
            f"debug.print: the format is {fmt!r:.60}",
            'call it as debug.print("x = {}", x)',
        )

    def write(*args, **kwargs):
        _sys.stdout.write(fmt.format(*args, **kwargs) + "\n")

    write.__name__ = "debug.print"
    callback(write, *args, ordered=ordered, **kwargs)


def breakpoint(*, num_frames=None, ordered=False, stdin=None, stdout=None):
    """Opens a prompt each time the program reaches this point, under jit too, with the current values of variables.

    The prompt is like pdb's, as far as a compiled program allows: `p`, `pp`, `a` (variables), `l`, `w`, `u` and `d`
    (the calling frames, at most num_frames), `c` continues, `q` ends the call with KeyboardInterrupt; anything else is
    evaluated. Arrays are NumPy arrays; changing one does not affect the program. Variables of frames outside the
    transformed function have their values from tracing. As with callback, under vmap it opens once for each example,
    under mask with the real elements, and under differentiation with the values. stdin and stdout replace the terminal.
    """
    from plait import _breakpoint  # the prompt's modules take a millisecond

    frames, inner = _breakpoint.frames_here(2, num_frames)
    arrays, together = _breakpoint.taken_apart(frames, inner)

    def open_prompt(values):
        _breakpoint.Prompt(together(values), stdin, stdout).run()

    open_prompt.__name__ = "debug.breakpoint"
    callback(open_prompt, arrays, ordered=ordered)
