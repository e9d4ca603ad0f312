"""Layers of sequences: attention with a cache, and recurrent cells.

SPDX-License-Identifier: Apache-2.0
"""

from plait import lax, nn, random
from plait import numpy as pnp
from plait._plait import Array
from plait.nn import initializers
from plait.nn._layers import Linear, _batch, _dtype, _positive, _require
from plait.nn._module import Module


class KVCache(Module):
    """The keys and values [..., max_length, heads, depth] of the tokens so far, and how many there are."""

    key: Array
    value: Array
    length: Array


class MultiHeadAttention(Module):
    """Attention of x [..., t, features] to itself, or to context [..., s, features]. Vaswani et al., 2017.

    mask (bool, broadcast to [..., num_heads, t, s]) says which pairs count; with is_causal, those of which the context
    is not later. With num_kv_heads, a divisor of num_heads, several heads share keys and values. head_features is
    features / num_heads by default. There is at most one batch axis; vmap adds others.

    y, cache = attention(x, cache=cache) attends to what the cache holds and to x, and adds x to it:
    attention.init_cache(max_length) is the first one. Past max_length the result is NaN.
    """

    query: Linear
    key: Linear
    value: Linear
    output: Linear
    num_heads: int
    num_kv_heads: int

    def __init__(
        self, num_heads, features, *, key, num_kv_heads=None, head_features=None, use_bias=False, weight_init=None,
        dtype=None,
    ):  # fmt: skip
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads or num_heads
        _positive("MultiHeadAttention", num_heads=num_heads, features=features)
        if head_features is None:
            problem = f"MultiHeadAttention: {features} features for {num_heads} heads"
            _require(features % num_heads == 0, problem, "give a multiple, or head_features")
            head_features = features // num_heads
        inner, shared = num_heads * head_features, self.num_kv_heads * head_features
        options = dict(use_bias=use_bias, weight_init=weight_init, dtype=dtype)
        keys = random.split(key, 4)
        self.query = Linear(features, inner, key=keys[0], **options)
        self.key = Linear(features, shared, key=keys[1], **options)
        self.value = Linear(features, shared, key=keys[2], **options)
        self.output = Linear(inner, features, key=keys[3], **options)

    def init_cache(self, max_length, batch=(), dtype=None):
        """A cache of no tokens, for max_length of them; batch is the shape of the batch axes."""
        depth = self.key.weight.shape[-1] // self.num_kv_heads
        zeros = pnp.zeros((*_batch(batch), max_length, self.num_kv_heads, depth), _dtype(dtype))
        return KVCache(zeros, zeros, pnp.zeros((), "int32"))

    def __call__(self, x, context=None, *, mask=None, is_causal=False, cache=None):
        split = lambda y, heads: y.reshape(*y.shape[:-1], heads, y.shape[-1] // heads)  # noqa: E731
        context = x if context is None else context
        _require(
            2 <= x.ndim == context.ndim <= 3,
            f"MultiHeadAttention: {x.ndim} axes, and {context.ndim} of the context",
            "give [t, features], or [batch, t, features], and map other axes with vmap",
            "ShapeError",
        )
        query = split(self.query(x), self.num_heads)
        key = split(self.key(context), self.num_kv_heads)
        value = split(self.value(context), self.num_kv_heads)
        if cache is not None:
            problem = f"MultiHeadAttention: the cache is a {type(cache).__name__}"
            _require(isinstance(cache, KVCache), problem, "begin with init_cache(...)", "TreeError")
            new, limit = context.shape[-2], cache.key.shape[-3]
            add = lambda old, part: lax.dynamic_update_slice_in_dim(  # noqa: E731
                old, part.astype(old.dtype), cache.length, -3
            )
            cache = KVCache(add(cache.key, key), add(cache.value, value), cache.length + new)
            key, value = cache.key, cache.value
            place, ends = pnp.arange(limit), cache.length - new + 1 + pnp.arange(x.shape[-2])
            known = place < (ends[:, None] if is_causal else cache.length)
            known = pnp.broadcast_to(known, (x.shape[-2], limit))
            mask = known if mask is None else known & mask
            is_causal = False
        y = nn.dot_product_attention(query, key, value, mask=mask, is_causal=is_causal)
        y = self.output(y.reshape(*y.shape[:-2], y.shape[-2] * y.shape[-1]))
        if cache is None:
            return y
        return pnp.where(cache.length <= limit, y, pnp.nan), cache


def _recurrent(cell, in_features, hidden_features, gates, key, weight_init, dtype):
    """The weights of inputs and of hidden states, and biases of zeros, for all gates side by side."""
    _positive(type(cell).__name__, in_features=in_features, hidden_features=hidden_features)
    init, dtype = weight_init or initializers.lecun_normal(), _dtype(dtype)
    of_input, *of_hidden = random.split(key, gates + 1)
    orthogonal = initializers.orthogonal()
    square = (hidden_features, hidden_features)
    return (
        init(of_input, (in_features, gates * hidden_features), dtype),
        pnp.concatenate([orthogonal(k, square, dtype) for k in of_hidden], axis=1),
        pnp.zeros(gates * hidden_features, dtype),
    )


class GRUCell(Module):
    """One step of a gated recurrent unit: h = cell(x, h) for x [..., in_features]. Cho et al., 2014.

    r, z = sigmoid(x W + h U + b) each, n = tanh(x W_n + b_n + r (h U_n + c)), and h is (1 - z) n + z h. The weights of
    r, z and n are side by side.
    """

    weight_input: Array
    weight_hidden: Array
    bias: Array
    bias_hidden: Array

    def __init__(self, in_features, hidden_features, *, key, weight_init=None, dtype=None):
        self.weight_input, self.weight_hidden, self.bias = _recurrent(
            self, in_features, hidden_features, 3, key, weight_init, dtype
        )
        self.bias_hidden = pnp.zeros(hidden_features, self.bias.dtype)

    def init_state(self, batch=()):
        """A hidden state of zeros, [*batch, hidden_features]."""
        return pnp.zeros((*_batch(batch), *self.bias_hidden.shape), self.bias_hidden.dtype)

    def __call__(self, x, hidden):
        xr, xz, xn = pnp.split(x @ self.weight_input + self.bias, 3, axis=-1)
        hr, hz, hn = pnp.split(hidden @ self.weight_hidden, 3, axis=-1)
        n = nn.tanh(xn + nn.sigmoid(xr + hr) * (hn + self.bias_hidden))
        return n + nn.sigmoid(xz + hz) * (hidden - n)


class LSTMCell(Module):
    """One step of a long short-term memory: h, c = cell(x, (h, c)). Hochreiter and Schmidhuber, 1997.

    i, f, g, o = x W + h U + b each, c is sigmoid(f) c + sigmoid(i) tanh(g), and h is sigmoid(o) tanh(c). The weights of
    the four are side by side.
    """

    weight_input: Array
    weight_hidden: Array
    bias: Array

    def __init__(self, in_features, hidden_features, *, key, weight_init=None, dtype=None):
        self.weight_input, self.weight_hidden, self.bias = _recurrent(
            self, in_features, hidden_features, 4, key, weight_init, dtype
        )

    def init_state(self, batch=()):
        """(h, c) of zeros, [*batch, hidden_features] each."""
        zeros = pnp.zeros((*_batch(batch), self.bias.shape[-1] // 4), self.bias.dtype)
        return zeros, zeros

    def __call__(self, x, state):
        is_pair = isinstance(state, (tuple, list)) and len(state) == 2
        _require(
            is_pair, f"LSTMCell: the state is a {type(state).__name__}", "give (h, c)", "TreeError"
        )
        hidden, cell = state
        gates = x @ self.weight_input + hidden @ self.weight_hidden + self.bias
        i, f, g, o = pnp.split(gates, 4, axis=-1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * nn.tanh(g)
        return nn.sigmoid(o) * nn.tanh(cell), cell
