"""shard_map in one process: collectives, their derivatives, transforms inside and outside, and what is refused.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import P, grad, jit, jvp, lax, shard_map, vjp, vmap

MESH = plait.mesh((4, 2), ("x", "y"))
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 6))
W = RANDOM.normal(size=(6, 4))
BLOCKS = X.reshape(4, 2, 6)  # along "x"
RING = [(i, (i + 1) % 4) for i in range(4)]
WRAPS = pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])


def over(f, in_specs, out_specs):
    return shard_map(f, mesh=MESH, in_specs=in_specs, out_specs=out_specs)


def close(actual, expected, limit=1e-12):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=limit, atol=limit)


def difference(f, x, step=1e-6):
    """The gradient of f, a number, by central differences."""
    x = np.asarray(x, np.float64)
    found = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        move = np.zeros_like(x)
        move[at] = step
        found[at] = (float(f(x + move)) - float(f(x - move))) / (2 * step)
    return found


# --- Blocks and collectives --------------------------------------------------------------------


@WRAPS
def test_blocks(wrap):
    shapes = []

    def f(x):
        shapes.append(x.shape)
        return x * 2

    for spec in [
        P(),
        P("x"),
        P(None, "y"),
        P("x", "y"),
        P("y", None),
        P(("x", "y")),
        P(("y", "x")),
    ]:
        close(wrap(over(f, (spec,), spec))(X), X * 2)
    want = [(8, 6), (2, 6), (8, 3), (2, 3), (4, 6), (1, 6), (1, 6)]
    assert list(dict.fromkeys(shapes)) == list(dict.fromkeys(want))
    number = wrap(
        over(lambda x: x[:1, :1] * 0 + lax.axis_index(("x", "y")), P(("y", "x")), P(("x", "y")))
    )
    close(number(X)[:, 0], np.arange(8))
    # The order of names is that of blocks.
    swapped = wrap(over(lambda x: x, P(("x", "y")), P(("y", "x"))))(X)
    close(swapped, X.reshape(4, 2, 6).swapaxes(0, 1).reshape(8, 6))


@WRAPS
def test_reductions(wrap):
    def f(x):
        return (
            lax.psum(x, "x"),
            lax.pmean(x, "x"),
            lax.pmax(x, "x"),
            lax.pmin(x, "x"),
            lax.psum(x.sum(), ("x", "y")),
            lax.psum(1, "x") * lax.axis_size("y"),
        )

    total, mean, largest, smallest, twice, sizes = wrap(over(f, P("x"), P()))(X)
    close(total, BLOCKS.sum(0))
    close(mean, BLOCKS.mean(0))
    close(largest, BLOCKS.max(0))
    close(smallest, BLOCKS.min(0))
    close(twice, 2 * X.sum())
    assert int(sizes) == 8
    tree = wrap(over(lambda t: lax.psum({"a": t[0], "b": [t[1], 2.0]}, "x"), ((P("x"), P()),), P()))
    found = tree((X, np.ones(3)))
    close(found["a"], BLOCKS.sum(0))
    close(found["b"][0], 4 * np.ones(3))
    close(found["b"][1], 8)


@WRAPS
def test_movements(wrap):
    close(wrap(over(lambda x: lax.all_gather(x, "x"), P("x"), P(None, "x")))(X)[:, :2], BLOCKS)
    gathered = wrap(over(lambda x: lax.all_gather(x, "x", axis=1, tiled=True), P("x"), P("x")))(X)
    close(gathered, np.tile(np.concatenate(list(BLOCKS), 1), (4, 1)))
    close(wrap(over(lambda x: lax.ppermute(x, "x", RING), P("x"), P("x")))(X), np.roll(X, 2, 0))
    some = np.asarray(
        wrap(over(lambda x: lax.ppermute(x, "x", [(2, 0), (1, 3)]), P("x"), P("x")))(X)
    )
    close(some[[0, 1, 6, 7]], X[[4, 5, 2, 3]])
    assert not some[2:6].any()
    close(
        wrap(over(lambda x: lax.pshuffle(x, "x", [3, 1, 0, 2]), P("x"), P("x")))(X),
        BLOCKS[[3, 1, 0, 2]].reshape(8, 6),
    )
    y = RANDOM.normal(size=(4, 8, 12))
    exchanged = wrap(over(lambda y: lax.all_to_all(y, "x", 1, 2, tiled=True), P("x"), P("x")))(y)
    close(
        exchanged,
        np.stack(
            [np.concatenate([y[k, 2 * j : 2 * j + 2] for k in range(4)], 1) for j in range(4)]
        ),
    )
    untiled = wrap(over(lambda y: lax.all_to_all(y[0], "x", 0, 0), P("x"), P("x")))(y[:, :4])
    close(untiled, y[:, :4].swapaxes(0, 1).reshape(16, 12))
    scattered = wrap(
        over(lambda y: lax.psum_scatter(y[0], "x", scatter_dimension=0, tiled=True), P("x"), P("x"))
    )(y)
    close(scattered, y.sum(0))
    both = wrap(over(lambda x: x * 0 + lax.axis_index(("x", "y")), P(("x", "y")), P(("x", "y"))))(X)
    close(both[:, 0], np.arange(8))
    halo = over(
        lambda x: lax.all_gather(x, ("x", "y"), tiled=True), P(("x", "y")), P(None, ("x", "y"))
    )
    close(wrap(halo)(X)[:, :6], X)


BOTH = ("x", "y")


@WRAPS
def test_several_axes_at_once(wrap):
    """Places along ("y", "x") are numbered with x the fastest, those along ("x", "y") with y."""
    many = RANDOM.normal(size=(8, 8, 3))

    def places(names):  # what place i along names has, of blocks along ("x", "y")
        return many if names == BOTH else many.reshape(4, 2, 8, 3).swapaxes(0, 1).reshape(8, 8, 3)

    def whole(of_places, names):  # back
        if names == BOTH:
            return of_places
        shape = of_places.shape[1:]
        return of_places.reshape(2, 4, *shape).swapaxes(0, 1).reshape(8, *shape)

    perms = [(i, (3 * i + 2) % 8) for i in range(8)], [(0, 5), (5, 0), (7, 1)]
    for names in (BOTH, BOTH[::-1]):
        rows = places(names)

        def f(v, names=names):
            row = v[0]
            return [
                *(lax.ppermute(row, names, perm)[None] for perm in perms),
                lax.pshuffle(row, names, [2, 0, 1, 7, 6, 5, 4, 3])[None],
                lax.all_to_all(row, names, 0, 0)[None],
                lax.all_to_all(row, names, 0, 1)[None],
                lax.all_to_all(row, names, 0, 1, tiled=True)[None],
                lax.pswapaxes(row, names, 0)[None],
                lax.psum_scatter(row, names)[None],
                lax.psum_scatter(row, names, tiled=True)[None],
                lax.all_gather(row, names, axis=1)[None],
                lax.all_gather(row, names, to="invarying")[None] + 0 * row[0, 0],
                (lax.axis_index(names) + lax.axis_size(names) * 10)[None],
            ]

        found = wrap(over(f, P(BOTH), P(BOTH)))(many)
        want = []
        for perm in perms:
            moved = np.zeros_like(rows)
            for source, destination in perm:
                moved[destination] = rows[source]
            want.append(moved)
        exchanged = rows.swapaxes(0, 1)  # place, source, 3
        want += [
            rows[[2, 0, 1, 7, 6, 5, 4, 3]],
            exchanged,
            exchanged.swapaxes(1, 2),
            exchanged.reshape(8, 1, 24),
            exchanged,
            rows.sum(0),
            rows.sum(0)[:, None],
            np.stack([rows.swapaxes(0, 1)] * 8),
            np.stack([rows] * 8),
            np.arange(8) + 80,
        ]
        for number, (one, other) in enumerate(zip(found, want, strict=True)):
            np.testing.assert_allclose(
                one, whole(other, names), rtol=1e-12, atol=1e-12, err_msg=str((names, number))
            )


@WRAPS
def test_gradients_without_types(wrap):
    """As JAX 0.10.2 has them: psum transposes to psum, and a result's cotangent is divided among the places."""
    x = np.arange(1.0, 9.0)

    def without(f, in_specs, out_specs):
        return shard_map(f, MESH, in_specs, out_specs, check_vma=False)

    first = without(lambda v: v, P("x"), P())
    close(wrap(first)(x), x[:2])
    # The cotangent of an element that all have: a part for each of the 8 places, summed over "y".
    close(wrap(grad(lambda x: first(x).sum()))(x), np.full(8, 0.25))
    total = without(lambda w, v: lax.psum((w * v).sum(), ("x", "y")), (P(), P(("x", "y"))), P())
    close(wrap(grad(total))(2.0, x), x.sum())
    inside = without(
        lambda w, v: grad(lambda w: lax.psum((w * v).sum(), "x"))(w)[None], (P(), P("x")), P("x")
    )
    close(wrap(inside)(2.0, x), 4 * x.reshape(4, 2).sum(1))
    mean = without(lambda v: lax.pmean(v * v, "x"), P("x"), P())
    close(wrap(grad(lambda x: mean(x).sum()))(x), x / 2)


