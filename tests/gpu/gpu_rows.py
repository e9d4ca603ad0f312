"""The rows of the GPU's scoreboard, the most important first: the table of the issue.

A row says what is computed and on which inputs (as in tests/bench, whose programs are used where
they fit), how many bytes and operations that takes at least, and the target. Results are compared
between contestants, some elements of each. Rows that need more than a call, such as a first
result, are in `board.py`.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import functools
import importlib.util
import os
import typing

import contestants  # noqa: F401, puts the programs of tests/bench on the path
import numpy as np
import rows_attention
import rows_convolution
import rows_gpt
import rows_loops
import rows_training
from libraries import compiled, eager, jitted, mapped
from rows import leaves

__all__ = ["Row", "all_rows", "leaves"]
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    inputs: typing.Callable  # -> arrays of NumPy, in trees
    calls: dict  # by contestant or kind: (library, *arrays) -> a call
    target: str  # in words, as in the issue
    factor: float = 1.0  # of the best peer's speed that is asked for; 0: none
    bytes: float = 0  # between memory and processors, at least
    flops: float = 0
    unit: str = "f32"  # of the flops
    share: float = 0  # of what the machine can do that is enough, whatever peers do
    tolerance: float = 1e-3  # of the norm of the difference
    rounds: bool = False  # products of float32 by tf32
    x64: bool = False  # for the libraries of tests/bench
    pick: typing.Callable = lambda value: value


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def in_bf16(*arrays):
    import ml_dtypes

    return tuple(array.astype(ml_dtypes.bfloat16) for array in arrays)


# --- Training --------------------------------------------------------------------------------------


def of_bench(row, name, target, **more):
    """A row of tests/bench."""
    work = row.work
    more = {"flops": work.flops or work.flops16, "bytes": work.bytes} | more
    return Row(name, row.inputs, row.calls, target, **more)


def block_row(dtype, rounds, is_small):
    a = rows_attention
    a.BATCH, a.TIME, a.WIDTH, a.HEADS = (1, 16, 32, 2) if is_small else (8, 1024, 1024, 16)
    unit = "tf32" if rounds else dtype
    return of_bench(
        a.block_row(dtype),
        f"transformer block {unit}",
        "1.0 x the best peer",
        unit=unit,
        rounds=rounds,
        tolerance=1e-3 if unit == "f32" else 5e-2,
    )


def conv_row(is_small):
    c = rows_convolution
    c.IMAGES, c.SIDE, c.CHANNELS = (1, 6, 4) if is_small else (64, 56, 64)
    row = c.block_row("NHWC")
    flops = 2 * 3 * 2 * c.IMAGES * c.SIDE**2 * 9 * c.CHANNELS**2
    moved = 4 * 12 * c.IMAGES * c.SIDE**2 * c.CHANNELS
    return of_bench(row, "conv block", "1.0 x the best peer", flops=flops, bytes=moved,
                    pick=row.pick)  # fmt: skip


def gpt_row(is_small):
    g = rows_gpt
    if is_small:
        g.LAYERS, g.WIDTH, g.HEADS, g.TIME, g.WORDS = 1, 32, 2, 8, 50
    count = g.WORDS * g.WIDTH + g.LAYERS * 12 * g.WIDTH**2
    work = {"flops": 6 * count * g.TIME, "bytes": 4 * 7 * count}
    calls = g.GPT["calls"]
    return Row("GPT-2 small step", g.weights, calls, "1.0 x the best peer", tolerance=1e-2, **work)


def product_row(unit, size, share=0):
    def inputs():
        arrays = normal(size, size), normal(size, size, seed=1)
        return in_bf16(*arrays) if unit == "bf16" else arrays

    return Row(
        f"product of {size}^3 {unit}",
        inputs,
        {kind: jitted(lambda xp, x, y: x @ y) for kind in ("jaxlike", "torchlike")},
        f"{share:.0%} of the measured peak" if share else "1.0 x the best peer",
        flops=2 * size**3,
        unit=unit,
        share=share,
        rounds=unit == "tf32",
        tolerance=2e-2,
    )


# --- What memory bounds ----------------------------------------------------------------------------


def softmax(library, x):
    functional = library.module.nn if library.kind == "jaxlike" else library.module.softmax
    f = functional.softmax if library.kind == "jaxlike" else (lambda x: functional(x, -1))
    return f(x)


def layer_norm(library, x):
    if library.kind == "torchlike":
        return library.module.nn.functional.layer_norm(x, x.shape[-1:])
    return library.module.nn.standardize(x, axis=-1, epsilon=1e-5)


def cross_entropy(library, x, labels):
    if library.kind == "torchlike":
        return library.module.nn.functional.cross_entropy(x, labels.long())
    logs = library.module.nn.log_softmax(x)
    return -library.xp.mean(library.xp.take_along_axis(logs, labels[:, None], axis=1))


def forward(function):
    def build(library, *arrays):
        return compiled(library, functools.partial(function, library), *arrays)

    return {"jaxlike": build, "torchlike": build}


def backward(function):
    """The gradient of a sum of cubes by the first array; squares of normalized rows add up to one."""

    def build(library, x, *rest):
        if library.kind == "jaxlike":
            loss = lambda x, *rest: (function(library, x, *rest) ** 3).sum()  # noqa: E731
            return compiled(library, library.module.grad(loss), x, *rest)
        x.requires_grad_()

        def loss(x, *rest):
            return (function(library, x, *rest) ** 3).sum()

        run = library.jit(loss)
        return lambda: library.module.autograd.grad(run(x, *rest), x)[0]

    return {"jaxlike": build, "torchlike": build}


def memory_rows(size):
    width = min(1024, size // 16)
    both = {kind: jitted(lambda xp, x, y: x + y) for kind in ("jaxlike", "torchlike")}
    chain = jitted(lambda xp, x, y: xp.tanh(x * y) + xp.exp(-x * x))
    target, share = "88 % of copy, or 1.0 x the best peer", 0.88

    def row(name, inputs, calls, passes, **more):
        return Row(name, inputs, calls, target, bytes=4 * size * passes, share=share, **more)

    def one():
        return (normal(size // width, width),)

    def two():
        return normal(size), normal(size, seed=1)

    def labelled():
        labels = np.random.default_rng(1).integers(0, width, size // width).astype(np.int32)
        return normal(size // width, width), labels

    return [
        row("elementwise", two, {"jaxlike": chain, "torchlike": chain}, 3),
        row("add", two, both, 3),
        row("softmax", one, forward(softmax), 2),
        row("layer norm", one, forward(layer_norm), 2),
        row("cross-entropy", labelled, forward(cross_entropy), 1),
        row("softmax, gradient", one, backward(softmax), 2),
        row("layer norm, gradient", one, backward(layer_norm), 2),
        row("cross-entropy, gradient", labelled, backward(cross_entropy), 2),
        row("sum", one, {k: jitted(lambda xp, x: x.sum()) for k in ("jaxlike", "torchlike")}, 1),
    ]


# --- Indices ---------------------------------------------------------------------------------------


def cumsum(library, x):
    return library.xp.cumsum(x, 0)


def gather(library, x, index):
    if library.kind == "torchlike":
        return library.module.index_select(x, 0, index.long())
    return library.xp.take(x, index, axis=0, mode="clip")


def scatter(library, x, index, values):
    if library.kind == "jaxlike":
        return x.at[index].add(values, mode="clip")
    library.module.use_deterministic_algorithms(True)
    return x.index_add(0, index.long(), values)


def sort(library, x):
    result = library.xp.sort(x)
    return result if library.kind == "jaxlike" else result.values


def index_rows(size):
    table = size // 64

    def looked_up():
        index = np.random.default_rng(1).integers(0, size // 16, size // 16).astype(np.int32)
        return normal(size // 16, 16), index

    def updates():
        index = np.random.default_rng(1).integers(0, table, size // 4).astype(np.int32)
        return normal(table), index, normal(size // 4, seed=2)

    alone = lambda: (normal(size),)  # noqa: E731
    moved = 4 * (2 * size + size // 16)
    return [
        Row(
            "cumsum", alone, forward(cumsum), "60 % of copy", 0, 8 * size, share=0.6, tolerance=1e-2
        ),
        Row("random gather", looked_up, forward(gather), "1.0 x the best peer", bytes=moved),
        Row(
            "deterministic scatter",
            updates,
            forward(scatter),
            "1.0 x deterministic torch",
            bytes=2 * size + 8 * table,
        ),  # fmt: skip
        Row("sort", alone, forward(sort), "0.8 x torch", 0.8, bytes=8 * size),
    ]


# --- Attention -------------------------------------------------------------------------------------


def attention_row(width, time, heads=16, batch=4):
    shape = (batch, time, heads, width)

    def attend(library, q, k, v):
        if library.kind == "torchlike":
            q, k, v = (a.transpose(1, 2) for a in (q, k, v))
            function = library.module.nn.functional.scaled_dot_product_attention
            return function(q, k, v, is_causal=True).transpose(1, 2)
        return library.module.nn.dot_product_attention(q, k, v, is_causal=True)

    return Row(
        f"attention bf16 d {width} causal {time}",
        lambda: in_bf16(*(normal(*shape, seed=i) for i in range(3))),
        forward(attend),
        "1.0 x torch's best",
        flops=2 * batch * heads * time**2 * width,  # half of the square
        unit="bf16",
        tolerance=2e-2,
    )


def ragged_row(is_small):
    """plait by `mask`; the peers padded."""
    a = rows_attention
    a.SEQUENCES, a.BOUND, a.NARROW, a.FEW = (2, 16, 16, 2) if is_small else (32, 2048, 1024, 16)
    a.lengths = lambda seed=0: (
        np.random.default_rng(seed).integers(1, a.BOUND + 1, a.SEQUENCES).astype(np.int32)
    )
    row = next(row for row in a.ROWS if row.name == "ragged/encoder")
    return Row("ragged block by mask", row.inputs, row.calls, "0.6 x the time of padded", 1 / 0.6,
               pick=lambda value: leaves(value)[:1])  # fmt: skip


# --- Loops -----------------------------------------------------------------------------------------


def loop_rows(is_small):
    loops = rows_loops
    trajectories, bodies = (100, 64) if is_small else (100_000, 65_536)

    def states():
        return tuple(normal(trajectories, seed=i) * 0.1 + 1 for i in range(4))

    # Four stages of some ten operations, 100 steps.
    def step(state, h=0.01):
        def slope(x, y, u, v):
            r3 = (x * x + y * y) ** 1.5 + 0.01
            return u, v, -x / r3, -y / r3

        def moved(slopes, by):
            return tuple(s + by * k for s, k in zip(state, slopes))

        k1 = slope(*state)
        k2 = slope(*moved(k1, h / 2))
        k3 = slope(*moved(k2, h / 2))
        k4 = slope(*moved(k3, h))
        return tuple(
            s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4)
        )

    def trajectories_of(library, *state):
        if library.kind == "jaxlike":
            run = lambda *s: library.lax.fori_loop(0, 100, lambda i, s: step(s), s)  # noqa: E731
            return compiled(library, run, *state)

        def run(*state):
            for _ in range(100):
                state = step(state)
            return state

        return compiled(library, run, *state) if library.name == "torch" else None

    def attraction(library, place, mass):
        """The acceleration of each body by all others."""
        apart = place[None, :, :] - place[:, None, :]
        inverse = ((apart * apart).sum(-1) + 1e-3) ** -1.5 * mass
        return (apart * inverse[..., None]).sum(1)

    def placed():
        return normal(bodies, 3), np.abs(normal(bodies, seed=1))

    def counted(library, x):
        """A loop of scalars: what each step waits for."""
        if library.kind == "torchlike":
            return None
        run = lambda x: library.lax.fori_loop(  # noqa: E731
            0, 100 if is_small else 10_000, lambda i, c: c * 0.999 + 0.1, x
        )
        return compiled(library, run, x)

    return [
        Row(
            "RK4 of 10^5 trajectories",
            states,
            {"jaxlike": trajectories_of, "torchlike": trajectories_of},
            "40 % of the f32 peak",
            0,
            flops=trajectories * 100 * 120,
            share=0.4,
        ),  # fmt: skip
        Row(
            f"N-body {bodies}",
            placed,
            forward(attraction),
            "30 % of the f32 peak",
            0,
            flops=20.0 * bodies**2,
            share=0.3,
        ),  # fmt: skip
        Row("loop bound by latency", lambda: (normal(32),), {"jaxlike": counted}, "5 x JAX", 5.0),
        Row(
            "LSTM",
            loops.recurrent_inputs("lstm"),
            loops.recurrent_row("lstm").calls,
            "1.0 x the best peer",
            1.0,
            tolerance=1e-2,
        ),  # fmt: skip
    ]


# --- Programs --------------------------------------------------------------------------------------


def folder_of_programs():
    """Of the programs that other libraries run too; None where it was not brought."""
    for folder in (".gpu/programs", "shared/programs", "../shared/programs"):
        path = os.path.join(os.path.dirname(os.path.dirname(HERE)), folder)
        if os.path.exists(os.path.join(path, "programs.py")):
            return path
    return None


@functools.cache
def programs():
    path = os.path.join(folder_of_programs(), "programs.py")
    spec = importlib.util.spec_from_file_location("programs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Names:
    """Stands for a library, where only the names of its programs are wanted."""

    def __getattr__(self, name):
        return self

    def __call__(self, *arguments, **more):
        return self


def program_row(name, examples):
    """The program, mapped over examples of its arrays of numbers."""

    def build(library, x):
        module, xp, lax = library.module, library.xp, library.lax
        f, inputs = programs().make(module, getattr(module, "numpy", xp), lax)[name]
        scale = 1 + 1e-3 * np.arange(examples) / examples

        def is_mapped(value):
            return np.asarray(value).dtype.kind == "f"

        def examples_of(value):
            value = np.asarray(value)
            if is_mapped(value):
                shape = (examples,) + (1,) * value.ndim
                value = (value * scale.reshape(shape)).astype(np.float32)
            return library.array(value)

        arrays = mapped(examples_of, inputs)
        dims = mapped(lambda value: 0 if is_mapped(value) else None, inputs)
        if not leaves(dims):
            return compiled(library, f, *arrays)
        return compiled(library, module.vmap(f, in_axes=tuple(dims)), *arrays)

    return Row(f"program {name}", lambda: (np.zeros(1, "f4"),), {"jaxlike": build},
               "1.5 x JAX, in the geometric mean", 1.5, tolerance=1e-2)  # fmt: skip


def program_rows(is_small):
    if folder_of_programs() is None:
        return []
    names = list(programs().make(Names(), Names(), Names()))
    return [program_row(name, 2 if is_small else 1024) for name in names]


# --- All -------------------------------------------------------------------------------------------


def eager_row():
    add = {kind: eager(lambda xp, x, y: x + y) for kind in ("jaxlike", "torchlike")}
    inputs = lambda: (normal(1024), normal(1024, seed=1))  # noqa: E731
    return Row("eager add", inputs, add, "at most torch's")


def all_rows(is_small):
    """The most important first; those of the programs last."""
    size, side = (1 << 12, 32) if is_small else (1 << 26, 4096)
    time = 32 if is_small else 4096
    training = rows_training.step_row(32 if is_small else 1024)
    memory = memory_rows(size)
    attention = [attention_row(64, time), attention_row(128, time)]
    if is_small:
        attention = [attention_row(8, time, 2, 1)]
    return [
        # What takes longest to prepare, side by side.
        of_bench(training, "MLP step", "1.0 x the best peer"),
        block_row("bf16", False, is_small),
        gpt_row(is_small),
        conv_row(is_small),
        block_row("f32", False, is_small),
        product_row("bf16", side, 0.7),
        *memory,
        eager_row(),
        *attention,
        *loop_rows(is_small),
        *index_rows(size),
        *(product_row(unit, side) for unit in ("f32", "tf32")),
        ragged_row(is_small),
        block_row("f32", True, is_small),
        *program_rows(is_small),
    ]
