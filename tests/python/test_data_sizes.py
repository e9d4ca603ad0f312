"""Sizes that depend on values, inside jit: masks, nonzero, unique and what is done with them.

The reference is NumPy, which runs the same programs; that of gradients, differences of NumPy's results in float64.
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import grad, jit, lax, vmap

rng = np.random.default_rng(0)
X = rng.normal(size=12)
W = rng.normal(size=12)
I = rng.integers(-3, 4, size=12)  # noqa: E741
J = rng.integers(-1, 6, size=9)
A = rng.normal(size=(6, 4))


def softmax_of_chosen(np, x, w, i, j, a):
    y = x[x > -0.5]
    e = np.exp(y - y.max())
    return e / e.sum()


def nonmaximum(np, x, w, i, j, a):
    order = np.argsort(-x)
    return order[x[order] > 0.1]


def chained(np, x, w, i, j, a):
    y = x[x > -0.5]
    z = y[y < 0.5]
    return y.sum(), z, z.sum() / y.shape[0]


def two_filters(np, x, w, i, j, a):
    return np.concatenate([x[x > 0], w[w < 0], np.ones(2)])


def shape_arithmetic(np, x, w, i, j, a):
    y = x[x > 0]
    return y.sum() / y.shape[0] + y.shape[0] ** 2 + (y * np.arange(y.shape[0])).sum() + 2 * y.size


def ends(np, x, w, i, j, a):
    y = x[x > -1]
    return y[0], y[-1], y[1:] - y[:-1], y[::-1], y[::2], y[1:3]


def variance(np, x, w, i, j, a):
    y = x[w > 0]
    return y.std(), y.var(), np.linalg.norm(y), (y > 0).any(), (y > 0).all()


PROGRAMS = {
    "mean of a mask": lambda np, x, w, i, j, a: x[x > 0].mean(),
    "sum, max and min": lambda np, x, w, i, j, a: (
        x[w > 0].sum(),
        x[w > 0].max(),
        x[w > 0].min(),
        x[w > 0].prod(),
    ),
    "the elements": lambda np, x, w, i, j, a: x[x > 0],
    "elementwise": lambda np, x, w, i, j, a: np.sin(x[x > 0]) * 2 + w[x > 0],
    "unique": lambda np, x, w, i, j, a: np.unique(i),
    "unique with counts": lambda np, x, w, i, j, a: np.unique(i, return_counts=True),
    "unique with all": lambda np, x, w, i, j, a: np.unique(
        i, return_index=True, return_inverse=True, return_counts=True
    ),
    "counts to shares": lambda np, x, w, i, j, a: (
        np.unique(i, return_counts=True)[1] / i.shape[0]
    ).max(),
    "nonzero, then gather": lambda np, x, w, i, j, a: w[np.nonzero(x > 0)[0]],
    "flatnonzero": lambda np, x, w, i, j, a: np.flatnonzero(x > 0) * 2,
    "argwhere": lambda np, x, w, i, j, a: np.argwhere(a > 0),
    "where of one argument": lambda np, x, w, i, j, a: a[np.where(a > 0)].sum(),
    "top of the filtered": lambda np, x, w, i, j, a: np.sort(x[x > 0])[::-1][:3],
    "sort and argsort": lambda np, x, w, i, j, a: (
        np.sort(x[w > 0]),
        np.argsort(x[w > 0]),
        np.argmax(x[w > 0]),
    ),
    "two filtered arrays": two_filters,
    "masked loss": lambda np, x, w, i, j, a: ((x[i > 0] - w[i > 0]) ** 2).mean(),
    "non-maximum suppression": nonmaximum,
    "rows by mask": lambda np, x, w, i, j, a: a[a[:, 0] > 0] @ a[0],
    "rows by mask, a product with themselves": lambda np, x, w, i, j, a: a[a[:, 0] > 0].T
    @ a[a[:, 0] > 0],
    "all pairs": lambda np, x, w, i, j, a: (x[x > 0][:, None] - x[x > 0][None, :]) ** 2,
    "columns by mask": lambda np, x, w, i, j, a: a[:, a[0] > 0].sum(0),
    "a mask of a matrix": lambda np, x, w, i, j, a: a[a > 0],
    "nothing chosen": lambda np, x, w, i, j, a: (
        x[x > 100],
        x[x > 100].sum(),
        np.unique(i[i > 100]),
    ),
    "everything chosen": lambda np, x, w, i, j, a: (x[x > -100], x[x > -100].sum()),
    "chained masks": chained,
    "a shape in arithmetic": shape_arithmetic,
    "several results": lambda np, x, w, i, j, a: (
        x[x > 0],
        w,
        {"rows": a[a[:, 1] > 0], "n": x[x > 0].shape[0]},
    ),
    "both ends": ends,
    "variance and norm": variance,
    "cumsum": lambda np, x, w, i, j, a: (np.cumsum(x[w > 0]), np.diff(x[w > 0])),
    "dot": lambda np, x, w, i, j, a: np.dot(x[i > 0], w[i > 0]),
    "softmax": softmax_of_chosen,
    "compress and extract": lambda np, x, w, i, j, a: (
        np.compress(a[:, 0] > 0, a, axis=0).sum(0),
        np.extract(x > 0, x),
    ),
    "delete": lambda np, x, w, i, j, a: (
        np.delete(x, x > 0),
        np.delete(x, i),
        np.delete(a, a[:, 0] > 0, axis=0),
    ),
    "sets": lambda np, x, w, i, j, a: (
        np.union1d(i, j),
        np.intersect1d(i, j),
        np.setdiff1d(i, j),
        np.setxor1d(i, j),
    ),
    "rows that are distinct": lambda np, x, w, i, j, a: np.unique(
        np.stack([i % 2, i % 3], 1), axis=0
    ),
    "search among the filtered": lambda np, x, w, i, j, a: np.searchsorted(np.sort(x[x > 0]), w),
    "membership": lambda np, x, w, i, j, a: np.isin(i, i[i > 0]),
    "histogram": lambda np, x, w, i, j, a: np.histogram(x[x > 0], bins=4, range=(0, 2))[0],
    "zeros and ones like": lambda np, x, w, i, j, a: np.zeros_like(x[x > 0])
    + np.ones(x[x > 0].shape),
    "stacked": lambda np, x, w, i, j, a: np.stack([x[x > 0], w[x > 0]]),
    "repeated and tiled": lambda np, x, w, i, j, a: (np.repeat(x[x > 0], 2), np.tile(x[x > 0], 2)),
    "median": lambda np, x, w, i, j, a: np.median(x[x > -0.5]),
    "rows and columns": lambda np, x, w, i, j, a: a[np.ix_(a[:, 0] > 0, a[0] > 0)],
    "a mask and an index": lambda np, x, w, i, j, a: a[a[:, 0] > 0, 1],
    "a mask and a slice": lambda np, x, w, i, j, a: a[a[:, 0] > 0, 1:3],
}
ARGUMENTS = (X, W, I, J, A)


def same(result, expected):
    """Equal trees of arrays, sizes included; dtypes are the libraries' own."""
    if isinstance(expected, dict):
        assert result.keys() == expected.keys()
        return [same(result[key], expected[key]) for key in expected]
    if isinstance(expected, (tuple, list)):
        assert len(result) == len(expected)
        return [same(*pair) for pair in zip(result, expected, strict=True)]
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_numpy_gives_eager_and_jitted(name):
    program = PROGRAMS[name]
    expected = program(np, *ARGUMENTS)
    same(program(pnp, *map(pnp.asarray, ARGUMENTS)), expected)
    jitted = jit(lambda *arguments: program(pnp, *arguments))
    same(jitted(*ARGUMENTS), expected)
    others = (-W, X, I[::-1].copy(), J, -A)  # the same executable, for other sizes
    same(jitted(*others), program(np, *others))
    assert len(jitted.cache) == 1


