"""What programs over a mesh may contain, each a function of the mesh: in one process, and as a script of ranks, which prints digests.

SPDX-License-Identifier: Apache-2.0
"""

import hashlib
import sys

import numpy as np
import plait
import plait.numpy as pnp
from plait import P, checkpoint, grad, jit, lax, mask, random, shard_map, vmap

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(6,)).astype(np.float32)
BOTH = ("x", "y")


def over(mesh, in_specs, out_specs, **options):
    return lambda f: shard_map(f, mesh, in_specs, out_specs, **options)


def ring(count, by=1):
    return [(i, (i + by) % count) for i in range(count)]


@plait.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, x), lambda x, ct: (ct * lax.pmean(x.sum(), BOTH),))


@plait.custom_jvp
def shared_sine(x):
    return pnp.sin(lax.psum(x, BOTH))


shared_sine.defjvp(
    lambda primals, tangents: (
        shared_sine(primals[0]),
        pnp.cos(lax.psum(primals[0], BOTH)) * lax.psum(tangents[0], BOTH),
    )
)


def several_axes(mesh):
    @over(mesh, P(BOTH), P(BOTH))
    def f(v):
        count = lax.axis_size(BOTH)
        every = lax.all_gather(v, BOTH)
        perm = [(i, (3 * i + 1) % count) for i in range(count)]
        part = lax.psum_scatter(every, BOTH) + lax.psum_scatter(
            every.reshape(-1, 6), BOTH, tiled=True
        )
        return (
            lax.ppermute(v, BOTH, perm)
            + lax.ppermute(v, ("y", "x"), [(0, count - 1)])
            + lax.pshuffle(v, BOTH, list(range(count))[::-1])
            + part
            + lax.all_to_all(every * lax.axis_index(BOTH), BOTH, 0, 0)[0]
            + lax.all_to_all(every, ("y", "x"), 0, 1, tiled=True).sum(0)[: len(v)]
        )

    def loss(x):
        return (f(x) * X[::-1]).sum()

    return f(X), grad(loss)(X)


def unchecked(mesh):
    def f(w, x):
        def loss(w):
            return lax.psum(pnp.tanh(x @ w).sum(), BOTH)

        return loss(w), grad(loss)(w)

    found = over(mesh, (P(), P(BOTH)), (P(), P()), check_vma=False)(f)
    return found(W, X), grad(lambda w: found(w, X)[0])(W)


def partial(mesh):
    return over(mesh, P("x"), P(), axis_names={"x"})(lambda v: lax.psum(v, "x"))(X)


def invariant_gather(mesh):
    f = over(mesh, P(BOTH), P())(lambda v: pnp.sin(lax.all_gather(v, BOTH, to="invarying")))
    return f(X), grad(lambda x: (f(x) * 3).sum())(X)


def keys(mesh):
    many = random.split(random.key(3), 8)

    @over(mesh, (P(BOTH), P()), (P(BOTH), P(BOTH), P()))
    def f(many, one):
        own = random.fold_in(one, lax.axis_index(BOTH))
        return vmap(lambda k: random.normal(k, (2,)))(many), random.uniform(own, (1, 3)), one

    found = f(many, random.key(4))
    return *found[:2], random.key_data(found[2])


def masks(mesh):
    def recurrent(row):
        return lax.scan(lambda s, now: (pnp.tanh(s + now), s), 0.0, row)[0]

    lengths = pnp.arange(8) % 6

    @over(mesh, (P(BOTH), P(BOTH)), (P(BOTH), P()))
    def f(rows, lengths):
        each = vmap(mask(recurrent, in_shapes=("n",)))(rows, n=lengths)
        return each, lax.psum(each.sum(), BOTH)

    def ragged(x):
        each, total = f(x, lengths)
        return (each * total).sum()

    around = mask(over(mesh, P(BOTH), P())(lambda v: lax.psum(v.sum(1), BOTH)), in_shapes=["8 n"])
    return f(X, lengths), grad(ragged)(X), around(X, n=4)


def examples_inside(mesh):
    @over(mesh, P(BOTH), P(BOTH))
    def f(v):
        def of_row(row):
            near = lax.ppermute(row, "i", [(0, lax.axis_size("i") - 1)])
            return lax.psum(row, ("i", "x")) + near * lax.axis_index(("i", "y"))

        return vmap(of_row, axis_name="i")(v)

    return f(X), grad(lambda x: (f(x) ** 2).sum())(X)


def own_derivatives(mesh):
    f = over(mesh, P(BOTH), P(BOTH))(lambda v: doubled(v) * shared_sine(v.mean()))
    return f(X), grad(lambda x: (f(x) * x).sum())(X)


def checkpointed(mesh):
    @over(mesh, (P(), P(BOTH)), P())
    def loss(w, x):
        block = checkpoint(lambda w, v: pnp.tanh(v * w + lax.pmean(v.mean(), "x")))
        return lax.pmean(block(w, block(w, x)).mean(), BOTH)

    return grad(loss, argnums=(0, 1))(W, X)


