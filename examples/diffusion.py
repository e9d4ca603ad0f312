"""Diffusion on the handwritten digits: a network learns to take noise away, and draws digits from noise alone.

The network sees an image with noise, how much there is, and which digit it is, and says what the image was (Ho et al.
2020). Images are then drawn in twenty deterministic steps (Song et al. 2021). Training is one scan, drawing another.
"""

# SPDX-License-Identifier: Apache-2.0
import numpy as np
from digits import load_digits

import plait.numpy as jnp
from plait import jit, lax, nn, optim, random, value_and_grad

HIDDEN, LEVELS, DRAWN = 128, 200, 20
# How much of the image is left at each level (Nichol and Dhariwal 2021).
SIGNAL = jnp.cos(jnp.linspace(0.01, 0.99, LEVELS) * (jnp.pi / 2)) ** 2


def features(level):
    """A level as sines and cosines."""
    angles = level[:, None] / LEVELS * 2.0 ** jnp.arange(6) * jnp.pi
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=-1)


def init(key):
    sizes = [64 + 12 + 10, HIDDEN, HIDDEN, HIDDEN, 64]
    keys = random.split(key, len(sizes) - 1)
    return [
        {"w": random.normal(k, (a, b)) * (2 / a) ** 0.5, "b": jnp.zeros(b)}
        for k, a, b in zip(keys, sizes, sizes[1:])
    ]


def predict(params, noisy, level, digit):
    """The images, (n, 64), without their noise; of levels and digits, (n,)."""
    h = jnp.concatenate([noisy, features(level), nn.one_hot(digit, 10)], axis=-1)
    for layer in params[:-1]:
        h = nn.silu(h @ layer["w"] + layer["b"])
    return h @ params[-1]["w"] + params[-1]["b"]


def loss(params, key, images, digits):
    for_level, for_noise = random.split(key)
    level = random.randint(for_level, digits.shape, 0, LEVELS)
    noise = random.normal(for_noise, images.shape)
    kept = SIGNAL[level][:, None]
    noisy = jnp.sqrt(kept) * images + jnp.sqrt(1 - kept) * noise
    return jnp.mean((predict(params, noisy, level, digits) - images) ** 2)


def train(key, images, digits, steps=1000, batch=128):
    """(the parameters, the loss of each step)."""
    start, rest = random.split(key)
    params = init(start)

    def step(carry, key_and_rate):
        (params, state), (key, rate) = carry, key_and_rate
        pick, inside = random.split(key)
        chosen = random.choice(pick, images.shape[0], (batch,))
        value, grads = value_and_grad(loss)(params, inside, images[chosen], digits[chosen])
        updates, state = optim.adam(grads, state, params, rate)
        return (optim.apply_updates(params, updates), state), value

    carry = params, optim.adam_init(params)
    rates = jnp.linspace(3e-3, 0, steps)
    (params, _), losses = lax.scan(step, carry, (random.split(rest, steps), rates))
    return params, losses


def draw(params, key, digits):
    """Images of these digits, from noise."""
    levels = jnp.linspace(LEVELS - 1, 0, DRAWN).astype(jnp.int32)

    def step(image, level_and_next):
        level, following = level_and_next
        clean = jnp.clip(predict(params, image, jnp.full(digits.shape, level), digits), -1, 1)
        noise = (image - jnp.sqrt(SIGNAL[level]) * clean) / jnp.sqrt(1 - SIGNAL[level])
        return jnp.sqrt(SIGNAL[following]) * clean + jnp.sqrt(1 - SIGNAL[following]) * noise, clean

    noise = random.normal(key, (digits.size, 64))
    return lax.scan(step, noise, (levels[:-1], levels[1:]))[1][-1]


def train_and_draw(key, images, digits, wanted):
    for_training, for_drawing = random.split(key)
    params, losses = train(for_training, images, digits)
    return losses, draw(params, for_drawing, wanted)


def program():
    """What is compiled, and its arguments."""
    images, digits = load_digits()
    wanted = np.tile(np.arange(10, dtype=np.int32), 10)
    return jit(train_and_draw), (
        random.key(0),
        jnp.asarray(2 * images - 1),
        jnp.asarray(digits),
        wanted,
    )


if __name__ == "__main__":
    run, arguments = program()
    losses, drawn = run(*arguments)
    print(f"loss {float(losses[0]):.1f}, then {float(jnp.mean(losses[-100:])):.2f}")
    # Is what was drawn the digit that was asked for, by the nearest of those in the data?
    images, digits, wanted, drawn = map(np.asarray, (*arguments[1:], drawn))
    squared = ((drawn[:, None] - images[None]) ** 2).sum(-1)
    right = np.mean(digits[squared.argmin(axis=1)] == wanted)
    print(f"at least 90 of 100 drawn digits are nearest to one of their kind: {right >= 0.9}")
    for row in drawn[:5].reshape(5, 8, 8).transpose(1, 0, 2):
        print(
            "  ".join(
                "".join(" .+#"[int(v)] for v in np.clip((part + 1) * 2, 0, 3)) for part in row
            )
        )
