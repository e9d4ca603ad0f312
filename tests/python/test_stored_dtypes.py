"""Dtypes for storage: float8, int4, uint4, and keys of random numbers, against ml_dtypes and raw keys.

SPDX-License-Identifier: Apache-2.0
"""

import pickle

import ml_dtypes
import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import random

NARROW = ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"]
FLOATS = NARROW[:2]


def bits(x):
    return np.asarray(x).view(np.uint8)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("door", [lambda f: f, plait.jit])
def test_float8_of_floats_are_those_of_ml_dtypes(name, source, door):
    rng = np.random.default_rng(0)
    numbers = np.concatenate([
        rng.normal(size=500) * 10.0 ** rng.integers(-7, 7, 500),
        np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name)).astype(float),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 61439, 61440, 2.0**-10, 2.0**-17, 1e-30],
    ])  # fmt: skip
    halves = (numbers[500:755] + numbers[501:756]) / 2  # what lies between two: halves go to even
    x = np.concatenate([numbers, halves]).astype(pnp.dtype(source))
    got = door(lambda x: x.astype(name))(pnp.asarray(x))
    wanted = x.astype(getattr(ml_dtypes, name))
    assert got.dtype == wanted.dtype and got.nbytes == x.size
    np.testing.assert_array_equal(np.asarray(got).astype(float), wanted.astype(float))
    same = ~np.isnan(wanted.astype(float))
    np.testing.assert_array_equal(bits(got)[same], bits(wanted)[same])


@pytest.mark.parametrize("name", NARROW)
def test_numbers_of_every_code(name):
    dtype = getattr(ml_dtypes, name)
    codes = np.arange(256, dtype=np.uint8) if name in FLOATS else np.arange(16, dtype=np.uint8)
    stored = codes.view(dtype) if name in FLOATS else codes.astype(dtype)
    x = pnp.asarray(stored)
    assert x.dtype == np.dtype(dtype)
    for target in ["float32", "float64", "int32", "bool"]:
        for f in [lambda x: x.astype(target), plait.jit(lambda x: x.astype(target))]:
            finite = np.isfinite(stored.astype(np.float32))
            np.testing.assert_array_equal(
                np.asarray(f(x))[finite | (target[0] == "f")],
                stored.astype(target)[finite | (target[0] == "f")],
            )
    np.testing.assert_array_equal(np.asarray(x).astype(float), stored.astype(float))
    assert x[3].item() == stored[3].item() and str(stored[3]) in str(x[3])
    again = pickle.loads(pickle.dumps(x))
    np.testing.assert_array_equal(np.asarray(again).astype(float), stored.astype(float))


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_integers_wrap_and_floats_saturate(name):
    dtype = getattr(ml_dtypes, name)
    whole = np.arange(-40, 40)
    np.testing.assert_array_equal(
        np.asarray(pnp.asarray(whole).astype(name)).astype(int), whole.astype(dtype).astype(int)
    )
    low, high = (-8, 7) if name == "int4" else (0, 15)
    x = np.array([-1e9, -8.7, -1.5, 0.4, 6.9, 14.2, 1e9, np.nan, np.inf])
    wanted = np.trunc(np.clip(np.nan_to_num(x, nan=0.0), low, high))
    np.testing.assert_array_equal(np.asarray(pnp.asarray(x).astype(name)).astype(float), wanted)


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("door", [lambda f: f, plait.jit])
def test_elements_are_moved(name, door):
    x = np.arange(24).reshape(4, 6) % 8
    stored = x.astype(getattr(ml_dtypes, name))
    a = pnp.asarray(stored)
    moves = [
        lambda a: a.T.reshape(3, 8)[::-1, 1:],
        lambda a: pnp.concatenate([a, a[:2]], 0),
        lambda a: pnp.take(a, pnp.array([2, 0, 2]), axis=1),
        lambda a: pnp.where(pnp.array([True, False] * 3), a, a[::-1]),
        lambda a: a.at[1, 2:4].set(a[0, :2]),
        lambda a: pnp.roll(pnp.tile(a, (2, 1)), 1, 0),
        lambda a: plait.vmap(lambda row, i: row[i])(a, pnp.array([0, 5, 2, 1])),
        lambda a: plait.lax.scan(lambda c, row: (row, c), a[0], a)[1],
        lambda a: plait.lax.cond(True, lambda a: a[1], lambda a: a[0], a),
    ]
    references = [
        lambda x: x.T.reshape(3, 8)[::-1, 1:],
        lambda x: np.concatenate([x, x[:2]], 0),
        lambda x: x[:, [2, 0, 2]],
        lambda x: np.where([True, False] * 3, x, x[::-1]),
        lambda x: np.concatenate([x[:1], [[x[1, 0], x[1, 1], x[0, 0], x[0, 1], *x[1, 4:]]], x[2:]]),
        lambda x: np.roll(np.tile(x, (2, 1)), 1, 0),
        lambda x: x[np.arange(4), [0, 5, 2, 1]],
        lambda x: np.concatenate([x[:1], x[:-1]]),
        lambda x: x[1],
    ]
    for move, reference in zip(moves, references):
        got = door(move)(a)
        assert got.dtype == stored.dtype
        np.testing.assert_array_equal(np.asarray(got).astype(int), reference(x))
    assert "u8" not in str(plait.make_jaxpr(moves[0])(a)).replace("uint", "")


