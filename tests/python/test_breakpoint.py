"""debug.breakpoint: what the prompt shows, where it opens, and how it ends.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import io
import weakref

import numpy as np
import pytest

import plait
import plait.numpy as jnp


def session(f, *args, commands):
    """What f, which is given stdin and stdout, writes to the prompt while these commands are read."""
    out = io.StringIO()
    result = f(io.StringIO("\n".join(commands) + "\n"), out)(*args)
    return out.getvalue(), result


def doubled(stdin, stdout):
    def f(x, scale):
        y = {"a": x * scale, "n": 3}
        plait.debug.breakpoint(stdin=stdin, stdout=stdout)
        return y["a"].sum()

    return f


def test_the_prompt_has_the_values_of_a_jitted_function():
    text, result = session(
        lambda i, o: plait.jit(doubled(i, o)),
        jnp.asarray(np.arange(3.0)),
        2.0,
        commands=["p y['a']", "p scale + 1", "y['n']", "z = x.sum()", "z * 2", "nope", "c"],
    )
    assert float(result) == 6
    assert "in f" in text or "f()" in text
    assert "array([0., 2., 4.])" in text
    assert "(plait) 3\n" in text
    assert "6.0" in text
    assert "NameError: name 'nope' is not defined" in text


def test_the_prompt_shows_lines_frames_and_variables():
    text, _ = session(
        lambda i, o: plait.jit(doubled(i, o)),
        jnp.asarray(np.arange(3.0)),
        2.0,
        commands=["l", "a", "u", "d", "d", "w", "pp y", "", "c"],
    )
    assert "-> plait.debug.breakpoint(stdin=stdin, stdout=stdout)" in text
    assert "scale = array(2.)" in text
    assert "session()" in text
    assert "*** Newest frame" in text


def test_the_prompt_opens_at_each_run_and_for_each_example():
    opened = []

    def f(x):
        out = io.StringIO()
        opened.append(out)
        plait.debug.breakpoint(stdin=io.StringIO("p x\nc\n" * 9), stdout=out)
        return x + 1

    g = plait.jit(f)
    assert float(g(1.0)) == 2 and float(g(2.0)) == 3
    assert opened[0].getvalue().count("-> plait.debug.breakpoint") == 2
    assert "array(1.)" in opened[0].getvalue() and "array(2.)" in opened[0].getvalue()
    plait.vmap(f)(jnp.asarray(np.arange(3.0)))
    assert opened[1].getvalue().count("-> plait.debug.breakpoint") == 3


def test_the_prompt_opens_in_plain_calls_and_under_grad():
    text, _ = session(
        lambda i, o: doubled(i, o), jnp.asarray(np.arange(3.0)), 2.0, commands=["p x", "c"]
    )
    assert "array([0., 1., 2.])" in text
    text, gradient = session(
        lambda i, o: plait.jit(plait.grad(doubled(i, o))),
        jnp.asarray(np.arange(3.0)),
        2.0,
        commands=["p x", "c"],
    )
    assert "array([0., 1., 2.])" in text
    assert np.asarray(gradient).tolist() == [2, 2, 2]


def test_the_end_of_the_input_goes_on_and_q_ends_the_call():
    text, result = session(
        lambda i, o: plait.jit(doubled(i, o)), jnp.asarray(np.arange(3.0)), 2.0, commands=[]
    )
    assert float(result) == 6
    with pytest.raises(KeyboardInterrupt):
        session(lambda i, o: plait.jit(doubled(i, o)), jnp.ones(3), 2.0, commands=["q"])


def test_num_frames_bounds_what_is_noted():
    def f(x):
        plait.debug.breakpoint(num_frames=1, stdin=io.StringIO("u\nc\n"), stdout=out)
        return x

    out = io.StringIO()
    plait.jit(f)(1.0)
    assert "*** Oldest frame" in out.getvalue()


def test_a_program_with_a_breakpoint_keeps_no_tracer_alive():
    kept = []

    def f(x):
        y = x + 1
        kept.append(weakref.ref(y))
        plait.debug.breakpoint(stdin=io.StringIO("c\n"), stdout=io.StringIO())
        return y

    g = plait.jit(f)
    g(1.0)
    gc.collect()
    assert kept[0]() is None
