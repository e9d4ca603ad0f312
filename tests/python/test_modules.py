"""The smaller modules and what JAX's programs use of them: linalg, scipy, dtypes, flatten_util, debug, ufuncs, vectorize.

SPDX-License-Identifier: Apache-2.0
"""

import itertools
import subprocess
import sys

import ml_dtypes
import numpy as np
import plait
import plait.numpy as pnp
import pytest
import scipy.special
import scipy.stats
from plait import debug, dtypes, flatten_util, lax, nn, random, tree_util
from plait.nn import initializers
from plait.scipy import special
from plait.scipy.stats import norm

rng = np.random.default_rng(3)
X = rng.normal(size=(2, 3, 4))


def check(result, expected, tolerance=1e-12):
    assert isinstance(result, plait.Array)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=tolerance)


# --- Norms ---


@pytest.mark.parametrize("dtype", ["float64", "complex128", "int32"])
def test_norms(dtype):
    x = (X * 3).astype(dtype) if dtype != "complex128" else X + 1j * X[::-1]
    tolerance = 1e-6 if dtype == "int32" else 1e-12
    for keepdims in (False, True):
        check(
            pnp.linalg.norm(x, keepdims=keepdims), np.linalg.norm(x, keepdims=keepdims), tolerance
        )
        for order in (None, 0, 1, 2, 3, 2.5, np.inf, -np.inf, -1):
            if dtype == "int32" and order in (-1, -np.inf):
                continue
            for axis in (0, -1):
                expected = np.linalg.norm(x, order, axis, keepdims)
                check(pnp.linalg.norm(x, order, axis, keepdims), expected, tolerance)
            vector = np.linalg.vector_norm(
                x, axis=(0, 2), keepdims=keepdims, ord=2 if order is None else order
            )
            check(
                pnp.linalg.vector_norm(
                    x, axis=(0, 2), keepdims=keepdims, ord=2 if order is None else order
                ),
                vector,
                tolerance,
            )
        for order in (None, "fro", 1, -1, np.inf, -np.inf, 2, -2, "nuc"):
            for axes in ((1, 2), (2, 0), (-1, -2)):
                expected = np.linalg.norm(x, order, axes, keepdims)
                check(pnp.linalg.norm(x, order, axes, keepdims), expected, tolerance)
            if order is not None:
                expected = np.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
                check(pnp.linalg.matrix_norm(x, ord=order, keepdims=keepdims), expected, tolerance)
    check(pnp.linalg.norm(x[0], 1), np.linalg.norm(x[0], 1), tolerance)
    check(pnp.linalg.norm(x[0, 0], np.inf), np.linalg.norm(x[0, 0], np.inf), tolerance)


def test_norms_that_are_refused():
    for call in (lambda: pnp.linalg.norm(X[0], "fra"), lambda: pnp.linalg.norm(X, axis=(0, 0)), lambda: pnp.linalg.norm(X, 1),
                 lambda: pnp.linalg.norm(X, axis=(0, 1, 2)), lambda: pnp.linalg.norm(X[0, 0], "fro")):  # fmt: skip
        with pytest.raises(ValueError):
            call()


def test_norms_differentiate():
    gradient = plait.grad(lambda x: pnp.linalg.norm(x))(X)
    check(gradient, X / np.linalg.norm(X))


def test_rest_of_linalg():
    a, b = X[0, :, :3], X[1, :, :3]
    for n in range(-3, 5):
        check(pnp.linalg.matrix_power(a, n), np.linalg.matrix_power(a, n))
    check(pnp.linalg.matmul(a, b), a @ b)
    check(pnp.linalg.outer(a[0], b[0]), np.outer(a[0], b[0]))
    check(pnp.linalg.cross(a, b), np.linalg.cross(a, b))
    check(pnp.linalg.vecdot(a, b), np.linalg.vecdot(a, b))
    check(pnp.linalg.diagonal(X, offset=1), np.linalg.diagonal(X, offset=1))
    check(pnp.linalg.trace(X), np.linalg.trace(X))
    check(pnp.linalg.matrix_transpose(X), X.transpose(0, 2, 1))