@WRAPS
def test_some_axes_of_a_mesh(wrap):
    f = shard_map(lambda x: lax.psum(x, "x"), MESH, P("x"), P(), axis_names={"x"})
    close(wrap(f)(X), BLOCKS.sum(0))
    inner = shard_map(lambda x: lax.psum(x, "y"), MESH, P(None, "y"), P(), axis_names={"y"})
    both = shard_map(
        lambda x: inner(x) + lax.axis_index("x"), MESH, P("x"), P("x"), axis_names={"x"}
    )
    close(wrap(both)(X), X[:, :3] + X[:, 3:] + np.repeat(np.arange(4), 2)[:, None])
    with pytest.raises(ValueError, match="'y'"):
        shard_map(lambda x: x, MESH, P("y"), P("y"), axis_names={"x"})(X)
    with pytest.raises(ValueError, match="'z'"):
        shard_map(lambda x: x, MESH, P("x"), P("x"), axis_names={"z"})(X)


def test_the_mesh_of_the_context_and_decorators():
    @shard_map(in_specs=(P("x"), None), out_specs=P())
    def f(x, how):
        return lax.psum(x * len(how), "x")

    with plait.set_mesh(MESH):
        close(f(X, "twice"), 5 * BLOCKS.sum(0))
        close(grad(lambda x: f(x, "twice").sum())(X), np.full(X.shape, 5.0))
        with plait.set_mesh(plait.mesh((2,), "x")):
            close(f(X, ""), np.zeros((4, 6)))
        close(f(X, "a"), BLOCKS.sum(0))
    with pytest.raises(ValueError, match="set_mesh"):
        f(X, "a")
    with pytest.raises(ValueError, match="plait.mesh"):
        plait.set_mesh("x")