@pytest.mark.parametrize("name", NARROW + ["key"])
def test_nothing_is_computed_with_them(name):
    x = random.split(random.key(0), 3) if name == "key" else pnp.ones(3).astype(name)
    for f in [
        lambda x: x + x, lambda x: x * 2, lambda x: -x, pnp.sum, pnp.sort, lambda x: x @ x,
        lambda x: x + pnp.ones(3), lambda x: x.at[0].add(x[1]), pnp.cumsum, pnp.argmax, pnp.max,
    ]:  # fmt: skip
        for door in [f, plait.jit(f)]:
            with pytest.raises(plait.DtypeError, match="astype|key_data"):
                door(x)


def test_what_has_no_answer_is_an_error():
    key = random.key(0)
    for f in [lambda: key < key, lambda: pnp.sum(key), lambda: float(key), lambda: key.item()]:
        with pytest.raises(plait.DtypeError, match="key_data"):
            f()
    for numbers, dtype in [([200], "int4"), (-1, "uint4"), ([8], "int4")]:
        with pytest.raises(ValueError, match="does not fit"):
            pnp.array(numbers, dtype=dtype)


def test_quantised_weights_train_what_is_not_stored():
    rng = np.random.default_rng(0)
    w = pnp.asarray(rng.normal(size=(8, 4)), dtype="float32")
    stored = {name: w.astype(name) for name in FLOATS}
    x = pnp.asarray(rng.normal(size=(5, 8)), dtype="float32")
    for name, weight in stored.items():
        loss = lambda scale, x: ((x @ weight.astype("float32")) * scale).sum()  # noqa: E731
        dense = np.asarray(weight).astype(np.float32)
        grad = plait.jit(plait.grad(loss, argnums=(0, 1)))(pnp.float32(2.0), x)
        np.testing.assert_allclose(grad[0], (np.asarray(x) @ dense).sum(), rtol=1e-5)
        np.testing.assert_allclose(grad[1], 2 * np.tile(dense.sum(1), (5, 1)), rtol=1e-5)
    with pytest.raises(plait.DtypeError, match="reduce_precision"):
        plait.grad(lambda w: w.astype("float8_e5m2").astype("float32").sum())(w)


def test_saved_programs_hold_them(tmp_path):
    weight = pnp.asarray(np.linspace(-2, 2, 12).reshape(3, 4)).astype("float8_e4m3fn")
    key = random.key(3)
    f = lambda x, k: x @ weight.astype("float32") + random.uniform(k, (4,)) + random.uniform(key)  # noqa: E731
    x = pnp.ones(3)
    path = tmp_path / "p.plait"
    plait.save(path, f, x, random.key(1))
    loaded = plait.load(path, verify=True)
    np.testing.assert_array_equal(
        np.asarray(loaded(x, random.key(1))), np.asarray(f(x, random.key(1)))
    )
    text = str(plait.make_jaxpr(f)(x, key))
    assert "key<fry>[]" in text and str(plait.parse_jaxpr(text)) == text


# --- Keys ----------------------------------------------------------------------------------------


