"""Optimisers and schedules against optax 0.2.8, whose values after four steps in float64 are written down.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import optim

MASK = {"w": True, "b": False}


def parameters():
    return {"w": np.linspace(-1, 1, 6).reshape(2, 3), "b": np.array([0.5, -0.25])}


def gradients(t):
    return {
        "w": np.cos(np.arange(6.0) + t).reshape(2, 3),
        "b": np.sin(np.array([1.0, 2.0]) * (t + 1)),
    }


# b, then w, after four steps; the optimiser and its options.
EXPECTED = {
    "momentum": ([0.0130659736542, -0.403460788861, -1.31225477629, -0.419571233843, 0.307226933085, 0.567682996932, 0.490093009057, 0.513551001793], {}),
    "momentum nesterov": ([-0.0517492161498, -0.47435847797, -1.29444559593, -0.285666045645, 0.434116316631, 0.570895061774, 0.366674597592, 0.376972432348], {"nesterov": True}),
    "adam": ([0.18701989563, -0.371323030983, -1.23345793012, -0.595164332458, 0.15384345797, 0.456258329447, 0.638750664355, 0.645486094468], {}),
    "adamw": ([0.18701989563, -0.371323030983, -1.22892917162, -0.592502195805, 0.154057879559, 0.454908080208, 0.636027605652, 0.642066603175], {"weight_decay": 0.01, "mask": MASK}),
    "lion": ([0.3, -0.25, -0.995606395901, -0.397603797501, 0.0001992006998, 0.1988015991, 0.397603797501, 0.596605596101], {"weight_decay": 0.01, "mask": MASK}),
    "rmsprop": ([0.0870967362003, -0.494153794595, -1.13886810847, -0.289362234575, 0.505421342256, 0.405106859725, 0.343466970232, 0.221969155657], {}),
    "adagrad": ([0.375013668588, -0.322281610327, -1.04582405095, -0.504763331675, -0.00290140597568, 0.265377903083, 0.523948100443, 0.794637440658], {}),
    "lamb": ([0.324624506912, -0.317248008576, -1.18905506282, -0.535047984441, 0.142129139019, 0.418575830806, 0.579504537363, 0.65148158464], {"weight_decay": 0.01, "mask": MASK}),
    "adafactor": ([0.444448268759, -0.275915279714, -0.95250799463, -0.428970970173, 0.00416015607875, 0.208833665237, 0.454366031768, 0.769459367793], {"weight_decay": 0.01, "mask": MASK}),
    "adafactor whole": ([0.42208972183, -0.264403057673, -0.987362096667, -0.487486613721, -0.0645915588094, 0.204029296586, 0.497411404745, 0.845075587527], {"multiply_by_parameter_scale": False, "clipping_threshold": 0.5}),
}  # fmt: skip


def check(params, expected, tolerance=1e-10):
    found = np.concatenate([np.ravel(params["b"]), np.ravel(params["w"])])
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("jitted", [False, True])
def test_four_steps_are_optax_s(name, jitted):
    expected, options = EXPECTED[name]
    rule, _, variant = name.partition(" ")
    init, update = getattr(optim, f"{rule}_init"), getattr(optim, rule)
    step = lambda g, s, p: update(g, s, p, learning_rate=0.1, **options)  # noqa: E731
    step = plait.jit(step) if jitted else step
    params = parameters()
    state = init(params, 2) if name == "adafactor" else init(params)
    for t in range(4):
        updates, state = step(gradients(t), state, params)
        params = optim.apply_updates(params, updates)
    # optax computes adafactor's decay in float32.
    check(params, expected, 1e-7 if rule == "adafactor" else 1e-10)
    assert int(state[0]) == 4
    # Another structure than the state's.
    with pytest.raises(TypeError, match=rf"{rule}: the (state|parameters)"):
        update(gradients(0), parameters(), parameters())


def test_adafactor_keeps_rows_and_columns_of_large_matrices():
    params = {"m": np.ones((130, 256)), "v": np.ones(300), "t": np.ones((3, 129, 200))}
    _, rows, columns, whole = optim.adafactor_init(params)
    assert (rows["m"].shape, columns["m"].shape, whole["m"].shape) == ((130,), (256,), (1,))
    assert (rows["t"].shape, columns["t"].shape, whole["v"].shape) == ((3, 129), (3, 200), (300,))


def test_gradients_are_clipped_and_weights_decay():
    params = parameters()
    for t in range(4):
        grads = optim.add_decayed_weights(optim.clip(gradients(t), 0.5), params, 0.1, MASK)
        params = optim.apply_updates(params, optim.sgd(grads, 0.1))
    check(params, [0.435887999194, -0.27205845018, -0.966917423182, -0.48458600455, -0.0816017346108, 0.211556595639, 0.497570825203, 0.849117299892])  # fmt: skip
    where = plait.jit(lambda mask: optim.add_decayed_weights(parameters(), parameters(), 1.0, mask))
    result = where({"w": np.array(True), "b": np.array(False)})
    check(result, np.r_[parameters()["b"], 2 * parameters()["w"].ravel()])
    with pytest.raises(TypeError, match="the mask has"):
        optim.add_decayed_weights(parameters(), parameters(), 0.1, {"w": True})


STEPS = [0, 1, 3, 5, 8, 20]
SCHEDULES = {
    "constant_schedule(0.5)": [0.5] * 6,
    "linear_schedule(1.0, 0.1, 6, 2)": [1, 1, 0.85, 0.55, 0.1, 0.1],
    "polynomial_schedule(1.0, 0.1, 2, 6)": [1, 0.725, 0.325, 0.125, 0.1, 0.1],
    "cosine_decay_schedule(2.0, 8, 0.1, 2.0)": [2, 1.86559061, 1.06031606, 0.371485885, 0.2, 0.2],
    "exponential_decay(1.0, 4, 0.5, 1)": [1, 1, 0.707106781, 0.5, 0.297301779, 0.0371627223],
    "exponential_decay(1.0, 4, 0.5, staircase=True, end_value=0.3)": [1, 1, 1, 0.5, 0.3, 0.3],
    "piecewise_constant_schedule(1.0, {3: 0.1, 8: 0.5})": [1, 1, 0.1, 0.1, 0.05, 0.05],
    "warmup_constant_schedule(0.0, 1.0, 4)": [0, 0.25, 0.75, 1, 1, 1],
    "warmup_cosine_decay_schedule(0.0, 1.0, 4, 12, 0.1)": [0, 0.25, 0.75, 0.96574579, 0.55, 0.1],
    "join_schedules([linear_schedule(0.0, 1.0, 4), exponential_decay(1.0, 2, 0.5)], [4])": [0, 0.25, 0.75, 0.70710678, 0.25, 0.00390625],
}  # fmt: skip


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedules_are_optax_s(text):
    schedule = eval(text, vars(optim))
    for step in (schedule, plait.jit(schedule)):
        values = [float(step(count)) for count in STEPS]
        np.testing.assert_allclose(values, SCHEDULES[text], rtol=2e-6)
    assert schedule(np.int32(3)).dtype == np.float32
    np.testing.assert_allclose(
        np.asarray(plait.vmap(schedule)(np.array(STEPS))), SCHEDULES[text], rtol=2e-6
    )


def test_a_schedule_stands_wherever_a_learning_rate_does():
    schedule = optim.warmup_cosine_decay_schedule(0.0, 0.1, 2, 6, 0.01)
    wanted = [0.340868395998, -0.265533607059, -1.08726230023, -0.499670315568, -0.00182239020089, 0.307620052018, 0.530272880944, 0.799877654768]  # fmt: skip
    by_hand = lambda count: pnp.where(count < 2, 0.05 * count, schedule(count))  # noqa: E731
    for rate in (schedule, by_hand):
        params, state = parameters(), optim.adam_init(parameters())
        step = plait.jit(lambda g, s, rate=rate: optim.adam(g, s, learning_rate=rate))
        for t in range(4):
            updates, state = step(gradients(t), state)
            params = optim.apply_updates(params, updates)
        check(params, wanted, 1e-6)
    updates = optim.sgd(gradients(0), schedule, count=1)
    np.testing.assert_allclose(np.asarray(updates["w"]), -0.05 * gradients(0)["w"], rtol=1e-6)
    for rule in "momentum adamw lion rmsprop adagrad lamb adafactor".split():
        state = getattr(optim, f"{rule}_init")(parameters())
        updates, _ = getattr(optim, rule)(gradients(0), state, parameters(), learning_rate=schedule)
        assert not np.asarray(updates["b"]).any()  # the first rate is 0


def test_rates_are_differentiated():
    """The loss after two steps by the first rate of a schedule, as a finite difference."""

    def loss(rate):
        params, state = parameters(), optim.momentum_init(parameters())
        for _ in range(2):
            grads = plait.grad(lambda p: sum((x**3).sum() for x in p.values()))(params)
            updates, state = optim.momentum(
                grads, state, learning_rate=optim.linear_schedule(rate, 0.0, 8)
            )
            params = optim.apply_updates(params, updates)
        return sum((x**2).sum() for x in params.values())

    slope = (float(loss(0.1 + 1e-2)) - float(loss(0.1 - 1e-2))) / 2e-2
    np.testing.assert_allclose(float(plait.grad(loss)(0.1)), slope, rtol=1e-2)


def test_what_is_refused():
    grads, state = gradients(0), optim.adam_init(parameters())
    with pytest.raises(ValueError, match="sgd: a schedule, and no count"):
        optim.sgd(grads, optim.constant_schedule(0.1))
    with pytest.raises(ValueError, match="the schedule gave an array of shape"):
        optim.adam(grads, state, learning_rate=lambda count: np.ones(2))
    with pytest.raises(TypeError, match="learning_rate"):
        optim.adam(grads, state, learning_rate="fast")
    with pytest.raises(ValueError, match="decay_steps is 0"):
        optim.cosine_decay_schedule(1.0, 0)
    with pytest.raises(ValueError, match="warmup included"):
        optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10)
    with pytest.raises(ValueError, match="join_schedules: 1 schedules and 1"):
        optim.join_schedules([optim.constant_schedule(1.0)], [3])
    with pytest.raises(TypeError, match="boundaries_and_scales"):
        optim.piecewise_constant_schedule(1.0, {"a": 0.1})
    with pytest.raises(TypeError, match="should be"):
        optim.join_schedules([1.0, 2.0], [3])