def test_pcast():
    f = over(lambda x: lax.pcast(x, "x", to="varying"), P(), P("x"))
    close(f(X), np.tile(X, (4, 1)))
    with pytest.raises(ValueError, match="varies along 'x' already"):
        over(lambda x: lax.pcast(x, "x", to="varying"), P("x"), P("x"))(X)
    with pytest.raises(ValueError, match="unreduced"):
        over(lambda x: lax.pcast(x, "x", to="unreduced"), P(), P("x"))(X)


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "int32",
        "int64",
        "uint8",
        "bool",
        "float16",
        "bfloat16",
        "float32",
        "complex64",
        "complex128",
    ],
)
def test_dtypes(dtype):
    x = pnp.asarray((np.arange(8) % 3)).astype(dtype)
    raw = np.asarray(x.astype("complex128" if "complex" in dtype else "float64"))
    total = over(lambda x: lax.psum(x, "x"), P("x"), P())(x)
    assert str(total.dtype) == ("int32" if dtype == "bool" else dtype)
    close(total.astype("complex128"), raw.reshape(4, 2).sum(0))
    moved = over(lambda x: lax.ppermute(x, "x", RING), P("x"), P("x"))(x)
    assert moved.dtype == x.dtype
    close(moved.astype("complex128"), np.roll(raw, 2))
    close(
        over(lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P("x"))(x).astype("complex128"),
        np.tile(raw, 4),
    )
    if "complex" not in dtype:
        close(
            over(lambda x: lax.pmax(x, "x"), P("x"), P())(x).astype("float64"),
            raw.reshape(4, 2).max(0),
        )
    if dtype == "int32":
        assert over(lambda x: lax.pmean(x, "x"), P("x"), P())(x).dtype == np.float32


@WRAPS
def test_stored_dtypes_and_keys(wrap):
    x = pnp.asarray(np.linspace(-2, 2, 8)).astype("float8_e4m3fn")
    raw = np.asarray(x.astype("float32"))

    def f(x):
        return (
            lax.ppermute(x, "x", RING),
            lax.all_gather(x, "x", tiled=True),
            lax.all_to_all(lax.all_gather(x, "x"), "x", 0, 0),
        )

    moved, gathered, exchanged = wrap(over(f, P("x"), P("x")))(x)
    assert moved.dtype == gathered.dtype == x.dtype
    close(moved.astype("float32"), np.roll(raw, 2))
    close(gathered.astype("float32"), np.tile(raw, 4))
    assert exchanged.shape == (16, 2)
    keys = plait.random.split(plait.random.key(3), 4)
    data = np.asarray(plait.random.key_data(keys))
    moved, gathered = wrap(over(lambda k: f(k)[:2], P("x"), P("x")))(keys)
    assert (np.asarray(plait.random.key_data(moved)) == np.roll(data, 1, 0)).all()
    assert (np.asarray(plait.random.key_data(gathered)) == np.tile(data, (4, 1))).all()


def test_empty_arrays_and_scalars():
    f = over(
        lambda x: (lax.psum(x, "x"), lax.all_gather(x, "x"), lax.ppermute(x, "x", RING)),
        P("x"),
        (P(), P("x"), P("x")),
    )
    total, gathered, moved = f(np.zeros((0, 3)))
    assert total.shape == (0, 3) and gathered.shape == (16, 0, 3) and moved.shape == (0, 3)
    total, gathered, moved = f(np.zeros((4, 0)))
    assert total.shape == (1, 0) and gathered.shape == (16, 1, 0) and moved.shape == (4, 0)
    close(over(lambda x: lax.psum(x * lax.axis_index("x"), "x"), P(), P())(2.0), 12)
    close(over(lambda x: x + 1, P(), P())(2), 3)
    close(over(lambda: lax.axis_index("x")[None], (), P("x"))(), np.arange(4))


def test_trees_of_specs():
    tree = {"a": X, "b": (X, np.float64(3.0), None)}
    specs = {"a": P("x"), "b": (P(None, "y"), None, None)}

    def f(t, scale):
        assert t["a"].shape == (2, 6) and t["b"][0].shape == (8, 3) and t["b"][2] is None
        return {"a": t["a"] * scale, "more": [t["b"][0] * t["b"][1], {"k": t["b"][0]}]}

    found = over(f, (specs, None), {"a": P("x"), "more": P(None, "y")})(tree, 2.0)
    close(found["a"], 2 * X)
    close(found["more"][0], 3 * X)
    close(found["more"][1]["k"], X)
    # One spec for all arguments, and for all leaves of one.
    a, b = over(lambda a, b: (a, b["c"][0]), P("x"), P("x"))(X, {"c": [X * 3]})
    close(a, X)
    close(b, X * 3)
    pair = over(lambda a, b: (a + b[0], b[1]), (P("x"), P()), (P("x"), P()))
    close(pair(X, (1.0, np.ones(2)))[0], X + 1)


# --- Derivatives -------------------------------------------------------------------------------

LINEAR = {
    "psum": (lambda x: lax.psum(x, "x"), P()),
    "pmean": (lambda x: lax.pmean(x, "x"), P()),
    "all_gather": (lambda x: lax.all_gather(x, "x"), P("x")),
    "all_gather tiled": (lambda x: lax.all_gather(x, "x", axis=1, tiled=True), P("x")),
    "psum_scatter": (lambda x: lax.psum_scatter(lax.all_gather(x, "x"), "x"), P("x")),
    "all_to_all": (
        lambda x: lax.all_to_all(lax.all_gather(x, "x") * (1 + lax.axis_index("x")), "x", 0, 1),
        P("x"),
    ),
    "ppermute": (lambda x: lax.ppermute(x, "x", [(0, 2), (1, 0)]), P("x")),
    "axis_index": (lambda x: x * lax.axis_index("x"), P("x")),
    "two axes": (lambda x: lax.psum(x * (1.0 + lax.axis_index("y")), ("x", "y")), P()),
}


