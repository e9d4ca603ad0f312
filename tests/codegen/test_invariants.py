"""What steps find again is found once, before their loop, and nothing else is: compared with NumPy's loops."""

import contextlib

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

random = np.random.default_rng(5)
EDGES = 300
SOURCES, TARGETS = (random.integers(0, 40, EDGES).astype(np.int32) for _ in range(2))
WEIGHTS = random.random(EDGES)


def relaxed(steps, sources, targets, weights):
    start = jnp.full(40, 9.0).astype("float64").at[0].set(0.0)
    return lax.fori_loop(0, steps, lambda i, d: d.at[targets].min(d[sources] + weights), start)


def relaxed_by_numpy(steps, sources, targets, weights):
    d = np.full(40, 9.0)
    d[0] = 0.0
    for _ in range(steps):
        new = d.copy()
        np.minimum.at(new, targets, d[sources] + weights)
        d = new
    return d


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_edges_that_no_step_changes(steps, wait):
    jitted = plait.jit(relaxed, static_argnums=0, wait=wait)
    got = jitted(steps, *map(jnp.asarray, (SOURCES, TARGETS, WEIGHTS)))
    np.testing.assert_array_equal(got, relaxed_by_numpy(steps, SOURCES, TARGETS, WEIGHTS))


def test_negative_indices_that_no_step_changes_in_a_while_loop():
    def program(limit, edges):
        def step(state):
            ranks, steps = state
            return 0.5 * ranks + jnp.zeros_like(ranks).at[edges].add(ranks[edges - 1]), steps + 1

        return lax.while_loop(lambda state: state[1] < limit, step, (jnp.arange(40.0), 0))[0]

    for limit in (0, 1, 5):
        ranks = np.arange(40.0).astype(np.float32)
        edges = SOURCES - 20
        for _ in range(limit):
            new = np.zeros_like(ranks)
            np.add.at(new, edges, ranks[edges - 1])
            ranks = np.float32(0.5) * ranks + new
        for wait in (False, True):
            got = plait.jit(program, wait=wait)(limit, jnp.asarray(edges))
            np.testing.assert_allclose(got, ranks, rtol=1e-5)


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize("wrong", [(3, 99), (99, 3)])
def test_a_loop_without_a_step_has_no_error_and_others_have_the_first(wrong, wait):
    sources, targets = SOURCES.copy(), TARGETS.copy()
    sources[7], targets[5] = wrong
    jitted = plait.jit(relaxed, static_argnums=0, wait=wait)
    arguments = [jnp.asarray(x) for x in (sources, targets, WEIGHTS)]
    np.testing.assert_array_equal(jitted(0, *arguments), relaxed_by_numpy(0, 0, 0, 0))
    messages = []
    for run in (contextlib.nullcontext(), plait.disable_jit()):
        with run, pytest.raises(plait.IndexError) as error:
            jitted(3, *arguments)
        messages.append(str(error.value).split("\n")[0])
    assert messages[0] == messages[1]
    assert "index 99" in messages[0]


@pytest.mark.parametrize("wait", [False, True])
def test_what_steps_change_is_found_again(wait):
    """A sum over what the loop writes, one over what it does not, and one of an inner loop."""

    def program(x, y):
        def step(i, x):
            inner = lax.fori_loop(0, 3, lambda j, s: s + jnp.sum(x * y) + jnp.max(y), 0.0 * x[0])
            return x.at[i].set(jnp.sum(x) + 0.1 * jnp.sum(y) + inner)

        return lax.fori_loop(0, 5, step, x)

    x, y = random.random(30), random.random(30)
    want = x.copy()
    for i in range(5):
        inner = sum(np.sum(want * y) + np.max(y) for _ in range(3))
        want[i] = np.sum(want) + 0.1 * np.sum(y) + inner
    got = plait.jit(program, wait=wait)(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("wait", [False, True])
def test_an_array_of_an_outer_step(wait):
    """Filled once for each outer step, and not once for all."""

    def program(a, b):
        def outer(carry, row):
            def inner(j, v):
                scaled = jnp.exp(row[:, None] * b)
                return 0.5 * v + jnp.sum(scaled[:, ::-1] * v[None], 1)

            return lax.fori_loop(0, 4, inner, carry), None

        return lax.scan(outer, jnp.ones(12, "float64"), a)[0]

    a, b = 0.1 * random.random((3, 12)), 0.1 * random.random((12, 12))
    v = np.ones(12)
    for row in a:
        scaled = np.exp(row[:, None] * b)
        for _ in range(4):
            v = 0.5 * v + np.sum(scaled[:, ::-1] * v[None], 1)
    got = plait.jit(program, wait=wait)(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose(got, v, rtol=1e-12)
