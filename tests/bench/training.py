"""The rows that train: steps of networks, gradients of examples, ragged batches, convolution."""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
from machine import Work

import plait


def libraries(found):
    """(name, library, to an array, wait) for plait and JAX, whose names are the same."""
    yield "plait", plait, plait.numpy.asarray, lambda value: value
    if "jax" in found:
        jax = found["jax"]
        yield "jax", jax, jax.numpy.asarray, jax.block_until_ready


# --- A training step -------------------------------------------------------------------------------


def initial_state(sizes, batch):
    rng = np.random.default_rng(0)
    params = [
        (rng.normal(0, 0.05, (n, m)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in zip(sizes, sizes[1:])
    ]
    x = rng.normal(size=(batch, sizes[0])).astype(np.float32)
    y = np.eye(sizes[-1], dtype=np.float32)[rng.integers(0, sizes[-1], batch)]
    return params, x, y


def predict(library, params, x):
    for w, b in params[:-1]:
        x = library.numpy.maximum(x @ w + b, 0)
    w, b = params[-1]
    return x @ w + b


def cross_entropy(library, logits, y):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    numpy = library.numpy
    return (numpy.log(numpy.exp(shifted).sum(axis=-1)) - (shifted * y).sum(axis=-1)).mean()


def adam_step(library):
    numpy, tree_map = library.numpy, library.tree.map

    def loss(params, x, y):
        return cross_entropy(library, predict(library, params, x), y)

    def step(params, m, v, count, x, y):
        value, grads = library.value_and_grad(loss)(params, x, y)
        count = count + 1
        m = tree_map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
        v = tree_map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
        s1, s2 = 1 / (1 - 0.9**count), 1 / (1 - 0.999**count)
        params = tree_map(
            lambda p, a, b: p - 1e-3 * (a * s1) / (numpy.sqrt(b * s2) + 1e-8), params, m, v
        )
        return params, m, v, count, value

    return step


def step(sizes, batch):
    def contestants(found):
        params, x, y = initial_state(sizes, batch)

        def runner(library, array, wait):
            p = library.tree.map(array, params)
            zeros = library.tree.map(lambda a: array(np.zeros_like(a)), params)
            state = [p, zeros, zeros, array(np.float32(0))]
            inputs = array(x), array(y)
            jitted = library.jit(adam_step(library))

            def call():
                *new, value = jitted(*state, *inputs)
                state[:] = new
                wait(value)

            return call

        calls = {name: runner(*library) for name, *library in libraries(found)}
        if "torch" in found:
            calls["torch"] = torch_step(found["torch"], params, x, y)
        return calls

    return contestants


def step_work(sizes, batch):
    products = [n * m for n, m in zip(sizes, sizes[1:])]
    # Forward, by weights, and by inputs except the first; Adam reads 4 numbers and writes 3.
    flops = 2 * batch * (3 * sum(products) - products[0])
    return Work(flops=flops, bytes=4 * 7 * sum(products))


def torch_step(torch, params, x, y):
    layers = []
    for i, (w, b) in enumerate(params):
        linear = torch.nn.Linear(*w.shape)
        linear.weight.data, linear.bias.data = torch.tensor(w.T.copy()), torch.tensor(b)
        layers += [linear] if i + 1 == len(params) else [linear, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = torch.tensor(x), torch.tensor(y.argmax(1))

    def call():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return call


# --- Gradients of every example --------------------------------------------------------------------


def per_example_gradients(sizes, batch):
    """Their squared norms, beside the gradient of the whole batch."""

    def contestants(found):
        arrays = initial_state(sizes, batch)
        calls = {}
        for name, library, array, wait in libraries(found):
            params, x, y = library.tree.map(array, arrays)

            def loss(params, x, y, library=library):
                return cross_entropy(library, predict(library, params, x), y)

            def norm(params, x, y, library=library, loss=loss):
                gradients = library.grad(loss)(params, x, y)
                return sum((g * g).sum() for g in library.tree.leaves(gradients))

            each = library.jit(library.vmap(norm, in_axes=(None, 0, 0)))
            calls[name] = lambda f=each, a=(params, x, y), wait=wait: wait(f(*a))
            whole = library.jit(library.grad(loss))
            batched = "batched" if name == "plait" else name + " batched"
            calls[batched] = lambda f=whole, a=(params, x, y), wait=wait: wait(f(*a))
        return calls

    return contestants


# --- Sequences of unequal length -------------------------------------------------------------------

WIDTH, LONGEST = 64, 128
LENGTHS = np.array([17, 23, 128, 40, 9, 61, 33, 75, 12, 90, 28, 50, 44, 19, 36, 66], np.int32)


def ragged(found):
    """The gradient of self-attention by its weights: by mask, and by hand over the padding."""
    rng = np.random.default_rng(0)
    w = rng.normal(0, 0.1, (3, WIDTH, WIDTH)).astype(np.float32)
    padded = rng.normal(size=(len(LENGTHS), LONGEST, WIDTH)).astype(np.float32)
    calls = {}
    for name, library, array, wait in libraries(found):

        def attend(w, x, present=None, library=library):
            q, k, v = x @ w[0], x @ w[1], x @ w[2]
            scores = q @ k.T / 8
            if present is not None:
                scores = library.numpy.where(present, scores, -1e30)
            rows = library.nn.softmax(scores, axis=-1) @ v
            if present is not None:
                rows = library.numpy.where(present[:, None], rows, 0)
            return (rows * rows).sum()

        def by_hand(w, x, n, library=library, attend=attend):
            present = library.numpy.arange(LONGEST) < n[:, None]
            return library.vmap(attend, in_axes=(None, 0, 0))(w, x, present).sum()

        arguments = array(w), array(padded), array(LENGTHS)
        padding = library.jit(library.grad(by_hand))
        title = "by hand" if library is plait else name
        calls[title] = lambda f=padding, a=arguments, wait=wait: wait(f(*a))
        if library is plait:
            masked = plait.mask(attend, (None, f"n {WIDTH}"))

            def by_mask(w, x, n, masked=masked):
                each = plait.vmap(lambda x, n: masked(w, x, n=n))
                return each(x, n).sum()

            ours = plait.jit(plait.grad(by_mask))
            calls["plait"] = lambda f=ours, a=arguments: f(*a)
    return calls


# --- Convolution -----------------------------------------------------------------------------------

IMAGES, CHANNELS, SIDE = 32, 32, 28
CONVOLUTION_WORK = Work(flops=3 * 2 * IMAGES * SIDE**2 * CHANNELS**2 * 9)


def convolution(found):
    """The gradients of a convolution by images and by kernels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(IMAGES, CHANNELS, SIDE, SIDE)).astype(np.float32)
    w = rng.normal(0, 0.1, (CHANNELS, CHANNELS, 3, 3)).astype(np.float32)
    calls = {}
    for name, library, array, wait in libraries(found):

        def loss(x, w, library=library):
            y = library.lax.conv(x, w, (1, 1), "SAME")
            return (y * y).sum()

        jitted = library.jit(library.grad(loss, argnums=(0, 1)))
        calls[name] = lambda f=jitted, a=(array(x), array(w)), wait=wait: wait(f(*a))
    if "torch" in found:
        torch = found["torch"]
        a, b = (torch.tensor(v, requires_grad=True) for v in (x, w))

        def call():
            y = torch.nn.functional.conv2d(a, b, padding="same")
            return torch.autograd.grad((y * y).sum(), (a, b))

        calls["torch"] = call
    return calls