@pytest.mark.parametrize("name", LINEAR)
@WRAPS
def test_gradients_of_collectives(wrap, name):
    """Reverse mode against differences, forward mode, and both of them once more, from outside."""
    f, out = LINEAR[name]
    g = over(f, P("x"), out)
    x = X[:, :2]

    def loss(x):
        return (pnp.sin(g(x)) * 0.3).sum()

    want = difference(loss, x)
    gradient = wrap(grad(loss))
    close(gradient(x), want, 1e-8)
    tangent = np.cos(x)
    primal, forward = wrap(lambda x, t: jvp(g, (x,), (t,)))(x, tangent)
    close(primal, g(x))
    close(
        forward,
        (np.asarray(g(x + 1e-6 * tangent)) - np.asarray(g(x - 1e-6 * tangent))) / 2e-6,
        1e-8,
    )

    def once(x):
        return (grad(loss)(x) * np.cos(3 * x)).sum()

    close(wrap(grad(once))(x), difference(once, x), 1e-6)
    second = wrap(lambda x, t: jvp(grad(loss), (x,), (t,))[1])(x, tangent)
    close(
        second,
        (np.asarray(grad(loss)(x + 1e-6 * tangent)) - np.asarray(grad(loss)(x - 1e-6 * tangent)))
        / 2e-6,
        1e-7,
    )


@WRAPS
def test_gradients_by_what_all_places_share_are_summed(wrap):
    def loss(w, x):
        return lax.pmean((pnp.tanh(x @ w) ** 2).mean(), "x")

    outside = wrap(grad(over(loss, (P(), P("x")), P())))
    inside = wrap(over(lambda w, x: grad(loss)(w, x), (P(), P("x")), P()))
    t = np.tanh(X @ W)
    want = X.T @ (2 * t * (1 - t * t)) / t.size
    close(outside(W, X), want)
    close(inside(W, X), want)

    # Without a mean inside: each place's own loss, and pvary to keep gradients apart.
    def own(w, x):
        return (pnp.tanh(x @ w) ** 2).sum() / t.size

    close(wrap(over(grad(own), (P(), P("x")), P()))(W, X), want)
    apart = over(lambda w, x: grad(own)(lax.pvary(w, "x"), x)[None], (P(), P("x")), P("x"))
    each = wrap(apart)(W, X)
    assert each.shape == (4, 6, 4)
    close(each.sum(0), want)
    # Over two axes, of which only one divides the array: the other one's places are not counted.
    close(
        wrap(grad(over(lambda w, x: lax.psum((x @ w).sum(), "x"), (P(), P("x", None)), P())))(W, X),
        np.tile(X.sum(0)[:, None], 4),
    )


@WRAPS
def test_extremes_share_their_gradients(wrap):
    x = np.array([1.0, 5.0, 5.0, 2.0])
    f = over(lambda x: lax.pmax(x, "x"), P("x"), P())
    close(wrap(grad(lambda x: f(x)[0] ** 2))(x), [0, 5, 5, 0])
    close(
        wrap(grad(lambda x: over(lambda x: lax.pmin(x, "x"), P("x"), P())(x).sum()))(x),
        [1, 0, 0, 0],
    )
    close(jvp(f, (x,), (np.arange(4.0),))[1], [1.5])


@WRAPS
def test_vjp_linearize_and_products(wrap):
    g = over(lambda w, x: lax.psum(pnp.sin(x @ w), "x"), (P(), P("x")), P())

    def reference(w, x):
        return np.sin(x @ w).reshape(4, 2, 4).sum(0)

    def products(w, x, c, t):
        result, pull = vjp(g, w, x)
        _, push = plait.linearize(lambda w: g(w, x), w)
        return result, pull(c), push(t)

    c, t = np.cos(reference(W, X)), np.cos(W)
    result, (by_w, by_x), pushed = wrap(products)(W, X, c, t)
    close(result, reference(W, X))
    down = np.cos(X @ W) * np.tile(c, (4, 1))
    close(by_w, X.T @ down)
    close(by_x, down @ W.T)
    close(pushed, (np.cos(X @ W) * (X @ t)).reshape(4, 2, 4).sum(0))

    def loss(w):
        return (g(w, X) ** 2).sum()

    close(
        wrap(lambda w, t: plait.hvp(loss, (w,), (t,))[0])(W, t),
        plait.jvp(grad(lambda w: (pnp.sin(X @ w).reshape(4, 2, 4).sum(0) ** 2).sum()), (W,), (t,))[
            1
        ],
    )
    rows = wrap(plait.jacrev(lambda w: g(w, X).ravel()))(W)
    close(rows, wrap(plait.jacfwd(lambda w: g(w, X).ravel()))(W))


