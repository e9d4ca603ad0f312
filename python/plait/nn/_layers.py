"""Layers: modules that make their arrays from a key, and are functions of arrays.

Features and channels are the last axis; axes before those that a layer speaks of are batch axes, so a layer is applied
to one example or to many, and under vmap. What changes beside the result (running means, caches, hidden states) is an
argument and a result; what is random takes a key.

SPDX-License-Identifier: Apache-2.0
"""

import collections.abc
import functools
import inspect
import types
import typing

from plait import _plait, lax, nn, random, tree
from plait import numpy as pnp
from plait._plait import Array
from plait.nn import initializers
from plait.nn._module import Module


def _require(condition, problem, fix, error="ValueError"):
    if not condition:
        _plait.fail(error, problem, fix)


def _positive(layer, **counts):
    for name, count in counts.items():
        is_positive = isinstance(count, int) and count > 0
        _require(is_positive, f"{layer}: {name} is {count!r}", "give a positive integer")


def _dtype(dtype):
    return pnp.zeros(()).dtype if dtype is None else dtype


def _batch(shape):
    return (shape,) if isinstance(shape, int) else tuple(shape)


class Linear(Module):
    """x weight + bias over the last axis: [..., in_features] gives [..., out_features].

    weight is (in_features, out_features), from weight_init(key, shape, dtype), lecun_normal by default; bias is zeros,
    or None with use_bias=False. Other arrays may take the place of weight that have @ on their right: x @ weight.
    """

    weight: Array
    bias: Array | None

    def __init__(
        self, in_features, out_features, *, key, use_bias=True, weight_init=None, dtype=None
    ):
        _positive("Linear", in_features=in_features, out_features=out_features)
        init = weight_init or initializers.lecun_normal()
        self.weight = init(key, (in_features, out_features), _dtype(dtype))
        self.bias = pnp.zeros(out_features, _dtype(dtype)) if use_bias else None

    def __call__(self, x):
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class Conv(Module):
    """Convolution over num_spatial_dims axes: [..., *spatial, in_channels] gives [..., *spatial, out_channels].

    kernel_size, stride and dilation are integers, or one for each axis. padding is "SAME", "VALID", an integer, or a
    pair (before, after) for each axis. groups divides the channels into groups that do not mix. weight is
    (*kernel_size, in_channels / groups, out_channels).
    """

    weight: Array
    bias: Array | None
    stride: tuple[int, ...]
    padding: typing.Any = tree.static()
    dilation: tuple[int, ...]
    groups: int

    def __init__(
        self, num_spatial_dims, in_channels, out_channels, kernel_size, stride=1, padding="SAME", dilation=1,
        groups=1, *, key, use_bias=True, weight_init=None, dtype=None,
    ):  # fmt: skip
        n = num_spatial_dims
        _positive("Conv", in_channels=in_channels, out_channels=out_channels, groups=groups)
        _require(n in (1, 2, 3), f"Conv: num_spatial_dims is {n!r}", "choose 1, 2 or 3")
        fits = not (in_channels % groups or out_channels % groups)
        channels = f"{in_channels} and {out_channels} channels"
        _require(fits, f"Conv: {groups} groups of {channels}", "give groups that divide both")

        def each(name, value):
            sizes = (value,) * n if isinstance(value, int) else tuple(value)
            _require(len(sizes) == n, f"Conv: {name} is {value!r}", f"give an integer, or {n}")
            return sizes

        def positive(name, value):
            for size in each(name, value):
                _positive("Conv", **{name: size})
            return each(name, value)

        self.stride, self.dilation = positive("stride", stride), positive("dilation", dilation)
        self.groups = groups
        if isinstance(padding, str):
            is_known = padding.upper() in ("SAME", "VALID", "SAME_LOWER")
            _require(is_known, f"Conv: padding is {padding!r}", "choose 'SAME' or 'VALID'")
            self.padding = padding
        else:
            pairs = each("padding", padding)
            self.padding = tuple((p, p) if isinstance(p, int) else tuple(p) for p in pairs)
        shape = (*positive("kernel_size", kernel_size), in_channels // groups, out_channels)
        self.weight = (weight_init or initializers.lecun_normal())(key, shape, _dtype(dtype))
        self.bias = pnp.zeros(out_channels, _dtype(dtype)) if use_bias else None

    def __call__(self, x):
        n = len(self.stride)
        problem = f"Conv: an array of {x.ndim} axes for {n} spatial ones and the channels"
        _require(x.ndim > n, problem, "give [..., *spatial, channels]", "ShapeError")
        batch, rest = x.shape[: -n - 1], x.shape[-n - 1 :]
        spatial = "DHW"[3 - n :]
        y = lax.conv_general_dilated(
            x if len(batch) == 1 else x.reshape(-1, *rest) if batch else x[None],
            self.weight,
            self.stride,
            self.padding,
            rhs_dilation=self.dilation,
            dimension_numbers=(f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"),
            feature_group_count=self.groups,
        )
        y = y.reshape(*batch, *y.shape[1:]) if len(batch) != 1 else y
        return y if self.bias is None else y + self.bias


Conv1d, Conv2d, Conv3d = (functools.partial(Conv, n) for n in (1, 2, 3))


class LayerNorm(Module):
    """x standardized over the last axis, times scale, plus bias. Ba et al., 2016."""

    scale: Array | None
    bias: Array | None
    epsilon: float

    def __init__(self, features, *, epsilon=1e-5, use_scale=True, use_bias=True, dtype=None):
        self.scale = pnp.ones(features, _dtype(dtype)) if use_scale else None
        self.bias = pnp.zeros(features, _dtype(dtype)) if use_bias else None
        self.epsilon = epsilon

    def __call__(self, x):
        return nn.layer_norm(x, self.scale, self.bias, epsilon=self.epsilon)


class RMSNorm(Module):
    """x over the root of its mean square over the last axis, times scale. Zhang and Sennrich, 2019."""

    scale: Array
    epsilon: float

    def __init__(self, features, *, epsilon=1e-5, dtype=None):
        self.scale, self.epsilon = pnp.ones(features, _dtype(dtype)), epsilon

    def __call__(self, x):
        return nn.rms_norm(x, self.scale, epsilon=self.epsilon)


class GroupNorm(Module):
    """[..., *spatial, channels], standardized over the spatial axes and each of num_groups groups of channels.

    The last num_spatial_dims axes before the channels are spatial. Then times scale, plus bias. Wu and He, 2018.
    """

    scale: Array
    bias: Array
    num_groups: int
    num_spatial_dims: int
    epsilon: float

    def __init__(self, num_groups, channels, num_spatial_dims=2, *, epsilon=1e-5, dtype=None):
        _positive("GroupNorm", num_groups=num_groups, channels=channels)
        problem = f"GroupNorm: {num_groups} groups of {channels} channels"
        _require(channels % num_groups == 0, problem, "give a divisor of the channels")
        self.scale, self.bias = (
            pnp.ones(channels, _dtype(dtype)),
            pnp.zeros(channels, _dtype(dtype)),
        )
        self.num_groups, self.num_spatial_dims, self.epsilon = num_groups, num_spatial_dims, epsilon

    def __call__(self, x):
        grouped = x.reshape(*x.shape[:-1], self.num_groups, x.shape[-1] // self.num_groups)
        axes = (-1, *range(-2 - self.num_spatial_dims, -2))
        y = nn.standardize(grouped, axes, self.epsilon).reshape(x.shape)
        return y * self.scale + self.bias


class BatchNormState(typing.NamedTuple):
    """The running mean and variance of each channel."""

    mean: Array
    var: Array


class BatchNorm(Module):
    """[..., channels], standardized by the mean and variance of each channel. Ioffe and Szegedy, 2015.

    y, state = norm(x, state, training=True) takes them of x, over all axes but the last, and moves the running ones
    towards them: momentum * old + (1 - momentum) * new. training=False takes the running ones. norm.init_state() is the
    first state. axis_name names axes of vmap over which means are taken too.
    """

    scale: Array
    bias: Array
    momentum: float
    epsilon: float
    axis_name: typing.Any = tree.static()

    def __init__(self, channels, *, momentum=0.9, epsilon=1e-5, axis_name=None, dtype=None):
        self.scale, self.bias = (
            pnp.ones(channels, _dtype(dtype)),
            pnp.zeros(channels, _dtype(dtype)),
        )
        self.momentum, self.epsilon, self.axis_name = momentum, epsilon, axis_name

    def init_state(self):
        """A mean of zeros and a variance of ones."""
        return BatchNormState(pnp.zeros_like(self.bias), pnp.ones_like(self.scale))

    def __call__(self, x, state, *, training):
        is_pair = isinstance(state, tuple) and len(state) == 2
        problem = f"BatchNorm: the state is a {type(state).__name__}"
        _require(is_pair, problem, "begin with norm.init_state()", "TreeError")
        mean, var = state
        if training:
            axes = tuple(range(x.ndim - 1))
            mean = x.mean(axis=axes)
            if self.axis_name is not None:
                mean = lax.pmean(mean, self.axis_name)
            var = pnp.square(x - mean).mean(axis=axes)
            if self.axis_name is not None:
                var = lax.pmean(var, self.axis_name)
            moved = [
                self.momentum * old + (1 - self.momentum) * lax.stop_gradient(new).astype(old.dtype)
                for old, new in zip(state, (mean, var))
            ]
            state = BatchNormState(*moved)
        y = (x - mean) * (self.scale * lax.rsqrt(var + self.epsilon)) + self.bias
        return y.astype(x.dtype), state


class Embedding(Module):
    """A vector for each of num_embeddings integers: [...] gives [..., features].

    attend(x) gives the products of x [..., features] with all vectors, the logits of tied embeddings.
    """

    weight: Array

    def __init__(self, num_embeddings, features, *, key, weight_init=None, dtype=None):
        _positive("Embedding", num_embeddings=num_embeddings, features=features)
        init = weight_init or initializers.normal(1.0)
        self.weight = init(key, (num_embeddings, features), _dtype(dtype))

    def __call__(self, x):
        return self.weight[x]

    def attend(self, x):
        """x [..., features] times every vector: [..., num_embeddings]."""
        return x @ self.weight.T


class Dropout(Module):
    """Each element zero with probability rate, and else divided by 1 - rate. Srivastava et al., 2014.

    dropout(x, key=key) in training; dropout(x, key=None) is x.
    """

    rate: float

    def __init__(self, rate=0.5):
        is_rate = isinstance(rate, (int, float)) and 0 <= rate < 1
        _require(is_rate, f"Dropout: rate is {rate!r}", "give a probability below 1")
        self.rate = rate

    def __call__(self, x, *, key):
        if key is None or self.rate == 0:
            return x
        kept = random.bernoulli(key, 1 - self.rate, x.shape)
        return pnp.where(kept, x / (1 - self.rate), 0)


class Lambda(Module):
    """A function as a module, part of the structure."""

    function: collections.abc.Callable

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


@functools.cache
def _takes_key(kind):
    parameter = inspect.signature(kind.__call__).parameters.get("key")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


class Sequential(Module):
    """Layers, each applied to the result of the one before; functions become Lambdas.

    Where layers take keys, such as Dropout, the call takes one, from which each has its own: model(x, key=key), or
    key=None for inference.
    """

    layers: tuple[Module, ...]

    def __init__(self, layers):
        _require(
            isinstance(layers, collections.abc.Iterable) and not callable(layers),
            f"Sequential: the layers are a {type(layers).__name__}",
            "give a list of them: nn.Sequential([first, second])",
            "DtypeError",
        )
        self.layers = tuple(
            Lambda(layer) if isinstance(layer, (types.FunctionType, _plait.builtin)) else layer
            for layer in layers
        )

    def __call__(self, x, *, key=...):
        for number, layer in enumerate(self.layers):
            if not _takes_key(type(layer)):
                x = layer(x)
                continue
            _require(
                key is not ... or isinstance(layer, Sequential),
                f"Sequential: layer {number}, {type(layer).__name__}, takes a key",
                "call it with key=..., or with key=None for inference",
            )
            x = layer(
                x, key=random.fold_in(key, number) if key is not None and key is not ... else key
            )
        return x

    def __getitem__(self, index):
        return Sequential(self.layers[index]) if isinstance(index, slice) else self.layers[index]

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self.layers)


class MLP(Module):
    """depth hidden layers of the given width with an activation after each, and a linear layer: [..., in_features] gives [..., out_features]."""

    layers: tuple[Linear, ...]
    activation: collections.abc.Callable
    final_activation: collections.abc.Callable

    def __init__(
        self, in_features, out_features, width, depth, activation=nn.relu, final_activation=nn.identity, *,
        key, use_bias=True, weight_init=None, dtype=None,
    ):  # fmt: skip
        fits = isinstance(depth, int) and depth >= 0
        _require(fits, f"MLP: depth is {depth!r}", "give a count >= 0 of hidden layers")
        sizes = [in_features, *[width] * depth, out_features]
        keys = random.split(key, depth + 1)
        options = dict(use_bias=use_bias, weight_init=weight_init, dtype=dtype)
        self.layers = tuple(
            Linear(m, n, key=k, **options) for m, n, k in zip(sizes, sizes[1:], keys)
        )
        self.activation, self.final_activation = activation, final_activation

    def __call__(self, x):
        *hidden, last = self.layers
        for layer in hidden:
            x = self.activation(layer(x))
        return self.final_activation(last(x))
