"""psum and its kind along named axes: against NumPy on the batch, through every transform, and what is refused.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import checkpoint, custom_vjp, grad, jit, jvp, lax, make_jaxpr, vmap

X = np.random.default_rng(0).normal(size=(4, 3))


def over(f, **options):
    return vmap(f, axis_name="i", **options)


def close(actual, expected, limit=1e-12):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=limit, atol=limit)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_reductions(wrap):
    """The same function, traced as it is and as a program inside vmap."""
    close(over(wrap(lambda x: lax.psum(x, "i")))(X), np.tile(X.sum(0), (4, 1)))
    close(over(wrap(lambda x: lax.pmean(x, "i")), out_axes=None)(X), X.mean(0))
    close(over(wrap(lambda x: lax.pmax(x, "i") - lax.pmin(x, "i")), out_axes=None)(X), np.ptp(X, 0))
    normalised = wrap(lambda x: (x - lax.pmean(x, "i")) / pnp.sqrt(lax.pmean(x**2, "i")))
    close(over(normalised)(X), (X - X.mean(0)) / np.sqrt((X**2).mean(0)))
    tree = over(wrap(lambda x: lax.psum({"a": x, "b": (x.sum(), 1)}, "i")), out_axes=None)(X)
    close(tree["a"], X.sum(0))
    close(tree["b"][0], X.sum())
    assert int(tree["b"][1]) == 4
    assert over(wrap(lambda x: lax.psum(x > 0, "i")))(X).dtype == np.int32


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_movements(wrap):
    close(over(wrap(lambda x: lax.all_gather(x, "i")))(X)[1], X)
    close(over(wrap(lambda x: lax.all_gather(x, "i", axis=1)), out_axes=None)(X), X.T)
    close(over(wrap(lambda x: lax.all_gather(x, "i", tiled=True)), out_axes=None)(X), X.ravel())
    close(over(wrap(lambda x: x[0] * lax.axis_index("i")))(X), X[:, 0] * np.arange(4))
    ring = [(i, (i + 1) % 4) for i in range(4)]
    close(over(wrap(lambda x: lax.ppermute(x, "i", ring)))(X), np.roll(X, 1, 0))
    close(over(wrap(lambda x: lax.ppermute(x, "i", [(2, 0), (1, 3)])))(X)[[0, 3]], X[[2, 1]])
    assert not np.asarray(over(lambda x: lax.ppermute(x, "i", [(2, 0), (1, 3)]))(X))[1:3].any()
    close(over(wrap(lambda x: lax.pshuffle(x, "i", [3, 1, 0, 2])))(X), X[[3, 1, 0, 2]])
    y = np.random.default_rng(1).normal(size=(4, 4, 2, 8))
    exchange = over(wrap(lambda y: lax.all_to_all(y, "i", 0, 1)))(y)
    close(exchange, y.transpose(1, 2, 0, 3))
    close(over(wrap(lambda y: lax.pswapaxes(y, "i", 0)))(y), y.transpose(1, 0, 2, 3))
    tiled = over(wrap(lambda y: lax.all_to_all(y, "i", 2, 1, tiled=True)))(y)
    # Slice j of axis 2 of each example, side by side along axis 1, is example j.
    close(tiled, np.stack([np.concatenate(list(y[..., 2 * j : 2 * j + 2]), 1) for j in range(4)]))
    total = y.sum(0)
    close(over(wrap(lambda y: lax.psum_scatter(y, "i")))(y), total)
    scattered = over(wrap(lambda y: lax.psum_scatter(y, "i", scatter_dimension=2, tiled=True)))(y)
    close(scattered, np.stack(np.split(total, 4, axis=2)))


def test_axis_sizes_are_numbers():
    def f(x):
        assert lax.axis_size("i") == 4 and int(lax.psum(1, "i")) == 4
        return pnp.zeros(lax.axis_size("i")) + x[0]

    assert over(f)(X).shape == (4, 4)
    close(vmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)(), [0, 1, 2])


def test_two_axes():
    y = np.random.default_rng(2).normal(size=(2, 3, 5))

    def f(y):
        both = lax.psum(y, ("i", "j")), lax.axis_index(("i", "j")), lax.axis_size(("i", "j"))
        return both[0] + 0 * lax.psum(y, "j"), both[1], both[2] * lax.psum(y, "j")

    total, number, rows = vmap(vmap(f, axis_name="j"), axis_name="i")(y)
    close(total, np.broadcast_to(y.sum((0, 1)), y.shape))
    close(number, np.arange(6).reshape(2, 3))
    close(rows, np.broadcast_to(6 * y.sum(1, keepdims=True), y.shape))
    inner = vmap(vmap(lambda y: lax.psum(y, "i"), axis_name="i"), axis_name="i")
    close(
        inner(y), np.broadcast_to(y.sum(1, keepdims=True), y.shape)
    )  # the inner one hides the outer
    other = vmap(jit(vmap(lambda y: lax.all_gather(y, "j", axis=1))), axis_name="j")(y)
    close(other[0], y.transpose(1, 2, 0))


# Each takes one example, and ends in a number for each.
LOSSES = {
    "psum": lambda x: pnp.sum(pnp.sin(lax.psum(x**2, "i")) * x),
    "pmean": lambda x: pnp.sum((x - lax.pmean(x, "i")) ** 3),
    "pmax": lambda x: pnp.sum(lax.pmax(x, "i") * x),
    "all_gather": lambda x: pnp.sum(pnp.sin(lax.all_gather(x, "i") @ x)),
    "psum_scatter": lambda x: lax.psum_scatter(pnp.outer(x, x).ravel()[:4], "i") ** 2,
    "ppermute": lambda x: pnp.sum(lax.ppermute(x**2, "i", [(0, 1), (1, 2), (2, 3)]) * x),
    "all_to_all": lambda x: pnp.sum(
        lax.all_to_all(pnp.concatenate([x, x[:1] ** 2]), "i", 0, 0) ** 3
    ),
    "axis_index": lambda x: pnp.sum(x**2) * lax.axis_index("i"),
    "scan": lambda x: lax.scan(lambda c, _: (pnp.sin(lax.psum(c, "i")) * x, None), x, None, 3)[
        0
    ].sum(),
    "checkpoint": lambda x: checkpoint(lambda x: pnp.sum(pnp.sin(lax.psum(x, "i")) * x))(x),
    "jit": lambda x: jit(lambda x: pnp.sum(pnp.sin(lax.psum(x, "i")) * x))(x),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives(name):
    """The gradient of the sum over examples, whichever of grad and vmap is outside, against differences."""
    loss = LOSSES[name]
    total = lambda x: pnp.sum(over(loss)(x))  # noqa: E731
    expected = np.zeros_like(X)
    for at in np.ndindex(*X.shape):
        step = np.zeros_like(X)
        step[at] = 1e-6
        expected[at] = (float(total(X + step)) - float(total(X - step))) / 2e-6
    close(grad(total)(X), expected, 1e-6)
    close(jit(grad(total))(X), expected, 1e-6)
    # What each example gives the others comes back to it.
    close(over(grad(loss))(X), expected, 1e-6)
    tangent = np.random.default_rng(3).normal(size=X.shape)
    close(jvp(total, (X,), (tangent,))[1], np.sum(expected * tangent), 1e-6)
    _, inside = over(lambda x, t: jvp(loss, (x,), (t,)))(X, tangent)
    close(np.sum(np.asarray(inside)), np.sum(expected * tangent), 1e-6)


def test_branches_and_loops_whose_predicates_differ():
    """All examples take part in what communicates, and each keeps what its own predicate says."""
    branch = over(lambda x: lax.cond(x[0] > 0, lambda x: lax.psum(x, "i"), lambda x: x, x))
    close(branch(X), np.where(X[:, :1] > 0, X.sum(0), X))
    close(jit(branch)(X), np.where(X[:, :1] > 0, X.sum(0), X))

    def until(x):  # as many steps as the number of the example
        body = lambda s: (s[0] + 1, s[1] + lax.pmean(s[1], "i"))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < lax.axis_index("i"), body, (0, x))[1]

    expected = X.copy()
    for step in range(4):
        live = (step < np.arange(4))[:, None]
        expected = np.where(live, expected + expected.mean(0), expected)
    close(over(until)(X), expected)
    shared = over(lambda x: lax.fori_loop(0, 3, lambda i, x: x - lax.pmean(x, "i") / 2, x))
    close(shared(X), X - X.mean(0) * (1 - 0.5**3))


def test_custom_rules_see_the_axis():
    @custom_vjp
    def f(x):
        return lax.psum(x, "i")

    f.defvjp(lambda x: (lax.psum(x, "i"), x), lambda x, ct: (lax.pmean(ct, "i") * x,))
    g = over(grad(lambda x: pnp.sum(f(x) * x)))
    cotangent = X.mean(0)  # of f's result
    close(g(X), X.sum(0) + cotangent * X)
    close(over(jit(grad(lambda x: pnp.sum(f(x) * x))))(X), X.sum(0) + cotangent * X)


def test_a_jitted_function_knows_the_axes_around_it():
    f = jit(lambda x: x * lax.axis_size("i"))
    close(over(f)(X), 4 * X)
    close(over(f)(X[:2]), 2 * X[:2])
    assert "named axes" in f.cache.last_miss
    close(over(f)(X), 4 * X)
    assert f.cache.misses == 2
    with pytest.raises(plait.ValueError, match="(?s)axis_size: the axis name 'i' is unbound here"):
        f(X[0])


def test_batch_normalisation_as_data_parallel_training_has_it():
    """A step on shards of a batch equals the step on all of it."""
    generator = np.random.default_rng(4)
    w, x, y = (
        generator.normal(size=(3, 2)),
        generator.normal(size=(4, 5, 3)),
        generator.normal(size=(4, 5, 2)),
    )

    def loss(w, x, y, mean):
        h = x @ w
        h = (h - mean(h.mean(0))) / pnp.sqrt(mean((h**2).mean(0)))
        return ((h - y) ** 2).mean()

    @jit
    @functools.partial(vmap, in_axes=(None, 0, 0), out_axes=None, axis_name="devices")
    def step(w, x, y):
        mean = lambda v: lax.pmean(v, "devices")  # noqa: E731
        return w - 0.1 * mean(grad(loss)(w, x, y, mean))

    whole = w - 0.1 * np.asarray(grad(loss)(w, x.reshape(20, 3), y.reshape(20, 2), lambda v: v))
    # psum transposes to psum: the gradient of a shard's own loss holds what it does to the others'.
    close(step(w, x, y), whole, 1e-10)


def test_text_and_errors():
    text = str(make_jaxpr(over(jit(lambda x: lax.psum(x, "i"))))(X))
    assert "psum" not in text and "reduce" in text
    for call, words in [
        (lambda: lax.psum(X, "i"), "(?s)psum: the axis name 'i' is unbound here.*axis_name='i'"),
        (lambda: over(lambda x: lax.psum(x, "j"))(X), "the axis name 'j' is unbound here; the axes here are 'i'"),
        (lambda: over(lambda x: lax.psum(x, 3))(X), "(?s)axis_name.*should be str"),
        (lambda: over(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]))(X), "axis_index_groups"),
        (lambda: over(lambda x: lax.ppermute(x, "i", [(0, 4)]))(X), "there is no example 4 of 4"),
        (lambda: over(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]))(X), "twice among the destinations"),
        (lambda: over(lambda x: lax.all_to_all(x, "i", 0, 0))(X), "is split among 4 examples"),
        (lambda: over(lambda x: lax.psum_scatter(x, "i", tiled=True))(X), "does not divide among 4"),
        (lambda: over(lambda x: lax.psum(x, "i"), chunk=2)(X), "in chunks of 2 examples"),
        (lambda: vmap(lambda x: x, axis_name="")(X), "axis_name is ''"),
        (lambda: vmap(lambda x: x, axis_name=0)(X), "axis_name is 0"),
    ]:  # fmt: skip
        with pytest.raises(plait.Error, match=words):
            call()