def differences(f, x, step=1e-6):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        result[place] = (f(up) - f(down)) / (2 * step)
    return result


DIFFERENTIABLE = {
    "mean": lambda np, x, w: x[x > 0].mean(),
    "masked loss": lambda np, x, w: ((x[w > 0] - w[w > 0]) ** 2).mean(),
    "sort": lambda np, x, w: (np.sort(x[x > 0]) * np.arange(x[x > 0].shape[0])).sum(),
    "softmax": lambda np, x, w: np.log(np.exp(x[w > 0]).sum()) ** 2,
    "nonzero": lambda np, x, w: (w[np.nonzero(x > 0)[0]] * x[x > 0] ** 3).sum(),
    "two filters": lambda np, x, w: np.prod(np.concatenate([x[x > 0], w[x < 0] * x[x < 0]])),
    "chained": lambda np, x, w: (x[x > -0.5][x[x > -0.5] < 0.5] ** 2).sum() * x.sum(),
    "pairs": lambda np, x, w: np.tanh(x[x > 0][:, None] * x[x > 0][None, :]).sum(),
    "shape": lambda np, x, w: x[x > 0].sum() / x[x > 0].shape[0] * x[w > 0].max(),
    "nothing": lambda np, x, w: x[x > 100].sum() + x[0] ** 2,
    "cumsum": lambda np, x, w: (np.cumsum(x[w > 0]) ** 2).sum(),
    "rows": lambda np, x, w: ((x.reshape(4, 3)[w[:4] > 0] @ w[:3]) ** 2).sum(),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_those_of_differences_in_every_order_of_jit_and_grad(name):
    program = DIFFERENTIABLE[name]
    expected = differences(lambda x: program(np, x, W), X)
    f = lambda x, w: program(pnp, x, w)  # noqa: E731
    for g in (grad(f), jit(grad(f)), grad(jit(f)), jit(grad(jit(f)))):
        np.testing.assert_allclose(np.asarray(g(X, W)), expected, rtol=1e-6, atol=1e-8)
    tangent = rng.normal(size=12)
    _, pushed = jit(lambda x, t: plait.jvp(lambda x: f(x, pnp.asarray(W)), (x,), (t,)))(X, tangent)
    np.testing.assert_allclose(float(pushed), expected @ tangent, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_batch_has_a_size_for_each_example(name):
    program = DIFFERENTIABLE[name]
    f = lambda x, w: program(pnp, x, w)  # noqa: E731
    xs, ws = rng.normal(size=(3, 12)), rng.normal(size=(3, 12))
    expected = np.stack([program(np, x, w) for x, w in zip(xs, ws, strict=True)])
    slopes = np.stack(
        [differences(lambda x, w=w: program(np, x, w), x) for x, w in zip(xs, ws, strict=True)]
    )
    for batched in (vmap(f), jit(vmap(f)), vmap(jit(f))):
        np.testing.assert_allclose(np.asarray(batched(xs, ws)), expected, rtol=1e-9)
    for batched in (jit(vmap(grad(f))), vmap(grad(jit(f)))):
        np.testing.assert_allclose(np.asarray(batched(xs, ws)), slopes, rtol=1e-6, atol=1e-7)


def test_a_gradient_may_have_the_size_itself():
    f = jit(lambda x: grad(lambda y: (y**3).sum())(x[x > 0]))
    same(f(X), 3 * X[X > 0] ** 2)
    second = jit(grad(lambda x: (grad(lambda y: (y**3).sum())(x[x > 0]) ** 2).sum()))
    np.testing.assert_allclose(np.asarray(second(X)), np.where(X > 0, 36 * X**3, 0), rtol=1e-12)


def test_jitted_functions_call_each_other_with_such_arrays():
    chosen = jit(lambda x: x[x > 0])
    double = jit(lambda y: y * 2)
    same(jit(lambda x: double(chosen(x)).sum())(X), 2 * X[X > 0].sum())
    same(jit(lambda x: (chosen(x), double(chosen(x))))(X), (X[X > 0], 2 * X[X > 0]))
    same(grad(lambda x: (chosen(x) ** 2).sum())(X), np.where(X > 0, 2 * X, 0))
    remade = plait.checkpoint(lambda x: x[x > 0] ** 2)
    same(remade(X), X[X > 0] ** 2)
    same(jit(grad(lambda x: remade(x).sum()))(X), np.where(X > 0, 2 * X, 0))


def test_updates_by_masks():
    same(jit(lambda x: x.at[x > 0].set(0.0))(X), np.where(X > 0, 0, X))
    same(jit(lambda x: x.at[x > 0].add(x[x > 0]))(X), np.where(X > 0, 2 * X, X))
    same(
        jit(lambda a, v: a.at[a[:, 0] > 0].multiply(v))(A, A[0]),
        np.where(A[:, :1] > 0, A * A[0], A),
    )

    def write(x):
        x = x + 0
        x[x > 0] = x[x > 0] ** 2
        x[x < -1] = -1.0
        return x

    same(jit(write)(X), write(X))


def test_the_size_of_a_jitted_function_of_named_sizes_is_bounded_by_them():
    f = jit(lambda x: (x[x > 0].sum(), x[x > 0] * x.shape[0]), sizes=("f64[n]",))
    for n in (3, 12):
        same(f(X[:n]), (X[:n][X[:n] > 0].sum(), X[:n][X[:n] > 0] * n))
    padded = jit(lambda x: (x[x > 0].sum(), x[x > 0]), sizes=("f64[n]",), buckets=True)
    same(padded(X[:11]), (X[:11][X[:11] > 0].sum(), X[:11][X[:11] > 0]))


def test_loops_and_branches_use_such_arrays():
    def f(x):
        y = x[x > 0]
        total = lax.fori_loop(0, 3, lambda _, c: c + y.sum(), 0.0)
        branch = lax.cond(x[0] > 0, lambda: y.max(), lambda: -y.sum())
        inner = lax.scan(
            lambda c, row: (c + row[row > 0].sum(), row[row > 0].mean()), 0.0, x.reshape(3, 4)
        )
        return total, branch, inner

    rows = X.reshape(3, 4)
    y = X[X > 0]
    expected = (
        3 * y.sum(),
        y.max() if X[0] > 0 else -y.sum(),
        (rows[rows > 0].sum(), np.array([row[row > 0].mean() for row in rows])),
    )
    same(jit(f)(X), expected)
    same(f(pnp.asarray(X))[:2], expected[:2])


def test_steps_and_examples_may_be_as_many_as_were_chosen():
    rows = A[A[:, 0] > 0]
    chosen = lambda a: a[a[:, 0] > 0]  # noqa: E731
    total, steps = jit(lambda x: lax.scan(lambda c, v: (c * 0.5 + v * v, c), 0.0, x[x > 0]))(X)
    expected = [0.0]
    for value in X[X > 0]:
        expected.append(expected[-1] * 0.5 + value**2)
    same((total, steps), (expected[-1], np.array(expected[:-1])))
    same(jit(lambda a: vmap(lambda row: row * 2)(chosen(a)))(A), rows * 2)
    same(
        jit(lambda a: vmap(lambda row: row[row > 0].sum())(chosen(a)))(A),
        np.array([row[row > 0].sum() for row in rows]),
    )
    same(
        jit(lambda x, w: lax.while_loop(lambda y: y.sum() < 50, lambda y: y * 2, x[w > 0] ** 2))(
            X, W
        ).shape,
        (W[W > 0].size,),
    )


def test_a_bound_by_size_still_works():
    same(jit(lambda x: pnp.nonzero(x > 100, size=2, fill_value=7)[0])(X), np.array([7, 7]))


def test_what_is_refused_says_why():
    with pytest.raises(plait.ShapeError, match="scan: output 1 has shape .* depends on values"):
        jit(lambda x: lax.scan(lambda c, row: (c, row[row > 0]), 0.0, x.reshape(3, 4)))(X)
    with pytest.raises(
        plait.ShapeError, match="vmap: output 0 has shape .k., and the size k depends on values"
    ):
        vmap(lambda x: x[x > 0])(X.reshape(3, 4))
    with pytest.raises(plait.ShapeError):
        jit(lambda x: x[x > 0] + x[x < 0])(X)
    with pytest.raises(ValueError, match="1 <= "):
        jit(lambda x: x[x > 100][0])(X)
