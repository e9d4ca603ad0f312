"""A neural ODE: a network is the right-hand side of an equation, learned from trajectories alone.

Points that spiral inwards are seen at some times. The solution of y' = network(y) is a scan over Runge-Kutta steps,
reverse mode goes back through it, and the training is a scan of its own: one program (Chen et al. 2018).
"""

# SPDX-License-Identifier: Apache-2.0
import plait.numpy as jnp
from plait import jit, lax, optim, random, value_and_grad, vmap

TIMES, STEP = 25, 0.1
HIDDEN = 32


def runge_kutta(slope, y, step):
    k1 = slope(y)
    k2 = slope(y + step / 2 * k1)
    k3 = slope(y + step / 2 * k2)
    k4 = slope(y + step * k3)
    return y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def trajectory(slope, y):
    """y at each of the times, the first included."""

    def step(y, _):
        return runge_kutta(slope, y, STEP), y

    return lax.scan(step, y, None, TIMES)[1]


def spiral(y):
    """What is to be found: a cubic damped oscillator."""
    return jnp.array([[-0.1, 2.0], [-2.0, -0.1]]) @ y**3


def network(params, y):
    h = jnp.tanh(params["w1"] @ y**3 + params["b1"])
    return params["w2"] @ h + params["b2"]


def init(key):
    first, second = random.split(key)
    return {
        "w1": 0.5 * random.normal(first, (HIDDEN, 2)),
        "b1": jnp.zeros(HIDDEN),
        "w2": 0.1 * random.normal(second, (2, HIDDEN)),
        "b2": jnp.zeros(2),
    }


def loss(params, seen):
    """The mean error along the trajectories, from their first points."""
    found = vmap(lambda y: trajectory(lambda y: network(params, y), y))(seen[:, 0])
    return jnp.mean((found - seen) ** 2)


def train(key, steps=400, batch=32):
    """(the parameters, the loss of each step)."""
    start, points, picks = random.split(key, 3)
    seen = vmap(lambda y: trajectory(spiral, y))(
        random.uniform(points, (256, 2), minval=-1.5, maxval=1.5)
    )
    params = init(start)

    def step(carry, key):
        params, state = carry
        chosen = seen[random.choice(key, 256, (batch,))]
        value, grads = value_and_grad(loss)(params, chosen)
        updates, state = optim.adam(grads, state, params, 0.01)
        return (optim.apply_updates(params, updates), state), value

    carry = params, optim.adam_init(params)
    (params, _), losses = lax.scan(step, carry, random.split(picks, steps))
    return params, losses


def program():
    """What is compiled, and its arguments."""
    return jit(train), (random.key(0),)


if __name__ == "__main__":
    run, arguments = program()
    params, losses = run(*arguments)
    print(
        f"loss {float(losses[0]):.2f}, after training below 0.01: {float(jnp.mean(losses[-20:])) < 0.01}"
    )
    y = jnp.array([1.2, -0.4])  # not among those seen
    found = trajectory(lambda y: network(params, y), y)
    error = float(jnp.max(jnp.abs(found - trajectory(spiral, y))))
    print(f"another trajectory to 0.2: {error < 0.2}")
