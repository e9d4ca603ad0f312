"""Tables that no input changes are computed once, and give what computing them anew gives."""

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

x = np.linspace(-1, 1, 384)


def table(np, n=384):
    return np.cos(np.arange(n) * 0.01) * 2


PROGRAMS = {
    "whole": lambda np, x: x * table(np),
    "reshaped": lambda np, x: x.reshape(16, 24) + table(np).reshape(16, 24),
    "transposed": lambda np, x: x.reshape(24, 16) + table(np).reshape(16, 24).T,
    "a part": lambda np, x: x[:300] - table(np)[17:317],
    "backwards": lambda np, x: x - table(np)[::-1],
    "repeated": lambda np, x: x.reshape(16, 24) * table(np, 24)[None],
    "twice": lambda np, x: x * table(np) + np.sin(table(np)),
    "in a product": lambda np, x: np.exp(-np.arange(16.0))[None] @ x.reshape(16, 24),
}


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_is_what_numpy_gives(name, wait):
    program = PROGRAMS[name]
    function = plait.jit(lambda x: program(jnp, x), wait=wait)
    for scale in (1, -3):
        got = np.asarray(function(jnp.asarray(scale * x)))
        np.testing.assert_allclose(got, program(np, scale * x), rtol=1e-6, atol=1e-6)
    with plait.disable_jit():
        np.testing.assert_array_equal(got, np.asarray(program(jnp, jnp.asarray(-3 * x))))


def explain(program, *inputs):
    return str(plait.jit(program, wait=True).explain(*inputs))


def steps(text):
    """The lines of steps: those behind them quote the user's."""
    return [line for line in text.splitlines() if line.lstrip()[:1].isdigit()]


def test_explain_says_so():
    text = explain(lambda x: x * jnp.cos(jnp.arange(384) * 0.01), jnp.asarray(x))
    assert "computed once, since no input changes it: " in text, text
    assert len(steps(text)) == 1 and "cos" not in steps(text)[0], text


def test_plain_arithmetic_is_computed_where_it_is_used():
    text = explain(lambda x: x * (jnp.arange(384) * 0.01 + 1), jnp.asarray(x))
    assert "computed once" not in text, text


def test_large_tables_are_made_at_every_call():
    text = explain(lambda x: x + jnp.sum(jnp.cos(jnp.arange(2_000_000.0))), jnp.asarray(x))
    assert "computed once" not in text, text
    assert any("cos" in step for step in steps(text)), text


@pytest.mark.parametrize("wait", [False, True])
def test_results_belong_to_the_caller(wait):
    def program(x):
        t = jnp.cos(jnp.arange(6.0))
        return x + t, t, t.reshape(2, 3)

    function = plait.jit(program, wait=wait)
    first = [np.array(v) for v in function(jnp.ones(6))]
    for result in function(jnp.ones(6)):
        plait.jit(lambda v: v * 0, donate_argnums=0)(result)
    for again, before in zip(function(jnp.ones(6)), first):
        np.testing.assert_array_equal(np.asarray(again), before)


def test_random_numbers_of_one_key():
    def program(x):
        return x + plait.random.normal(plait.random.key(3), (384,))

    jitted = plait.jit(program, wait=True)
    with plait.disable_jit():
        expected = np.asarray(program(jnp.asarray(x)))
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(jitted(jnp.asarray(x))), expected)


def test_in_loops_and_their_gradients():
    def program(x):
        def step(i, x):
            return x * jnp.cos(jnp.arange(x.size) * 0.1) + i

        return jnp.sum(lax.fori_loop(0, 4, step, x))

    got = plait.jit(plait.grad(program), wait=True)(jnp.asarray(x[:20]))
    np.testing.assert_allclose(np.asarray(got), np.cos(np.arange(20) * 0.1) ** 4, rtol=0, atol=1e-6)
