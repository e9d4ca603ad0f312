"""einops: rearrange, reduce, repeat, einsum, pack and unpack, under jit and grad.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
from einops import asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack

from report import report

images = jax.random.normal(jax.random.PRNGKey(0), (6, 8, 12, 3))
report("rearrange", rearrange(images, "b (h h2) (w w2) c -> b h w (c h2 w2)", h2=2, w2=2))
report("grid", rearrange(images, "(b1 b2) h w c -> (b1 h) (b2 w) c", b1=2))
report("mean", reduce(images, "b c (h h2) w -> b c h w", "mean", h2=4))
report("max", reduce(images, "b (h h2) (w w2) c -> h (b w) c", "max", h2=2, w2=2))
report("sum", reduce(images, "b h w c -> b c", "sum"))
report("repeat", repeat(images[0], "h w c -> h new w (c more)", new=5, more=2))
report("einsum", einsum(images, images, "b h w c, b2 h w c -> b b2"))
report("asnumpy", asnumpy(images)[0, 0])
report("shape", list(parse_shape(images, "b h w c").values()))
packed, shapes = pack([images[0], images[1, :, 0], images[2, 0, 0]], "* c")
report("pack", packed, unpack(packed, shapes, "* c"))


@jax.jit
def loss(x):
    patches = rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
    return reduce(jnp.tanh(patches) ** 2, "b n d ->", "mean")


report("grad", loss(images), jax.grad(loss)(images))
report("vmap", jax.vmap(lambda x: rearrange(x, "h w c -> c (h w)"))(images))
