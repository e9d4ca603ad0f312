"""Progress of long work: who is told, and what.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import os
import pty
import re
import subprocess
import sys

import pytest

import plait
import plait.numpy as jnp


@pytest.fixture
def told():
    messages = []
    plait.set_progress(lambda *message: messages.append(message), after=0.0)
    yield messages
    plait.set_progress("line")


def test_tracing_and_compiling_say_how_far_they_are(told):
    def f(x):
        for _ in range(2000):
            x = jnp.sin(x) + 1
        return x

    plait.jit(f)(jnp.ones(3))
    whats = [what for what, *_ in told]
    assert any("tracing" in what for what in whats) and any("compiling" in what for what in whats)
    last = [message for message in told if message[4]]
    done, total = [message[1:3] for message in last if "compiling" in message[0]][-1]
    assert done == total > 1
    for what in set(whats):
        counts = [done for w, done, *_ in told if w == what]
        assert counts == sorted(counts)
    assert all(total is None for what, _, total, *_ in told if "tracing" in what)


def test_chunks_are_counted(told):
    plait.vmap(jnp.sin, chunk=2)(jnp.ones(9))
    assert [m[1:3] for m in told if "chunk" in m[0]][-1] == (5, 5)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_a_callback_raises_does_not_end_the_work():
    def bad(*_):
        raise RuntimeError("mine")

    plait.set_progress(bad, after=0.0)
    try:
        plait.vmap(jnp.sin, chunk=2)(jnp.ones(9))
    finally:
        plait.set_progress("line")
    with pytest.raises(plait.DtypeError, match="callback"):
        plait.set_progress(3)


SLOW = """
import sys, time, plait, plait.numpy as jnp
def f(x):
    for i in range(14):
        time.sleep(0.1)
        x = jnp.sin(x)
    return x
plait.make_jaxpr(f)(1.0)
"""


def shown_on_a_terminal(code):
    """What the program writes on standard error, a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=theirs, env=os.environ | {"TERM": "xterm"}
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # which says that the other end is closed
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode()


def test_a_terminal_gets_a_bar_that_goes_and_a_file_gets_nothing():
    pytest.importorskip("rich")
    shown = shown_on_a_terminal(SLOW + "sys.stderr.write('the end')")
    assert "plait: tracing, equation" in shown and "━" in shown
    assert re.search(r"\x1b\[2K[^━]*the end$", shown)  # the bar is cleared, and the cursor back
    quiet = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, check=True)
    assert quiet.stderr == b""


@pytest.mark.parametrize("start", ["sys.modules['rich'] = None", "plait.set_progress('line')"])
def test_without_rich_a_terminal_gets_a_line_that_goes(start):
    shown = shown_on_a_terminal("import sys, plait\n" + start + SLOW)
    assert "plait: tracing, equation" in shown and shown.endswith("\r\x1b[K")
    assert "━" not in shown
