"""What is measured: one row each, with the same work for plait and its peers."""

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import importlib
import subprocess
import sys
import time
import typing

import loops
import numpy as np
import training
from machine import Work

import plait


@dataclasses.dataclass
class Row:
    name: str
    limit: typing.Any  # seconds, or (peer, factor)
    contestants: typing.Callable  # peers -> {name: call}, or {name: seconds}
    work: Work | None = None


def peers():
    """The peers that can be imported, and why the others cannot."""
    found, absent = {}, {}
    for name in ("jax", "torch"):
        try:
            found[name] = importlib.import_module(name)
        except ImportError as error:
            absent[name] = str(error)
    return found, absent


# --- Dispatch, and single operations ---------------------------------------------------------------


def jit_plus_one(found):
    f = plait.jit(lambda x: x + 1)
    x = plait.numpy.ones(1)
    calls = {"plait": lambda: f(x)}
    if "jax" in found:
        jax = found["jax"]
        g, y = jax.jit(lambda x: x + 1), jax.numpy.ones(1)
        calls["jax"] = lambda: g(y).block_until_ready()
    return calls


def eager(operation, *shapes):
    """operation(library, *arrays), called without jit."""

    def contestants(found):
        arrays = [np.random.default_rng(0).uniform(0, 1, shape).astype("f") for shape in shapes]

        def call(library, array, wait=lambda value: value):
            operands = [array(a) for a in arrays]
            return lambda: wait(operation(library, *operands))

        calls = {"plait": call(plait.numpy, plait.numpy.asarray), "numpy": call(np, np.asarray)}
        if "torch" in found:
            calls["torch"] = call(found["torch"], found["torch"].tensor)
        if "jax" in found:
            jnp = found["jax"].numpy
            calls["jax"] = call(jnp, jnp.asarray, lambda value: value.block_until_ready())
        return calls

    return contestants


def tape(operations):
    """sin(x) * x again and again on 64 elements, eagerly, recorded, and the way back."""

    def contestants(found):
        start = np.random.default_rng(0).uniform(0, 1, 64).astype("f")

        def call(sin, variable):
            def step():
                variable.grad = None
                chain(sin, operations)(variable).sum().backward()

            return step

        calls = {"plait": call(plait.numpy.sin, plait.variable(start))}
        if "torch" in found:
            torch = found["torch"]
            calls["torch"] = call(torch.sin, torch.tensor(start, requires_grad=True))
        return calls

    return contestants


# --- Programs of many equations --------------------------------------------------------------------


