"""A transformer that learns a text by heart, and recites it one character at a time from a cache of keys and values.

Training sees whole passages. Generating, each step computes one place: its key and value go into the cache, by an
index that the program computes, and its query looks at what the cache holds so far. The same characters come out as
from the whole passage computed anew at every step, for a fraction of the work.
"""

# SPDX-License-Identifier: Apache-2.0
from functools import partial

import numpy as np

import plait.numpy as jnp
from plait import jit, lax, nn, optim, random, value_and_grad, vmap

TEXT = """A pure function is traced to a program, small and typed, which prints as text. Every transform takes such
programs and gives such programs: derivatives, batches, sequences of unequal length. What runs at the end is one
executable. The same transforms work on functions of your own, in either language. """.replace(
    "\n", " "
)
ALPHABET = sorted(set(TEXT))
LENGTH, WIDTH, HEADS, LAYERS = 48, 48, 4, 2
SIZE = WIDTH // HEADS  # of a head


def init(key):
    def matrix(key, rows, columns):
        return random.normal(key, (rows, columns)) / rows**0.5

    def layer(key):
        keys = random.split(key, 4)
        return {
            "qkv": matrix(keys[0], WIDTH, 3 * WIDTH),
            "out": matrix(keys[1], WIDTH, WIDTH),
            "up": matrix(keys[2], WIDTH, 4 * WIDTH),
            "down": matrix(keys[3], 4 * WIDTH, WIDTH),
        }

    keys = random.split(key, 2 + LAYERS)
    return {
        "characters": matrix(keys[0], len(ALPHABET), WIDTH),
        "places": matrix(keys[1], LENGTH, WIDTH),
        "layers": [layer(k) for k in keys[2:]],
    }


def normalized(x):
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True) + 1e-5)


def projected(layer, h):
    """Queries, keys and values of (..., WIDTH): (..., HEADS, SIZE) each."""
    qkv = (normalized(h) @ layer["qkv"]).reshape(*h.shape[:-1], 3, HEADS, SIZE)
    return qkv[..., 0, :, :], qkv[..., 1, :, :], qkv[..., 2, :, :]


def attend(q, k, v, may_see):
    """q of (places, HEADS, SIZE) looks at k and v of (others, HEADS, SIZE) where may_see (places, others)."""
    scores = jnp.einsum("qhd,khd->hqk", q, k) / SIZE**0.5
    weights = nn.softmax(jnp.where(may_see, scores, -1e9), axis=-1)
    return jnp.einsum("hqk,khd->qhd", weights, v)


def finish(layer, h, attended):
    h = h + attended.reshape(h.shape) @ layer["out"]
    return h + nn.gelu(normalized(h) @ layer["up"]) @ layer["down"]


def logits(params, characters):
    """Of the next character, after each of a passage."""
    length = characters.size
    h = params["characters"][characters] + params["places"][:length]
    causal = jnp.tril(jnp.ones((length, length), dtype=bool))
    for layer in params["layers"]:
        q, k, v = projected(layer, h)
        h = finish(layer, h, attend(q, k, v, causal))
    return normalized(h) @ params["characters"].T


def loss(params, passages):
    scores = nn.log_softmax(vmap(partial(logits, params))(passages[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(scores, passages[:, 1:, None], axis=-1))


def train(key, text, steps=250, batch=16):
    """(the parameters, the loss of each step)."""
    start, rest = random.split(key)
    params = init(start)

    def step(carry, key):
        params, state = carry
        begins = random.randint(key, (batch, 1), 0, text.size - LENGTH)
        value, grads = value_and_grad(loss)(params, text[begins + jnp.arange(LENGTH + 1)])
        updates, state = optim.adam(grads, state, params, 3e-3)
        return (optim.apply_updates(params, updates), state), value

    carry = params, optim.adam_init(params)
    (params, _), losses = lax.scan(step, carry, random.split(rest, steps))
    return params, losses


def one_place(params, cache, place, character):
    """(logits, cache) of one more character: its keys and values go to `place` of the cache."""
    h = (params["characters"][character] + params["places"][place])[None]
    may_see = jnp.arange(LENGTH)[None] <= place
    kept = []
    for layer, (keys, values) in zip(params["layers"], cache):
        q, k, v = projected(layer, h)
        keys = lax.dynamic_update_slice(keys, k, (place, 0, 0))
        values = lax.dynamic_update_slice(values, v, (place, 0, 0))
        h = finish(layer, h, attend(q, keys, values, may_see))
        kept.append((keys, values))
    return (normalized(h) @ params["characters"].T)[0], kept


def recite(params, prompt):
    """The passage that begins with prompt, by the cache."""
    empty = jnp.zeros((LENGTH, HEADS, SIZE))
    cache = [(empty, empty) for _ in range(LAYERS)]

    def step(carry, place):
        cache, character = carry
        scores, cache = one_place(params, cache, place, character)
        known = prompt[jnp.minimum(place + 1, prompt.size - 1)]
        following = jnp.where(place + 1 < prompt.size, known, jnp.argmax(scores))
        return (cache, following), character

    return lax.scan(step, (cache, prompt[0]), jnp.arange(LENGTH))[1]


def recite_anew(params, prompt):
    """The same without a cache: the whole passage at every step."""
    passage = jnp.concatenate([prompt, jnp.zeros(LENGTH - prompt.size, prompt.dtype)])

    def step(place, passage):
        return passage.at[place].set(
            jnp.argmax(logits(params, passage)[place - 1]).astype(prompt.dtype)
        )

    return lax.fori_loop(prompt.size, LENGTH, step, passage)


def encoded(text):
    return jnp.array([ALPHABET.index(character) for character in text], dtype=jnp.int32)


def train_and_recite(key, text, prompt):
    params, losses = train(key, text)
    return losses, recite(params, prompt), recite_anew(params, prompt)


def program():
    """What is compiled, and its arguments."""
    return jit(train_and_recite), (random.key(0), encoded(TEXT), encoded("A pure fun"))


if __name__ == "__main__":
    run, arguments = program()
    losses, recited, anew = run(*arguments)
    print(f"loss {float(losses[0]):.1f}, after training below 0.3: {float(losses[-1]) < 0.3}")
    said = "".join(ALPHABET[i] for i in np.asarray(recited))
    print(f"recited: {said}")
    print(
        f"by heart: {said == TEXT[:LENGTH]}; the same without the cache: {bool(jnp.all(recited == anew))}"
    )
