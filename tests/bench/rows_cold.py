"""What is paid once: import, tracing, compiling, the first result of a program."""

# SPDX-License-Identifier: Apache-2.0

import functools
import glob
import importlib.util
import os
import subprocess
import sys

import libraries
import numpy as np
from contest import Entry
from machine import before_others
from rows import Row, Work, best_peer, both, megabytes, microseconds, milliseconds, of_row
from rows_training import (
    flops,
    network,
    torch_train,
    train,
    trained,
    value_and_gradients,
)

# --- Chains ----------------------------------------------------------------------------------------


def chain(sin, equations):
    """A new function of this many equations: libraries remember those that they have traced. Of 1 to
    2.2 its values stay away from zero, however long it is."""

    def f(x):
        start = x
        for _ in range(equations // 2):
            x = sin(x) * start
        return x

    return f


def chained(x, equations):
    return chain(np.sin, equations)(x)


def chain_slope(x, equations):
    value, slope = x, np.ones_like(x)
    for _ in range(equations // 2):
        value, slope = np.sin(value) * x, np.cos(value) * slope * x + np.sin(value)
    return slope


def trace(equations):
    def build(library, x):
        make = library.module.make_jaxpr
        return lambda: make(chain(library.lax.sin, equations))(x)

    return build


def compile_chain(equations):
    """Trace, compile and run, in a process that has compiled something else before."""

    def build(library, x):
        def first(sin, equations):
            return library.waiting(library.jit(chain(sin, equations)), x)

        sin = library.xp.sin
        first(sin, 2)()
        return first(sin, equations)

    return build


def chain_row(equations):
    return [
        Row(
            f"first/trace-{equations}",
            f"trace of a chain of {equations} operations, each",
            both(microseconds(3), best_peer()),
            lambda: (np.ones(3, np.float32),),
            lambda x: float(equations),
            calls={"jaxlike": trace(equations)},
            pick=lambda jaxpr: float(len(jaxpr.item().eqns)),
            per=equations,
        ),
        Row(
            f"first/chain-{equations}",
            f"trace, compile and run of {equations} operations, each",
            both(microseconds(3), best_peer()),
            lambda: (np.linspace(1.2, 2.2, 3, dtype=np.float32),),
            chain(np.sin, equations),
            calls={"jaxlike": compile_chain(equations), "compile": compile_chain(equations)},
            per=equations,
            tolerance=1e-3,
            cold=True,
        ),
    ]


# --- Long programs ---------------------------------------------------------------------------------

SHORT, LONG = 1000, 100_000
LINEAR = 8  # programs outgrow the caches; were it quadratic, this would be 100


def acting(act, equations):
    """act on a jaxpr of this many equations, or of a new one, where it changes it."""

    def build(library, x):
        plait = library.module
        jaxpr = plait.make_jaxpr(chain(library.lax.sin, equations))(x)
        return lambda: act(plait, chain(library.lax.sin, equations), jaxpr, x)

    return build


def printing(plait, f, jaxpr, x):
    return str(jaxpr)


def tracing(plait, f, jaxpr, x):
    return plait.make_jaxpr(f)(x)


def differentiating(plait, f, jaxpr, x):
    return plait.make_jaxpr(plait.grad(lambda x: f(x).sum()))(x)


def batching(plait, f, jaxpr, x):
    return plait.make_jaxpr(plait.vmap(f))(x)


def compiling(plait, f, jaxpr, x):
    return plait.jit(f)(x)


# Of what an act gives, what can be said beforehand: see chain.
POINTS = np.linspace(1.2, 2.2, 3, dtype=np.float32)


def equations_of(text):
    return float(str(text).count(" = "))


def value_of(jaxpr):
    return np.asarray(jaxpr.item()(POINTS))


def length_rows(name, what, act, said, wanted, reach=()):
    """The same for a short and for a long program, which must not cost much more for each equation."""

    def row(equations, reach):
        return Row(
            f"length/{name}-{equations}",
            f"{what} {equations:,} equations, each",
            both(*reach),
            lambda: (POINTS,),
            lambda x: wanted(x, equations),
            calls={"plait": acting(act, equations)},
            pick=said,
            tolerance=1e-3,
            per=equations,
            cold=True,
        )

    linear = of_row(f"length/{name}-{SHORT}", LINEAR)
    return [row(SHORT, reach), row(LONG, (*reach, linear))]


# --- Many sizes ------------------------------------------------------------------------------------


def many_sizes(library, params, x, y):
    """Value and gradient of the network at 64 batch sizes in random order; gives the values."""
    sizes = np.random.default_rng(0).permutation(64) + 1
    if library.name == "compile":
        library.jit = functools.partial(library.module.compile, dynamic=True)
    pieces = [(x[:n], y[:n]) for n in map(int, sizes)]
    if library.kind == "jaxlike":
        from rows_training import loss

        run = library.jit(library.module.value_and_grad(functools.partial(loss, library.xp)))
        return lambda: [library.wait(run(params, *piece))[0] for piece in pieces]

    from rows_training import torch_loss

    value = functools.partial(torch_loss, library.module)
    run = library.jit(value) if library.name == "compile" else value
    own = [tuple(p.clone().requires_grad_() for p in pair) for pair in params]

    def call():
        found = []
        for x, y in pieces:
            result = run(own, x, y.argmax(1))
            result.backward()
            found.append(result)
        return found

    return call


def many_sizes_reference(params, x, y):
    sizes = np.random.default_rng(0).permutation(64) + 1
    return [value_and_gradients(params, x[:n], y[:n])[0] for n in sizes]


# --- Import ----------------------------------------------------------------------------------------


def import_row(name, what, reach, code, unit="s", before=None):
    """What this code prints, in a process of its own that imported NumPy before.

    Byte code is on disk, and the files are in memory, unless before() has them forgotten.
    """

    def measure(row, contest):
        entries = {name: Entry("ok") for name in contest.names if name not in ("numpy", "compile")}
        for _ in range(contest.repeats):
            for contestant, entry in entries.items():
                module = libraries.module_of(contestant)
                printed(f"import {module}", contest, contestant)
                if before:
                    before(module)
                entry.values.append(float(printed(code.format(module), contest, contestant)))
        return entries

    return Row(name, what, reach, measure=measure, unit=unit)


def printed(code, contest, contestant):
    """By a new Python, which may keep byte code: installed packages come with theirs."""
    environment = contest.environment(contestant)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
        preexec_fn=before_others,
    ).stdout


IMPORT_TIME = """
import numpy, time
start = time.perf_counter()
import {}
print(time.perf_counter() - start)
"""
IMPORT_MEMORY = """
import numpy
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
before = resident()
import {}
print(resident() - before)
"""


def evict(module):
    """Asks the system to forget the files of a package, as after a restart."""
    spec = importlib.util.find_spec(module)
    folders = list(spec.submodule_search_locations or [])
    folders += glob.glob(os.path.join(os.environ.get("PLAIT_BUILD_DIR", "build"), "*.so*"))
    for top in folders:
        for folder, _, names in os.walk(top) if os.path.isdir(top) else [("", "", [top])]:
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# --- Loops that are called once --------------------------------------------------------------------

ONCE = 1_000_000


def loop_once(library, x):
    """A million steps of one number, called for the first time."""

    def run(x):
        return library.lax.fori_loop(0, ONCE, lambda i, x: x * 0.999 + 0.5, x)

    return library.waiting(library.jit(run), x)


CHAIN, LEAPS = 2000, 10


def sampler_noise():
    rng = np.random.default_rng(5)
    return rng.standard_normal((CHAIN, 2)), np.log(rng.uniform(size=CHAIN))


def sample(xp, where, slope_of, scan, noise, limits):
    """Hamiltonian Monte Carlo of two correlated numbers; the noise is given."""

    def height(q):
        return 0.5 * (q[0] ** 2 + (q[1] - q[0]) ** 2 / 0.25)

    def leap(state, _):
        q, p = state
        p = p - 0.05 * slope_of(height)(q)
        q = q + 0.1 * p
        return (q, p - 0.05 * slope_of(height)(q)), None

    def step(q, given):
        p, limit = given
        (new, last), _ = scan(leap, (q, p), LEAPS)
        gained = height(q) + 0.5 * (p**2).sum() - height(new) - 0.5 * (last**2).sum()
        q = where(limit < gained, new, q)
        return q, q

    return scan(step, xp.zeros_like(noise[0]), (noise, limits))[1]


def sampler(library, noise, limits):
    def run(noise, limits):
        def scan(body, start, xs):
            steps = {"length": xs} if isinstance(xs, int) else {"xs": xs}
            return library.lax.scan(body, start, **{"xs": None, **steps})

        return sample(library.xp, library.xp.where, library.module.grad, scan, noise, limits)

    return library.waiting(library.jit(run), noise, limits)


def sampler_reference(noise, limits):
    def slope_of(height):
        return lambda q: np.array([q[0] - (q[1] - q[0]) / 0.25, (q[1] - q[0]) / 0.25])

    def scan(body, carry, xs):
        found = []
        for x in range(xs) if isinstance(xs, int) else zip(*xs):
            carry, y = body(carry, x)
            found.append(y)
        return carry, np.array(found)

    return sample(np, np.where, slope_of, scan, noise, limits)


FIRST = {"jaxlike": train, "torchlike": torch_train}
STEP = {"inputs": lambda: network(128), "reference": trained, "calls": FIRST, "tolerance": 2.5e-3}

ROWS = [
    import_row("import/warm", "import, beyond NumPy", milliseconds(40), IMPORT_TIME),
    import_row(
        "import/cold",
        "import, beyond NumPy, files not in memory",
        milliseconds(40),
        IMPORT_TIME,
        before=evict,
    ),
    import_row("import/memory", "resident, beyond NumPy", megabytes(60), IMPORT_MEMORY, unit="B"),
    *(row for equations in (128, 512, 896) for row in chain_row(equations)),
    *length_rows("trace", "trace", tracing, value_of, chained, (microseconds(3),)),
    *length_rows("grad", "gradient of", differentiating, value_of, chain_slope),
    *length_rows("vmap", "vmap of", batching, value_of, chained),
    *length_rows("jit", "trace, compile and run", compiling, np.asarray, chained),
    *length_rows("print", "text of", printing, equations_of, lambda x, equations: float(equations)),
    Row(
        "first/mlp",
        "first result of a jitted step of the MLP, batch 128",
        both(milliseconds(50), best_peer()),
        work=Work(flops=flops(128)),
        cold=True,
        **STEP,
    ),
    Row(
        "first/mlp-again",
        "the same in a second process, with caches on disk",
        both(of_row("first/mlp", 0.2), best_peer()),
        work=Work(flops=flops(128)),
        cold=True,
        cached=True,
        **STEP,
    ),
    Row(
        "first/loop",
        "first result of a loop of 1,000,000 steps of one number",
        best_peer(),
        lambda: (np.float32(1),),
        lambda x: 500.0,
        calls={"jaxlike": loop_once},
        cold=True,
    ),
    Row(
        "first/sampler",
        "first result of Hamiltonian Monte Carlo in float64, 2000 samples of 2 numbers, 10 leaps",
        best_peer(),
        sampler_noise,
        sampler_reference,
        calls={"jaxlike": sampler},
        x64=True,
        cold=True,
        tolerance=1e-6,
    ),
    Row(
        "first/64-sizes",
        "MLP value and gradient at 64 batch sizes, from cold",
        best_peer(),
        lambda: network(64),
        many_sizes_reference,
        calls={"jaxlike": many_sizes, "torchlike": many_sizes},
        work=Work(flops=flops(64 * 65 // 2)),
        cold=True,
    ),
]