@WRAPS
def test_own_derivatives_and_checkpoints(wrap):
    @plait.custom_vjp
    def scaled(x):
        return x * 2

    scaled.defvjp(lambda x: (x * 2, None), lambda _, c: (lax.psum(c, "x") * 0 + c * 5,))

    @plait.custom_jvp
    def bent(x):
        return lax.psum(x, "x")

    bent.defjvp(lambda primals, tangents: (bent(*primals), lax.psum(tangents[0], "x") * 7))
    close(wrap(grad(lambda x: over(scaled, P("x"), P("x"))(x).sum()))(X), 5 * np.ones_like(X))
    close(wrap(grad(lambda x: over(bent, P("x"), P())(x).sum()))(X), 7 * np.ones_like(X))
    for kept in (
        plait.checkpoint,
        lambda f: plait.checkpoint(f, policy=plait.checkpoint_policies.dots_saveable)
        if hasattr(plait, "checkpoint_policies")
        else plait.checkpoint(f),
    ):

        def body(x, w):
            return lax.psum(pnp.tanh(x @ w).sum(), "x")

        plain = grad(over(body, (P("x"), P()), P()), argnums=(0, 1))(X, W)
        inside = wrap(grad(over(kept(body), (P("x"), P()), P()), argnums=(0, 1)))(X, W)
        outside = wrap(grad(kept(over(body, (P("x"), P()), P())), argnums=(0, 1)))(X, W)
        for a, b, c in zip(plain, inside, outside):
            close(b, a)
            close(c, a)
    t = np.tanh(X @ W)
    close(plain[0], (1 - t * t) @ W.T)


# --- Transforms around and inside --------------------------------------------------------------


@WRAPS
def test_vmap_inside_and_outside(wrap):
    def f(x):
        return lax.psum(pnp.sin(x), "x") * lax.axis_index("x")

    def g(x):
        return over(f, P("x"), P("x"))(x)

    many = RANDOM.normal(size=(3, 8, 2))
    want = np.stack(
        [np.concatenate([np.sin(m).reshape(4, 2, 2).sum(0) * i for i in range(4)]) for m in many]
    )
    close(wrap(vmap(g))(many), want)
    close(wrap(vmap(g, in_axes=2, out_axes=2))(many.transpose(1, 2, 0)), want.transpose(1, 2, 0))
    inside = over(lambda m: vmap(f)(m), P(None, "x"), P(None, "x"))
    close(wrap(inside)(many), want)
    # Names of both kinds: psum over the examples, over the places, and over both.
    both = over(
        lambda m: vmap(
            lambda x: (lax.psum(x, ("e", "x")), lax.psum(x, "e"), lax.pmax(x, ("x", "e"))),
            axis_name="e",
            out_axes=None,
        )(m),
        P(None, "x"),
        (P(), P("x"), P()),
    )
    total, examples, largest = wrap(both)(many)
    close(total, many.sum(0).reshape(4, 2, 2).sum(0))
    close(examples, many.sum(0))
    close(largest, many.max(0).reshape(4, 2, 2).max(0))
    outer = vmap(
        lambda x: over(lambda x: lax.psum(x, "x") - lax.pmean(x, "e"), P("x"), P("x"))(x),
        axis_name="e",
    )
    close(wrap(outer)(many), np.tile(many.reshape(3, 4, 2, 2).sum(1), (1, 4, 1)) - many.mean(0))
    # Under vmap the transpose of psum is psum; over the mesh it gives all places the same.
    twice = over(
        lambda m: grad(
            lambda m: vmap(lambda x: lax.psum(x * x, "e").sum(), axis_name="e")(m).sum()
        )(m),
        P(None, "x"),
        P(None, "x"),
    )
    close(wrap(twice)(many), 3 * 2 * many)
    close(
        wrap(vmap(grad(lambda x: over(lambda x: lax.psum((x**3).sum(), "x"), P("x"), P())(x))))(
            many
        ),
        3 * many**2,
    )


@WRAPS
def test_jit_inside_and_tape_outside(wrap):
    f = jit(lambda x, w: lax.psum(pnp.sin(x @ w), "x") + lax.axis_index("y") * 0)
    g = over(f, (P("x"), P()), P("y"))
    want = np.tile(np.sin(X @ W).reshape(4, 2, 4).sum(0), (2, 1))
    close(wrap(g)(X, W), want)
    w = plait.variable(W)
    loss = wrap(
        lambda w: (
            over(lambda x, w: lax.psum(jit(pnp.sin)(x @ w), "x"), (P("x"), P()), P())(X, w)
        ).sum()
    )(w)
    loss.backward()
    close(w.grad, X.T @ np.cos(X @ W))


@WRAPS
def test_autocast(wrap):
    g = over(lambda x, w: lax.psum(x @ w, "x"), (P("x"), P()), P())
    a, b = X.astype(np.float32), W.astype(np.float32)
    found = wrap(plait.autocast(g))(a, b)
    np.testing.assert_allclose(
        np.asarray(found.astype("float32")), (a @ b).reshape(4, 2, 4).sum(0), rtol=0.05, atol=0.1
    )