# --- SciPy ---


@pytest.mark.parametrize("name, low, high", [("erf", -3, 3), ("erfinv", -0.9, 0.9), ("expit", -9, 9), ("logit", 0.05, 0.95),
                                             ("gammaln", 0.2, 9), ("digamma", 0.2, 9)])  # fmt: skip
def test_special_functions(name, low, high):
    x = np.linspace(low, high, 23)
    check(getattr(special, name)(x), getattr(scipy.special, name)(x), 1e-10)
    assert getattr(special, name)(np.ones(1, np.int32)).dtype == np.float32


def test_logsumexp():
    b = np.where(X > 0, -1.5, 2.0)
    for axis, keepdims in itertools.product((None, 1, (0, 2)), (False, True)):
        check(
            special.logsumexp(X, axis, keepdims=keepdims),
            scipy.special.logsumexp(X, axis, keepdims=keepdims),
        )
        expected, sign = scipy.special.logsumexp(X, axis, b, keepdims, return_sign=True)
        result, signs = special.logsumexp(X, axis, b, keepdims, return_sign=True)
        check(result, expected, 1e-9)
        check(signs, sign)
    value, sign = nn.logsumexp(np.array([-np.inf, -np.inf]), return_sign=True)
    assert value == -np.inf and sign == 0
    value, sign = nn.logsumexp(X, axis=1, return_sign=True)
    check(sign, np.ones((2, 4)))
    check(special.softmax(X), scipy.special.softmax(X))
    check(special.log_softmax(X, axis=1), scipy.special.log_softmax(X, axis=1))


def test_normal_distribution():
    loc, scale = X[:1], np.exp(X[..., :1])
    for name in ("logpdf", "pdf", "cdf"):
        expected = getattr(scipy.stats.norm, name)(X, loc, scale)
        check(getattr(norm, name)(X, loc, scale), expected, 1e-11)
        check(getattr(norm, name)(X), getattr(scipy.stats.norm, name)(X), 1e-11)
    assert norm.logpdf(np.int32(1)).dtype == np.float32
    check(plait.grad(lambda x: norm.logpdf(x, 0.5, 2.0))(1.5), -0.25, 1e-6)


# --- dtypes ---


def test_dtypes():
    assert (
        dtypes.canonicalize_dtype("float64") == np.float64 and dtypes.bfloat16 == ml_dtypes.bfloat16
    )
    assert dtypes.issubdtype(np.float32, np.floating) and not dtypes.issubdtype(
        np.float32, dtypes.prng_key
    )
    assert dtypes.issubdtype(random.key(0).dtype, dtypes.prng_key)
    assert not dtypes.issubdtype(random.PRNGKey(0).dtype, dtypes.prng_key)
    assert dtypes.issubdtype(plait.bfloat16, np.floating) and pnp.issubdtype(
        pnp.zeros(1, plait.bfloat16).dtype, pnp.inexact
    )
    assert dtypes.result_type(np.int8(1), 2.0) == np.float32
    assert dtypes.result_type(1, 2.0, return_weak_type_flag=True) == (np.float64, True)
    assert dtypes.result_type(np.ones(1, np.float32), 2.0, return_weak_type_flag=True) == (
        np.float32,
        False,
    )
    assert (
        pnp.finfo(plait.bfloat16).bits == 16
        and pnp.finfo(pnp.ones(1)).eps == np.finfo(np.float32).eps
    )
    assert (
        pnp.iinfo("int8").max == pnp.iinfo(pnp.int8).max == pnp.iinfo(np.dtype("int8")).max == 127
    )
    assert pnp.finfo(pnp.float32).eps == pnp.finfo(np.dtype("float32")).eps == 2.0**-23
    assert pnp.can_cast(pnp.int8, pnp.int32) and not pnp.can_cast(pnp.ones(1), pnp.int8)
    for wrong in (lambda: pnp.iinfo("float32"), lambda: pnp.finfo("int8")):
        with pytest.raises(ValueError):
            wrong()


