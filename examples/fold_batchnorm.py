"""Fold batch normalisation into convolutions: a rule of two functions, on a saved model.

At inference, normalising what a convolution gives is a convolution with other weights:

    ((conv(x, w) + b) - mean) / sqrt(var + eps) * scale + shift
      = conv(x, w * k) + (b - mean) * k + shift        k = scale / sqrt(var + eps)

so that the work on images becomes work on weights. Prints the same as its twin, fold_batchnorm.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import os
import tempfile

import plait
import plait.numpy as jnp
from plait import lax


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME")


def per_channel(v):  # beside an image: (channels, height, width)
    return jnp.reshape(v, (-1, 1, 1))


def batch_norm(x, mean, var, scale, shift, eps):
    x = (x - per_channel(mean)) / per_channel(jnp.sqrt(var + eps))
    return x * per_channel(scale) + per_channel(shift)


# The rule: two functions of the same arguments. They match any shapes, and eps any number; the
# convolution's strides and padding may be any too, and are those of the match in the replacement.
def normalised(x, w, b, mean, var, scale, shift, eps):
    return batch_norm(conv(x, w) + per_channel(b), mean, var, scale, shift, eps)


def folded(x, w, b, mean, var, scale, shift, eps):
    k = scale / jnp.sqrt(var + eps)
    return conv(x, w * jnp.reshape(k, (-1, 1, 1, 1))) + per_channel((b - mean) * k + shift)


fold_batchnorm = plait.rewrite(
    normalised,
    folded,
    name="fold_batchnorm",
    any_params="conv",
    like=("n c h w", "o c kh kw", "o", "o", "o", "o", "o", ""),  # where to begin
    verify=(0.1, 2.0),  # compared on random numbers, in float64, at the types of each match
)


# A model: three such blocks, each of its own stride and size.
def waves(*shape):  # numbers that C++ has too
    size = 1
    for extent in shape:
        size *= extent
    return jnp.reshape(jnp.sin(jnp.arange(size, dtype="float32") * 0.37 + size), shape)


def block(inputs, outputs):
    return {
        "w": waves(outputs, inputs, 3, 3) * 0.3,
        "b": waves(outputs) * 0.1,
        "mean": waves(outputs) * 0.2,
        "var": waves(outputs) ** 2 + 0.5,
        "scale": waves(outputs) + 1.5,
        "shift": waves(outputs) * 0.3,
    }


blocks = [block(3, 8), block(8, 12), block(12, 16)]


def model(blocks, x):
    for stride, p in zip((1, 2, 2), blocks):
        x = conv(x, p["w"], stride) + per_channel(p["b"])
        x = batch_norm(x, p["mean"], p["var"], p["scale"], p["shift"], 1e-5)
        x = jnp.maximum(x, 0)
    return jnp.mean(x, axis=(2, 3))


x = waves(2, 3, 12, 12)
folder = tempfile.mkdtemp()
plait.save(os.path.join(folder, "model.plait"), model, blocks, x)
loaded = plait.load(os.path.join(folder, "model.plait")).model

faster = fold_batchnorm(loaded)


def elements_of_images(f):
    """How many numbers equations of images compute, but for convolutions."""
    equations = plait.walk(plait.make_jaxpr(f)(blocks, x).jaxpr)
    avals = [e.out_avals[0] for e in equations if e.primitive != "conv"]
    total = 0
    for aval in avals:
        if len(aval.shape) == 4 and aval.shape[0] == 2:
            n, c, h, w = aval.shape
            total += n * c * h * w
    return total


before, after = loaded(blocks, x), faster(blocks, x)
print("matches:", fold_batchnorm.statistics.matches)
print("numbers computed on images:", elements_of_images(loaded), "then", elements_of_images(faster))
error = float(jnp.max(jnp.abs(before - after)) / jnp.max(jnp.abs(before)))
print("results agree to 1e-5:", error < 1e-5)

# It is a transform: it composes with the others, and what it gives can be saved.
slope = plait.grad(lambda x: jnp.sum(faster(blocks, x) ** 2))(x)
exact = plait.grad(lambda x: jnp.sum(loaded(blocks, x) ** 2))(x)
error = float(jnp.max(jnp.abs(slope - exact)) / jnp.max(jnp.abs(exact)))
print("gradients agree to 1e-5:", error < 1e-5)
plait.save(os.path.join(folder, "faster.plait"), {"model": (faster, blocks, x)})
again = plait.load(os.path.join(folder, "faster.plait"), verify=True).model
print("saved again:", elements_of_images(again))
