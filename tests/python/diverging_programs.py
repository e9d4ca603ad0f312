"""Random programs in which one rank differs; as a script, one rank of a job: SEED and a folder for checkpoints.

A rank that sees a wrong value says WRONG and ends with code 9; one that reaches the end ends with 0.

SPDX-License-Identifier: Apache-2.0
"""

import os
import signal
import sys
import time

import numpy as np

MESHES = {2: ((2,), ("x",)), 3: ((3,), ("x",)), 4: ((2, 2), ("x", "y"))}
STYLES = ("eager", "jit", "scan", "while", "cond", "grad")
DTYPES = ("float32", "float64", "int32")
STEPS = 6

# How the rank differs in a step. What changes a program is a key of its step.
IN_PROGRAM = ("size", "dtype", "axis", "operation", "constant", "style")
IN_ORDER = ("omits", "repeats", "swaps", "other mesh")
IN_VALUES = ("rounds", "branch")
ENDS = ("returns", "exits", "exits at once", "fails", "fails at once", "raises", "aborts", "killed")
OTHERS = ("stops", "sleeps", "caught inside", "checkpoint", "other checkpoint", "exits before")
CHANGES = IN_PROGRAM + IN_ORDER + IN_VALUES + ENDS + OTHERS


# What places give each other: of the blocks of all places, in the mesh's axes, along one of them.
OPERATIONS = {
    "psum": lambda g, d: g.sum(d, keepdims=True) + 0 * g,
    "pmax": lambda g, d: g.max(d, keepdims=True) + 0 * g,
    "pmin": lambda g, d: g.min(d, keepdims=True) + 0 * g,
    "ppermute": lambda g, d: np.roll(g, 1, d),
    "all_gather": lambda g, d: g.sum(d, keepdims=True) + 0 * g,
    "psum_scatter": lambda g, d: g.sum(d, keepdims=True) + 0 * g,
    "all_to_all": lambda g, d: g.sum(d, keepdims=True) + 0 * g,
}


def drawn(seed, size):
    """The steps that all ranks have, who differs, in which step, and how."""
    random = np.random.default_rng([seed, size])
    axes = MESHES[size][1]
    steps = [
        {
            "operation": str(random.choice(list(OPERATIONS))),
            "style": str(random.choice(STYLES)),
            "dtype": str(random.choice(DTYPES)),
            "axis": str(random.choice(axes)),
            "size": int(random.choice([1, 3, 1000, 20000])),
            "constant": int(random.integers(1, 4)),
            "rounds": int(random.integers(1, 4)),
            "branch": int(random.integers(2)),
        }
        for _ in range(STEPS)
    ]
    for step in steps:
        if step["style"] == "grad":
            step["dtype"], step["operation"] = "float32", "psum"
    change = CHANGES[seed % len(CHANGES)]
    rank, at = int(random.integers(size)), int(random.integers(STEPS - 1))
    if change == "axis" and len(axes) == 1:
        change = "operation"
    if change in ("rounds", "branch"):
        steps[at] |= {"style": {"rounds": "while", "branch": "cond"}[change]}
        if change == "branch" and steps[at]["operation"] == "psum":
            steps[at]["operation"] = "pmax"
    if change == "caught inside":
        steps[at] |= {"style": "jit", "dtype": "float32"}
    return steps, rank, at, change


def changed(step, change, axes):
    """The step of the rank that differs."""
    now = dict(step)
    if change == "size":
        now["size"] += 1
    elif change == "constant":
        now["constant"] += 1
    elif change in ("rounds", "branch"):
        now[change] = now[change] + 1 if change == "rounds" else 1 - now[change]
    elif change == "axis":
        now["axis"] = next(axis for axis in axes if axis != step["axis"])
    elif change == "dtype":
        now["dtype"] = next(each for each in DTYPES if each != step["dtype"])
        now["style"] = "jit" if step["style"] == "grad" else step["style"]
    elif change == "operation":
        now["operation"] = "pmin" if step["operation"] != "pmin" else "pmax"
        now["style"] = "jit" if step["style"] == "grad" else step["style"]
    elif change == "style":
        now["style"] = "jit" if step["style"] != "jit" else "scan"
    return now


def place_function(step, call=lambda x: x):
    """What a place does in one turn of a step."""
    import plait.numpy as pnp
    from plait import lax

    axis, operation, constant = step["axis"], step["operation"], step["constant"]

    def turn(x):
        x = call(x + pnp.asarray(constant, x.dtype))
        size = lax.axis_size(axis)
        if operation in ("psum", "pmax", "pmin"):
            return getattr(lax, operation)(x, axis)
        if operation == "ppermute":
            return lax.ppermute(x, axis, [(i, (i + 1) % size) for i in range(size)])
        if operation == "all_gather":
            return lax.all_gather(x, axis).sum(0, dtype=x.dtype)
        rows = pnp.stack([x] * size)
        if operation == "psum_scatter":
            return lax.psum_scatter(rows, axis)
        return lax.all_to_all(rows, axis, 0, 0).sum(0, dtype=x.dtype)

    def varying(x):
        return lax.pvary(turn(x), axis) if operation in ("psum", "pmax", "pmin") else turn(x)

    style = step["style"]
    if style == "scan":
        return lambda x, rounds, branch: lax.fori_loop(0, 2, lambda _, c: varying(c), x)
    if style == "while":

        def loop(x, rounds, branch):
            state = lax.while_loop(
                lambda c: c[0] < rounds, lambda c: (c[0] + 1, varying(c[1])), (0 * rounds, x)
            )
            return state[1]

        return loop
    if style == "cond":
        other = lambda x: lax.pvary(lax.psum(x, axis), axis)  # noqa: E731
        return lambda x, rounds, branch: lax.cond(branch == 0, varying, other, x)
    return lambda x, rounds, branch: varying(x)