# --- flatten_util and tree_util ---


def test_ravel_pytree():
    value = {
        "a": np.float32([[1, 2], [3, 4]]),
        "b": [np.int16(5), 6.5],
        "c": None,
        "d": np.zeros((0, 3), np.float32),
    }
    vector, unravel = flatten_util.ravel_pytree(value)
    assert vector.dtype == np.float32 and vector.tolist() == [1, 2, 3, 4, 5, 6.5]
    back = unravel(vector * 2)
    assert (
        back["a"].tolist() == [[2, 4], [6, 8]]
        and back["b"][0].dtype == np.int16
        and float(back["b"][1]) == 13
    )
    assert back["c"] is None and back["d"].shape == (0, 3)
    gradient = plait.grad(lambda v: unravel(v)["a"].sum() ** 2)(vector)
    assert gradient.tolist() == [20, 20, 20, 20, 0, 0]
    assert plait.vmap(lambda v: unravel(v)["a"])(pnp.stack([vector, vector])).shape == (2, 2, 2)
    assert plait.jit(lambda t: flatten_util.ravel_pytree(t)[0])(value).shape == (6,)
    empty, unravel_nothing = flatten_util.ravel_pytree({})
    assert empty.shape == (0,) and unravel_nothing(empty) == {}
    with pytest.raises(plait.ShapeError):
        unravel(vector[1:])
    with pytest.raises(plait.DtypeError):
        unravel(vector.astype(np.float64))
    with pytest.raises(plait.TreeError):
        flatten_util.ravel_pytree({"a": "text"})


def test_tree_util_with_keys():
    value = {"b": [1, (2,)], "a": 3}
    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path(value)]
    assert paths == ["['a']", "['b'][0]", "['b'][1][0]"]
    keys, _ = tree_util.tree_leaves_with_path(value)[1]
    assert keys == (tree_util.DictKey("b"), tree_util.SequenceKey(0)) and keys[1].idx == 0
    assert tree_util.tree_map_with_path(lambda path, x: len(path) * x, value) == {
        "b": [2, (6,)],
        "a": 3,
    }
    assert tree_util.tree_reduce(lambda x, y: x + y, value) == 6 and tree_util.tree_all(
        [True, (True,)]
    )


# --- debug ---


def test_debug_print_under_every_transform(capsys):
    def f(x, y):
        debug.print("x={} y={y} {}", x, "text", y=y)
        return pnp.sum(x * y)

    def lines():
        return capsys.readouterr().out.splitlines()

    x, y = np.float32([1, 2]), np.float32(3)
    f(x, y)
    assert lines() == ["x=[1. 2.] y=3.0 text"]
    jitted = plait.jit(f)
    jitted(x, y)
    jitted(x, y)
    assert lines() == ["x=[1. 2.] y=3.0 text"] * 2
    assert plait.grad(f)(x, y).tolist() == [3, 3] and lines() == ["x=[1. 2.] y=3.0 text"]
    plait.jit(plait.grad(f))(x, y)
    assert lines() == ["x=[1. 2.] y=3.0 text"]
    plait.jit(plait.vmap(f, in_axes=(0, None)))(np.float32([[1, 2], [3, 4]]), y)
    assert lines() == ["x=[1. 2.] y=3.0 text", "x=[3. 4.] y=3.0 text"]
    plait.vmap(
        plait.vmap(lambda x, y: debug.print("{} {}", x, y), in_axes=(0, None)), in_axes=(None, 0)
    )(np.arange(2), np.arange(2))
    assert lines() == ["0 0", "1 0", "0 1", "1 1"]
    masked = plait.mask(lambda x: (debug.print("{}", x), pnp.sum(x))[1], "n")
    assert float(masked(np.float32([1, 2, np.nan]), n=2)) == 3 and lines() == ["[1. 2.]"]
    plait.jit(plait.vmap(masked))(
        np.float32([[1, 2, np.nan], [5, np.nan, np.nan]]), n=np.array([2, 1])
    )
    assert lines() == ["[1. 2.]", "[5.]"]


