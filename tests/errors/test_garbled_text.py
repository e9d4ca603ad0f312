"""Text that is no program is parsed or refused, and nothing else happens."""

# SPDX-License-Identifier: Apache-2.0
import random
import re


import plait
import plait.numpy as jnp
from plait import _plait, grad, make_jaxpr, mask


def test_mutated_programs_are_parsed_or_refused(unharmed):
    seeds = [
        str(make_jaxpr(lambda x, w: jnp.tanh(x @ w).sum())("n d", "d k")),
        str(make_jaxpr(grad(lambda x: jnp.sum(jnp.exp(x) * x)))(jnp.ones(3))),
        str(make_jaxpr(lambda x: plait.nn.softmax(jnp.pad(x, 1)))("n d")),
        str(make_jaxpr(mask(lambda x: jnp.sort(x).sum(), "n"))(jnp.ones(5), n=3)),
        str(make_jaxpr(lambda x: jnp.cumsum(x)[jnp.argsort(x)][1:])(jnp.ones(4))),
        str(make_jaxpr(lambda x: plait.lax.conv_general_dilated(x, x, (1, 1), "SAME"))(jnp.ones((1, 1, 4, 4)))),
    ]  # fmt: skip
    tokens = "{ } lambda ; . let in ( ) [ ] = : f32 i32 n a -1 0 9223372036854775807 1e400 nan * // ' \0 @f#1 , axes body call".split()
    numbers = ["0", "1", "7", "-1", "64", "4611686018427387904", "99999999999999999999"]
    choose = random.Random(0)
    for seed in seeds:
        assert str(_plait.parse_jaxpr(seed)) == seed
    for _ in range(6000):
        text = choose.choice(seeds)
        for _ in range(choose.choice([1, 1, 2, 4])):
            kind, at = choose.random(), choose.randrange(len(text) + 1)
            until = min(len(text), at + choose.choice([1, 2, 20]))
            found = list(re.finditer(r"-?\d+|\w+", text)) or [re.match("", text)]
            word = choose.choice(found)
            if kind < 0.25:
                text = text[:at] + text[until:]
            elif kind < 0.5:
                text = text[:at] + choose.choice(tokens) + text[until:]
            elif kind < 0.75:
                text = text[: word.start()] + choose.choice(numbers) + text[word.end() :]
            else:
                text = text[: word.start()] + choose.choice(found).group() + text[word.end() :]
        try:
            _plait.parse_jaxpr(text)
        except plait.Error as error:
            assert not isinstance(error, plait.InternalError), text
    unharmed()
