"""Training: steps of a network, gradients of examples, second derivatives."""

# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
from libraries import compiled
from rows import Row, Work, best_peer, both, of_row

SIZES = (784, 512, 512, 10)
RATE, DECAY1, DECAY2, SMALL = 1e-3, 0.9, 0.999, 1e-8

# --- The network -----------------------------------------------------------------------------------


def network(batch, sizes=SIZES):
    """Parameters, inputs, labels as rows of the identity."""
    rng = np.random.default_rng(0)
    params = [
        (rng.normal(0, 0.05, (n, m)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in zip(sizes, sizes[1:])
    ]
    x = rng.standard_normal((batch, sizes[0]), dtype=np.float32)
    return params, x, np.eye(sizes[-1], dtype=np.float32)[rng.integers(0, sizes[-1], batch)]


def loss(xp, params, x, y):
    """Mean cross-entropy; xp has NumPy's names."""
    for w, b in params[:-1]:
        x = xp.maximum(x @ w + b, 0.0)
    w, b = params[-1]
    logits = x @ w + b
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return (xp.log(xp.exp(shifted).sum(axis=-1)) - (shifted * y).sum(axis=-1)).mean()


def torch_loss(torch, params, x, y):
    for w, b in params[:-1]:
        x = torch.relu(torch.addmm(b, x, w))
    w, b = params[-1]
    return torch.nn.functional.cross_entropy(torch.addmm(b, x, w), y)


def value_and_gradients(params, x, y):
    """The same by hand, in NumPy."""
    inputs = [x]
    for w, b in params[:-1]:
        inputs.append(np.maximum(inputs[-1] @ w + b, 0))
    w, b = params[-1]
    logits = inputs[-1] @ w + b
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    value, back = -np.log((p * y).sum(axis=-1)).mean(), (p - y) / len(x)
    gradients = []
    for (w, _), entered in zip(params[::-1], inputs[::-1]):
        gradients.append((entered.T @ back, back.sum(0)))
        back = (back @ w.T) * (entered > 0)
    return value, gradients[::-1]


def flops(batch, sizes=SIZES):
    """Of the products of a gradient: forward, by weights, and by inputs except the first."""
    products = [n * m for n, m in zip(sizes, sizes[1:])]
    return 2 * batch * (3 * sum(products) - products[0])


def count(sizes=SIZES):
    return sum(n * m + m for n, m in zip(sizes, sizes[1:]))


# --- A step of Adam --------------------------------------------------------------------------------


def adam_step(library, loss):
    """A step for a loss of parameters and data: from a state, to the next and the loss before it."""
    xp, tree_map = library.xp, library.module.tree.map
    gradient = library.module.value_and_grad(loss)

    def step(state, *data):
        params, m, v, number = state
        value, grads = gradient(params, *data)
        number = number + 1
        m = tree_map(lambda a, g: DECAY1 * a + (1 - DECAY1) * g, m, grads)
        v = tree_map(lambda a, g: DECAY2 * a + (1 - DECAY2) * g * g, v, grads)
        s1, s2 = 1 / (1 - DECAY1**number), 1 / (1 - DECAY2**number)
        params = tree_map(
            lambda p, a, b: p - RATE * (a * s1) / (xp.sqrt(b * s2) + SMALL), params, m, v
        )
        return (params, m, v, number), value

    return step


def train(library, params, x, y):
    """Steps that each go on from the last; the state is donated. Gives loss and parameters."""
    tree_map = library.module.tree.map

    def zeros():
        return tree_map(library.xp.zeros_like, params)

    now = [tree_map(lambda a: a + 0, params), zeros(), zeros(), library.array(np.float32(0))]
    step = library.jit(adam_step(library, functools.partial(loss, library.xp)), donate_argnums=0)

    def call():
        nonlocal now
        now, value = step(now, x, y)
        return library.wait((value, now[0]))

    return call


def torch_train(library, params, x, y):
    torch, y = library.module, y.argmax(1)

    def training(loss, adam):
        own = [(w.clone().requires_grad_(), b.clone().requires_grad_()) for w, b in params]
        flat = [array for pair in own for array in pair]
        optimizer = torch.optim.Adam(flat, RATE, (DECAY1, DECAY2), SMALL, **{adam: True})

        def call():
            optimizer.zero_grad(set_to_none=True)
            value = loss(own, x, y)
            value.backward()
            optimizer.step()
            return value, own

        return call

    losses = library.compilations(functools.partial(torch_loss, torch))
    # Fused, PyTorch's Adam is one pass over each parameter.
    return {
        f"{adam} {mode}".strip(): training(loss, adam)
        for adam in ("fused", "foreach")
        for mode, loss in losses.items()
    }


def trained(params, x, y):
    """Loss and parameters after one step: the moments' correction makes it RATE · g / (|g| + ε)."""
    value, grads = value_and_gradients(params, x, y)
    new = [
        tuple(p - RATE * g / (np.abs(g) + SMALL) for p, g in zip(pair, pair_of_grads))
        for pair, pair_of_grads in zip(params, grads)
    ]
    return value, new


def step_row(batch):
    return Row(
        f"mlp/step-{batch}",
        f"784-512-512-10, Adam, donated, batch {batch}",
        best_peer(),
        lambda: network(batch),
        trained,
        calls={"jaxlike": train, "torchlike": torch_train},
        # Where a gradient is almost 0, its sign, and so the step of Adam, is that of its rounding.
        tolerance=2.5e-3,
        work=Work(flops=flops(batch), bytes=4 * 7 * count()),
    )


# --- Gradients -------------------------------------------------------------------------------------


def gradient(library, params, x, y):
    if library.kind == "jaxlike":
        run = library.module.value_and_grad(functools.partial(loss, library.xp))
        return compiled(library, run, params, x, y)
    torch, y = library.module, y.argmax(1)
    flat = [array.requires_grad_() for pair in params for array in pair]

    def taped(loss):
        def call():
            result = loss(params, x, y)
            return result, torch.autograd.grad(result, flat)

        return call

    losses = library.compilations(functools.partial(torch_loss, torch))
    return {mode: taped(loss) for mode, loss in losses.items()}


def product(library, params, x, y, along):
    """The Hessian times a vector: forward over reverse."""
    if library.kind == "jaxlike":
        grad = library.module.grad(functools.partial(loss, library.xp))

        def run(params, along):
            return library.module.jvp(lambda p: grad(p, x, y), (params,), (along,))[1]

        return compiled(library, run, params, along)
    torch = library.module

    def run(params, along):
        grad = torch.func.grad(lambda p: torch_loss(torch, p, x, labels))
        return torch.func.jvp(grad, (params,), (along,))[1]

    labels = y.argmax(1)
    found = compiled(library, run, params, along)
    if library.name == "torch":  # reverse over reverse, without torch.func
        own = [tuple(p.clone().requires_grad_() for p in pair) for pair in params]
        flat = [p for pair in own for p in pair]
        vector = [v for pair in along for v in pair]

        def twice():
            value = torch_loss(torch, own, x, labels)
            first = torch.autograd.grad(value, flat, create_graph=True)
            return torch.autograd.grad(first, flat, vector)

        found["reverse"] = twice
    return found


def with_direction(batch):
    params, x, y = network(batch)
    rng = np.random.default_rng(1)
    along = [tuple(rng.standard_normal(a.shape, dtype=np.float32) for a in p) for p in params]
    return params, x, y, along


def product_reference(params, x, y, along, size=1e-9):
    """Central differences of the gradient by hand."""

    def at(by):
        moved = [tuple(p + by * d for p, d in zip(pair, way)) for pair, way in zip(params, along)]
        return [g for pair in value_and_gradients(moved, x, y)[1] for g in pair]

    return [(a - b) / (2 * size) for a, b in zip(at(size), at(-size))]


# --- Hessians of a small net -----------------------------------------------------------------------


def small():
    rng = np.random.default_rng(0)
    w1, w2 = rng.normal(0, 0.5, (10, 16)), rng.normal(0, 0.5, 16)
    x = rng.normal(size=(64, 10))
    return tuple(a.astype(np.float32) for a in (w1, w2, x))


def hessians(library, w1, w2, x):
    """By inputs, of 64 inputs."""
    xp = library.xp

    def f(x, w1, w2):
        return xp.tanh(x @ w1) @ w2

    if library.kind == "jaxlike":
        module = library.module
        run = module.vmap(module.jacfwd(module.jacrev(f)), in_axes=(0, None, None))
    else:
        func = library.module.func
        run = func.vmap(func.jacfwd(func.jacrev(f)), in_dims=(0, None, None))
    return compiled(library, run, x, w1, w2)


def hessians_reference(w1, w2, x):
    t = np.tanh(x @ w1)
    return np.einsum("ik,nk,jk->nij", w1, -2 * t * (1 - t * t) * w2, w1)


ROWS = [
    *(step_row(batch) for batch in (1, 128, 8192)),
    Row(
        "second-order/gradient",
        "784-512-512-10, batch 128, value and gradient",
        best_peer(),
        lambda: network(128),
        value_and_gradients,
        calls={"jaxlike": gradient, "torchlike": gradient},
        work=Work(flops=flops(128)),
    ),
    Row(
        "second-order/hvp",
        "its Hessian times a vector",
        both(of_row("second-order/gradient", 2.7), best_peer()),
        lambda: with_direction(128),
        product_reference,
        calls={"jaxlike": product, "torchlike": product},
        tolerance=1e-3,
        work=Work(flops=2 * flops(128)),
    ),
    Row(
        "second-order/hessian",
        "64 Hessians of 10-16-1, vmap(jacfwd(jacrev))",
        best_peer(0.5),
        small,
        hessians_reference,
        calls={"jaxlike": hessians, "torchlike": hessians},
        # 10 · 16 and 16 · 10 products for each tangent, at least.
        work=Work(flops=64 * 2 * 10 * 16 * 11, bytes=64 * 4 * 110, calls=1),
    ),
]
