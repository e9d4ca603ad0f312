"""Convolutions: a residual block, and the gradients of examples of a small net, one by one."""

# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
from libraries import compiled
from rows import Row, Work, best_peer, both, leaves, of_row

# --- A residual block ------------------------------------------------------------------------------

IMAGES, SIDE, CHANNELS = 8, 56, 64
SMALL = 1e-5


def block_inputs():
    """Images in NHWC, kernels in HWIO, scales and offsets of the normalisations, a cotangent."""
    rng = np.random.default_rng(0)
    shape = (IMAGES, SIDE, SIDE, CHANNELS)
    x, cotangent = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
    w = [rng.normal(0, 0.05, (3, 3, CHANNELS, CHANNELS)).astype(np.float32) for _ in range(2)]
    scale = [rng.uniform(0.5, 1.5, CHANNELS).astype(np.float32) for _ in range(2)]
    return x, (*w, *scale), cotangent / x.size


def shifts(x):
    """x [n, h, w, c], padded, as seen from each of nine places: [n, h, w, 9 c]."""
    n, h, w, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    views = [padded[:, i : i + h, j : j + w] for i in range(3) for j in range(3)]
    return np.concatenate(views, axis=-1)


def convolved(x, kernel):
    return shifts(x) @ kernel.reshape(-1, kernel.shape[-1])


def convolved_back(x, kernel, back):
    """Gradients by x and by the kernel."""
    flipped = kernel[::-1, ::-1].transpose(0, 1, 3, 2)
    by_kernel = shifts(x).reshape(-1, 9 * x.shape[-1]).T @ back.reshape(-1, back.shape[-1])
    return convolved(back, flipped), by_kernel.reshape(kernel.shape)


def normalised(x):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) / np.sqrt(variance + SMALL), np.sqrt(variance + SMALL)


def normalised_back(y, deviation, back):
    mean = functools.partial(np.mean, axis=(0, 1, 2))
    return (back - mean(back) - y * mean(back * y)) / deviation


def block_reference(x, params, cotangent):
    """Loss, gradients by kernels and scales, and by x, by hand."""
    w1, w2, s1, s2 = params
    n1, d1 = normalised(convolved(x, w1))
    h = np.maximum(n1 * s1, 0)
    n2, d2 = normalised(convolved(h, w2))
    out = np.maximum(n2 * s2 + x, 0)
    top = cotangent * (out > 0)
    back, by_w2 = convolved_back(h, w2, normalised_back(n2, d2, top * s2))
    back = back * (h > 0)
    by_x, by_w1 = convolved_back(x, w1, normalised_back(n1, d1, back * s1))
    by_s1, by_s2 = (back * n1).sum((0, 1, 2)), (top * n2).sum((0, 1, 2))
    return (out * cotangent).sum(), (by_w1, by_w2, by_s1, by_s2), by_x + top


def block(layout):
    """Its contestants, with images in NHWC or NCHW."""
    first = layout == "NCHW"
    axes = (0, 2, 3) if first else (0, 1, 2)

    def loss_of(library):
        xp, lax = library.xp, library.lax
        numbers = (layout, "HWIO", layout)

        def per_channel(value):
            return value[:, None, None] if first else value

        def normal(x, scale):
            mean = x.mean(axis=axes, keepdims=True)
            variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
            return (x - mean) / xp.sqrt(variance + SMALL) * per_channel(scale)

        def conv(x, w):
            return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)

        def loss(x, params, cotangent):
            w1, w2, s1, s2 = params
            h = xp.maximum(normal(conv(x, w1), s1), 0.0)
            out = xp.maximum(normal(conv(h, w2), s2) + x, 0.0)
            return (out * cotangent).sum()

        return loss

    def build(library, x, params, cotangent):
        if library.kind == "torchlike":
            return torch_block(library, x, params, cotangent, first)
        if first:
            x, cotangent = (library.xp.transpose(a, (0, 3, 1, 2)) for a in (x, cotangent))
        run = library.module.value_and_grad(loss_of(library), argnums=(1, 0))

        def swapped(x, params, cotangent):
            value, (grads, by_x) = run(x, params, cotangent)
            return value, grads, by_x

        return compiled(library, swapped, x, params, cotangent)

    return build