@WRAPS
def test_loops(wrap):
    # A carry that becomes varying in the body, one that stays the same in all places.
    captured = pnp.asarray(X[0])

    def scanned(x):
        def step(carry, row):
            total, own = carry
            return (total + lax.psum(row.sum(), "x"), own * 2 + row), lax.pmax(row, "x")

        (total, own), largest = lax.scan(step, (0.0, 0 * captured), x)
        return total, own, largest

    total, own, largest = wrap(over(scanned, P("x"), (P(), P("x"), P())))(X)
    close(total, X.sum())
    close(own, (2 * BLOCKS[:, 0] + BLOCKS[:, 1]).ravel())
    close(largest, BLOCKS.max(0))

    def turned(x):
        return lax.fori_loop(0, 3, lambda i, x: lax.ppermute(x, "x", RING) * (i + 1.0), x)

    close(wrap(over(turned, P("x"), P("x")))(X), np.roll(X, 6, 0) * 6)

    def until(x):
        return lax.while_loop(
            lambda c: lax.psum(c[1], "x") < 30,
            lambda c: (c[0] + 1, c[1] + lax.axis_index("x") + lax.psum(c[0], "x") * 0),
            (0, x * 0.0),
        )

    steps, sums = wrap(
        over(
            lambda x: (lambda s, v: (s, v[None]))(*until(x.sum())),
            P("x"),
            (P("x") if False else P(), P("x")),
        )
    )(X)
    assert int(steps) == 5
    close(sums, 5 * np.arange(4))

    def losses(x, w):
        def step(w, row):
            return w - 0.1 * lax.pmean(pnp.outer(row, row[:4]), "x") * w, lax.psum(
                (row @ w).sum(), "x"
            )

        w, found = lax.scan(step, w, x)
        return found.sum() + w.sum()

    def g(w, x):
        return over(losses, (P("x"), P()), P())(x, w)

    def plain(w, x):
        rows, found = x.reshape(4, 2, 6), 0.0
        for k in range(2):
            found = found + (rows[:, k] @ w).sum()
            w = w - 0.1 * (rows[:, k, :, None] * rows[:, k, None, :4]).mean(0) * w
        return found + w.sum()

    close(g(W, X), plain(W, X))
    by_w, by_x = wrap(grad(g, argnums=(0, 1)))(W, X)
    close(by_w, difference(lambda w: plain(w, X), W), 1e-7)
    close(by_x, difference(lambda x: plain(W, x), X), 1e-7)
    close(
        wrap(lambda w: jvp(lambda w: g(w, X), (w,), (w,))[1])(W),
        (difference(lambda w: plain(w, X), W) * W).sum(),
        1e-7,
    )
    close(
        wrap(over(lambda x: lax.map(lambda r: lax.psum(r, "x"), x), P("x"), P()))(X), BLOCKS.sum(0)
    )
    close(
        wrap(over(lambda x: lax.psum(lax.associative_scan(pnp.add, x), "x"), P("x"), P()))(X),
        np.cumsum(BLOCKS, 1).sum(0),
    )


@WRAPS
def test_branches(wrap):
    # The predicate is the same in all places: they may communicate in the branches.
    f = over(
        lambda flag, x: lax.cond(flag > 0, lambda x: lax.psum(x, "x"), lambda x: x[::-1] * 2, x),
        (P(), P("x")),
        P("x"),
    )
    close(wrap(f)(1, X), np.tile(BLOCKS.sum(0), (4, 1)))
    close(wrap(f)(-1, X), BLOCKS[:, ::-1].reshape(8, 6) * 2)
    close(
        wrap(grad(lambda x: (f(1, x) * np.arange(6)).sum()))(X), np.tile(4.0 * np.arange(6), (8, 1))
    )
    # It differs: each place goes its own way.
    own = over(
        lambda x: lax.cond(lax.axis_index("x") % 2 == 0, lambda x: x * 2, lambda x: -x, x),
        P("x"),
        P("x"),
    )
    signs = np.repeat([2, -1, 2, -1], 2)[:, None]
    close(wrap(own)(X), X * signs)
    close(wrap(grad(lambda x: (own(x) ** 2).sum()))(X), 2 * X * signs**2)
    steps = over(
        lambda x: lax.while_loop(
            lambda c: c[0] < lax.axis_index("x"), lambda c: (c[0] + 1, c[1] * 2), (0, x)
        )[1],
        P("x"),
        P("x"),
    )
    close(wrap(steps)(X), X * np.repeat(2.0 ** np.arange(4), 2)[:, None])
    chosen = over(
        lambda x: lax.switch(lax.axis_index("x"), [lambda x, k=k: x * k for k in range(4)], x),
        P("x"),
        P("x"),
    )
    close(wrap(chosen)(X), X * np.repeat(np.arange(4), 2)[:, None])
    bound = over(
        lambda x: lax.fori_loop(0, lax.axis_index("x"), lambda i, x: x + 1, x), P("x"), P("x")
    )
    close(wrap(bound)(X), X + np.repeat(np.arange(4), 2)[:, None])

    # With a place's number in a branch, and in a step.
    def numbered(x):
        return lax.cond(lax.axis_index("x") > 1, lambda x: x * lax.axis_index("x"), lambda x: -x, x)

    close(wrap(over(numbered, P("x"), P("x")))(X), X * np.repeat([-1, -1, 2, 3], 2)[:, None])
    # Communication along another axis than the one along which it differs.
    other = over(
        lambda x: lax.cond(lax.axis_index("y") == 0, lambda x: lax.psum(x, "x"), lambda x: x, x)[
            None
        ],
        P("x"),
        P("y", "x"),
    )
    found = wrap(other)(X)
    close(found[0], np.tile(BLOCKS.sum(0), (4, 1)))
    close(found[1], X)


