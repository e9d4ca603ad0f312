"""What a call costs beside its work: dispatch of compiled functions, eager operations, the tape."""

# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
from libraries import eager, jitted
from rows import Row, Work, either, microseconds, peer

CALL = Work(calls=1)
NUMPY = either(peer("numpy"), microseconds(0.5))


def random(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 1, shape).astype(np.float32)


# --- Compiled functions ----------------------------------------------------------------------------


def hundred(library, *arrays):
    def total(*arrays):
        return functools.reduce(lambda a, b: a + b, arrays)

    return library.waiting(library.jit(total), *arrays)


def nested(depth):
    """A dict of dicts with 10 · 4 · 4 leaves."""
    if depth == 0:
        return random(1)
    return {f"k{i}": nested(depth - 1) for i in range((4, 4, 10)[depth - 1])}


def double(node):
    if isinstance(node, dict):
        return {key: double(value) for key, value in node.items()}
    return node * 2


def tree(library, argument):
    return library.waiting(library.jit(double), argument)


def state_in(library, *state):
    """A state of 60 leaves that is given away at each call, where the library can."""

    def advance(state):
        return [x * 0.5 for x in state]

    if library.kind == "jaxlike":
        step = library.jit(advance, donate_argnums=0)
    elif library.name == "torch":

        def step(state):
            library.module._foreach_mul_(state, 0.5)
            return state

    elif library.name == "numpy":

        def step(state):
            for x in state:
                x *= 0.5
            return state

    else:
        step = library.jit(advance)
    now = list(state)

    def call():
        nonlocal now
        now = step(now)
        return library.wait(now)

    return call


# --- What a function captures ----------------------------------------------------------------------

LAYERS = 200


def captured_layers(library, *arrays):
    """A list of dicts that may grow or change between calls, as of layers."""
    layers = [{"w": a, "b": b, "g": g} for a, b, g in zip(*[iter(arrays)] * 3)]

    @library.jit
    def total(x):
        for layer in layers:
            x = x * layer["w"] + layer["b"] * layer["g"]
        return x

    one = library.module.numpy.ones(1)
    return library.waiting(total, one)


def layers_reference(*arrays):
    x = np.ones(1)
    for w, b, g in zip(*[iter(arrays)] * 3):
        x = x * w + b * g
    return x


def captured_table(library, x):
    """A table of NumPy's, of 8 MB, which the function reads where it lies."""
    table = np.linspace(0, 1, 2_000_000, dtype=np.float32)
    if library.name == "numpy":
        return lambda: (table * x).sum()
    return library.waiting(library.jit(lambda x: (x * table).sum()), x)


# --- Writes ----------------------------------------------------------------------------------------


def write_one(library, x):
    if library.name == "jax":
        return lambda: x.at[5].set(1.0)

    def call():
        x[5] = 1.0
        return x

    return call


def write_seen(library, x):
    """By an array of which 2000 views are held."""
    views = [x[i:] for i in range(2000)]

    def call():
        x[5] = 1.0
        return x, views[5][:1]

    return call


def written(x):
    x = x.copy()
    x[5] = 1
    return x


# --- Eager operations ------------------------------------------------------------------------------

OPERATIONS = {
    "add": lambda xp, x: x + x,
    "exp": lambda xp, x: xp.exp(x),
    "where": lambda xp, x: xp.where(x > 0.5, x, 0.0),
    "reshape": lambda xp, x: x.reshape(1, -1),
    "index": lambda xp, x: x[0],
    "sum": lambda xp, x: x.sum(),
}


def eager_row(name, size):
    function = OPERATIONS[name]
    count = "one element" if size == 1 else f"{size:,} elements"
    return Row(
        f"eager/{name}-{size}",
        f"{name}, {count}, without jit",
        NUMPY,
        lambda: (random(size),),
        lambda x: function(np, x),
        calls={"*": eager(function)},
        work=CALL,
    )


def matmul(xp, x, y):
    return x @ y


# --- The tape --------------------------------------------------------------------------------------

OPS = 100


def tape(library, start):
    """sin(y) · x again and again: operations recorded, then the way back; gives the gradient."""
    sin = library.xp.sin
    if library.name == "plait":
        x = library.module.variable(start)
    elif library.name == "torch":
        x = start.clone().requires_grad_()
    else:
        return None

    def call():
        x.grad = None
        y = x
        for _ in range(OPS // 2):
            y = sin(y) * x
        y.sum().backward()
        return x.grad

    return call


def tape_reference(x):
    y, slope = x, np.ones_like(x)
    for _ in range(OPS // 2):
        y, slope = np.sin(y) * x, slope * np.cos(y) * x + np.sin(y)
    return slope


ROWS = [
    Row(
        "dispatch/plus-one",
        "jitted x + 1, one element",
        microseconds(0.8),
        lambda: (random(1),),
        lambda x: x + 1,
        calls={"*": jitted(lambda xp, x: x + 1)},
        work=CALL,
    ),
    Row(
        "dispatch/100-scalars",
        "jitted sum of 100 arguments",
        microseconds(5),
        lambda: [random(seed=i) for i in range(100)],
        lambda *arrays: sum(arrays),
        calls={"*": hundred},
        work=CALL,
    ),
    Row(
        "dispatch/tree-160",
        "jitted doubling of a nested dict of 160 leaves",
        microseconds(15),
        lambda: (nested(3),),
        double,
        calls={"*": tree},
        work=CALL,
    ),
    Row(
        "dispatch/donated-60",
        "jitted step of a donated state of 60 leaves",
        microseconds(8),
        lambda: [random(4, seed=i) for i in range(60)],
        lambda *state: [x * 0.5 for x in state],
        calls={"*": state_in},
        work=CALL,
    ),
    Row(
        "captures/leaf",
        "jitted function of 600 captured arrays in a list of dicts, each",
        microseconds(0.03),
        lambda: [random(1, seed=i) for i in range(3 * LAYERS)],
        layers_reference,
        calls={"plait": captured_layers},
        per=3 * LAYERS,
    ),
    Row(
        "captures/table",
        "jitted sum of products with a captured NumPy array of 8 MB",
        either(peer("numpy"), microseconds(500)),
        lambda: (np.float32(0.5),),
        lambda x: x * 1e6,
        calls={"plait": captured_table, "numpy": captured_table},
        work=Work(bytes=8e6),
        tolerance=1e-3,
    ),
    Row(
        "writes/one",
        "x[5] = 1 for 1,000,000 elements",
        microseconds(2),
        lambda: (random(1_000_000),),
        written,
        calls={"*": write_one},
        work=CALL,
    ),
    Row(
        "writes/seen",
        "the same, with 2000 views that are held",
        microseconds(2),
        lambda: (random(1_000_000),),
        lambda x: (written(x), np.ones(1)),
        calls={"plait": write_seen, "numpy": write_seen},
        work=CALL,
    ),
    *(eager_row(name, size) for size in (1, 1000) for name in OPERATIONS),
    Row(
        "eager/matmul-32",
        "product of 32 × 32, without jit",
        NUMPY,
        lambda: (random(32, 32), random(32, 32, seed=1)),
        lambda x, y: x @ y,
        calls={"*": eager(matmul)},
        work=Work(flops=2 * 32**3, calls=1),
    ),
    Row(
        "tape/chain-100",
        "per operation, forward and backward, 64 elements",
        microseconds(2),
        lambda: (1 + random(64),),
        tape_reference,
        calls={"plait": tape, "torch": tape},
        per=OPS,
        work=Work(calls=OPS),
        tolerance=1e-3,
    ),
]
