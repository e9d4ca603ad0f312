"""Loops: what a step costs, recurrent nets, an ODE, bodies that attract each other."""

# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
from libraries import compiled, jitted
from rows import Row, Work, best_peer, both, microseconds
from rows_attention import of_gradients, slopes_by_differences, valued

# --- The cost of a step ----------------------------------------------------------------------------

STEPS = 100_000


def scan_step(library, xs):
    """A carry of one number, a slice of one, a result of one."""

    def loop(xs):
        return library.lax.scan(lambda c, x: (c * 0.5 + x, c), xs[0], xs)

    return compiled(library, loop, xs)


def scan_reference(xs):
    carry, seen = xs[0], []
    for x in xs:
        seen.append(carry)
        carry = carry * 0.5 + x
    return carry, np.array(seen)


def while_step(library, n):
    """A counter, its comparison, and a carry of one number."""

    def loop(n):
        return library.lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (n * 0, n * 0.0)
        )

    return compiled(library, loop, n)


# --- Recurrent nets --------------------------------------------------------------------------------

BATCH, TIME, WIDTH = 32, 128, 256
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def cell(xp, kind):
    """(weights, carry, slice) -> (carry, result), written as a user would."""

    def sigmoid(x):
        return 1 / (1 + xp.exp(-x))

    def parts(x, count):
        return [x[..., i * WIDTH : (i + 1) * WIDTH] for i in range(count)]

    def lstm(w, carry, x):
        h, c = carry
        i, f, g, o = parts(x @ w[0] + h @ w[1] + w[2], 4)
        c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
        h = sigmoid(o) * xp.tanh(c)
        return (h, c), h

    def gru(w, h, x):
        xr, xu, xn = parts(x @ w[0] + w[2], 3)
        hr, hu, hn = parts(h @ w[1], 3)
        u = sigmoid(xu + hu)
        h = (1 - u) * xp.tanh(xn + sigmoid(xr + hr) * hn) + u * h
        return h, h

    def rnn(w, h, x):
        h = xp.tanh(x @ w[0] + h @ w[1] + w[2])
        return h, h

    return {"lstm": lstm, "gru": gru, "rnn": rnn}[kind]


def recurrent_inputs(kind):
    def inputs():
        rng, gates = np.random.default_rng(0), GATES[kind] * WIDTH
        w = [rng.normal(0, 0.06, (WIDTH, gates)).astype(np.float32) for _ in range(2)]
        bias = rng.normal(0, 0.1, gates).astype(np.float32)
        return *w, bias, rng.standard_normal((TIME, BATCH, WIDTH), dtype=np.float32)

    return inputs


def recurrent_reference(kind):
    step = cell(np, kind)

    def value(arrays):
        *w, xs = arrays
        zero, total = np.zeros((BATCH, WIDTH)), 0.0
        carry = (zero, zero) if kind == "lstm" else zero
        for x in xs:
            carry, h = step(w, carry, x)
            total += (h * h).sum()
        return total / xs.size

    return lambda *arrays: (value(arrays), np.array(slopes_by_differences(value, list(arrays))))


def recurrent(kind):
    """Mean square of all results, and its gradients by weights and inputs."""

    def build(library, *arrays):
        if library.kind == "torchlike":
            return fused(kind, library, *arrays)
        step = cell(library.xp, kind)

        def value(arrays):
            *w, xs = arrays
            zero = library.xp.zeros((BATCH, WIDTH), dtype="float32")
            init = (zero, zero) if kind == "lstm" else zero
            _, hs = library.lax.scan(lambda carry, x: step(w, carry, x), init, xs)
            return (hs * hs).mean()

        return valued(library, value, list(arrays))

    return build


def fused(kind, library, wx, wh, bias, xs):
    """PyTorch's own recurrent nets, whose gates lie in our order."""
    torch = library.module
    net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind](WIDTH, WIDTH)
    with torch.no_grad():
        net.weight_ih_l0.copy_(wx.T)
        net.weight_hh_l0.copy_(wh.T)
        net.bias_ih_l0.copy_(bias)
        net.bias_hh_l0.zero_()
    moved = [net.weight_ih_l0, net.weight_hh_l0, net.bias_ih_l0, xs.requires_grad_()]

    def call():
        hs, _ = net(xs)
        value = (hs * hs).mean()
        by_x, by_h, by_bias, by_xs = torch.autograd.grad(value, moved)
        return value, by_x.T, by_h.T, by_bias, by_xs

    return call


