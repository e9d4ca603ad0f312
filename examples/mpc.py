"""Model predictive control: a cart swings its pole up and holds it there, planning anew at every step.

A plan is the best sequence of forces over a horizon, found by iterative LQR (Li and Todorov 2004): the motion is
linearised by jacfwd and the cost expanded by grad and hessian along the plan, all times at once by vmap; a Riccati
recursion is a scan backwards. The first force is applied, and the plan, one step on, is where the next begins. The
whole closed loop is one program.
"""

# SPDX-License-Identifier: Apache-2.0
import plait.numpy as jnp
from plait import grad, hessian, jacfwd, jit, lax, vmap

HORIZON, PLANS, STEPS = 40, 4, 120
DT = 0.05
CART, POLE, LENGTH, GRAVITY = 1.0, 0.2, 0.5, 9.81
STRONGEST = 15.0


def acceleration(x, force):
    """Of (place, angle from the top, and their speeds)."""
    sin, cos = jnp.sin(x[1]), jnp.cos(x[1])
    push = force + POLE * LENGTH * x[3] ** 2 * sin
    angular = (GRAVITY * sin * (CART + POLE) - push * cos) / (LENGTH * (CART + POLE * sin**2))
    linear = (push - POLE * GRAVITY * sin * cos) / (CART + POLE * sin**2)
    return jnp.stack([x[2], x[3], linear, angular])


def move(x, u):
    """A step by the midpoint rule, under a force that no motor exceeds."""
    force = STRONGEST * jnp.tanh(u[0] / STRONGEST)
    middle = x + DT / 2 * acceleration(x, force)
    return x + DT * acceleration(middle, force)


def cost(x, u):
    upright = 1 - jnp.cos(x[1])
    return 10 * upright + x[0] ** 2 + 0.1 * x[2] ** 2 + 0.1 * x[3] ** 2 + 0.01 * u[0] ** 2


def final_cost(x):
    return 10 * cost(x, jnp.zeros(1))


def roll_out(x, us):
    """(the cost, the states before each force, the last one)."""

    def step(x, u):
        return move(x, u), (x, cost(x, u))

    last, (xs, costs) = lax.scan(step, x, us)
    return jnp.sum(costs) + final_cost(last), xs, last


def improve(x, us):
    """One iteration of iterative LQR, with the longest of some steps that lowers the cost."""
    before, xs, last = roll_out(x, us)
    a, b = vmap(jacfwd(move, argnums=(0, 1)))(xs, us)
    q, r = vmap(grad(cost, argnums=(0, 1)))(xs, us)
    qq = vmap(hessian(cost))(xs, us)
    rr = vmap(hessian(cost, argnums=1))(xs, us)

    def riccati(carry, along):
        v, vv = carry
        a, b, q, r, qq, rr = along
        gu = r + b.T @ v
        guu = rr + b.T @ vv @ b + 1e-3 * jnp.eye(1)
        gux = b.T @ vv @ a
        short, gain = -gu / guu[0, 0], -gux / guu[0, 0]
        v = q + a.T @ v + gux.T @ short
        vv = qq + a.T @ vv @ a + gux.T @ gain
        return (v, (vv + vv.T) / 2), (short, gain)

    end = grad(final_cost)(last), hessian(final_cost)(last)
    _, (shorts, gains) = lax.scan(riccati, end, (a, b, q, r, qq, rr), reverse=True)

    def attempt(length):
        def step(new, along):
            x, u, short, gain = along
            u = u + length * short + gain @ (new - x)
            return move(new, u), u

        new = lax.scan(step, x, (xs, us, shorts, gains))[1]
        return roll_out(x, new)[0], new

    costs, plans = vmap(attempt)(0.5 ** jnp.arange(6.0))
    costs = jnp.where(jnp.isfinite(costs), costs, jnp.inf)
    best = jnp.argmin(costs)
    return jnp.where(costs[best] < before, plans[best], us)


def control(x):
    """The states and forces of the closed loop from x."""

    def step(carry, _):
        x, us = carry
        us = lax.fori_loop(0, PLANS, lambda _, us: improve(x, us), us)
        after = move(x, us[0])
        return (after, jnp.concatenate([us[1:], us[-1:]])), (after, us[0])

    first = jnp.ones((HORIZON, 1))  # hanging at rest is where no small force helps
    return lax.scan(step, (x, first), None, STEPS)[1]


def program():
    """What is compiled, and its arguments."""
    return jit(control), (jnp.array([0.0, jnp.pi, 0.0, 0.0]),)


if __name__ == "__main__":
    run, arguments = program()
    xs, us = run(*arguments)
    height = jnp.cos(xs[:, 1])
    up = int(jnp.argmax(height > 0.98))
    print(
        f"upright after {up * DT:.1f} s, and to the end: {bool(jnp.all(height[up + 20 :] > 0.98))}"
    )
    print(f"the cart goes as far as {float(jnp.max(jnp.abs(xs[:, 0]))):.1f} m")
    print(
        f"at rest at its place: {bool(jnp.max(jnp.abs(xs[-1] * jnp.array([1, 0, 1, 1]))) < 0.05)}"
    )
