"""The No-U-Turn sampler, many chains at once: trees of unknown size as while_loops under vmap.

The posterior of the eight schools (Rubin 1981), whose parts pull against each other. A trajectory doubles until it
turns back. Each new half is walked leaf by leaf, with the momenta of log2 of its leaves kept, so that every balanced
part of it is asked whether it turns, without recursion (Hoffman and Gelman 2014; Betancourt 2017; Phan et al. 2019).
"""

# SPDX-License-Identifier: Apache-2.0
from typing import Any, NamedTuple

import plait.numpy as jnp
from plait import jit, lax, random, tree, value_and_grad, vmap

MAX_DEPTH = 8
MOST_ENERGY = 1000.0  # beyond this the integrator has diverged
effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
deviations = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def negative_log_density(q):
    """q = (mu, log tau, z): school i has the effect mu + tau z[i]; tau is half-Cauchy(5), mu normal(0, 5)."""
    mu, log_tau, z = q[0], q[1], q[2:]
    tau = jnp.exp(log_tau)
    prior = mu**2 / 50 + jnp.log1p((tau / 5) ** 2) - log_tau + jnp.sum(z**2) / 2
    return prior + jnp.sum(((effects - mu - tau * z) / deviations) ** 2) / 2


class Point(NamedTuple):
    q: Any
    p: Any
    slope: Any  # of the negative log density
    energy: Any


class Half(NamedTuple):
    """What is known of a half of the tree while its leaves are walked."""

    last: Point
    chosen: Any  # a leaf, by its weight
    log_weight: Any
    sum_p: Any
    is_over: Any  # it turned, or diverged
    leaves: Any
    kept_p: Any  # (MAX_DEPTH, n)
    kept_sums: Any


def point_of(q, p):
    value, slope = value_and_grad(negative_log_density)(q)
    return Point(q, p, slope, value + jnp.sum(p**2) / 2)


def leapfrog(point, step):
    p = point.p - step / 2 * point.slope
    moved = point_of(point.q + step * p, p)
    p = moved.p - step / 2 * moved.slope
    return moved._replace(p=p, energy=moved.energy + (jnp.sum(p**2) - jnp.sum(moved.p**2)) / 2)


def turns(first_p, last_p, sum_p):
    centred = sum_p - (first_p + last_p) / 2
    return (jnp.dot(first_p, centred) <= 0) | (jnp.dot(last_p, centred) <= 0)


def ones_at_the_end(n):
    return jnp.sum(jnp.cumprod((n >> jnp.arange(MAX_DEPTH)) & 1))


def part_turns(half, p, sum_p):
    """Whether a balanced part that ends with this leaf, an odd one, turns: its first leaves are kept."""
    place = jnp.sum((half.leaves >> (1 + jnp.arange(MAX_DEPTH))) & 1)
    first = place - ones_at_the_end(half.leaves) + 1

    def check(i, found):
        there = (first <= i) & (i <= place)
        part = sum_p - half.kept_sums[i] + half.kept_p[i]
        return found | (there & turns(half.kept_p[i], p, part))

    return lax.fori_loop(0, MAX_DEPTH, check, False)


def walk(key, start, step, size, energy):
    """A half of `size` leaves beyond start."""

    def add(state):
        key, half = state
        key, draw = random.split(key)
        leaf = leapfrog(half.last, step)
        log_weight = jnp.nan_to_num(energy - leaf.energy, nan=-jnp.inf)
        total = jnp.logaddexp(half.log_weight, log_weight)
        takes = jnp.log(random.uniform(draw)) < log_weight - total
        sum_p = half.sum_p + leaf.p
        is_even = half.leaves % 2 == 0
        place = jnp.sum((half.leaves >> (1 + jnp.arange(MAX_DEPTH))) & 1)
        keep = lambda kept, x: kept.at[place].set(jnp.where(is_even, x, kept[place]))  # noqa: E731
        is_turned = ~is_even & part_turns(half, leaf.p, sum_p)
        return key, Half(
            leaf,
            jnp.where(takes, leaf.q, half.chosen),
            total,
            sum_p,
            is_turned | (log_weight < -MOST_ENERGY),
            half.leaves + 1,
            keep(half.kept_p, leaf.p),
            keep(half.kept_sums, sum_p),
        )

    n = start.q.size
    none = jnp.zeros((MAX_DEPTH, n), start.q.dtype)
    zero = jnp.zeros(n, start.q.dtype)
    half = Half(start, start.q, -jnp.inf, zero, False, 0, none, none)
    return lax.while_loop(lambda s: (s[1].leaves < size) & ~s[1].is_over, add, (key, half))[1]


class Tree(NamedTuple):
    key: Any
    left: Point
    right: Point
    chosen: Any
    log_weight: Any
    sum_p: Any
    depth: Any
    leaves: Any
    is_over: Any


def double(t, step, energy):
    key, side, inside, draw = random.split(t.key, 4)
    goes_right = random.bernoulli(side)
    end = tree.map(lambda a, b: jnp.where(goes_right, a, b), t.right, t.left)
    half = walk(inside, end, jnp.where(goes_right, step, -step), 2**t.depth, energy)
    left = tree.map(lambda a, b: jnp.where(goes_right, a, b), t.left, half.last)
    right = tree.map(lambda a, b: jnp.where(goes_right, a, b), half.last, t.right)
    # The new half is preferred: the chance is the ratio of the weights, not their share.
    takes = ~half.is_over & (jnp.log(random.uniform(draw)) < half.log_weight - t.log_weight)
    sum_p = t.sum_p + half.sum_p
    return Tree(
        key,
        left,
        right,
        jnp.where(takes, half.chosen, t.chosen),
        jnp.logaddexp(t.log_weight, half.log_weight),
        sum_p,
        t.depth + 1,
        t.leaves + half.leaves,
        half.is_over | turns(left.p, right.p, sum_p),
    )


def transition(key, q, step):
    """(the next sample, how many leaves its tree had)."""
    key, draw = random.split(key)
    start = point_of(q, random.normal(draw, q.shape))
    t = Tree(key, start, start, q, 0.0, start.p, 0, 0, False)
    t = lax.while_loop(
        lambda t: (t.depth < MAX_DEPTH) & ~t.is_over, lambda t: double(t, step, start.energy), t
    )
    return t.chosen, t.leaves


def chain(key, count, step=0.25):
    start, steps = random.split(key)
    q = 0.1 * random.normal(start, (2 + effects.size,))

    def next_sample(q, key):
        q, leaves = transition(key, q, step)
        return q, (q, leaves)

    return lax.scan(next_sample, q, random.split(steps, count))[1]


def program():
    """What is compiled, and its arguments."""
    return jit(vmap(lambda key: chain(key, 600))), (random.split(random.key(0), 4),)


if __name__ == "__main__":
    run, arguments = program()
    samples, leaves = run(*arguments)
    kept = samples[:, 100:]
    mu, tau = kept[..., 0], jnp.exp(kept[..., 1])
    # Between chains and within them: near 1 where they agree (Gelman and Rubin 1992).
    within = jnp.mean(jnp.var(mu, axis=1))
    agreement = jnp.sqrt(1 + jnp.var(jnp.mean(mu, axis=1)) / within)
    print(
        f"mu {float(jnp.mean(mu)):.1f} ± {float(jnp.std(mu)):.1f}, tau {float(jnp.mean(tau)):.1f}"
    )
    print(f"{float(jnp.mean(leaves)):.1f} leaves a tree, at most {int(jnp.max(leaves))}")
    print(f"chains agree: {bool(agreement < 1.1)}")
