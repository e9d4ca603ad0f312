"""Random numbers with state, against the keys underneath.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import random
from plait.random import Generator


def same(a, b):
    if plait.dtypes.issubdtype(a.dtype, plait.dtypes.prng_key):
        a, b = random.key_data(a), random.key_data(b)
    return np.array_equal(np.asarray(a), np.asarray(b))


def test_draws_are_those_of_split_keys():
    g = Generator(7)
    key = random.key(7)
    for draw, function in (
        (g.normal((3,)), lambda k: random.normal(k, (3,))),
        (g.uniform((2, 2), minval=-1.0), lambda k: random.uniform(k, (2, 2), minval=-1.0)),
        (g.randint((4,), 0, 10), lambda k: random.randint(k, (4,), 0, 10)),
        (g.permutation(5), lambda k: random.permutation(k, 5)),
        (g.next_key(), lambda k: k),
    ):
        key, subkey = random.split(key)
        assert same(draw, function(subkey))
    assert same(g.key, key)


def test_every_function_that_takes_a_key_is_a_method():
    others = {
        "key",
        "PRNGKey",
        "key_data",
        "wrap_key_data",
        "clone",
        "split",
        "fold_in",
        "Generator",
    }
    for name in random.__all__:
        assert name in others or callable(getattr(Generator, name)), name


def test_jit_gives_the_bits_of_eager():
    def draw(g):
        a = g.normal((3,))
        return a, g.uniform(), g

    eager = draw(Generator(3))
    jitted = plait.jit(draw)(Generator(3))
    assert same(eager[0], jitted[0]) and same(eager[1], jitted[1])
    assert isinstance(jitted[2], Generator) and same(eager[2].key, jitted[2].key)
    # The state that is returned goes on.
    assert same(eager[2].normal(), plait.jit(lambda g: g.normal())(jitted[2]))


def test_arguments_are_copies():
    g = Generator(0)
    before = g.key
    first = plait.jit(lambda g: g.normal((2,)))(g)
    assert same(before, g.key)
    assert same(first, plait.jit(lambda g: g.normal((2,)))(g))


def test_split_gives_generators_to_map_over():
    many = Generator(1).split(4)
    assert len(many) == 4
    mapped = plait.jit(plait.vmap(lambda g: g.normal((3,))))(many)
    for i in range(4):
        assert same(mapped[i], many[i].normal((3,)))
    assert len({np.asarray(row).tobytes() for row in mapped}) == 4
    with pytest.raises(plait.ShapeError, match="one draws"):
        many.normal()


def test_captured_generators_advance_where_values_are_known():
    g, other = Generator(5), Generator(5)
    w = pnp.arange(3.0)
    gradient = plait.grad(lambda w: pnp.sum(w * g.normal((3,))))(w)
    assert same(gradient, other.normal((3,)))
    # All lanes see the same numbers.
    rows = plait.vmap(lambda x: x * 0 + g.normal())(pnp.zeros(3))
    expected = other.normal()
    assert same(rows, [expected] * 3)
    assert same(g.key, other.key)


def test_captured_generators_cannot_advance_in_a_program():
    g = Generator(0)
    before = g.key
    with pytest.raises(plait.TracerError, match="cannot advance inside"):
        plait.jit(lambda x: x + g.normal())(1.0)
    assert same(g.key, before)

    @plait.jit
    def inner_captures(g):
        return plait.jit(lambda x: x + g.normal())(1.0)

    with pytest.raises(plait.TracerError, match="cannot advance inside"):
        inner_captures(g)
    # One that is made inside is fine.
    assert same(plait.jit(lambda seed: Generator(seed).normal())(3), Generator(3).normal())


def test_wrong_seeds_and_keys():
    for wrong in ({}, {"seed": 1, "key": random.key(1)}):
        with pytest.raises(plait.ValueError):
            Generator(**wrong)
    with pytest.raises(plait.ShapeError):
        Generator(key=np.zeros(3, np.uint32))
    with pytest.raises(plait.IndexError):
        Generator(0)[0]
    with pytest.raises(plait.Error):
        Generator("seed")


def test_trees_of_generators():
    leaves, structure = plait.tree.flatten({"g": Generator(2), "x": 1.0})
    assert len(leaves) == 2
    again = plait.tree.unflatten(structure, leaves)
    assert same(again["g"].normal(), Generator(2).normal())