def test_debug_callback_in_order():
    seen = []

    @plait.jit
    def f(x):
        debug.callback(lambda value, name: seen.append((name, value.tolist())), x, name="first")
        debug.callback(lambda tree: seen.append(type(tree["a"]).__name__), {"a": x + 1})
        return x * 2

    assert f(pnp.asarray(1.0)) == 2
    assert seen == [("first", 1.0), "ndarray"]
    with pytest.raises(plait.DtypeError):
        debug.callback("no function")
    with pytest.raises(plait.DtypeError):
        debug.print(3)

    def fails(value):
        raise KeyError("from the callback")

    with pytest.raises(plait.HostError):
        plait.jit(lambda x: (debug.callback(fails, x), x)[1])(1.0)
    assert f(pnp.asarray(2.0)) == 4


# --- lax: folds by a function, dimension numbers ---


@pytest.mark.parametrize("function, numpy, init", [
    (lax.add, np.add, 0.0), (lax.mul, np.multiply, 1.0), (lax.max, np.maximum, -np.inf), (lax.min, np.minimum, np.inf),
    (pnp.add, np.add, 2.0), (lambda x, y: x * y, np.multiply, 0.5), (pnp.maximum, np.maximum, 0.25), (lax.min, np.minimum, 0.0),
])  # fmt: skip
def test_reduce_and_reduce_window(function, numpy, init):
    x = X[0]
    for axes in ((0,), (1,), (0, 1), ()):
        check(
            lax.reduce(x, init, function, axes),
            numpy.reduce(x, axes, initial=init) if axes else numpy(x, init),
        )
    for window, strides, padding in (
        ((2, 2), (1, 2), ((0, 0), (0, 0))),
        ((2, 3), (1, 1), ((1, 1), (2, 0))),
    ):
        padded = np.pad(x, padding, constant_values=init)
        views = np.lib.stride_tricks.sliding_window_view(padded, window)[
            :: strides[0], :: strides[1]
        ]
        expected = numpy.reduce(views, (2, 3), initial=init)
        check(lax.reduce_window(x, init, function, window, strides, padding), expected)
        check(
            plait.jit(
                lambda x, init: lax.reduce_window(x, init, function, window, strides, padding)
            )(x, init),
            expected,
        )
    assert lax.reduce_window(x, init, function, (2, 2), (1, 1), "SAME").shape == x.shape


def test_folds_of_bools():
    x = X[0] > 0
    for function in (lax.bitwise_or, pnp.logical_or):
        assert lax.reduce(x, False, function, (0,)).tolist() == x.any(0).tolist()
        expected = np.lib.stride_tricks.sliding_window_view(x, (1, 2)).any((2, 3))
        assert lax.reduce_window(x, False, function, (1, 2), (1, 1)).tolist() == expected.tolist()
    assert lax.reduce(x, True, pnp.logical_and, (1,)).tolist() == x.all(1).tolist()
    with pytest.raises(plait.DtypeError):
        lax.reduce(X, 0.0, "add", (0,))
    with pytest.raises(plait.DtypeError):
        lax.reduce(X, np.float32(0), lax.add, (0,))
    check(
        plait.grad(lambda x: lax.reduce_window(x, -pnp.inf, lax.max, (4,), (4,)).sum())(X[0, 0]),
        X[0, 0] == X[0, 0].max(),
    )


