"""Wrong control flow, islands and backward passes, many at once in threads: errors in words, and nothing is harmed.

The exact texts are in tests/errors/python.

SPDX-License-Identifier: Apache-2.0
"""

import random

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import _plait, grad, host_call, jit, lax, script, vmap


def raising(*args):
    raise LookupError("hostile")


def twice(y):
    y.backward()
    y.backward()


outside = []


def in_script(x):
    if x > 0:
        outside.append(x)
    return x


def in_loop(x):
    while x > 0:
        outside[0] = x
        x = x - 1
    return x


def grow(x):
    return lax.while_loop(lambda c: c.sum() < 9, lambda c: jnp.concatenate([c, c]), x)


def forever(x):
    return lax.while_loop(lambda c: c > 0, lambda c: c + x, x, max_steps=50)


def forbidden():
    with plait.no_host_calls("a test"):
        lax.map(lambda x: host_call(np.sin, x, x), jnp.ones(3))


x = jnp.asarray([0.5, 1.5, 2.5])

CALLS = {
    "carry of object": lambda: lax.scan(lambda c, v: (c, v), object(), x),
    "carry of text": lambda: lax.fori_loop(0, 3, lambda i, c: c, "text"),
    "text for a carry": lambda: lax.fori_loop(0, 3, lambda i, c: "text", 1.0),
    "carry grows": lambda: grow(x),
    "carry grows under transforms": lambda: jit(vmap(grad(lambda v: grow(v[None]).sum())))(x),
    "carry's dtype": lambda: lax.scan(lambda c, v: (c + v, v), np.int32(0), x),
    "carry's structure": lambda: lax.while_loop(lambda c: True, lambda c: (c, c), 1.0),
    "carry of another length": lambda: lax.scan(lambda c, v: (c[:1], v), (x, x), x),
    "predicate of many": lambda: lax.cond(x > 0, lambda: 1, lambda: 2),
    "predicate of text": lambda: lax.cond("yes", lambda: 1, lambda: 2),
    "index of many": lambda: lax.switch(jnp.arange(2), [jnp.sin, jnp.cos], 1.0),
    "index of float": lambda: lax.switch(1.0, [jnp.sin, jnp.cos], 1.0),
    "no branches": lambda: lax.switch(0, []),
    "condition of many": lambda: lax.while_loop(lambda c: c > 1, lambda c: c, x),
    "condition of float": lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
    "branches of two shapes": lambda: lax.cond(True, lambda: x, lambda: x[:1]),
    "branches of two trees": lambda: lax.cond(True, lambda: (x, x), lambda: {"a": x}),
    "endless": lambda: forever(1.0),
    "endless under vmap": lambda: vmap(forever)(x),
    "endless under grad": lambda: jit(grad(forever))(1.0),
    "negative limit": lambda: lax.while_loop(lambda c: c < 1, lambda c: c, 0, max_steps=-1),
    "xs differ": lambda: lax.scan(lambda c, v: (c, None), 0, (x, x[:2])),
    "no length": lambda: lax.scan(lambda c, v: (c, None), 0, None),
    "no pair": lambda: lax.scan(lambda c, v: c, 0.0, x),
    "bound of float": lambda: lax.fori_loop(0, 2.5, lambda i, c: c, 0),
    "map of scalar": lambda: lax.map(lambda v: v, 1.0),
    "combines to another shape": lambda: lax.associative_scan(lambda a, b: (a + b).sum(), x),
    "side effect": lambda: jit(script(in_script))(1.0),
    "side effect of what is called": lambda: jit(lambda v: script(in_script)(v))(1.0),
    "side effect in a loop": lambda: vmap(script(in_loop))(x),
    "island raises": lambda: host_call(raising, x, x),
    "island raises in a loop": lambda: lax.scan(lambda c, v: (c, host_call(raising, v, v)), 0, x),
    "island raises in a lane": lambda: jit(
        vmap(lambda v: lax.cond(v > 1, lambda v: host_call(raising, v, v), lambda v: v, v))
    )(x),
    "island of another shape": lambda: jit(lambda v: host_call(lambda a: a[:1], v, v))(x),
    "forbidden island": forbidden,
    "island without a derivative": lambda: grad(lambda v: host_call(np.sin, v, v))(1.0),
    "backward of many": lambda: (plait.variable(x) * 2).backward(),
    "backward twice": lambda: twice((plait.variable(x) ** 2).sum()),
    "cotangent's shape": lambda: (plait.variable(x) * 2).backward(np.ones(4)),
    "backward of a constant": lambda: x.sum().backward(),
    "leaf of integers": lambda: plait.variable(jnp.arange(3)),
    "check": lambda: vmap(lambda v: lax.map(lambda a: plait.check(a < 2, "large {}", a), v))(
        x[None]
    ),
    "index outside": lambda: lax.map(lambda i: x[i], jnp.asarray([0, 3])),
}


def refused(name):
    try:
        CALLS[name]()
    except plait.Error as error:
        message = str(error)
        assert not isinstance(error, plait.InternalError), message
        assert "test_bad_control.py:" in message and "\n  fix: " in message, message
        if "raises" in name:
            assert isinstance(error.__cause__, LookupError) and "hostile" in str(error.__cause__)
            frames = []
            trace = error.__cause__.__traceback__
            while trace:
                frames.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            assert frames[-1] == "raising", frames
        return
    raise AssertionError(f"{name} is not refused")


def root(a):
    return lax.while_loop(lambda r: abs(r * r - a) > 1e-9, lambda r: 0.5 * (r + a / r), a)


def unharmed():
    """Loops, lanes, gradients, islands and the tape give what NumPy gives."""
    assert not _plait.is_tracing()
    a = np.array([0.5, 2.0, 9.0])
    np.testing.assert_allclose(jit(vmap(root))(a), np.sqrt(a))
    np.testing.assert_allclose(vmap(grad(root))(a), 0.5 / np.sqrt(a), rtol=1e-6)
    last, ys = lax.scan(lambda c, v: (c * 0.5 + v, c), 1.0, a)
    assert float(last) == 10.25 and np.array_equal(ys, [1.0, 1.0, 2.5]) and not outside
    np.testing.assert_allclose(vmap(lambda v: host_call(np.sin, v, v))(a), np.sin(a))
    v = plait.variable(a)
    (lax.map(lambda e: e * e, v).sum()).backward()
    np.testing.assert_allclose(v.grad, 2 * a)


@pytest.mark.parametrize("name", CALLS)
def test_wrong_control_flow_is_refused_in_words(name):
    refused(name)
    refused(name)
    assert not _plait.is_tracing()


def test_later_calls_are_unharmed():
    for name in CALLS:
        refused(name)
    unharmed()


def test_other_threads_are_unharmed(at_once):
    def wrong(choose):
        for name in choose.sample(sorted(CALLS), 15):
            refused(name)
        unharmed()

    def right():
        for _ in range(5):
            unharmed()

    works = [lambda seed=seed: wrong(random.Random(seed)) for seed in range(4)]
    at_once([*works, right, right])
    unharmed()