def recurrent_row(kind):
    return Row(
        f"loops/{kind}",
        f"{kind.upper()} through scan, B=32 T=128 H=256, value and gradient",
        best_peer(),
        recurrent_inputs(kind),
        recurrent_reference(kind),
        calls={"jaxlike": recurrent(kind), "torch": recurrent(kind)},
        pick=of_gradients,
        tolerance=1e-3,
        work=Work(flops=3 * 2 * 2 * TIME * BATCH * WIDTH**2 * GATES[kind]),
    )


# --- An ODE: a body that turns freely --------------------------------------------------------------

ODE_STEPS, STEP = 10_000, 1e-3
INERTIA = (-0.6, 0.8, -0.25)  # differences of moments by moments


def turning(state):
    a, b, c = state
    return INERTIA[0] * b * c, INERTIA[1] * a * c, INERTIA[2] * a * b


def runge_kutta(state):
    def ahead(slope, by):
        return [s + by * d for s, d in zip(state, slope)]

    k1 = turning(state)
    k2 = turning(ahead(k1, STEP / 2))
    k3 = turning(ahead(k2, STEP / 2))
    k4 = turning(ahead(k3, STEP))
    return tuple(
        s + STEP / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4)
    )


def ode(library, *state):
    if library.kind == "jaxlike":

        def run(state):
            return library.lax.fori_loop(0, ODE_STEPS, lambda i, s: runge_kutta(s), state)

        return compiled(library, run, tuple(state))
    step = library.jit(runge_kutta)

    def call():
        now = tuple(state)
        for _ in range(ODE_STEPS):
            now = step(now)
        return now

    return call


def ode_reference(*state):
    for _ in range(ODE_STEPS):
        state = runge_kutta(state)
    return state


# --- N bodies --------------------------------------------------------------------------------------

BODIES = 2048


def bodies():
    rng = np.random.default_rng(0)
    place, speed = (rng.standard_normal((BODIES, 3), dtype=np.float32) for _ in range(2))
    return place, speed, rng.uniform(0.5, 1.5, BODIES).astype(np.float32)


def move(xp, place, speed, mass):
    """One leapfrog step under softened gravity, all pairs."""
    away = place[None, :, :] - place[:, None, :]
    square = (away * away).sum(-1) + 1e-2
    pull = mass[None, :] / (square * xp.sqrt(square))
    speed = speed + 1e-3 * (away * pull[:, :, None]).sum(1)
    return place + 1e-3 * speed, speed


def move_apart(xp, place, speed, mass):
    """The same, coordinate by coordinate."""
    aways = [place[None, :, i] - place[:, None, i] for i in range(3)]
    square = aways[0] * aways[0] + aways[1] * aways[1] + aways[2] * aways[2] + 1e-2
    pull = mass[None, :] / (square * xp.sqrt(square))
    speed = speed + 1e-3 * xp.stack([(away * pull).sum(1) for away in aways], -1)
    return place + 1e-3 * speed, speed


def n_body(library, *arrays):
    """Each library takes the form that it is faster in."""
    forms = {"whole": jitted(move), "apart": jitted(move_apart)}
    return {
        f"{form} {mode}".strip(): call
        for form, build in forms.items()
        for mode, call in build(library, *arrays).items()
    }


# --- A Kalman filter: products and an inverse of 2 × 2 at each step --------------------------------

FILTERED = 200


def kalman_inputs():
    seen = np.cumsum(np.random.default_rng(3).standard_normal(FILTERED))
    return (np.array([[1.0, 0.1], [0.0, 1.0]]), 0.01 * np.eye(2), seen)


def kalman_step(xp, move, noise, mean, spread, seen):
    """Of a place and a speed, of which the place is seen."""
    mean, spread = move @ mean, move @ spread @ move.T + noise
    gain = spread[:, 0] / (spread[0, 0] + 1.0)
    return mean + gain * (seen - mean[0]), spread - xp.outer(gain, spread[0])


