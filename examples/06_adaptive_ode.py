"""Lesson 6: a loop whose number of steps depends on the data, and its derivatives.

An adaptive solver of y' = r y (1 - y): a while_loop, which reverse mode goes through as forward mode does. Prints
the same as its twin, 06_adaptive_ode.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait.numpy as jnp
from plait import debug, grad, hessian, jit, vmap
from plait.lax import stop_gradient, while_loop

END = 5.0


def solve(r, start, tolerance):
    """y at the end and the number of steps tried, by the method of Bogacki and Shampine (1989)."""

    def slope(y):
        return r * y * (1 - y)

    def unfinished(state):
        return state["t"] < END

    def step(state):
        y, h = state["y"], jnp.minimum(state["h"], END - state["t"])
        k1 = slope(y)
        k2 = slope(y + h * k1 / 2)
        k3 = slope(y + h * k2 * 3 / 4)
        following = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        error = jnp.abs(h * (-5 * k1 + 6 * k2 + 8 * k3 - 9 * slope(following)) / 72)
        # How far to go next is no part of the derivative.
        factor = stop_gradient(jnp.clip(0.9 * jnp.cbrt(tolerance / (error + 1e-30)), 0.2, 5.0))
        accepted = error <= tolerance
        return {
            "t": jnp.where(accepted, state["t"] + h, state["t"]),
            "y": jnp.where(accepted, following, y),
            "h": h * factor,
            "steps": state["steps"] + 1,
        }

    first = {"t": 0 * start, "y": start, "h": 0.1 + 0 * start, "steps": 0}
    last = while_loop(unfinished, step, first)
    return last["y"], last["steps"]


def end(r, start=0.1, tolerance=1e-8):
    return solve(r, jnp.asarray(start, dtype="float64"), tolerance)[0]


def exact(r, start=0.1):
    return 1 / (1 + (1 / start - 1) * jnp.exp(-r * END))


r = jnp.asarray(0.7, dtype="float64")
print(f"solution {float(end(r)):.6f}, exactly {float(exact(r)):.6f}")
print(f"gradient {float(jit(grad(end))(r)):.6f}, exactly {float(grad(exact)(r)):.6f}")
print(f"second derivative {float(hessian(end)(r)):.5f}, exactly {float(hessian(exact)(r)):.5f}")

# Under vmap each example takes the steps that it needs: a loose tolerance ends early.
tolerances = jnp.asarray([1e-3, 1e-6, 1e-9], dtype="float64")
start = jnp.asarray(0.1, dtype="float64")
before = debug.lane_work()
ys, steps = jit(vmap(solve, in_axes=(None, None, 0)))(r, start, tolerances)
after = debug.lane_work()
for row in range(3):
    error = abs(float(ys[row]) - float(exact(r)))
    print(
        f"tolerance 1e-{3 + 3 * row}: {int(steps[row])} steps, error below 1e-{2 + 3 * row}:",
        error < 10 * float(tolerances[row]),
    )

# The work is that of the examples that go on; all three together would take the most steps of one three times.
print(
    f"{after.live - before.live} steps needed, {after.all - before.all} taken,",
    f"{3 * int(jnp.max(steps))} if nobody left",
)

# Gradients by each of many growth rates at once.
rates = jnp.asarray([0.3, 0.7, 1.1], dtype="float64")
print("gradients", " ".join(f"{v:.6f}" for v in vmap(grad(end))(rates).tolist()))