def test_dimension_numbers():
    x, w = X[:, :, :, None], rng.normal(size=(2, 2, 1, 5))
    numbers = lax.conv_dimension_numbers(x.shape, w.shape, ("NHWC", "HWIO", "NHWC"))
    assert numbers == lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    result = lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=numbers, precision=lax.Precision.HIGHEST
    )
    words = lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    np.testing.assert_array_equal(np.asarray(result), np.asarray(words))
    assert lax.conv_dimension_numbers((1,) * 4, (1,) * 4, None).lhs_spec == (0, 1, 2, 3)
    with pytest.raises(ValueError):
        lax.conv_dimension_numbers(x.shape, w.shape, ("NHC", "HIO", "NHC"))
    gather = lax.GatherDimensionNumbers(
        offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    rows = lax.gather(
        X[0], np.array([[2], [0], [7]]), gather, (1, 4), mode=lax.GatherScatterMode.CLIP
    )
    check(rows, X[0][[2, 0, 2]])
    scatter = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    check(
        lax.scatter_add(X[0], np.array([[1]]), np.ones((1, 4)), scatter), X[0] + np.eye(3)[:, 1:2]
    )


# --- Initializers ---


def test_initializers_are_factories():
    key = random.key(1)
    shape = (3, 400, 500)
    for name, variance in {"glorot_normal": 2 / 900, "he_normal": 2 / 400, "lecun_normal": 1 / 400, "glorot_uniform": 2 / 900,
                           "he_uniform": 2 / 400, "lecun_uniform": 1 / 400}.items():  # fmt: skip
        init = getattr(initializers, name)(batch_axis=0, dtype=np.float64)
        values = np.asarray(init(key, shape))
        assert values.dtype == np.float64 and abs(values.var() / variance - 1) < 0.02, name
        turned = getattr(initializers, name)(in_axis=-1, out_axis=-2, batch_axis=0)(
            key, shape, np.float32
        )
        swapped = variance * 400 / 500 if "glorot" not in name else variance
        assert turned.dtype == np.float32 and abs(np.asarray(turned).var() / swapped - 1) < 0.02, (
            name
        )
    assert abs(np.asarray(initializers.normal(0.5)(key, (400, 400))).std() - 0.5) < 0.01
    assert np.asarray(initializers.uniform(3.0)(key, (100, 100))).max() > 2.9
    assert initializers.constant(2.5)(key, (2, 2), np.float16).tolist() == [[2.5] * 2] * 2
    assert (
        initializers.zeros(key, (2,)).tolist() == [0, 0]
        and initializers.ones(key, (2,), np.int32).dtype == np.int32
    )
    assert (
        np.abs(
            np.asarray(initializers.truncated_normal(1.0, lower=-1, upper=1)(key, (100, 100)))
        ).max()
        <= 1
    )
    scaled = initializers.variance_scaling(2.0, "fan_out", "normal")(key, (100, 1000))
    assert abs(np.asarray(scaled).var() * 500 - 1) < 0.05
    with pytest.raises(plait.ShapeError):
        initializers.he_normal()(key, (3,))
    with pytest.raises(plait.ValueError):
        initializers.variance_scaling(1.0, "fan", "normal")(key, (3, 3))


def test_orthogonal_gives_the_matrices_that_jax_gives():
    key = plait.random.key(3)
    tall = initializers.orthogonal(2.0)(key, (3, 2))
    expected = [
        [-1.7996418476104736, 0.5606727600097656],
        [0.4759695529937744, 1.9151732921600342],
        [-0.7312606573104858, -0.13325747847557068],
    ]
    np.testing.assert_allclose(tall, expected, rtol=2e-6)
    np.testing.assert_allclose(
        initializers.orthogonal(2.0)(key, (2, 3)), np.transpose(expected), rtol=2e-6
    )
    field = np.asarray(initializers.orthogonal(2.0, 1)(key, (2, 2, 3)))
    np.testing.assert_allclose(
        field[0],
        [
            [-1.2707562446594238, 0.3360898196697235, -0.5163549780845642],
            [0.8730822205543518, 1.3977559804916382, 0.06976906210184097],
        ],
        rtol=4e-6,
    )
    wide = np.asarray(initializers.orthogonal(dtype=np.float64)(key, (4, 7, 5)))
    columns = wide.reshape(28, 5)
    np.testing.assert_allclose(columns.T @ columns, np.eye(5), atol=1e-14)
    with pytest.raises(plait.ShapeError):
        initializers.orthogonal()(key, (3,))


def test_importing_plait_leaves_what_few_programs_need_for_later():
    code = "import sys, numpy; before = set(sys.modules); import plait; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"plait.scipy.stats", "plait._reads", "plait._stages", "threading", "decimal"}
    assert not late & set(run.stdout.split())