def test_keys_are_scalars_of_their_own_dtype():
    key = random.key(7)
    assert key.shape == () and str(key.dtype) == "key<fry>" and key.dtype == random.key(1).dtype
    assert plait.dtypes.issubdtype(key.dtype, plait.dtypes.prng_key)
    assert not plait.dtypes.issubdtype(np.float32, plait.dtypes.prng_key)
    np.testing.assert_array_equal(random.key_data(key), random.PRNGKey(7))
    keys = random.split(key, (2, 3))
    assert keys.shape == (2, 3)
    np.testing.assert_array_equal(random.key_data(keys), random.split(random.PRNGKey(7), (2, 3)))
    assert bool((random.wrap_key_data(random.key_data(keys)) == keys).all())
    assert "key<fry>" in repr(key) and "7" in repr(key)
    again = pickle.loads(pickle.dumps(keys))
    assert again.dtype == keys.dtype and bool((again == keys).all())
    with pytest.raises(plait.DtypeError, match="key_data"):
        np.asarray(key)


DRAWS = {
    "bits": lambda k: random.bits(k, (5,)),
    "uniform": lambda k: random.uniform(k, (2, 3)),
    "normal": lambda k: random.normal(k, (4,)),
    "randint": lambda k: random.randint(k, (6,), 0, 100),
    "permutation": lambda k: random.permutation(k, 10),
    "choice": lambda k: random.choice(k, 10, (4,), replace=False),
    "gamma": lambda k: random.gamma(k, 2.5, (3,)),
    "poisson": lambda k: random.poisson(k, 4.0, (3,)),
    "categorical": lambda k: random.categorical(k, pnp.array([0.1, 0.5, 0.4]), shape=(5,)),
    "multivariate_normal": lambda k: random.multivariate_normal(k, pnp.zeros(2), pnp.eye(2)),
    "fold_in": lambda k: random.key_data(random.fold_in(k, 5)),
    "split": lambda k: random.key_data(random.split(k, 4)),
    "in a loop": lambda k: plait.lax.fori_loop(
        0, 5, lambda i, c: (random.split(c[0])[0], c[1] + random.normal(c[0])), (k, pnp.float32(0))
    )[1],
    "in a scan": lambda k: plait.lax.scan(
        lambda c, k: (c + random.uniform(k), random.normal(k, (2,))), 0.0, random.split(k, 5)
    )[1],
    "in a branch": lambda k: plait.lax.cond(
        random.bernoulli(k), lambda k: random.normal(k), lambda k: random.uniform(k), k
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_the_words(name):
    f = DRAWS[name]
    keys, words = random.split(random.key(11), 4), random.split(random.PRNGKey(11), 4)
    for door in [lambda f: lambda k: f(k[0]), lambda f: plait.jit(lambda k: f(k[1])), plait.vmap, lambda f: plait.jit(plait.vmap(f))]:  # fmt: skip
        np.testing.assert_array_equal(np.asarray(door(f)(keys)), np.asarray(door(f)(words)))


def test_keys_in_trees_that_are_differentiated():
    def loss(state):
        weight, key = state["weight"], state["key"]
        return (weight * random.normal(key, weight.shape)).sum()

    state = {"weight": pnp.ones(3), "key": random.key(0)}
    grad = plait.grad(lambda w: loss({**state, "weight": w}))(state["weight"])
    np.testing.assert_allclose(grad, random.normal(random.key(0), (3,)), rtol=1e-6)
    step = plait.jit(
        lambda state: {"weight": state["weight"] * 2, "key": random.split(state["key"])[0]},
        donate_argnums=0,
    )
    assert step(state)["key"].dtype == state["key"].dtype


def test_bits_as_wider_and_narrower_elements():
    x = np.arange(24, dtype=np.uint32).reshape(2, 6, 2) * 2654435761
    for door in [lambda f: f, plait.jit]:
        cast = lambda x, dtype: door(lambda x: plait.lax.bitcast_convert_type(x, dtype))(x)  # noqa: E731
        np.testing.assert_array_equal(cast(x, "uint64"), x.view(np.uint64)[..., 0])
        np.testing.assert_array_equal(cast(x, "float64"), x.view(np.float64)[..., 0])
        np.testing.assert_array_equal(cast(x, "uint8"), x[..., None].view(np.uint8))
        np.testing.assert_array_equal(cast(x, "int16"), x[..., None].view(np.int16))
    with pytest.raises(plait.ShapeError, match="last axis of 4"):
        plait.lax.bitcast_convert_type(pnp.zeros((2, 3), "uint8"), "uint32")
