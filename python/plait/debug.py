"""Looking at values while a program runs, under every transform.

SPDX-License-Identifier: Apache-2.0
"""

import sys as _sys
from typing import NamedTuple as _NamedTuple


from plait import _breakpoint, _names, _plait
from plait._host import _Island

__getattr__ = _names.missing(__name__, globals())
__all__ = ["LaneWork", "breakpoint", "callback", "lane_work", "print"]


class LaneWork(_NamedTuple):
    """How often bodies of vmapped control flow were applied to an example: to one that needed it, and in all."""

    live: int
    all: int


def lane_work():
    """What vmapped cond, switch and while_loop have cost so far, in all threads, forwards and backwards.

    Bodies run on the examples that need them, rounded up to the batch's size halved some times: `all` is at most
    twice `live`, but for mode="select", which is not counted.
    """
    return LaneWork(*_plait.lane_work())


def callback(callback, *args, ordered=False, **kwargs):
    """Calls callback(*args, **kwargs) each time the program runs, for its effect; what it returns is dropped.

    Arrays in args and kwargs, which are trees, arrive as NumPy arrays; other leaves as they are. Under jit it is called
    at each run, in the order of the program (ordered says nothing more); under vmap once for each example; under mask
    with the real elements; under differentiation with the values. DtypeError when callback is no function; HostError,
    when the program runs, where it raises, with that as its cause.
    """
    from plait._functions import check_callable, name_of

    check_callable("debug.callback", callback)

    def run(args, kwargs):
        callback(*args, **kwargs)

    _Island(run, None, ordered=True, batched=False, name=name_of(callback))(args, kwargs)


def print(fmt, *args, ordered=False, **kwargs):
    """Prints fmt.format(*args, **kwargs) with the values of arrays each time the program runs, as callback does.

    Under jit the text appears at each run; under vmap once for each example; padding is not printed. DtypeError when
    fmt is no string.
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
    """Opens a prompt each time the program gets here, under jit too, with the values that variables have there.

    The prompt is that of pdb, as far as a compiled program goes: `p`, `pp`, `a` (variables), `l`, `w`, `u` and `d` (the
    frames that called, num_frames of them at most), `c` goes on, `q` ends the call with KeyboardInterrupt; anything
    else is evaluated. Arrays are NumPy arrays; changing one changes nothing in the program. Variables of frames outside
    the transformed function are as they were when it was traced. As with callback, under vmap it opens once for each
    example, under mask with the real elements, and under differentiation with the values. stdin and stdout stand for
    the terminal.
    """
    frames, inner = _breakpoint.frames_here(2, num_frames)
    arrays, together = _breakpoint.taken_apart(frames, inner)

    def open_prompt(values):
        _breakpoint.Prompt(together(values), stdin, stdout).run()

    open_prompt.__name__ = "debug.breakpoint"
    callback(open_prompt, arrays, ordered=ordered)
