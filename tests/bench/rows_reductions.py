"""Reductions, and what is made of them: softmax, layer norm, cross-entropy."""

# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
from libraries import compiled, jitted
from rows import Row, Work, of_limit, spread
from rows_elementwise import normal

SUMMED = (16, 128, 1024)
SQUARE = (4096, 4096)
ROWS_SHOWN = 64  # rows of a result that are checked
CLASSES = (4096, 32768)


def size(shape):
    return int(np.prod(shape))


def sums(axis):
    return Row(
        f"reductions/sum-{axis}",
        f"sum over axis {axis}, f32[16,128,1024]",
        of_limit(0.8),
        lambda: (normal(*SUMMED),),
        lambda x: x.sum(axis),
        calls={"*": jitted(lambda xp, x: x.sum(axis))},
        work=Work(bytes=4 * (size(SUMMED) + size(SUMMED) / SUMMED[axis])),
    )


# --- Row by row: forward, and the product of a cotangent with the derivative ------------------------


def softmax(xp, x):
    e = xp.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_vjp(x, cotangent):
    y = softmax(np, x)
    return y * (cotangent - (cotangent * y).sum(axis=-1, keepdims=True))


def layer_norm(xp, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / xp.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def layer_norm_vjp(x, cotangent):
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
    y = centred * scale
    along = (cotangent * y).mean(axis=-1, keepdims=True)
    return scale * (cotangent - cotangent.mean(axis=-1, keepdims=True) - y * along)


def forward(name):
    """As each library's own function has it."""

    def build(library, x):
        if library.kind == "torchlike":
            functional = library.module.nn.functional
            own = {
                "softmax": lambda x: functional.softmax(x, -1),
                "layer_norm": lambda x: functional.layer_norm(x, x.shape[-1:]),
            }[name]
        elif library.name == "numpy":
            own = functools.partial({"softmax": softmax, "layer_norm": layer_norm}[name], np)
        else:
            own = own_of(library, name)
        return compiled(library, own, x)

    return build


def own_of(library, name):
    nn = library.module.nn
    if name == "softmax":
        return lambda x: nn.softmax(x, axis=-1)
    if library.name == "plait":
        return nn.layer_norm
    return functools.partial(layer_norm, library.xp)  # JAX has no layer_norm


def backward(name):
    """The forward pass again, then back."""

    def build(library, x, cotangent):
        if library.kind == "jaxlike":
            own = own_of(library, name)

            def run(x, cotangent):
                return library.module.vjp(own, x)[1](cotangent)[0]

            return compiled(library, run, x, cotangent)
        functional = library.module.nn.functional
        own = functional.softmax if name == "softmax" else functional.layer_norm
        argument = -1 if name == "softmax" else x.shape[-1:]
        run = library.jit(lambda x: own(x, argument))
        x.requires_grad_()
        return lambda: library.module.autograd.grad(run(x), x, cotangent)[0]

    return build


def row_functions(name, title):
    reference = {
        "softmax": (functools.partial(softmax, np), softmax_vjp),
        "layer_norm": (functools.partial(layer_norm, np), layer_norm_vjp),
    }[name]
    pair = {"jaxlike": backward(name), "torchlike": backward(name)}
    return [
        Row(
            f"reductions/{name}",
            f"{title}, f32[4096,4096]",
            of_limit(0.8),
            lambda: (normal(*SQUARE),),
            reference[0],
            calls={"jaxlike": forward(name), "torchlike": forward(name), "numpy": forward(name)},
            work=Work(bytes=2 * 4 * size(SQUARE)),
            fresh=True,
        ),
        Row(
            f"reductions/{name}-vjp",
            f"{title}, forward and backward, f32[4096,4096]",
            of_limit(0.8),
            lambda: (normal(*SQUARE), normal(*SQUARE, seed=1)),
            reference[1],
            calls=pair,
            work=Work(bytes=3 * 4 * size(SQUARE)),
            fresh=True,
        ),
    ]


# --- Cross-entropy ---------------------------------------------------------------------------------


def labelled():
    logits = np.tile(normal(CLASSES[0] // 16, CLASSES[1]), (16, 1))
    labels = np.random.default_rng(1).integers(0, CLASSES[1], CLASSES[0]).astype(np.int32)
    return logits, labels


def loss(xp, logits, labels):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    picked = xp.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
    return (xp.log(xp.exp(shifted).sum(axis=-1)) - picked).mean()


def entropy(library, logits, labels):
    """Value and gradient."""
    if library.kind == "jaxlike":
        run = library.module.value_and_grad(functools.partial(loss, library.xp))
        return compiled(library, run, logits, labels)
    labels = labels.long()
    run = library.jit(library.module.nn.functional.cross_entropy)
    logits.requires_grad_()

    def call():
        value = run(logits, labels)
        return value, library.module.autograd.grad(value, logits)[0]

    return call


def entropy_reference(logits, labels):
    value, shown = 0.0, []
    places = spread(np.arange(len(logits)), ROWS_SHOWN)
    for start in range(0, len(logits), ROWS_SHOWN):
        part = slice(start, start + ROWS_SHOWN)
        p = softmax(np, logits[part])
        index = np.arange(ROWS_SHOWN), labels[part]
        value -= np.log(p[index]).sum()
        p[index] -= 1
        here = places[(places >= start) & (places < start + ROWS_SHOWN)]
        shown.append(p[here - start] / len(logits))
    return value / len(logits), np.concatenate(shown)


ROWS = [
    *(sums(axis) for axis in range(3)),
    *row_functions("softmax", "softmax"),
    *row_functions("layer_norm", "layer norm"),
    Row(
        "reductions/cross-entropy",
        "value and gradient, f32[4096,32768], labels",
        of_limit(0.8),
        labelled,
        entropy_reference,
        calls={"jaxlike": entropy, "torchlike": entropy},
        pick=lambda result: (result[0], spread(result[1], ROWS_SHOWN)),
        work=Work(bytes=2 * 4 * size(CLASSES)),
    ),
]