def turns(step):
    """The turns that a step takes, as NumPy knows them: operations and constants."""
    own = (step["operation"], step["constant"])
    if step["style"] == "cond":
        return [own if step["branch"] == 0 else ("psum", 0)]
    return [own] * {"scan": 2, "while": step["rounds"]}.get(step["style"], 1)


def expected(step, size, x):
    shape, axes = MESHES[size]
    dim = axes.index(step["axis"].removesuffix("2"))
    if step["style"] == "grad":
        return np.full_like(x, shape[dim])
    for operation, constant in turns(step):
        blocks = (x + x.dtype.type(constant)).reshape(*shape, -1)
        x = OPERATIONS[operation](blocks, dim).reshape(x.shape).astype(x.dtype)
    return x


def run_step(step, size, mesh, number, call=lambda x: x):
    import plait
    from plait import P

    x = (np.arange(size * step["size"]) % 7 + number).reshape(size, -1).astype(step["dtype"])
    spec = P(mesh.axis_names)
    f = plait.shard_map(place_function(step, call), mesh, (spec, P(), P()), spec)
    if step["style"] == "grad":
        f = plait.grad(lambda x, rounds, branch, f=f: f(x, rounds, branch).sum())
    if step["style"] != "eager":
        f = plait.jit(f)
    result = np.asarray(f(x, np.int32(step["rounds"]), np.int32(step["branch"])))
    wanted = expected(step, size, x)
    if result.dtype != wanted.dtype or not (result == wanted).all():
        os.write(2, f"WRONG: step {number}, {step}: {result} for {wanted}\n".encode())
        os._exit(9)


def differ_at_once(change):
    """What ends or stops a rank between two steps."""
    if change == "exits":
        sys.exit(0)
    if change == "exits at once":
        os._exit(0)
    if change == "fails":
        sys.exit(3)
    if change == "fails at once":
        os._exit(3)
    if change == "raises":
        raise ValueError("this rank fails")
    if change == "aborts":
        os.abort()
    if change == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if change == "stops":
        os.kill(os.getpid(), signal.SIGSTOP)
    if change == "sleeps":
        time.sleep(1000)


def main(seed, folder):
    variables = ("OMPI_COMM_WORLD", "PMI")
    size, rank = (
        int(next(os.environ[f"{v}_{what}"] for v in variables if f"{v}_{what}" in os.environ))
        for what in ("SIZE", "RANK")
    )
    steps, odd_rank, at, change = drawn(seed, size)
    is_odd = rank == odd_rank
    if is_odd and change == "exits before":  # before it joins the job
        sys.exit(0)
    import plait

    mesh = plait.mesh(*MESHES[size])
    order = list(range(STEPS))
    if is_odd and change == "omits":
        order.remove(at)
    if is_odd and change == "repeats":
        order.insert(at, at)
    if is_odd and change == "swaps":
        order[at], order[at + 1] = order[at + 1], order[at]
    for number in order:
        step, call = steps[number], lambda x: x
        if number == at and change == "caught inside":
            call = failing_call(is_odd)
        if is_odd and number == at:
            if change == "returns":
                return
            differ_at_once(change)
            if change in IN_PROGRAM + IN_VALUES:
                step = changed(step, change, mesh.axis_names)
            if change == "checkpoint":
                plait.save_checkpoint(os.path.join(folder, "one.plait"), {"x": np.ones(5)})
        if number == at and change == "other checkpoint":
            name = "other.plait" if is_odd else "same.plait"
            plait.save_checkpoint(os.path.join(folder, name), {"x": np.ones(5)})
        now = mesh
        if is_odd and number == at and change == "other mesh":
            now = plait.mesh(MESHES[size][0], [name + "2" for name in mesh.axis_names])
            step = dict(step, axis=now.axis_names[0])
        try:
            run_step(step, size, now, number, call)
        except plait.Error as error:
            if change != "caught inside" or "on purpose" not in str(error):
                raise
    print("reached the end", flush=True)


def failing_call(is_odd):
    import plait

    def on_host(x):
        if is_odd:
            raise RuntimeError("on purpose")
        return np.asarray(x)

    return lambda x: plait.host_call(on_host, plait.ShapeDtypeStruct(x.shape, x.dtype), x)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
