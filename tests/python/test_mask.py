"""mask from Python: ragged batches, compositions, sizes of every kind, and errors.

Every padding is NaN, so a rule that reads it shows.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import numpy as np
import pytest

import plait
import plait.numpy as pnp

pytestmark = pytest.mark.isa


def f64(values):
    return np.asarray(values, np.float64)


def padded(array, *shape):
    result = np.full(shape, np.nan, array.dtype)
    result[tuple(slice(size) for size in array.shape)] = array
    return result


def zero_padded(array, *shape):
    array = np.asarray(array)
    result = np.zeros(shape, array.dtype)
    result[tuple(slice(size) for size in array.shape)] = array
    return result


RNG = np.random.default_rng(0)
LENGTHS = [3, 0, 5, 1]
ROWS = [RNG.normal(size=(n, 2)) for n in LENGTHS]
BATCH = np.stack([padded(row, 5, 2) for row in ROWS])
W = RNG.normal(size=(2, 3))


def mean_of_tanh(x, w):
    return pnp.tanh(x @ w).sum() / (x.shape[0] + 1)


def attention(x, w):
    queries = x @ w
    scores = queries @ queries.T
    weights = pnp.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ x


def test_one_example_is_the_function_of_its_real_part():
    m = plait.mask(mean_of_tanh, ["n d", "d k"])
    for row, x in zip(ROWS, BATCH):
        np.testing.assert_allclose(m(x, W, n=len(row)), mean_of_tanh(row, W), rtol=1e-12)
        value, gradient = plait.value_and_grad(m)(x, W, n=len(row))
        np.testing.assert_allclose(value, mean_of_tanh(row, W), rtol=1e-12)
        np.testing.assert_allclose(
            gradient, zero_padded(plait.grad(mean_of_tanh)(row, W), 5, 2), atol=1e-12
        )


def test_sizes_may_be_python_numpy_and_plait_integers():
    m = plait.mask(mean_of_tanh, ["n d", "d k"])
    expected = mean_of_tanh(ROWS[0], W)
    for n in (3, np.int64(3), np.int32(3), np.uint8(3), pnp.asarray(3), np.array(3)):
        np.testing.assert_allclose(m(BATCH[0], W, n=n), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [mean_of_tanh, lambda x, w: attention(x, w)[:1].sum()])
def test_a_ragged_batch_is_a_loop(function):
    lengths = np.array([3, 2, 5, 1])
    rows = [RNG.normal(size=(n, 2)) for n in lengths]
    batch = np.stack([padded(row, 5, 2) for row in rows])
    m = plait.mask(function, ["n d", "d k"])

    def example(x, w, n):
        return m(x, w, n=n)

    ragged = plait.vmap(example, in_axes=(0, None, 0))
    expected = [function(row, W) for row in rows]
    np.testing.assert_allclose(ragged(batch, W, lengths), expected, rtol=1e-9)
    np.testing.assert_allclose(plait.jit(ragged)(batch, W, lengths), expected, rtol=1e-9)
    # Per-example gradients, and the gradient of the sum.
    per_example = plait.vmap(plait.grad(example), in_axes=(0, None, 0))(batch, W, lengths)
    for row, gradient in zip(rows, per_example):
        np.testing.assert_allclose(
            gradient, zero_padded(plait.grad(function)(row, W), 5, 2), atol=1e-9
        )
    total = plait.grad(lambda w: ragged(batch, w, lengths).sum())
    wanted = sum(np.asarray(plait.grad(function, argnums=1)(row, W)) for row in rows)
    np.testing.assert_allclose(total(W), wanted, rtol=1e-9)
    np.testing.assert_allclose(plait.jit(total)(W), wanted, rtol=1e-9)


def test_vmap_with_sizes_as_keywords():
    m = plait.mask(mean_of_tanh, ["n d", "d k"])
    result = plait.vmap(lambda x, n: m(x, W, n=n))(BATCH, np.array(LENGTHS))
    np.testing.assert_allclose(result, [mean_of_tanh(row, W) for row in ROWS], rtol=1e-12)


def test_outputs_are_padded_with_zeros():
    m = plait.mask(lambda x: (pnp.exp(x), x.T, x.sum(axis=1)), "n d")
    a, b, c = m(BATCH[0], n=3)
    np.testing.assert_array_equal(np.asarray(a)[3:], 0)
    np.testing.assert_array_equal(np.asarray(b)[:, 3:], 0)
    np.testing.assert_array_equal(np.asarray(c)[3:], 0)
    np.testing.assert_allclose(np.asarray(a)[:3], np.exp(ROWS[0]), rtol=1e-12)


def test_sizes_of_expressions_and_from_the_call():
    m = plait.mask(lambda x, y: pnp.concatenate([x, y]), ["n", "2*n"])
    x, y = f64([1, 2, 3]), f64([4, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(
        m(padded(x[:2], 3), padded(y[:4], 6), n=2), zero_padded(f64([1, 2, 4, 5, 6, 7]), 9)
    )
    m = plait.mask(lambda x: x.sum(), ["n _"])
    np.testing.assert_allclose(m(BATCH[0], n=3), ROWS[0].sum(), rtol=1e-12)
    m = plait.mask(lambda x, w: (x @ w).sum(), ["n d", None])
    np.testing.assert_allclose(m(BATCH[0], W, n=3), (ROWS[0] @ W).sum(), rtol=1e-12)


def test_shapes_inside_do_arithmetic():
    def halves(x):
        n = x.shape[0]
        return x[: n // 2].sum() - x[n // 2 :].sum() + pnp.arange(n).sum()

    m = plait.mask(halves, "n")
    x = RNG.normal(size=7)
    for n in range(1, 8):
        np.testing.assert_allclose(m(padded(x[:n], 7), n=n), halves(pnp.asarray(x[:n])), rtol=1e-9)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: pnp.cumsum(x, axis=0),
        lambda x: pnp.sort(x, axis=0),
        lambda x: pnp.argsort(x, axis=0),
        lambda x: x[::-1],
        lambda x: pnp.argmax(x, axis=0),
        lambda x: x.mean(axis=0),
        lambda x: x.var(axis=0),
        lambda x: x.reshape(-1),
        lambda x: x.T.reshape(-1),
        lambda x: pnp.concatenate([x, x * 2]),
        lambda x: pnp.pad(x, ((1, 2), (0, 0))),
        lambda x: pnp.where(x > 0, x, -x),
        lambda x: x[pnp.arange(x.shape[0]) // 2],
        lambda x: pnp.asarray(x).at[0].add(1.0),
        lambda x: pnp.flip(pnp.cumsum(pnp.flip(x, 0), axis=0), 0),
        lambda x: pnp.einsum("id,jd->ij", x, x),
        lambda x: pnp.prod(x, axis=0),
        lambda x: pnp.roll(x, 1, axis=0),
        lambda x: pnp.stack([x, x], axis=1),
        lambda x: pnp.diff(x, axis=0),
        lambda x: plait.nn.softmax(x, axis=0),
        lambda x: plait.nn.softmax(x @ x.T),
        lambda x: plait.nn.logsumexp(x, axis=0),
        lambda x: plait.nn.gelu(x),
        lambda x: plait.jit(lambda y: pnp.exp(y).sum(axis=0))(x),
    ],
)
def test_numpy_functions_on_a_ragged_axis(function):
    m = plait.mask(function, "n d")
    x = RNG.normal(size=(5, 2))
    bound = np.asarray(function(x)).shape
    for n in range(1, 6):
        expected = np.asarray(function(x[:n]))
        result = np.asarray(m(padded(x[:n], 5, 2), n=n))
        np.testing.assert_allclose(result, zero_padded(expected, *bound), atol=1e-9)
        if expected.dtype != np.float64:
            continue

        def loss(x):
            return (function(x) ** 2).sum()

        gradient = plait.grad(plait.mask(loss, "n d"))(padded(x[:n], 5, 2), n=n)
        np.testing.assert_allclose(gradient, zero_padded(plait.grad(loss)(x[:n]), 5, 2), atol=1e-9)


def test_trees_of_arguments():
    m = plait.mask(lambda p, x: {"y": x @ p["w"] + p["b"]}, [{"w": "d k", "b": "k"}, "n d"])
    y = m({"w": W, "b": f64([1, 2, 3])}, BATCH[0], n=3)["y"]
    np.testing.assert_allclose(y, zero_padded(ROWS[0] @ W + [1, 2, 3], 5, 3), rtol=1e-12)


def test_a_padded_gradient_is_zero_under_jvp_and_second_derivatives():
    def f(x):
        return (pnp.exp(x) * x).sum()

    m = plait.mask(f, "n d")
    x = BATCH[0]
    hessian = plait.jacfwd(plait.grad(lambda x: m(x, n=3)))(x)
    expected = plait.jacfwd(plait.grad(f))(ROWS[0])
    np.testing.assert_allclose(np.asarray(hessian)[:3, :, :3], expected, atol=1e-9)
    np.testing.assert_array_equal(np.asarray(hessian)[3:], 0)
    np.testing.assert_array_equal(np.asarray(hessian)[:, :, 3:], 0)


def test_the_rules_of_mask_have_no_hole():
    rows = [row for row in plait.rules("mask") if row[2].startswith(("lib/", "transforms/"))]
    assert len(rows) > 80
    # What examples of several sizes give each other is not one array.
    rows = [row for row in rows if "/collective/" not in row[2]]
    assert {row[1].split()[0] for row in rows} <= {"rule", "family", "decompose"}


def message(error, *args, **sizes):
    with pytest.raises(error) as caught:
        plait.mask(lambda *args: args[0] * 2, *args[:1])(*args[1:], **sizes)
    return str(caught.value).splitlines()[0]


def test_errors():
    x = f64(np.ones((4, 3)))
    assert message(ValueError, "n d", x, n=5) == (
        "mask: the size n is 5, and the arrays are padded to 4"
    )
    assert message(ValueError, "n d", x, n=-1) == "mask: the size n is -1"
    assert message(ValueError, "n d", x, m=1) == "mask: there is no size named 'm' in in_shapes"
    assert message(ValueError, "n n", x, n=2) == (
        "mask: argument 0, axis 1 has size 3, where n = 4 is needed: n is 4 in argument 0, axis 0"
    )
    assert message(ValueError, "n d e", x, n=2) == (
        'mask: argument 0: the spec "n d e" has 3 dimensions, and the value has shape (4,3)'
    )
    assert message(ValueError, "n 2*", x, n=2).startswith('the spec "n 2*": at position 2, ')
    assert message(TypeError, "i32[n d]", x, n=2).startswith(
        'mask: argument 0: the spec "i32[n d]" says int32'
    )
    assert message(ValueError, "n d", x, n=np.array([1, 2])) == (
        "mask: the size n is i64[2], and should be an integer"
    )


def test_lengths_out_of_bounds_are_found_at_run_time():
    m = plait.mask(lambda x: x.sum(), "n")
    batch = np.ones((3, 4))
    ragged = plait.vmap(lambda x, n: m(x, n=n))
    for run in (ragged, plait.jit(ragged)):
        np.testing.assert_array_equal(run(batch, np.array([4, 0, 2])), [4, 0, 2])
        with pytest.raises(
            ValueError, match="the size n is 5 in example 1, and the arrays are padded to 4"
        ):
            run(batch, np.array([4, 5, 2]))


def test_one_program_serves_all_lengths():
    traces = []

    def f(x, w):
        traces.append(1)
        return mean_of_tanh(x, w)

    ragged = plait.jit(plait.vmap(plait.mask(f, ["n d", "d k"]), in_axes=(0, None)))
    for lengths in ([3, 0, 5, 1], [0, 0, 0, 0], [5, 5, 5, 5]):
        rows = [np.nan_to_num(x[:n]) for x, n in zip(BATCH, lengths)]
        batch = np.stack([padded(row, 5, 2) for row in rows])
        result = ragged(batch, W, n=np.array(lengths))
        np.testing.assert_allclose(result, [mean_of_tanh(row, W) for row in rows], rtol=1e-12)
    assert len(traces) == 1
    assert str(ragged.cache).startswith("1 trace, 2 hits")


def test_a_tree_of_specs_may_stand_for_the_one_argument():
    m = plait.mask(lambda p: p["x"].sum() + p["y"].sum(), {"x": "n", "y": "2*n"})
    x, y = f64([1, 2, np.nan]), f64([3, 4, 5, 6, np.nan, np.nan])
    assert float(m({"x": x, "y": y}, n=2)) == 21


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[::2],
        lambda x: x[::-2],
        lambda x: x.at[::2].set(0.5),
        lambda x: pnp.roll(x, -1),
        lambda x: pnp.diff(x, n=2),
        lambda x: plait.lax.cumlogsumexp(x),
        lambda x: plait.lax.cumlogsumexp(x, reverse=True),
    ],
)
def test_functions_that_look_beyond_an_end_take_any_size(function, n):
    x = RNG.normal(size=n)
    result = np.asarray(plait.mask(function, "n")(padded(x, 5), n=n))
    expected = np.asarray(function(pnp.asarray(x)))
    bound = np.asarray(function(pnp.ones(5))).shape
    np.testing.assert_allclose(result, zero_padded(expected, *bound), rtol=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_of_whichever_is_longer(mode):
    m = plait.mask(lambda x, y: pnp.convolve(x, y, mode), ["n", "m"])
    # Of the longer one less the shorter one no bound is known but that of their sum.
    bound = {"full": (7,), "same": (4,), "valid": (9,)}[mode]
    for n, k in ((1, 3), (2, 2), (4, 1), (3, 4)):
        x, y = RNG.normal(size=n), RNG.normal(size=k)
        result = np.asarray(m(padded(x, 4), padded(y, 4), n=n, m=k))
        np.testing.assert_allclose(result, zero_padded(np.convolve(x, y, mode), *bound), atol=1e-12)


def test_a_call_that_gives_no_size_is_an_error_unless_the_arrays_have_named_ones():
    total = plait.mask(lambda x: x.sum(), "n")
    x = pnp.ones(5)
    with pytest.raises(
        plait.ValueError, match="mask: the call gives no size, and in_shapes names n"
    ):
        total(x)
    with pytest.raises(plait.ValueError, match="names n, d"):
        plait.mask(lambda x: x.sum(), "n d")(pnp.ones((2, 3)))
    assert total(x, n=3).tolist() == 3
    assert plait.mask(lambda x: x.sum(), "_")(x).tolist() == 5
    assert plait.mask(lambda x: x.sum(), None)(x).tolist() == 5
    assert plait.mask(lambda x: x.sum(), "n d")(pnp.ones((2, 3)), n=1).tolist() == 3
    program = plait.make_jaxpr(lambda x: plait.mask(lambda y: y.sum(), "m")(x))("n")
    assert plait.instantiate(program, n=4)(pnp.ones(4)).tolist() == 4


# --- Declared outputs ------------------------------------------------------------------------------


def test_a_declared_output_that_equals_the_traced_one_for_sizes_is_accepted():
    x = f64([3, 1, 4, 1, 5])
    cases = [
        (lambda x: x[1:], "n-1"),
        (lambda x: pnp.diff(x), "n-1"),
        (lambda x: x[2:], "n-2"),
        (lambda x: (x[1:], x), ["n-1", "n"]),
        (lambda x: pnp.outer(x[1:], x[:-2]), "n-1 n-2"),
        (lambda x: x[: x.shape[0] - 1], "n-1"),
        (lambda x: x[1:], "max(n-1,0)"),
    ]
    for function, declared in cases:
        m = plait.mask(function, "n", declared)
        for n in (2, 4):
            for ours, numpys in zip(
                plait.tree.leaves(m(padded(x[:n], 5), n=n)), plait.tree.leaves(function(x[:n]))
            ):
                part = tuple(slice(size) for size in numpys.shape)
                np.testing.assert_allclose(np.asarray(ours)[part], numpys, rtol=1e-6)
    with pytest.raises(plait.ShapeError, match=r"shape \(n\), and out_shapes says \"n-1\""):
        plait.mask(lambda x: x, "n", "n-1")(x, n=2)
    with pytest.raises(plait.ShapeError, match=r"out_shapes says \"n-2\""):
        plait.mask(lambda x: x[1:], "n", "n-2")(x, n=2)
    with pytest.raises(plait.ShapeError, match=r"out_shapes says \"n n\""):
        plait.mask(lambda x: x, "n", "n n")(x, n=2)


def test_what_a_declared_output_needs_is_checked_at_the_call():
    x = f64([3, 1, 4, 1, 5])
    m = plait.mask(lambda x: x[1:], "n", "n-1")
    np.testing.assert_array_equal(m(padded(x[:1], 5), n=1), np.zeros(4))
    with pytest.raises(plait.ShapeError, match="needs 0 <= n-1"):
        m(padded(x[:0], 5), n=0)
    ragged = plait.vmap(lambda x, n: m(x, n=n))
    batch = np.stack([x, x])
    np.testing.assert_array_equal(ragged(batch, np.int32([1, 2])), [[0] * 4, [1, 0, 0, 0]])
    with pytest.raises(plait.ShapeError, match="example 1"):
        ragged(batch, np.int32([3, 0]))
    # Without the declaration no element of none is none.
    np.testing.assert_array_equal(plait.mask(lambda x: x[1:], "n")(padded(x[:0], 5), n=0), [0] * 4)
    # A declared constraint says the same.
    m = plait.mask(lambda x: x[2:], "n", "n-2", constraints=["n >= 2"])
    np.testing.assert_array_equal(m(padded(x[:4], 5), n=4), [4, 1, 0])
    # Of two elements np.convolve makes two of three.
    smooth = functools.partial(pnp.convolve, v=pnp.ones(3), mode="valid")
    m = plait.mask(smooth, "n", "n-2", constraints=["n >= 3"])
    np.testing.assert_allclose(m(padded(x[:4], 5), n=4)[:3], [8, 6, 0])
    with pytest.raises(plait.ShapeError, match="out_shapes says"):
        plait.mask(smooth, "n", "n-2")(padded(x[:4], 5), n=4)
    even = plait.mask(lambda x: x[: x.shape[0] // 2 * 2], "n", "n")
    np.testing.assert_array_equal(even(padded(x[:4], 5)[:4], n=4), x[:4])
    with pytest.raises(plait.ShapeError, match="n % 2 == 0"):
        even(padded(x[:3], 4), n=3)


# --- Functions of sizes ----------------------------------------------------------------------------


def test_permutations_of_named_sizes_are_those_of_numbers():
    key = plait.random.PRNGKey(3)
    x = np.arange(20.0).reshape(10, 2)
    functions = (
        lambda x: plait.random.permutation(key, x),
        lambda x: plait.random.permutation(key, x.shape[0]),
        lambda x: plait.random.permutation(key, x[:, 0]),
        lambda x: plait.random.permutation(key, x, independent=True),
        lambda x: plait.random.choice(key, x.shape[0], (3,)),
    )
    for f in functions:
        for n in (1, 5, 10):
            wanted = np.asarray(f(pnp.asarray(x[:n])))
            np.testing.assert_array_equal(plait.jit(f, sizes="n 2")(x[:n]), wanted)
            ours = np.asarray(plait.mask(f, "n 2")(padded(x[:n], 10, 2), n=n))
            np.testing.assert_array_equal(ours[: len(wanted)], wanted)
            assert not ours[len(wanted) :].any()
    # JAX's figures.
    shuffled = plait.jit(lambda x: plait.random.permutation(key, x.shape[0]), sizes="n")
    assert shuffled(np.zeros(5)).tolist() == [0, 4, 2, 1, 3]
    # Beyond 1625 elements JAX sorts twice.
    assert shuffled(np.zeros(2000))[:8].tolist() == [1883, 819, 811, 456, 1123, 377, 1813, 1511]
    ragged = plait.vmap(lambda x, n: plait.mask(functions[1], "n 2")(x, n=n), in_axes=(None, 0))
    both = ragged(np.zeros((2000, 2)), np.int32([5, 2000]))
    assert both[0, :5].tolist() == [0, 4, 2, 1, 3] and not both[0, 5:].any()
    assert both[1, :4].tolist() == [1883, 819, 811, 456]


def test_scripted_functions_take_the_length_of_a_named_size():
    @plait.script
    def total(x):
        result = 0.0
        for i in range(len(x)):
            result = result + x[i] * len(x)
        return result / max(len([1, 2]), 1)

    x = f64([1, 2, 4, 8])
    for n in (1, 3, 4):
        wanted = x[:n].sum() * n / 2
        assert float(total(x[:n])) == pytest.approx(wanted)
        assert float(plait.jit(total, sizes="n")(x[:n])) == pytest.approx(wanted)
        assert float(plait.mask(total, "n")(padded(x[:n], 4), n=n)) == pytest.approx(wanted)
    with pytest.raises(plait.TracerError, match="use x.shape"):
        plait.mask(lambda x: x.sum() / len(x), "n")(x, n=2)


def test_traced_shifts_and_counts_on_a_ragged_axis():
    x = RNG.normal(size=(5, 3))
    roll = plait.mask(lambda x, s: pnp.roll(x, (s, 1), axis=(0, 1)), ["n d", "i32[]"])
    repeat = plait.mask(
        lambda x, c: pnp.repeat(x, c, axis=0, total_repeat_length=6), ["n d", "i32[n]"]
    )
    counts = np.int32([2, 0, 3, 1, 1])
    for n in (1, 3, 5):
        for shift in (-7, 0, 2):
            ours = roll(padded(x[:n], 5, 3), np.int32(shift), n=n, d=3)
            np.testing.assert_array_equal(
                ours, zero_padded(np.roll(x[:n], (shift, 1), (0, 1)), 5, 3)
            )
        ours = repeat(padded(x[:n], 5, 3), zero_padded(counts[:n], 5).astype(np.int32), n=n)
        wanted = np.repeat(x[:n], counts[:n], axis=0)
        wanted = np.concatenate([wanted, np.repeat(x[n - 1 : n], 6, axis=0)])[:6]
        np.testing.assert_array_equal(ours, wanted)
