"""Monte Carlo and closed forms: prices of options and how they move."""

# SPDX-License-Identifier: Apache-2.0

import math

import numpy as np
from libraries import compiled, jitted
from rows import Row, Work, best_peer, megabytes, spread
from rows_attention import erf as exact_erf

# --- Black and Scholes -----------------------------------------------------------------------------

OPTIONS, SHOWN = 4_000_000, 4096


def options():
    rng = np.random.default_rng(0)

    def uniform(low, high):
        return rng.uniform(low, high, OPTIONS).astype(np.float32)

    # spot, strike, rate, volatility, time
    return uniform(50, 150), uniform(50, 150), uniform(0, 0.1), uniform(0.1, 0.5), uniform(0.2, 2)


def normal(xp, x):
    return 0.5 * (1 + xp.erf(x * math.sqrt(0.5)))


def price(xp, spot, strike, rate, sigma, time):
    spread = sigma * xp.sqrt(time)
    d1 = (xp.log(spot / strike) + (rate + 0.5 * sigma * sigma) * time) / spread
    discounted = strike * xp.exp(-rate * time)
    return spot * normal(xp, d1) - discounted * normal(xp, d1 - spread)


def greeks(xp, spot, strike, rate, sigma, time):
    """Price, delta, gamma, vega, theta and rho in closed form."""
    root = xp.sqrt(time)
    spread = sigma * root
    d1 = (xp.log(spot / strike) + (rate + 0.5 * sigma * sigma) * time) / spread
    discounted = strike * xp.exp(-rate * time)
    delta, other = normal(xp, d1), normal(xp, d1 - spread)
    density = xp.exp(-0.5 * d1 * d1) * (1 / math.sqrt(2 * math.pi))
    return (
        spot * delta - discounted * other,
        delta,
        density / (spot * spread),
        spot * density * root,
        -0.5 * spot * density * sigma / root - rate * discounted * other,
        time * discounted * other,
    )


def derived(library, *arrays):
    """The same by derivatives of the price: reverse mode, and forward over it for gamma."""
    xp = library.xp
    module = library.module if library.kind == "jaxlike" else library.module.func

    def run(spot, strike, rate, sigma, time):
        def total(spot, rate, sigma, time):
            return price(xp, spot, strike, rate, sigma, time).sum()

        by_all = module.grad(total, argnums=(0, 1, 2, 3))
        (delta, rho, vega, by_time), (gamma, *_) = module.jvp(
            lambda spot: by_all(spot, rate, sigma, time), (spot,), (xp.ones_like(spot),)
        )
        value = price(xp, spot, strike, rate, sigma, time)
        return value, delta, gamma, vega, -by_time, rho

    return compiled(library, run, *arrays)


class WithErf:
    exp, log, sqrt = np.exp, np.log, np.sqrt
    erf = staticmethod(exact_erf)


def greeks_reference(*arrays):
    return greeks(WithErf, *arrays)


def closed(library, *arrays):
    if library.xp.erf is None:
        return None
    return jitted(greeks)(library, *arrays)


def options_row(name, what, calls):
    return Row(
        f"finance/{name}",
        what,
        best_peer(),
        options,
        greeks_reference,
        lambda *arrays: [spread(array, SHOWN) for array in arrays],
        calls=calls,
        pick=lambda result: [spread(value, SHOWN) for value in result],
        tolerance=1e-3,
        work=Work(bytes=4 * 11 * OPTIONS, flops=2 * 60 * OPTIONS),
        fresh=True,
    )


# --- An Asian option, path by path -----------------------------------------------------------------

PATHS, DAYS = 1 << 15, 252
MARKET = (100.0, 0.05, 0.2)  # spot, rate, volatility
STRIKE = 100.0


def asian_inputs():
    shocks = np.random.default_rng(0).standard_normal((DAYS, PATHS), dtype=np.float32)
    return shocks, *(np.float32(value) for value in MARKET)


