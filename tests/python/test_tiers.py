"""When generated loops are compiled: before a call, within one, on request; and which way vmapped loops run.

SPDX-License-Identifier: Apache-2.0
"""

import os
import re

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

pytestmark = [
    pytest.mark.skipif(
        "llvm" not in plait.jit(lambda x: jnp.exp(x) + 1, wait=True).explain(jnp.ones(100)),
        reason="no libLLVM here",
    ),
    pytest.mark.skipif(
        os.environ.get("PLAIT_WAIT", "0") not in ("", "0"), reason="every call waits"
    ),
]


def counted(steps):
    return lambda x: lax.fori_loop(0, steps, lambda i, c: c * 0.5 + 1, x)


def test_a_loop_that_is_known_to_be_long_is_compiled_before_its_first_call():
    x = jnp.asarray(np.float32(0))
    long, short = plait.jit(counted(1_000_000)), plait.jit(counted(10))
    assert "tier: last; compiled before the first call" in long.explain(x)
    assert "one loop program" in long.explain(x)
    assert "tier: first" in short.explain(x)
    assert float(long(x)) == 2


def test_compile_for_compiles_now_and_does_not_run():
    ran = []

    def f(x, scale=1.0):
        plait.debug.callback(lambda v: ran.append(float(v)), x)
        return counted(10)(x) * scale

    g = plait.jit(counted(10))
    x = jnp.asarray(np.float32(0))
    assert "tier: first" in g.explain(x)
    assert g.compile_for(x) is None
    assert "tier: last" in g.explain(x)
    assert len(g.cache) == 1
    h = plait.jit(f)
    h.compile_for(x, scale=2.0)
    assert ran == []
    assert float(h(x, scale=2.0)) == 2 * float(g(x))
    assert ran == [0.0]


def test_a_loop_of_unknown_length_gives_the_same_where_it_changes_over():
    def f(x, end):
        def body(c):
            return c[0] * np.float32(0.999) + jnp.cos(c[0]), c[1] + 1

        return lax.while_loop(lambda c: c[1] < end, body, (x, 0))

    x = jnp.asarray(np.float32(0.25))
    first, waited = plait.jit(f), plait.jit(f, wait=True)
    for end in (7, 300_000):
        a, b = first(x, end), waited(x, end)
        assert int(a[1]) == int(b[1]) == end
        assert float(a[0]) == float(b[0])


def newton(y):
    """Cube roots, by as many steps as each takes."""

    def body(c):
        x, last, n = c
        return x - (x**3 - y) / (3 * x * x), x, n + 1

    return lax.while_loop(
        lambda c: (jnp.abs(c[0] - c[1]) > 1e-6 * c[0]) & (c[2] < 100), body, (y, y + 1, 0)
    )


def test_a_vmapped_loop_is_one_program_as_soon_as_its_code_is_generated():
    y = np.linspace(0.5, 4000, 100).astype(np.float32)
    f = plait.jit(plait.vmap(newton), wait=True)
    first = [np.asarray(r) for r in f(jnp.asarray(y))]
    np.testing.assert_allclose(first[0], np.cbrt(y), rtol=1e-5)
    assert len(set(first[2].tolist())) > 3
    for _ in range(3):
        for a, b in zip(first, f(jnp.asarray(y))):
            assert np.array_equal(a, np.asarray(b))
    text = f.explain(jnp.asarray(y))
    assert re.search(r"lanes +\[one loop program", text), text


def test_examples_of_a_vmapped_loop_that_do_not_take_part_are_left_out():
    def f(y, takes):
        return lax.cond(takes, lambda v: newton(v)[0], lambda v: -v, y)

    y = np.linspace(0.5, 4000, 64).astype(np.float32)
    takes = np.arange(64) % 3 == 0
    g = plait.jit(plait.vmap(f), wait=True)
    for _ in range(4):
        got = np.asarray(g(jnp.asarray(y), jnp.asarray(takes)))
        np.testing.assert_allclose(got, np.where(takes, np.cbrt(y), -y), rtol=1e-5)


def test_what_a_step_refuses_is_said_of_loops_that_change_over():
    def body(state):
        i, x = state
        return i + 1, jnp.where(i < 400_000, i % 100, i) * jnp.ones((), "int8")

    def run(n):
        start = (n, jnp.zeros((), "int8"))
        return lax.while_loop(lambda s: s[0] < 10**9, body, start, max_steps=10**8)

    for wait in (True, False):
        with pytest.raises(plait.ValueError, match="400000 does not fit int8"):
            plait.jit(run, wait=wait)(0)
