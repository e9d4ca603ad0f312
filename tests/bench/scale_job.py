"""What `./dev bench scale` measures, in one process or on the ranks of a job: prints lines `name seconds`.

scale_job.py all_reduce|peer MOST_BYTES    scale_job.py step BATCH [apart]    scale_job.py stencil ROWS exchange|apart
"""

# SPDX-License-Identifier: Apache-2.0

import sys
import time

import numpy as np

SIZES = [4**k for k in range(1, 15)]  # bytes: 4 B to 256 MB
WIDTHS = (784, 1024, 1024, 10)
COLUMNS, STEPS = 1024, 50


def count_of(size):
    """How often in a row: enough to be timed, and not for ever."""
    return int(min(max((16 << 20) // size, 2), 500))


def times(call, repeats, barrier):
    call()
    call()  # the second one runs what was compiled in the background
    taken = []
    for _ in range(repeats):
        barrier()
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return sorted(taken)[len(taken) // 2]


def all_reduce(most):
    """Many all-reduces in one jitted loop: no Python between them."""
    import plait
    import plait.numpy as pnp
    from plait import P, lax

    mesh, wait = ranks()
    for size in SIZES:
        if size > most:
            break
        count, x = count_of(size), pnp.zeros(size // 4)

        def loop(x, count=count):
            return lax.fori_loop(0, count, lambda _, x: lax.psum(x, "rank"), x)[:1]

        call = plait.jit(plait.shard_map(loop, mesh, P(), P()))
        yield f"all_reduce {size}", times(lambda: wait(call(x)), 7, lambda: None) / count


def peer(most):
    """The same algorithm with mpi4py and NumPy: all-to-all of slices, sums, all-gather; small ones by all-gather."""
    from mpi4py import MPI

    ranks = MPI.COMM_WORLD
    n, rank = ranks.size, ranks.rank
    for size in SIZES:
        if size > most:
            break
        items, count = size // 4, count_of(size)
        x, result = np.zeros(items, np.float32), np.empty(items, np.float32)
        cuts = [items * i // n for i in range(n + 1)]
        sizes = [last - first for first, last in zip(cuts, cuts[1:])]
        is_small = n * size <= 65536 or items < n
        rows = np.empty((n, items if is_small else sizes[rank]), np.float32)
        to = result if is_small else result[cuts[rank] : cuts[rank + 1]]

        def once():
            if is_small:
                ranks.Allgather(x, rows)
            else:
                places = [sizes[rank] * i for i in range(n)]
                ranks.Alltoallv([x, (sizes, cuts[:-1])], [rows, ([sizes[rank]] * n, places)])
            np.add(rows[0], rows[1], out=to)
            for other in rows[2:]:
                np.add(to, other, out=to)
            if not is_small:
                ranks.Allgatherv(MPI.IN_PLACE, [result, (sizes, cuts[:-1])])

        def call():
            for _ in range(count):
                once()

        yield f"all_reduce {size}", times(call, 7, ranks.Barrier) / count


def step(batch, how="shared"):
    """A step of gradient descent on a network of three layers; on ranks, of a batch that they share; or `apart`."""
    import plait
    import plait.numpy as pnp
    from plait import P, lax, nn

    mesh, wait = ranks()
    random = np.random.default_rng(0)
    x = pnp.asarray(random.normal(size=(batch, WIDTHS[0])).astype(np.float32))
    y = pnp.asarray(random.integers(0, 10, batch).astype(np.int32))
    weights = [
        pnp.asarray((random.normal(size=shape) / shape[0] ** 0.5).astype(np.float32))
        for shape in zip(WIDTHS, WIDTHS[1:])
    ]

    def loss(weights, x, y):
        for w in weights[:-1]:
            x = nn.relu(x @ w)
        scores = nn.log_softmax(x @ weights[-1])
        return -pnp.mean(pnp.sum(scores * nn.one_hot(y, 10), axis=-1))

    shared = loss
    if plait.process_count() > 1 and how == "shared":
        shared = plait.shard_map(
            lambda *all: lax.pmean(loss(*all), "rank"), mesh, (P(), P("rank"), P("rank")), P()
        )

    @plait.jit
    def descend(weights, x, y):
        return [w - 0.01 * g for w, g in zip(weights, plait.grad(shared)(weights, x, y))]

    yield f"step {batch} {how}", times(lambda: wait(descend(weights, x, y)), 7, lambda: None)


def stencil(rows, how):
    """Heat on rows x COLUMNS for each rank, and STEPS steps; `apart`: as many processes that exchange nothing."""
    import plait
    import plait.numpy as pnp
    from plait import P, lax

    mesh, wait = ranks()
    n = plait.process_count()
    down, up = [(i, i + 1) for i in range(n - 1)], [(i + 1, i) for i in range(n - 1)]

    def in_a_place(heat):
        def once(_, heat):
            above, below = heat[-1:], heat[:1]
            if how == "exchange":
                above, below = lax.ppermute(above, "rank", down), lax.ppermute(below, "rank", up)
            all = pnp.concatenate([above, heat, below])
            sides = pnp.pad(heat, ((0, 0), (1, 1)))
            around = all[:-2] + all[2:] + sides[:, :-2] + sides[:, 2:]
            return heat + 0.2 * (around - 4 * heat)

        return pnp.sum(lax.fori_loop(0, STEPS, once, heat))[None]

    call = plait.jit(plait.shard_map(in_a_place, mesh, P("rank"), P("rank")))
    heat = pnp.ones((rows * n, COLUMNS))
    yield f"stencil {rows} {how}", times(lambda: wait(call(heat)), 7, lambda: None)


def ranks():
    import plait

    return plait.mesh((plait.process_count(),), ("rank",)), plait.block_until_ready


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    for name, seconds in globals()[what](*(int(w) if w.isdigit() else w for w in words)):
        sys.stdout.write(f"{name} {seconds}\n")  # at once, as all ranks write
        sys.stdout.flush()