def torch_block(library, x, params, cotangent, first):
    torch = library.module
    functional = torch.nn.functional

    def laid(array):
        array = array.permute(0, 3, 1, 2)
        return array.contiguous() if first else array

    x, cotangent = laid(x), laid(cotangent)
    form = torch.contiguous_format if first else torch.channels_last
    w = [p.permute(3, 2, 0, 1).contiguous(memory_format=form) for p in params[:2]]
    own = [a.clone(memory_format=torch.preserve_format).requires_grad_() for a in (*w, *params[2:])]
    x = x.requires_grad_()

    def loss(x, w1, w2, s1, s2):
        def normal(x, scale):
            return functional.batch_norm(x, None, None, scale, None, True, 0.1, SMALL)

        h = functional.relu(normal(functional.conv2d(x, w1, padding=1), s1))
        out = functional.relu(normal(functional.conv2d(h, w2, padding=1), s2) + x)
        return (out * cotangent).sum()

    def calling(loss):
        def call():
            value = loss(x, *own)
            return value, torch.autograd.grad(value, [*own, x])

        return call

    return {name: calling(loss) for name, loss in library.compilations(loss).items()}


def in_nhwc(result):
    """Results of any library in NHWC and HWIO."""
    value, *w, s1, s2, x = leaves(result)
    w = [g if g.shape[0] == 3 else g.transpose(2, 3, 1, 0) for g in w]
    x = x if x.shape[-1] == CHANNELS else x.transpose(0, 2, 3, 1)
    return value, (*w, s1, s2), x


def block_row(layout):
    products = IMAGES * SIDE**2 * CHANNELS**2 * 9 * 2
    return Row(
        f"conv/block-{layout.lower()}",
        f"2 × (3×3, 64→64, batch norm), residual, 8×56×56, value and gradient, {layout}",
        best_peer(),
        block_inputs,
        block_reference,
        calls={"jaxlike": block(layout), "torchlike": block(layout)},
        pick=in_nhwc,
        tolerance=3e-3,  # roundings decide at the kinks of relu
        work=Work(flops=2 * 3 * products, bytes=4 * 12 * IMAGES * SIDE**2 * CHANNELS),
        fresh=True,
    )


# --- Gradients of examples -------------------------------------------------------------------------

BATCH, IMAGE = 64, 28  # → 13 × 13 × 16 → 6 × 6 × 32 → 10


def digits():
    rng = np.random.default_rng(0)
    shapes = ((3, 3, 1, 16), (3, 3, 16, 32), (6 * 6 * 32, 10))
    params = [rng.normal(0, 1 / np.sqrt(np.prod(s[:-1])), s).astype(np.float32) for s in shapes]
    x = rng.standard_normal((BATCH, IMAGE, IMAGE, 1), dtype=np.float32)
    return tuple(params), x, rng.integers(0, 10, BATCH).astype(np.int32)


def patches(x):
    """x [h, w, c], a stride of 2: [h', w', 9 c], and the index of each in x."""
    h, w, c = x.shape
    index = np.arange(h * w * c).reshape(h, w, c)
    up, along = (h - 3) // 2 + 1, (w - 3) // 2 + 1
    views = [
        index[i : i + 2 * up : 2, j : j + 2 * along : 2][:up, :along]
        for i in range(3)
        for j in range(3)
    ]
    index = np.concatenate(views, axis=-1)
    return x.reshape(-1)[index], index


def example_gradient(params, x, label):
    """By hand, of one example."""
    w1, w2, w3 = params
    p1, _ = patches(x)
    h1 = np.maximum(p1 @ w1.reshape(9, 16), 0)
    p2, index = patches(h1)
    h2 = np.maximum(p2 @ w2.reshape(144, 32), 0)
    logits = h2.reshape(-1) @ w3
    p = np.exp(logits - logits.max())
    p /= p.sum()
    p[label] -= 1
    back2 = (w3 @ p).reshape(h2.shape) * (h2 > 0)
    back1 = np.zeros(h1.size)
    np.add.at(back1, index, back2 @ w2.reshape(144, 32).T)
    back1 = back1.reshape(h1.shape) * (h1 > 0)
    by1 = np.tensordot(p1, back1, ((0, 1), (0, 1))).reshape(w1.shape)
    by2 = np.tensordot(p2, back2, ((0, 1), (0, 1))).reshape(w2.shape)
    return by1, by2, np.outer(h2.reshape(-1), p)


def examples_reference(scale_of):
    """The sum of the gradients of all examples, each times scale_of(its norm)."""

    def reference(params, x, labels):
        total = [np.zeros(w.shape) for w in params]
        for image, label in zip(x, labels):
            grads = example_gradient(params, image, label)
            scale = scale_of(np.sqrt(sum((g * g).sum() for g in grads)))
            total = [t + scale * g for t, g in zip(total, grads)]
        return total

    return reference