@WRAPS
def test_gradients_of_loops_that_differ(wrap):
    def f(x):
        def own(c):
            return (c[0] + 1, pnp.sin(c[1]))

        return lax.while_loop(lambda c: c[0] < lax.axis_index("x"), own, (0, x))[1]

    want, value = np.ones((4, 2)), np.ones((4, 2))
    for step in range(3):
        want[step + 1 :] *= np.cos(value[step + 1 :])
        value[step + 1 :] = np.sin(value[step + 1 :])
    close(wrap(grad(lambda x: over(f, P("x"), P("x"))(x).sum()))(np.ones((4, 2))), want)
    result, pull = vjp(lambda x: over(f, P("x"), P("x"))(x), np.ones((4, 2)))
    close(result, value)
    close(pull(np.ones((4, 2)))[0], want)

    # Steps until all have come by, one sum of the places for each.
    def until(x):
        return lax.while_loop(
            lambda c: lax.psum(c.sum(), "x") < 50, lambda c: c * c * 0.5 + lax.pmean(c, "x"), x
        )

    def plain(x):
        while x.sum() < 50:
            x = x * x * 0.5 + x.mean(0)
        return (x * np.arange(2)).sum()

    x = np.linspace(0.5, 1.5, 8).reshape(4, 2)

    def loss(x):
        return (over(until, P("x"), P("x"))(x) * np.arange(2)).sum()

    close(wrap(loss)(x), plain(x))
    close(wrap(grad(loss))(x), difference(plain, x), 1e-5)


@WRAPS
def test_what_all_share_gets_gradients_from_different_ways(wrap):
    """Not all places come by the use of it, so the sum over them is not there."""

    def f(w, x):
        x = lax.cond(lax.axis_index("x") > 1, lambda x: x * w, lambda x: x, x)
        return lax.while_loop(lambda c: c.max() < 4, lambda c: c * w, x)

    def plain(w):
        total = 0.0
        for i, x in enumerate((1.0, 2.0, 0.5, 3.0)):
            x = x * w if i > 1 else x
            while x < 4:
                x = x * w
            total += x
        return total

    g = over(f, (P(), P("x")), P("x"))
    gradient = wrap(grad(lambda w: g(w, np.array([1.0, 2.0, 0.5, 3.0])).sum()))
    close(gradient(1.7), difference(plain, 1.7), 1e-7)


@WRAPS
def test_examples_that_go_different_ways(wrap):
    """vmap around and inside: what places give each other, they give for all examples at once."""
    many = np.arange(8.0).reshape(2, 4)

    def until(x):
        return lax.while_loop(lambda c: lax.psum(c.sum(), "x") < 20, lambda c: c * 2 + 1, x)

    close(wrap(vmap(over(until, P("x"), P("x"))))(many), [[3, 7, 11, 15], [4, 5, 6, 7]])

    def either(x):
        return lax.cond(
            lax.psum(x.sum(), "x") < 10, lambda x: lax.psum(x, "x") + 0 * x, lambda x: x, x
        )

    close(wrap(vmap(over(either, P("x"), P("x"))))(many), [[6, 6, 6, 6], [4, 5, 6, 7]])

    def own(x):
        return lax.while_loop(lambda c: c < lax.axis_index("x") + 3, lambda c: c + x, 0.0 * x)

    close(wrap(over(vmap(own), P("x"), P("x")))(np.arange(1.0, 9)), [3, 4, 6, 4, 5, 6, 7, 8])
    third = wrap(vmap(grad(lambda x: over(until, P("x"), P("x"))(x).sum())))(many)
    close(third, [[4] * 4, [1] * 4])


@WRAPS
def test_masked_sizes(wrap):
    """Sizes of axes that are not divided."""
    f = over(lambda x: lax.psum(x.sum(1), "x") + lax.ppermute(x, "x", RING).max(1), P("x"), P("x"))
    masked = wrap(plait.mask(f, in_shapes=["4 n"], out_shapes="4"))
    x = RANDOM.normal(size=(4, 5))
    padded = np.where(np.arange(5) < 3, x, np.nan)
    close(masked(padded, n=3), x[:, :3].sum() + np.roll(x[:, :3], 1, 0).max(1))


@WRAPS
def test_calls_of_the_host(wrap, capfd):
    f = over(lambda x: plait.host_call(lambda v: np.asarray(v) * 2, x, x), P("x"), P("x"))
    close(wrap(f)(np.arange(4.0)), 2 * np.arange(4.0))

    def printed(x):
        plait.debug.print("here {} of {}", x[0], lax.psum(x, "x")[0])
        return x

    close(wrap(over(printed, P("x"), P("x")))(np.arange(4.0)), np.arange(4.0))
    assert sorted(capfd.readouterr().out.split("\n")[:-1]) == [
        f"here {i}.0 of 6.0" for i in range(4)
    ]


@WRAPS
def test_captured_arrays(wrap):
    captured, inner = pnp.asarray(W), pnp.asarray(X[0])

    def f(x, scale):
        return over(lambda x: lax.psum(x @ captured * scale + inner.sum(), "x"), P("x"), P())(x)

    def want(s):
        return (X @ W * s + X[0].sum()).reshape(4, 2, 4).sum(0)

    close(wrap(f)(X, 2.0), want(2.0))
    close(wrap(grad(lambda s: f(X, s).sum()))(2.0), (X @ W).sum())
    close(
        grad(lambda c: over(lambda x: lax.psum(x @ c, "x"), P("x"), P())(X).sum())(W),
        np.tile(X.sum(0)[:, None], 4),
    )


@WRAPS
def test_random_numbers(wrap):
    def f(key):
        own = plait.random.fold_in(key, lax.axis_index("x"))
        return plait.random.normal(key, (3,)), plait.random.normal(own, (3,))[None]

    shared, own = wrap(over(f, P(), (P(), P("x"))))(plait.random.key(0))
    close(shared, plait.random.normal(plait.random.key(0), (3,)))
    want = [
        plait.random.normal(plait.random.fold_in(plait.random.key(0), i), (3,)) for i in range(4)
    ]
    close(own, np.stack([np.asarray(w) for w in want]))
    keys = plait.random.split(plait.random.key(5), 4)
    each = wrap(over(lambda k: plait.random.uniform(k[0], (1, 2)), P("x"), P("x")))(keys)
    close(
        each, np.concatenate([np.asarray(plait.random.uniform(keys[i], (1, 2))) for i in range(4)])
    )


