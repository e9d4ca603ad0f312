"""What is measured: one row each, with the same work for plait and its peers."""

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import importlib
import subprocess
import sys
import time
import typing

import numpy as np


@dataclasses.dataclass
class Row:
    name: str
    limit: typing.Any  # seconds, or (peer, factor)
    contestants: typing.Callable  # peers -> {name: call}, or {name: seconds}


def peers():
    """The peers that can be imported, and why the others cannot."""
    found, absent = {}, {}
    for name in ("jax", "torch"):
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            absent[name] = str(error)
    return found, absent


# --- Dispatch --------------------------------------------------------------------------------------


def jit_plus_one(found):
    import plait

    f = plait.jit(lambda x: x + 1)
    x = plait.numpy.ones(1)
    calls = {"plait": lambda: f(x)}
    if "jax" in found:
        jax = found["jax"]
        g, y = jax.jit(lambda x: x + 1), jax.numpy.ones(1)
        calls["jax"] = lambda: g(y).block_until_ready()
    return calls


def eager_add(found):
    import plait

    x = plait.numpy.ones(1)
    z = np.ones(1, np.float32)
    calls = {"plait": lambda: x + x, "numpy": lambda: z + z}
    if "torch" in found:
        t = found["torch"].ones(1)
        calls["torch"] = lambda: t + t
    if "jax" in found:
        y = found["jax"].numpy.ones(1)
        calls["jax"] = lambda: (y + y).block_until_ready()
    return calls


def eager_add_million(found):
    import plait

    x = plait.numpy.ones(1_000_000)
    z = np.ones(1_000_000, np.float32)
    calls = {"plait": lambda: x + x, "numpy": lambda: z + z}
    if "jax" in found:
        y = found["jax"].numpy.ones(1_000_000)
        calls["jax"] = lambda: (y + y).block_until_ready()
    return calls


# --- Tracing ---------------------------------------------------------------------------------------


def trace(equations):
    def contestants(found):
        import plait

        def chain(sin):
            def f(x):
                for _ in range(equations // 2):
                    x = sin(x) * x
                return x

            return f

        def per_equation(call):
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                call()
                best = min(best, time.perf_counter() - start)
            return best / equations

        ours, x = chain(plait.lax.sin), plait.numpy.ones(3)
        times = {"plait": per_equation(lambda: plait.make_jaxpr(ours)(x))}
        if "jax" in found and equations <= 1000:
            jax = found["jax"]
            theirs, y = chain(jax.lax.sin), jax.numpy.ones(3)
            times["jax"] = per_equation(lambda: jax.make_jaxpr(theirs)(y))
        return times

    return contestants


# --- A training step -------------------------------------------------------------------------------

SIZES = (784, 512, 512, 10)


def initial_state():
    rng = np.random.default_rng(0)
    params = [
        (rng.normal(0, 0.05, (n, m)).astype(np.float32), np.zeros(m, np.float32))
        for n, m in zip(SIZES, SIZES[1:])
    ]
    x = rng.normal(size=(128, 784)).astype(np.float32)
    y = np.eye(10, dtype=np.float32)[rng.integers(0, 10, 128)]
    return params, x, y


def adam_step(np_like, value_and_grad, tree_map):
    def loss(params, x, y):
        h = x
        for w, b in params[:-1]:
            h = np_like.maximum(h @ w + b, 0)
        w, b = params[-1]
        logits = h @ w + b
        shifted = logits - logits.max(axis=1, keepdims=True)
        return (np_like.log(np_like.exp(shifted).sum(axis=1)) - (shifted * y).sum(axis=1)).mean()

    def step(params, m, v, count, x, y):
        value, grads = value_and_grad(loss)(params, x, y)
        count = count + 1
        m = tree_map(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
        v = tree_map(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
        s1, s2 = 1 / (1 - 0.9**count), 1 / (1 - 0.999**count)
        params = tree_map(
            lambda p, a, b: p - 1e-3 * (a * s1) / (np_like.sqrt(b * s2) + 1e-8), params, m, v
        )
        return params, m, v, count, value

    return step


def mlp_step(found):
    import plait

    params, x, y = initial_state()

    def runner(library, array, step, wait):
        tree_map = library.tree.map
        p = tree_map(array, params)
        zeros = tree_map(lambda a: array(np.zeros_like(a)), params)
        state = [p, zeros, zeros, array(np.float32(0))]
        inputs = array(x), array(y)
        jitted = library.jit(step)

        def call():
            *new, value = jitted(*state, *inputs)
            state[:] = new
            wait(value)

        return call

    ours = adam_step(plait.numpy, plait.value_and_grad, plait.tree.map)
    calls = {"plait": runner(plait, plait.numpy.asarray, ours, lambda value: value)}
    if "jax" in found:
        jax = found["jax"]
        theirs = adam_step(jax.numpy, jax.value_and_grad, jax.tree.map)
        calls["jax"] = runner(jax, jax.numpy.asarray, theirs, lambda value: value.block_until_ready())
    if "torch" in found:
        calls["torch"] = torch_step(found["torch"], params, x, y)
    return calls


def torch_step(torch, params, x, y):
    layers = []
    for (w, b), last in zip(params, (False, False, True)):
        linear = torch.nn.Linear(*w.shape)
        linear.weight.data, linear.bias.data = torch.tensor(w.T.copy()), torch.tensor(b)
        layers += [linear] if last else [linear, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    inputs, labels = torch.tensor(x), torch.tensor(y.argmax(1))

    def call():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return call


# --- Import ----------------------------------------------------------------------------------------


def import_time(found):
    del found

    def seconds(statement):
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    return {"plait": max(seconds("import numpy, plait") - seconds("import numpy"), 1e-4)}


ROWS = [
    Row("jit x+1, one element", 2e-6, jit_plus_one),
    Row("eager add, one element", 1.5e-6, eager_add),
    Row("eager add, a million", None, eager_add_million),
    Row("trace, 1000 equations, each", 10e-6, trace(1000)),
    Row("trace, 100000 equations, each", 10e-6, trace(100_000)),
    Row("mlp 784-512-512-10, Adam step", ("jax", 1.5), mlp_step),
    Row("import, beyond NumPy", 60e-3, import_time),
]

# Rows of C++ programs: {program: {key: (row, unit in seconds, limit)}}.
PROGRAMS = {
    "bench_dispatch": {
        "jit_plus_one_ns": ("C++: jit x+1, one element", 1e-9, 0.3e-6),
        "executable_plus_one_ns": ("C++: executable x+1", 1e-9, None),
        "eager_add_ns": ("C++: eager add, one element", 1e-9, None),
        "trace_1000_ns": ("C++: trace, 1000 equations, each", 1e-9, 2e-6),
        "trace_100000_ns": ("C++: trace, 100000 equations, each", 1e-9, 2e-6),
        "compile_1000_ns": ("C++: compile, 1000 equations, each", 1e-9, None),
        "compile_100000_ns": ("C++: compile, 100000, each", 1e-9, None),
    },
    "bench_mlp": {
        "step_ms": ("C++: mlp step", 1e-3, None),
        "first_ms": ("C++: mlp step, first call", 1e-3, 50e-3),
    },
}
