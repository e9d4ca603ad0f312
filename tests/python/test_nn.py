"""plait.nn: values against NumPy, derivatives, stability, composites.

SPDX-License-Identifier: Apache-2.0
"""

import math

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import grad, jit, nn, vmap

pytestmark = pytest.mark.isa

rng = np.random.default_rng(3)
X = rng.normal(size=(5, 4)) * 3


def check(result, expected, tolerance=1e-12):
    result = np.asarray(result)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf)(x)


REFERENCES = {
    "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)), "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "sigmoid": sigmoid, "log_sigmoid": lambda x: -np.log1p(np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
    "silu": lambda x: x * sigmoid(x), "swish": lambda x: x * sigmoid(x), "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "tanh": np.tanh, "hard_tanh": lambda x: np.clip(x, -1, 1), "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6, "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "soft_sign": lambda x: x / (1 + np.abs(x)), "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2, "identity": lambda x: x,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}  # fmt: skip


@pytest.mark.parametrize("name", REFERENCES)
def test_activations(name):
    function = getattr(nn, name)
    check(function(X), REFERENCES[name](X))
    check(jit(function)(X), REFERENCES[name](X))
    check(vmap(function)(X), REFERENCES[name](X))
    for dtype, tolerance in (("float32", 2e-6), ("float16", 4e-3)):
        x = X.astype(dtype)
        assert function(x).dtype == np.dtype(dtype)
        check(function(x), REFERENCES[name](x.astype(np.float64)), tolerance)
    h = 1e-6
    x = X[np.abs(X - np.round(X)) > 1e-3]  # away from corners
    slope = (REFERENCES[name](x + h) - REFERENCES[name](x - h)) / (2 * h)
    check(grad(lambda a: pnp.sum(function(a)))(x), slope, 1e-7)


@pytest.mark.parametrize("name", REFERENCES)
def test_activations_of_special_values_have_finite_slopes(name):
    function = getattr(nn, name)
    x = np.array([-1e4, -100.0, 0.0, 100.0, 1e4])
    slopes = np.asarray(grad(lambda a: pnp.sum(function(a)))(x))
    assert np.isfinite(slopes).all()
    assert np.isnan(np.asarray(function(np.array([np.nan, 1.0]))))[0]


def test_gelu_exact_glu_one_hot():
    check(nn.gelu(X, approximate=False), X * 0.5 * (1 + erf(X / math.sqrt(2))))
    check(nn.glu(X), X[:, :2] * sigmoid(X[:, 2:]))
    check(nn.one_hot(np.array([0, 2, 5, -1]), 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    check(nn.one_hot(np.array([[1]]), 2, axis=0, dtype="int32"), [[[0]], [[1]]])
    with pytest.raises(ValueError):
        nn.glu(X[:, :3])


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("axis", [-1, 0, (0, 1), None])
def test_softmax_and_its_kin(axis):
    axes = (0, 1) if axis is None else axis
    check(nn.softmax(X, axis), softmax(X, axes))
    check(nn.log_softmax(X, axis), np.log(softmax(X, axes)))
    total = np.log(np.sum(np.exp(X), axis=axes))
    check(nn.logsumexp(X, axis), total)
    check(nn.logsumexp(X, axis, keepdims=True), np.log(np.sum(np.exp(X), axis=axes, keepdims=True)))
    check(nn.logmeanexp(X, axis), np.log(np.mean(np.exp(X), axis=axes)))
    weights = np.abs(rng.normal(size=X.shape))
    check(nn.logsumexp(X, axis, b=weights), np.log(np.sum(weights * np.exp(X), axis=axes)))
    mask = X > -2
    check(nn.softmax(X, axis, where=mask), softmax(np.where(mask, X, -np.inf), axes))
    check(nn.logsumexp(X, axis, where=mask), np.log(np.sum(np.exp(X) * mask, axis=axes)))


def test_softmax_is_stable():
    x = np.array([1e4, 1e4 + 1, -1e4, -np.inf])
    check(nn.softmax(x), [1 / (1 + math.e), math.e / (1 + math.e), 0, 0])
    check(nn.logsumexp(np.array([-np.inf, -np.inf])), -np.inf)
    check(grad(lambda a: nn.logsumexp(a))(np.array([-np.inf, -np.inf])), [0, 0])
    check(grad(lambda a: nn.logsumexp(a))(x), softmax(x))
    check(grad(lambda a: nn.log_softmax(a)[0])(x), np.array([1, 0, 0, 0]) - softmax(x))
    assert np.isnan(np.asarray(nn.softmax(np.array([np.nan, 1.0])))).all()
    assert nn.softmax(x.astype(np.float16)).dtype == np.float16
    masked = nn.softmax(X[0], where=np.zeros(4, bool))
    check(masked, np.zeros(4))


def test_derivatives_of_softmax():
    y = softmax(X[0])
    jacobian = np.diag(y) - np.outer(y, y)
    check(plait.jacrev(nn.softmax)(X[0]), jacobian)
    check(plait.jacfwd(nn.softmax)(X[0]), jacobian)
    check(plait.hessian(nn.logsumexp)(X[0]), jacobian)
    mask = np.array([True, False, True, True])
    jac = np.asarray(plait.jacrev(lambda a: nn.softmax(a, where=mask))(X[0]))
    y = softmax(np.where(mask, X[0], -np.inf))
    check(jac, np.diag(y) - np.outer(y, y))


def test_normalisation():
    mean, var = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    expected = (X - mean) / np.sqrt(var + 1e-5)
    scale, bias = rng.normal(size=4), rng.normal(size=4)
    check(nn.layer_norm(X), expected)
    check(nn.layer_norm(X, scale), expected * scale)
    check(nn.layer_norm(X, scale, bias), expected * scale + bias)
    check(nn.layer_norm(X, None, bias, epsilon=1e-5), expected + bias)
    check(nn.standardize(X), expected)
    check(nn.standardize(X, (0, 1)), (X - X.mean()) / np.sqrt(X.var() + 1e-5))
    check(nn.layer_norm(X, axis=0), ((X - X.mean(0)) / np.sqrt(X.var(0) + 1e-5)))
    check(nn.rms_norm(X, scale), X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-5) * scale)
    check(vmap(nn.layer_norm, in_axes=(0, None, None))(X, scale, bias), expected * scale + bias)
    with pytest.raises(ValueError, match="size 4"):
        nn.layer_norm(X, np.ones(3))


def attention(q, k, v, mask=None, scale=None):
    scores = np.einsum("...td,...sd->...ts", q, k) * (
        scale if scale is not None else 1 / math.sqrt(q.shape[-1])
    )
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    return np.einsum("...ts,...se->...te", softmax(scores), v)


def test_attention():
    q, k, v = (
        rng.normal(size=(2, 3, 5, 4)),
        rng.normal(size=(2, 3, 6, 4)),
        rng.normal(size=(2, 3, 6, 7)),
    )
    check(nn.attention(q, k, v), attention(q, k, v))
    mask = rng.random((5, 6)) > 0.3
    mask[:, 0] = True
    check(nn.attention(q, k, v, mask, scale=0.7), attention(q, k, v, mask, 0.7))
    check(jit(nn.attention)(q, k, v, mask), attention(q, k, v, mask))
    check(vmap(nn.attention)(q, k, v), attention(q, k, v))
    assert np.isfinite(
        np.asarray(grad(lambda a: pnp.sum(nn.attention(a, k, v, np.zeros((5, 6), bool))))(q))
    ).all()
    with pytest.raises(ValueError, match="equal leading axes"):
        nn.attention(q, k[0], v)


@pytest.mark.parametrize("groups", [4, 2, 1])
def test_dot_product_attention(groups):
    q, k, v = (
        rng.normal(size=(2, 5, 4, 3)),
        rng.normal(size=(2, 6, groups, 3)),
        rng.normal(size=(2, 6, groups, 3)),
    )
    keys, values = (np.repeat(a, 4 // groups, 2).transpose(0, 2, 1, 3) for a in (k, v))
    queries = q.transpose(0, 2, 1, 3)
    check(nn.dot_product_attention(q, k, v), attention(queries, keys, values).transpose(0, 2, 1, 3))
    check(
        nn.dot_product_attention(q[0], k[0], v[0]),
        attention(queries, keys, values).transpose(0, 2, 1, 3)[0],
    )
    causal = np.tril(np.ones((5, 6), bool))
    check(
        nn.dot_product_attention(q, k, v, is_causal=True),
        attention(queries, keys, values, causal).transpose(0, 2, 1, 3),
    )
    mask = rng.random((2, 1, 5, 6)) > 0.2
    mask[..., 0] = True
    check(
        nn.dot_product_attention(q, k, v, mask=mask),
        attention(queries, keys, values, mask).transpose(0, 2, 1, 3),
    )
    bias = rng.normal(size=(5, 6))
    scores = np.einsum("bntd,bnsd->bnts", queries, keys) / math.sqrt(3) + bias
    check(
        nn.dot_product_attention(q, k, v, bias),
        np.einsum("bnts,bnse->btne", softmax(scores), values),
    )


def test_composites_keep_their_symbols():
    text = str(plait.make_jaxpr(lambda x: nn.softmax(x))(X))
    assert "symbol='softmax'" in text and "axes=(-1)" in text
    text = str(plait.make_jaxpr(vmap(nn.softmax))(X))
    assert "symbol='softmax'" in text
    text = str(plait.make_jaxpr(grad(lambda x: pnp.sum(nn.softmax(x) ** 2)))(X))
    assert "softmax.fwd" in text and "softmax.lin" in text


@pytest.mark.parametrize(
    "function",
    [
        nn.softmax,
        nn.log_softmax,
        nn.logsumexp,
        nn.silu,
        nn.gelu,
        nn.layer_norm,
        nn.relu,
        nn.sigmoid,
        pnp.mean,
        pnp.var,
    ],
)
def test_transforms_of_composites_compose(function):
    def f(x):
        return pnp.sum(pnp.sin(function(x)))

    rows = [np.asarray(grad(f)(row)) for row in X]
    check(vmap(grad(f))(X), np.stack(rows))
    check(jit(vmap(grad(f)))(X), np.stack(rows))
    check(grad(lambda x: pnp.sum(vmap(f)(x)))(X), np.stack(rows))
    hessians = [np.asarray(plait.hessian(f)(row)) for row in X[:2]]
    check(vmap(plait.hessian(f))(X[:2]), np.stack(hessians), 1e-11)


def test_named_sizes():
    def f(x):
        return nn.softmax(x, 0), pnp.mean(x, 0), nn.layer_norm(x, axis=0)

    masked = plait.mask(f, ["n d"])
    x = X.astype(np.float32)
    padded = np.full((7, 4), np.nan, np.float32)
    padded[:5] = x
    for result, expected in zip(masked(padded, n=5), f(x), strict=True):
        result = np.asarray(result)
        check(result[:5] if result.ndim == 2 else result, np.asarray(expected), 1e-6)


def pooled(x, window, strides, padding, combine):
    """Windows of the last axes but one, by loops."""
    x = np.pad(x, [(0, 0), *padding, (0, 0)], constant_values=np.nan)
    counts = [(size - w) // s + 1 for size, w, s in zip(x.shape[1:-1], window, strides)]
    out = np.empty((x.shape[0], *counts, x.shape[-1]), x.dtype)
    for i in range(counts[0]):
        for j in range(counts[1]):
            rows, columns = i * strides[0], j * strides[1]
            part = x[:, rows : rows + window[0], columns : columns + window[1]]
            out[:, i, j] = combine(part, (1, 2))
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("padding", [((0, 0), (0, 0)), ((1, 0), (0, 1))])
def test_pools_are_loops_over_windows(dtype, padding):
    x = np.random.default_rng(3).normal(size=(2, 7, 6, 3)).astype(dtype)
    window, strides = (3, 2), (2, 1)
    zeros = lambda part, axis: np.nansum(part.astype(np.float64), axis) / 6  # noqa: E731
    means = lambda part, axis: np.nanmean(part.astype(np.float64), axis)  # noqa: E731
    cases = [
        (nn.avg_pool(x, window, strides, padding), zeros),
        (nn.avg_pool(x, window, strides, padding, count_include_pad=False), means),
        (nn.max_pool(x, window, strides, padding), np.nanmax),
        (nn.min_pool(x, window, strides, padding), np.nanmin),
    ]
    for ours, combine in cases:
        assert ours.dtype == dtype
        expected = pooled(x, window, strides, padding, combine)
        np.testing.assert_allclose(ours, expected, rtol=2e-3 if dtype == np.float16 else 1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_attention_of_16_bit_floats_is_differentiated(dtype):
    rng = np.random.default_rng(4)
    q, k, v = [rng.normal(size=(2, 5, 2, 8)) for _ in range(3)]

    def f(q, k, v):
        return pnp.sum(nn.dot_product_attention(q, k, v).astype("float32") ** 2)

    narrow = [pnp.asarray(x).astype(dtype) for x in (q, k, v)]
    wanted = plait.grad(f, argnums=(0, 1, 2))(*[x.astype("float64") for x in narrow])
    for of_narrow, of_wide in zip(plait.grad(f, argnums=(0, 1, 2))(*narrow), wanted):
        assert of_narrow.dtype == narrow[0].dtype
        np.testing.assert_allclose(of_narrow.astype("float64"), of_wide, rtol=0.1, atol=0.05)