@WRAPS
def test_one_inside_another(wrap):
    def outer(x):
        inner = over(lambda x: lax.psum(x, "y") + lax.axis_index("y"), P(None, "y"), P(None, "y"))
        return lax.psum(inner(x), "x")

    want = np.tile(X.reshape(4, 2, 2, 3).sum((0, 2)), (1, 2)) + 4 * np.repeat([0, 1], 3)
    f = over(outer, P("x"), P())
    close(wrap(f)(X), want)
    close(
        wrap(grad(lambda x: (f(x) * np.arange(6)).sum()))(X),
        np.tile(np.arange(3) + np.arange(3, 6), (8, 2)),
    )


def test_saved_programs(tmp_path):
    def step(w, x):
        return grad(
            over(lambda w, x: lax.pmean((pnp.tanh(x @ w) ** 2).mean(), "x"), (P(), P("x")), P())
        )(w, x)

    plait.save(tmp_path / "step.plait", step, W, X)
    close(plait.load(tmp_path / "step.plait")(W, X), step(W, X))


# --- What is refused ---------------------------------------------------------------------------


def refused(error, text, call, *args):
    with pytest.raises(error) as caught:
        call(*args)
    for part in text.split(" ... "):
        assert part in str(caught.value), str(caught.value)


def test_errors():
    def same(x):
        return x

    refused(
        plait.ShapeError,
        "argument 0 ... axis 0 ... 4 places along 'x'",
        over(same, P("x"), P("x")),
        np.ones((6, 2)),
    )
    refused(
        plait.ShapeError,
        "axis 1 ... 8 places along 'x', 'y'",
        over(same, P(None, ("x", "y")), P()),
        np.ones((8, 6)),
    )
    refused(plait.ShapeError, "spec is for 3 axes", over(same, P("x", None, None), P()), X)
    refused(plait.ShapeError, "spec is for 3 axes", over(same, P("x"), P("x", None, "y")), X)
    refused(
        ValueError,
        "the result ... along the axis 'x' ... does not name",
        over(same, P("x"), P()),
        X,
    )
    refused(
        ValueError, "['a'] ... along the axis 'y'", over(lambda x: {"a": x}, P("x", "y"), P("x")), X
    )
    refused(ValueError, "in_specs ... 'z' ... 'x', 'y'", over(same, P("z"), P()), X)
    refused(ValueError, "'q'", over(same, P("x"), P("q")), X)
    refused(ValueError, "twice", over(same, P("x", "x"), P()), X)
    refused(ValueError, "'z'", over(lambda x: lax.psum(x, "z"), P("x"), P("x")), X)
    refused(ValueError, "in_specs", over(same, "x", P()), X)
    refused(ValueError, "in_specs", over(same, (P("x"), P("x")), P()), X)
    refused(ValueError, "out_specs", over(same, P("x"), (P("x"), P("x"))), X)
    refused(ValueError, "there is no mesh", shard_map(same, in_specs=P(), out_specs=P()), X)
    refused(
        ValueError, "inside another shard_map", over(over(same, P("x"), P("x")), P("x"), P("x")), X
    )
    refused(ValueError, "psum ... 'x'", lambda: lax.psum(X, "x"))
    refused(ValueError, "2 sizes and 1 names", lambda: plait.mesh((4, 2), ("x",)))


@pytest.mark.parametrize("wrap", [lambda f: f, jit, grad], ids=["eager", "jit", "grad"])
def test_predicates_that_differ_around_communication(wrap):
    def text(f):
        call = wrap(lambda x: over(f, P("x"), P("x"))(x).sum())
        refused(ValueError, "differs along ... 'x'", call, X)

    text(lambda x: lax.cond(x.sum() > 0, lambda x: lax.psum(x, "x") + x, lambda x: x, x))
    text(
        lambda x: lax.switch(
            lax.axis_index("x"), [lambda x: lax.ppermute(x, "x", RING), lambda x: x], x
        )
    )
    text(
        lambda x: lax.cond(
            x.sum() > 0,
            lambda x: lax.scan(lambda c, r: (c + lax.psum(r, "x"), None), x[0] * 0, x)[0] + x,
            lambda x: x,
            x,
        )
    )
    if wrap is not grad:
        text(
            lambda x: lax.while_loop(lambda c: c.sum() < 0, lambda c: c + lax.psum(c, "x") ** 2, x)
        )
        text(
            lambda x: lax.fori_loop(
                0, lax.axis_index("x"), lambda i, c: lax.ppermute(c, "x", RING), x
            )
        )


def test_stored_numbers_are_converted_in_their_places():
    weights = pnp.asarray(np.linspace(-2, 2, 24).reshape(4, 6)).astype("float8_e4m3fn")
    wanted = np.asarray(weights).astype(np.float32)
    f = plait.shard_map(
        lambda w: lax.psum(w.astype("float32").sum(0), "x"), plait.mesh((2,), "x"), P("x"), P()
    )
    for door in (f, plait.jit(f)):
        np.testing.assert_allclose(door(weights), wanted.sum(0), rtol=1e-6)
    keys = plait.random.split(plait.random.key(0), 4)
    draw = plait.shard_map(
        lambda k: plait.vmap(plait.random.normal)(k), plait.mesh((2,), "x"), P("x"), P("x")
    )
    np.testing.assert_array_equal(draw(keys), plait.vmap(plait.random.normal)(keys))
