"""plait.optim: optimisers against loops in NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import optim

rng = np.random.default_rng(4)
PARAMS = {
    "w": rng.normal(size=(3, 2)),
    "layers": [rng.normal(size=4).astype(np.float32), (rng.normal(size=()),)],
}
GRADS = [
    plait.tree.map(lambda p: rng.normal(size=np.shape(p)).astype(p.dtype), PARAMS) for _ in range(5)
]


def check(tree, expected, tolerance=1e-6):
    leaves, wanted = plait.tree.leaves(tree), plait.tree.leaves(expected)
    assert len(leaves) == len(wanted)
    for leaf, value in zip(leaves, wanted, strict=True):
        assert np.asarray(leaf).dtype == np.asarray(value).dtype
        np.testing.assert_allclose(
            np.asarray(leaf), np.asarray(value), rtol=tolerance, atol=tolerance
        )


def adam_reference(decay):
    params = plait.tree.map(lambda p: np.asarray(p, np.float64), PARAMS)
    mu, nu = plait.tree.map(np.zeros_like, params), plait.tree.map(np.zeros_like, params)
    for t, grads in enumerate(GRADS, 1):
        mu = plait.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mu, grads)
        nu = plait.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, nu, grads)
        params = plait.tree.map(
            lambda p, m, v, t=t: p - 0.1 * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + decay * p), params, mu, nu)  # fmt: skip
    return plait.tree.map(lambda p, like: p.astype(like.dtype), params, PARAMS)


@pytest.mark.parametrize("jitted", [False, True])
def test_adam(jitted):
    step = lambda g, s: optim.adam(g, s, learning_rate=0.1)  # noqa: E731
    step = plait.jit(step) if jitted else step
    params, state = PARAMS, optim.adam_init(PARAMS)
    for grads in GRADS:
        updates, state = step(grads, state)
        params = optim.apply_updates(params, updates)
    check(params, adam_reference(0), 1e-5)
    count, mu, nu = state
    assert int(count) == 5 and plait.tree.structure(mu) == plait.tree.structure(
        PARAMS
    ) == plait.tree.structure(nu)


def test_adamw():
    params, state = PARAMS, optim.adamw_init(PARAMS)
    for grads in GRADS:
        updates, state = optim.adamw(grads, state, params, learning_rate=0.1, weight_decay=0.01)
        params = optim.apply_updates(params, updates)
    check(params, adam_reference(0.01), 1e-5)


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_and_momentum(nesterov):
    check(optim.sgd(GRADS[0], 0.5), plait.tree.map(lambda g: (-0.5 * g).astype(g.dtype), GRADS[0]))
    state = optim.momentum_init(PARAMS)
    trace = plait.tree.map(np.zeros_like, PARAMS)
    for grads in GRADS:
        updates, state = optim.momentum(
            grads, state, learning_rate=0.1, decay=0.8, nesterov=nesterov
        )
        trace = plait.tree.map(lambda t, g: (0.8 * t + g).astype(g.dtype), trace, grads)
        direction = plait.tree.map(
            lambda t, g: (0.8 * t + g if nesterov else t).astype(g.dtype), trace, grads
        )
        check(updates, plait.tree.map(lambda d: (-0.1 * d).astype(d.dtype), direction), 1e-5)


def test_clipping():
    norm = np.sqrt(
        sum(np.sum(np.square(np.asarray(g, np.float64))) for g in plait.tree.leaves(GRADS[0]))
    )
    np.testing.assert_allclose(float(optim.global_norm(GRADS[0])), norm, rtol=1e-6)
    check(
        optim.clip_by_global_norm(GRADS[0], norm / 2),
        plait.tree.map(lambda g: (g / 2).astype(g.dtype), GRADS[0]),
        1e-5,
    )
    check(optim.clip_by_global_norm(GRADS[0], norm * 2), GRADS[0])
    zeros = plait.tree.map(np.zeros_like, GRADS[0])
    check(optim.clip_by_global_norm(zeros, 1.0), zeros)


def test_learning_rate_may_be_traced_and_integers_stay():
    params = {"w": np.ones(2, np.float32), "n": np.array(3)}
    grads = {"w": np.ones(2, np.float32), "n": np.array(0)}
    updates, _ = plait.jit(lambda g, s, r: optim.adam(g, s, learning_rate=r))(
        grads, optim.adam_init(params), 0.1
    )
    result = optim.apply_updates(params, updates)
    assert int(result["n"]) == 3
    np.testing.assert_allclose(np.asarray(result["w"]), 0.9, rtol=1e-5)


def test_16_bit_parameters():
    params = {"w": np.ones(3, np.float16)}
    state = optim.adam_init(params)
    for _ in range(3):
        updates, state = optim.adam({"w": np.full(3, 0.5, np.float16)}, state, learning_rate=0.125)
        params = optim.apply_updates(params, updates)
    assert params["w"].dtype == np.float16
    np.testing.assert_allclose(np.asarray(params["w"], np.float64), 1 - 3 * 0.125, rtol=1e-2)


def test_wrong_structures():
    with pytest.raises(TypeError, match="adam: the state"):
        optim.adam(GRADS[0], PARAMS)
    with pytest.raises(TypeError, match="structure"):
        optim.apply_updates(PARAMS, [1.0])
    with pytest.raises(TypeError, match="structure"):
        optim.momentum(GRADS[0], {"w": np.zeros(2)})


def test_training_a_line():
    x = rng.normal(size=(64, 3)).astype(np.float32)
    w = np.array([1.0, -2.0, 0.5], np.float32)
    y = x @ w + 3

    def loss(params):
        return pnp.mean((pnp.matmul(x, params["w"]) + params["b"] - y) ** 2)

    params = {"w": pnp.zeros(3), "b": pnp.zeros(())}
    state = optim.adam_init(params)
    step = plait.jit(plait.value_and_grad(loss))
    for _ in range(400):
        value, grads = step(params)
        updates, state = optim.adam(grads, state, learning_rate=0.05)
        params = optim.apply_updates(params, updates)
    assert float(value) < 1e-4
    np.testing.assert_allclose(np.asarray(params["w"]), w, atol=0.02)
