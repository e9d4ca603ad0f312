"""The first step of a large program: GPT-2 small, twelve layers, Adam, one sequence of 128."""

# SPDX-License-Identifier: Apache-2.0

import functools
import math

import numpy as np
from rows import Row, Work, best_peer, both, milliseconds, of_row
from rows_attention import OfNumPy, own_of
from rows_training import DECAY1, DECAY2, RATE, SMALL, adam_step

LAYERS, WIDTH, HEADS, TIME, WORDS = 12, 768, 12, 128, 50257


def weights():
    rng = np.random.default_rng(0)

    def draw(*shape):
        return 0.02 * rng.standard_normal(shape, dtype=np.float32)

    layers = [
        {
            "in": draw(WIDTH, 3 * WIDTH),
            "out": draw(WIDTH, WIDTH),
            "up": draw(WIDTH, 4 * WIDTH),
            "down": draw(4 * WIDTH, WIDTH),
            "scale1": 1 + draw(WIDTH),
            "scale2": 1 + draw(WIDTH),
        }
        for _ in range(LAYERS)
    ]
    params = {"words": draw(WORDS, WIDTH), "places": draw(TIME, WIDTH), "layers": layers}
    params["scale"] = 1 + draw(WIDTH)
    tokens = rng.integers(0, WORDS, (1, TIME + 1)).astype(np.int32)
    return params, tokens


def loss(own, xp, params, tokens):
    """Mean cross-entropy of the next token; xp has NumPy's names."""
    words, targets = tokens[:, :-1], tokens[:, 1:]
    x = own.take(params["words"], words) + params["places"]
    for layer in params["layers"]:
        h = own.normal(x, layer["scale1"]) @ layer["in"]
        q, k, v = (
            h[..., i * WIDTH : (i + 1) * WIDTH].reshape(1, TIME, HEADS, -1) for i in range(3)
        )
        x = x + own.causal(q, k, v).reshape(1, TIME, WIDTH) @ layer["out"]
        x = x + own.gelu(own.normal(x, layer["scale2"]) @ layer["up"]) @ layer["down"]
    logits = own.normal(x, params["scale"]) @ params["words"].T
    return own.entropy(xp, logits.reshape(TIME, WORDS), targets.reshape(TIME))


def entropy(xp, logits, targets):
    top = logits.max(axis=-1, keepdims=True)
    total = xp.log(xp.exp(logits - top).sum(axis=-1)) + top[:, 0]
    return (total - xp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]).mean()


def extended(library):
    """The functions of the block, and those that a language model needs besides."""
    own = own_of(library)
    if library.kind == "torchlike":
        functional = library.module.nn.functional
        own.take = lambda table, index: functional.embedding(index, table)
        own.entropy = lambda xp, logits, targets: functional.cross_entropy(logits, targets.long())

        def causal(q, k, v):
            q, k, v = (a.transpose(1, 2) for a in (q, k, v))
            attend = functional.scaled_dot_product_attention
            return attend(q, k, v, is_causal=True).transpose(1, 2)

    else:
        own.take = lambda table, index: library.xp.take(table, index, axis=0, mode="clip")
        own.entropy = entropy
        causal = functools.partial(own.nn.dot_product_attention, is_causal=True)
    own.causal = causal
    return own


class OfNumPyToo(OfNumPy):
    entropy = staticmethod(entropy)

    def take(self, table, index):
        return table[index]

    def causal(self, q, k, v):
        scores = np.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
        scores = np.where(np.tri(TIME, dtype=bool), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bhts,bshd->bthd", e / e.sum(-1, keepdims=True), v)


def first_loss(params, tokens):
    return loss(OfNumPyToo(), np, params, tokens)


def step(library, params, tokens):
    """One step of Adam; gives the loss before it."""
    own, xp = extended(library), library.xp
    if library.kind == "torchlike":
        return torch_step(library, own, params, tokens)
    tree_map = library.module.tree.map
    zeros = [tree_map(xp.zeros_like, params) for _ in range(2)]
    now = [(params, *zeros, library.array(np.float32(0)))]
    advance = adam_step(library, functools.partial(loss, own, xp))
    jitted = library.jit(advance, donate_argnums=0)

    def call():
        now[0], value = jitted(now[0], tokens)
        return library.wait(value)

    return call


def torch_step(library, own, params, tokens):
    from rows import leaves

    torch = library.module
    flat = [array.requires_grad_() for array in leaves(params)]
    optimizer = torch.optim.Adam(flat, RATE, (DECAY1, DECAY2), SMALL, fused=True)
    value = library.jit(functools.partial(loss, own, library.xp))

    def call():
        optimizer.zero_grad(set_to_none=True)
        result = value(params, tokens)
        result.backward()
        optimizer.step()
        return result

    return call


COUNT = WORDS * WIDTH + LAYERS * 12 * WIDTH**2
GPT = {
    "inputs": weights,
    "reference": first_loss,
    "calls": {"jaxlike": step, "torchlike": step},
    "work": Work(flops=6 * COUNT * TIME, bytes=4 * 7 * COUNT),
    "cold": True,
}

ROWS = [
    Row("first/gpt2", "first Adam step of GPT-2 small, T=128", milliseconds(1000), **GPT),
    Row(
        "first/gpt2-again",
        "the same in a second process, with caches on disk",
        both(of_row("first/gpt2", 0.2), best_peer()),
        cached=True,
        **GPT,
    ),
]