def loops(mesh):
    """Carries that begin the same in all places, and differ after a step."""

    @over(mesh, P(BOTH), (P(BOTH), P(), P(BOTH)))
    def f(v):
        total, rows = lax.scan(lambda c, r: (c + r, c * 2), pnp.zeros(6, "float32"), v)
        shared = lax.fori_loop(0, 3, lambda i, c: lax.psum(c * 0.1, "x") + 1, 1.0)
        own = lax.while_loop(lambda c: c.max() < 9, lambda c: c * 2 + abs(v).max(), pnp.float32(1))
        odd = lax.axis_index(BOTH) % 2 == 1
        chosen = lax.cond(odd, lambda v: pnp.sin(v), lambda v: v * v, v)
        return chosen + total + rows.sum(0) + own, lax.pmax(shared, BOTH), own[None]

    return f(X), grad(lambda x: f(x)[0].sum())(X)


def host(mesh):
    @over(mesh, P(BOTH), P(BOTH))
    def f(v):
        return lax.psum(plait.host_call(lambda a: np.sort(np.asarray(a), 1), v, v), "x") * v

    return f(X)


def numbers(mesh):
    """Complex numbers and bfloat16."""

    @over(mesh, P(BOTH), (P(), P(), P(BOTH)))
    def f(v):
        z, b = v + 1j * v[:, ::-1], v.astype("bfloat16")
        return (
            lax.psum(z * pnp.exp(z), BOTH),
            lax.pmax(b, BOTH).astype("float32"),
            lax.psum(b, "y").astype("float32")
            + lax.ppermute(z, "x", ring(lax.axis_size("x"))).real,
        )

    return f(X), grad(lambda x: abs(f(x)[0]).sum() + f(x)[2].sum())(X)


def stored(mesh):
    """Dtypes that are for storage: nothing is computed with them."""

    @over(mesh, P(BOTH), (P(BOTH), P(BOTH), P(BOTH)))
    def f(v):
        e, i = v.astype("float8_e4m3fn"), (v * 3).astype("int4")
        return (
            lax.ppermute(e, "x", ring(lax.axis_size("x"))).astype("float32"),
            lax.all_gather(i, BOTH, tiled=True)[: len(v)].astype("int8"),
            lax.all_to_all(lax.all_gather(e, "y"), "y", 0, 0)[0].astype("float32"),
        )

    return f(X)


FEATURES = {
    "several axes": several_axes,
    "check_vma=False": unchecked,
    "axis_names": partial,
    "gathered, the same": invariant_gather,
    "keys": keys,
    "masks": masks,
    "vmap inside": examples_inside,
    "own derivatives": own_derivatives,
    "checkpoint": checkpointed,
    "loops": loops,
    "host": host,
    "numbers": numbers,
    "stored dtypes": stored,
}


def digest(tree):
    leaves = [np.asarray(leaf) for leaf in plait.tree.leaves(tree)]
    return hashlib.sha256(b"".join(leaf.tobytes() for leaf in leaves)).hexdigest()[:16]


def digests(mesh):
    """Bits of the values of every feature, at once and under jit."""
    lines = []
    for name, feature in FEATURES.items():
        lines.append(f"{name}, eager: {digest(feature(mesh))}")
        lines.append(f"{name}, jit: {digest(jit(lambda: feature(mesh))())}")
    return lines


def save(mesh, folder):
    """Saves programs with loops, branches, keys and rules of their own; the folder."""

    @over(mesh, (P(), P(BOTH)), P())
    def loss(w, x):
        rows = lax.scan(lambda c, r: (pnp.tanh(c * w + r), c), 0 * w, x)[1]
        own = random.normal(random.fold_in(random.key(1), lax.axis_index(BOTH)), (6,))
        branch = lax.cond(lax.axis_index("x") > 0, pnp.sin, pnp.cos, rows)
        return lax.pmean((branch * own + pnp.tanh(x @ w)[:, None]).sum(), BOTH)

    plait.save(f"{folder}/saved.plait", loss, W, X)
    return folder


def saved_digests(folder):
    """Bits of what saved programs give, and their gradients."""
    loss = plait.load(f"{folder}/saved.plait")
    by_both = grad(lambda w, x: loss(w, x), argnums=(0, 1))
    return [
        f"saved: {digest(loss(W, X))}",
        f"its gradient: {digest(by_both(W, X))}",
        f"its gradient, jit: {digest(jit(by_both)(W, X))}",
    ]


if __name__ == "__main__":
    shape = tuple(map(int, sys.argv[1].split("x")))
    for line in digests(plait.mesh(shape, BOTH)) + saved_digests(sys.argv[2]):
        print(f"rank {plait.process_index()}: {line}\n", end="", flush=True)