def chain(sin, equations):
    """A new function of this many equations: libraries remember those that they have traced."""

    def f(x):
        for _ in range(equations // 2):
            x = sin(x) * x
        return x

    return f


def best_of(make, rounds):
    """The least seconds of a call that make() gives, which is made anew for each.

    The process's own time: long single-threaded calls have no moment without other processes.
    """
    best = float("inf")
    for _ in range(rounds):
        call = make()
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def trace(equations):
    def contestants(found):
        def call(library, lax, x):
            return lambda: lambda: library.make_jaxpr(chain(lax.sin, equations))(x)

        ours = call(plait, plait.lax, plait.numpy.ones(3))
        times = {"plait": best_of(ours, rounds=7) / equations}
        if "jax" in found and equations <= 1000:
            jax = found["jax"]
            times["jax"] = best_of(call(jax, jax.lax, jax.numpy.ones(3)), rounds=7) / equations
        return times

    return contestants


def scales(act):
    """Seconds an equation of act(f, x), for a program of 100,000 equations and for one of 1000."""

    def contestants(found):
        del found
        x = plait.numpy.ones(3)

        def each(equations, rounds):
            return best_of(lambda: act(chain(plait.lax.sin, equations), x), rounds) / equations

        return {"plait": each(100_000, 2), "of 1000": each(1000, 9)}

    return contestants


def printing(f, x):
    jaxpr = plait.make_jaxpr(f)(x)
    return lambda: str(jaxpr)


def gradient(f, x):
    return lambda: plait.make_jaxpr(plait.grad(lambda x: f(x).sum()))(x)


def batching(f, x):
    return lambda: plait.make_jaxpr(plait.vmap(f))(x)


def compiling(f, x):
    jitted = plait.jit(f)
    return lambda: jitted(x)


def dropping(f, x):
    jaxprs = [plait.make_jaxpr(plait.grad(lambda x: f(x).sum()))(x)]
    return jaxprs.clear


# --- Import ----------------------------------------------------------------------------------------


def import_time(found):
    del found
    without, beside = "import numpy", "import numpy, plait"
    best = dict.fromkeys((without, beside), float("inf"))
    for _ in range(15):  # in turns: they are subtracted
        for statement in best:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best[statement] = min(best[statement], time.perf_counter() - start)
    return {"plait": max(best[beside] - best[without], 1e-4)}


MILLION = 1_000_000
LINEAR = ("of 1000", 8)  # programs outgrow the caches; were it quadratic, this would be 100

ROWS = [
    Row("jit x+1, one element", 2e-6, jit_plus_one),
    Row("eager add, one element", 1.5e-6, eager(lambda m, x: x + x, 1)),
    Row("eager add, a million", None, eager(lambda m, x: x + x, MILLION), Work(bytes=8 * MILLION)),
    Row("eager exp, a million", None, eager(lambda m, x: m.exp(x), MILLION)),
    Row("eager sum, a million", None, eager(lambda m, x: x.sum(), MILLION)),
    Row("eager sum over rows, 1000²", None, eager(lambda m, x: x.sum(0), (1000, 1000))),
    Row(
        "eager product, 512²",
        None,
        eager(lambda m, x, y: x @ y, (512, 512), (512, 512)),
        Work(flops=2 * 512**3),
    ),
    Row("tape, 100 operations and back", 250e-6, tape(100)),
    Row("trace, 1000 equations, each", 10e-6, trace(1000)),
    Row("trace, 100000 equations, each", 10e-6, trace(100_000)),
    Row("print, 100000 equations, each", LINEAR, scales(printing)),
    Row("grad, 100000 equations, each", LINEAR, scales(gradient)),
    Row("vmap, 100000 equations, each", LINEAR, scales(batching)),
    Row("jit, 100000 equations, each", LINEAR, scales(compiling)),
    Row("drop, 100000 equations, each", LINEAR, scales(dropping)),
    Row(
        "mlp 784-512-512-10, Adam step",
        ("jax", 1.5),
        training.step((784, 512, 512, 10), 128),
        training.step_work((784, 512, 512, 10), 128),
    ),
    Row("mlp 64-128-10, Adam step", ("jax", 1.5), training.step((64, 128, 10), 64)),
    Row(
        "per-example gradients, 64-128-10",
        ("jax", 1.5),
        training.per_example_gradients((64, 128, 10), 64),
    ),
    Row("ragged attention, 16 sequences", None, training.ragged),
    Row(
        "conv 28×28×32, 3×3, and back",
        None,
        training.convolution,
        training.CONVOLUTION_WORK,
    ),
    Row("scan, each step", 0.5e-6, loops.scan_step),
    Row("while, each step", None, loops.while_step),
    Row(
        "LSTM 32×128×256 and back, scan",
        ("jax", 1),
        loops.recurrent("lstm"),
        loops.recurrent_work("lstm"),
    ),
    Row(
        "GRU 32×128×256 and back, scan",
        ("jax", 1),
        loops.recurrent("gru"),
        loops.recurrent_work("gru"),
    ),
    Row("RNN 32×128×256 and back, scan", None, loops.recurrent("rnn"), loops.recurrent_work("rnn")),
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
        "best_ms": ("C++: mlp step", 1e-3, None),
        "first_ms": ("C++: mlp step, first call", 1e-3, 50e-3),
    },
}