def payoff(xp, total, rate):
    return (xp.where(total > STRIKE, total - STRIKE, 0.0)).mean() * xp.exp(-rate)


def asian_reference(shocks, spot, rate, sigma):
    """The price, and its slopes by spot, rate and volatility, path by path."""
    days = np.arange(1, DAYS + 1)[:, None] / DAYS
    walk = np.cumsum(shocks, 0) / math.sqrt(DAYS)
    path = spot * np.exp((rate - 0.5 * sigma**2) * days + sigma * walk)
    average = path.mean(0)
    inside, discount = average > STRIKE, np.exp(-rate)
    value = np.where(inside, average - STRIKE, 0).mean() * discount

    def slope(by):
        return np.where(inside, (path * by).mean(0), 0).mean() * discount

    return value, (slope(1 / spot), slope(days) - value, slope(walk - sigma * days))


def asian(library, shocks, *market):
    """By a scan over days, or by cumulative sums."""
    xp = library.xp
    day = 1 / DAYS

    def by_sums(shocks, spot, rate, sigma):
        steps = (rate - 0.5 * sigma * sigma) * day + sigma * math.sqrt(day) * shocks
        return payoff(xp, spot * xp.exp(xp.cumsum(steps, 0)).mean(0), rate)

    def by_scan(shocks, spot, rate, sigma):
        def step(carry, shock):
            log, total = carry
            log = log + (rate - 0.5 * sigma * sigma) * day + sigma * math.sqrt(day) * shock
            return (log, total + xp.exp(log)), None

        zero = xp.zeros_like(shocks[0])
        (_, total), _ = library.lax.scan(step, (zero, zero), shocks)
        return payoff(xp, spot * total / DAYS, rate)

    if library.kind == "torchlike":
        func = library.module.func
        run = func.grad_and_value(by_sums, argnums=(1, 2, 3))
        found = compiled(library, lambda *a: run(*a)[::-1], shocks, *market)
        scalars = [value.clone().requires_grad_() for value in market]

        def taped():
            value = by_sums(shocks, *scalars)
            return value, library.module.autograd.grad(value, scalars)

        return found | {"tape": taped}
    calls = {}
    # The first is the one whose memory is measured: it needs least.
    for name, function in (("forward", None), ("scan", by_scan), ("sums", by_sums)):
        if function is None:  # three tangents beside the values: nothing of the way back is kept
            calls[name] = forward(library, by_scan, shocks, *market)
        else:
            run = library.module.value_and_grad(function, argnums=(1, 2, 3))
            calls[name] = compiled(library, run, shocks, *market)[""]
    return calls


def forward(library, function, shocks, *market):
    module, xp = library.module, library.xp

    def run(shocks, *market):
        def along(way):
            return module.jvp(lambda *m: function(shocks, *m), market, tuple(way))

        values, slopes = module.vmap(along)(xp.eye(3, dtype="float32"))
        return values[0], (slopes[0], slopes[1], slopes[2])

    return compiled(library, run, shocks, *market)[""]


ASIAN = {
    "inputs": asian_inputs,
    "reference": asian_reference,
    "calls": {"jaxlike": asian, "torchlike": asian},
    "tolerance": 1e-3,
}

ROWS = [
    options_row("black-scholes", "price and five Greeks in closed form, 4M", {"*": closed}),
    options_row(
        "black-scholes-grad",
        "the Greeks as derivatives of the price, 4M",
        {"jaxlike": derived, "torchlike": derived},
    ),
    Row(
        "finance/asian",
        "Asian option, 2^15 × 252, price and pathwise Greeks",
        best_peer(),
        work=Work(bytes=4 * PATHS * DAYS, flops=25 * PATHS * DAYS),
        fresh=True,
        **ASIAN,
    ),
    Row(
        "finance/asian-memory",
        "its memory at most, beyond the random numbers",
        megabytes(64),
        cold=True,
        unit="B",
        **ASIAN,
    ),
]
