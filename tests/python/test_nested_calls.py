"""Programs whose bodies are shared: a jitted function called twice at each of many levels.

SPDX-License-Identifier: Apache-2.0
"""

import pytest

import plait
import plait.numpy as pnp

LEVELS = 60


def nested(levels):
    """sin 2^levels times, each level a jitted function of its own."""
    f = plait.jit(pnp.sin)
    for _ in range(levels):
        f = plait.jit(lambda x, f=f: f(f(x)))
    return f


def looped(x):
    return plait.lax.fori_loop(0, 3, lambda i, x: nested(LEVELS)(x), x)


USES = {
    "trace": lambda x: plait.make_jaxpr(nested(LEVELS))(x),
    "loop": lambda x: plait.make_jaxpr(looped)(x),
    "vmap": lambda x: plait.make_jaxpr(plait.vmap(nested(LEVELS)))(x),
    "vmap of a loop": lambda x: plait.make_jaxpr(plait.vmap(looped))(x),
    "mask": lambda x: plait.make_jaxpr(lambda x, n: plait.mask(nested(LEVELS), ("n",))(x, n=n))(
        x, 2
    ),
    "branch of examples": lambda x: plait.make_jaxpr(
        plait.vmap(lambda x: plait.lax.cond(x > 5, nested(LEVELS), pnp.cos, x))
    )(x),
}


@pytest.mark.parametrize("use", USES)
def test_a_body_that_is_called_twice_at_each_level_is_walked_once(use):
    USES[use](pnp.ones(3))  # a walk into each call would take years