def batch_loss(library):
    """Of images [n, 28, 28, 1]: the sum of the losses."""
    xp, lax = library.xp, library.lax

    def conv(x, w):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (2, 2), "VALID", dimension_numbers=numbers)

    def loss(params, x, labels):
        w1, w2, w3 = params
        h = xp.maximum(conv(xp.maximum(conv(x, w1), 0.0), w2), 0.0)
        logits = h.reshape(h.shape[0], -1) @ w3
        shifted = logits - logits.max(axis=-1, keepdims=True)
        picked = xp.take_along_axis(shifted, labels[:, None], axis=-1)[:, 0]
        return (xp.log(xp.exp(shifted).sum(axis=-1)) - picked).sum()

    return loss


def torch_params(params):
    """Kernels as PyTorch has them, and the last layer as its channels lie."""
    w1, w2, w3 = params
    last = w3.reshape(6, 6, 32, 10).permute(2, 0, 1, 3).reshape(-1, 10)
    return [w1.permute(3, 2, 0, 1).contiguous(), w2.permute(3, 2, 0, 1).contiguous(), last]


def torch_loss(torch, params, x, labels):
    functional = torch.nn.functional
    w1, w2, w3 = params
    h = functional.relu(functional.conv2d(x, w1, stride=2))
    h = functional.relu(functional.conv2d(h, w2, stride=2))
    return functional.cross_entropy(h.flatten(1) @ w3, labels, reduction="sum")


def as_ours(result):
    """PyTorch's gradients in our layout."""
    if result[0].shape[0] == 3:
        return result
    w1, w2, w3 = result
    last = w3.reshape(32, 6, 6, 10).transpose(1, 2, 0, 3).reshape(-1, 10)
    return w1.transpose(2, 3, 1, 0), w2.transpose(2, 3, 1, 0), last


def batched(library, params, x, labels):
    if library.kind == "jaxlike":
        run = library.module.grad(batch_loss(library))
        return compiled(library, run, params, x, labels)
    torch = library.module
    own = [p.requires_grad_() for p in torch_params(params)]
    x, labels = x.permute(0, 3, 1, 2).contiguous(), labels.long()

    def taped(loss):
        return lambda: torch.autograd.grad(loss(own, x, labels), own)

    losses = library.compilations(functools.partial(torch_loss, torch))
    return {mode: taped(loss) for mode, loss in losses.items()}


def clipped(library, params, x, labels):
    """Each example's gradient, shrunk to norm 1 where it is longer, and their sum."""
    if library.kind == "jaxlike":
        loss, xp, module = batch_loss(library), library.xp, library.module
        vmap = functools.partial(module.vmap, in_axes=(None, 0, 0))
        grad = module.grad(lambda p, x, n: loss(p, x[None], n[None]))
    else:
        xp, func = library.module, library.module.func
        x, labels = x.permute(0, 3, 1, 2).contiguous(), labels.long()
        params = torch_params(params)
        vmap = functools.partial(func.vmap, in_dims=(None, 0, 0))
        grad = func.grad(lambda p, x, n: torch_loss(xp, p, x[None], n[None]))

    def one(params, x, label):
        grads = grad(params, x, label)
        norm = xp.sqrt(sum((g * g).sum() for g in grads))
        scale = 1 / xp.where(norm > 1, norm, 1.0)
        return [g * scale for g in grads]

    def run(params, x, labels):
        return [g.sum(0) for g in vmap(one)(params, x, labels)]

    return compiled(library, run, params, x, labels)


EXAMPLES = 2 * 3 * BATCH * (13 * 13 * 9 * 16 + 6 * 6 * 144 * 32 + 6 * 6 * 32 * 10)

ROWS = [
    block_row("NHWC"),
    block_row("NCHW"),
    Row(
        "per-example/batched",
        "gradient of a small CNN, batch 64",
        best_peer(),
        digits,
        examples_reference(lambda norm: 1.0),
        calls={"jaxlike": batched, "torchlike": batched},
        pick=as_ours,
        work=Work(flops=EXAMPLES),
    ),
    Row(
        "per-example/clipped",
        "each example's gradient clipped to norm 1, summed",
        both(of_row("per-example/batched", 1.3), best_peer()),
        digits,
        examples_reference(lambda norm: 1 / max(norm, 1)),
        calls={"jaxlike": clipped, "torchlike": clipped},
        pick=as_ours,
        work=Work(flops=EXAMPLES),
    ),
]