def kalman(library, move, noise, seen):
    xp = library.xp

    def run(move, noise, seen):
        def body(carry, seen):
            carry = kalman_step(xp, move, noise, *carry, seen)
            return carry, carry[0]

        return library.lax.scan(body, (xp.zeros_like(move[0]), xp.ones_like(move)), seen)[1]

    return compiled(library, run, move, noise, seen)


def kalman_reference(move, noise, seen):
    mean, spread, means = np.zeros(2), np.ones((2, 2)), []
    for value in seen:
        mean, spread = kalman_step(np, move, noise, mean, spread, value)
        means.append(mean)
    return np.array(means)


# --- Levenberg and Marquardt's method, over many problems ------------------------------------------

PROBLEMS, POINTS, FITS = 200, 20, 10


def fit_inputs():
    rng = np.random.default_rng(4)
    start = rng.uniform(0.8, 1.2, (PROBLEMS, 3))
    at = np.linspace(0, 2, POINTS)
    true = rng.uniform(0.8, 1.2, (PROBLEMS, 3, 1))
    return start, at, true[:, 0] * np.exp(-true[:, 1] * at) + true[:, 2]


def decay(xp, p, at):
    return p[0] * xp.exp(-p[1] * at) + p[2]


def fit_step(xp, solve, p, residual, slopes):
    return p - solve(slopes.T @ slopes + 1e-3 * xp.eye(3), slopes.T @ residual)


def fitting(library, start, at, values):
    """All problems by one loop, in which the slopes are forward derivatives."""
    xp, module = library.xp, library.module

    def fit(p, values):
        def residual(p):
            return decay(xp, p, at) - values

        def body(i, p):
            return fit_step(xp, xp.linalg.solve, p, residual(p), module.jacfwd(residual)(p))

        return library.lax.fori_loop(0, FITS, body, p)

    return compiled(library, module.vmap(fit), start, values)


def fit_reference(start, at, values):
    results = []
    for p, seen in zip(start, values):
        for _ in range(FITS):
            fall = np.exp(-p[1] * at)
            slopes = np.stack([fall, -p[0] * at * fall, np.ones_like(at)], 1)
            p = fit_step(np, np.linalg.solve, p, decay(np, p, at) - seen, slopes)
        results.append(p)
    return np.array(results)


ROWS = [
    Row(
        "loops/scan-step",
        "scan: a carry, a slice and a result of one number, a step",
        both(microseconds(0.5), best_peer()),
        lambda: (np.ones(STEPS, np.float32),),
        scan_reference,
        calls={"jaxlike": scan_step},
        per=STEPS,
    ),
    Row(
        "loops/while-step",
        "while: a counter and a carry of one number, a step",
        both(microseconds(0.5), best_peer()),
        lambda: (np.int32(STEPS),),
        lambda n: (n, 2.0),
        calls={"jaxlike": while_step},
        per=STEPS,
    ),
    *(recurrent_row(kind) for kind in GATES),
    Row(
        "loops/ode",
        "RK4 of 3 variables in float64, 10,000 steps, a step",
        microseconds(0.018),
        lambda: tuple(np.float64(v) for v in (1.0, 0.5, 0.8)),
        ode_reference,
        calls={"*": ode},
        per=ODE_STEPS,
        x64=True,
        tolerance=1e-9,
    ),
    Row(
        "loops/kalman",
        "Kalman filter of a place and a speed in float64, 200 steps, a step",
        both(microseconds(0.06), best_peer()),
        kalman_inputs,
        kalman_reference,
        calls={"jaxlike": kalman},
        per=FILTERED,
        x64=True,
        tolerance=1e-9,
    ),
    Row(
        "loops/fits",
        "least squares of 200 problems at once in float64, 10 steps",
        best_peer(),
        fit_inputs,
        fit_reference,
        calls={"jaxlike": fitting},
        x64=True,
        tolerance=1e-8,
    ),
    Row(
        "loops/n-body",
        "one step of 2048 bodies, all pairs",
        best_peer(),
        bodies,
        functools.partial(move, np),
        calls={"*": n_body},
        tolerance=1e-3,
        # 20 operations for a pair, of which a root and a quotient count as four.
        work=Work(flops=26 * BODIES**2),
    ),
]
