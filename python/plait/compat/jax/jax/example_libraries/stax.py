"""jax.example_libraries.stax: layers as pairs (init_fun(key, input_shape), apply_fun(params, inputs)).

SPDX-License-Identifier: Apache-2.0
"""

import functools

import plait.nn as nn
import plait.numpy as np
from plait.nn.initializers import glorot_normal, normal

from jax import _doors, lax, random


def Dense(out_dim, W_init=glorot_normal(), b_init=normal()):
    """A linear layer."""

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        return (*input_shape[:-1], out_dim), (
            W_init(k1, (input_shape[-1], out_dim)),
            b_init(k2, (out_dim,)),
        )

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return np.dot(inputs, W) + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers,
    out_chan,
    filter_shape,
    strides=None,
    padding="VALID",
    W_init=None,
    b_init=normal(1e-6),
):
    """A convolution whose layouts are named by dimension_numbers, such as ("NHWC", "HWIO", "NHWC")."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = strides or (1,) * len(filter_shape)
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init_fun(rng, input_shape):
        window = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel_shape = [channels[c] if c in channels else next(window) for c in rhs_spec]
        k1, k2 = random.split(rng)
        W, b = W_init(k1, kernel_shape), b_init(k2, [out_chan if c == "C" else 1 for c in out_spec])
        inputs = _shaped((1, *input_shape[1:]) if input_shape[0] == -1 else input_shape)
        output = _eval_shape(apply_fun, (W, b), inputs).shape
        return (input_shape[0], *output[1:]), (W, b)

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return (
            lax.conv_general_dilated(
                inputs, W, strides, padding, dimension_numbers=dimension_numbers
            )
            + b
        )

    return init_fun, apply_fun


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def _shaped(shape):
    import plait

    return plait.ShapeDtypeStruct(tuple(shape), "float32")


def _eval_shape(*args):
    import plait

    return plait.eval_shape(*args)


def BatchNorm(axis=(0, 1, 2), epsilon=1e-5, center=True, scale=True):
    """Normalisation over a batch."""
    axis = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple(size for i, size in enumerate(input_shape) if i not in axis)
        return input_shape, (np.zeros(shape) if center else (), np.ones(shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        beta, gamma = params
        broadcast = tuple(None if i in axis else slice(None) for i in range(np.ndim(x)))
        x = (x - np.mean(x, axis, keepdims=True)) / np.sqrt(
            np.var(x, axis, keepdims=True) + epsilon
        )
        x = x * gamma[broadcast] if scale else x
        return x + beta[broadcast] if center else x

    return init_fun, apply_fun


def elementwise(fun, **fun_kwargs):
    """A layer that applies a function to every element."""
    return lambda rng, input_shape: (input_shape, ()), lambda params, inputs, **kwargs: fun(
        inputs, **fun_kwargs
    )


Tanh, Relu, Exp = elementwise(np.tanh), elementwise(nn.relu), elementwise(np.exp)
LogSoftmax, Softmax = elementwise(nn.log_softmax, axis=-1), elementwise(nn.softmax, axis=-1)
Softplus, Sigmoid, Elu = elementwise(nn.softplus), elementwise(nn.sigmoid), elementwise(nn.elu)
LeakyRelu, Selu, Gelu = elementwise(nn.leaky_relu), elementwise(nn.selu), elementwise(nn.gelu)
Identity = elementwise(lambda x: x)


def _pooling(reducer, init_val, rescale):
    def Pooling(window_shape, strides=None, padding="VALID", spec=None):
        strides = strides or (1,) * len(window_shape)
        spec = spec or "NHWC"
        whole = [1 if c in "NC" else None for c in spec]

        def dims(sizes):
            given = iter(sizes)
            return tuple(next(given) if size is None else size for size in whole)

        def apply_fun(params, inputs, **kwargs):
            window, steps = dims(window_shape), dims(strides)
            out = lax.reduce_window(inputs, init_val, reducer, window, steps, padding)
            if not rescale:
                return out
            return out / lax.reduce_window(
                np.ones_like(inputs), 0.0, lax.add, window, steps, padding
            )

        def init_fun(rng, input_shape):
            return tuple(_eval_shape(apply_fun, (), _shaped(input_shape)).shape), ()

        return init_fun, apply_fun

    return Pooling


MaxPool, SumPool = _pooling(lax.max, -np.inf, False), _pooling(lax.add, 0.0, False)
AvgPool = _pooling(lax.add, 0.0, True)


def _flatten_init(rng, input_shape):
    size = functools.reduce(lambda a, b: a * b, input_shape[1:], 1)
    return (input_shape[0], size), ()


Flatten = (
    _flatten_init,
    lambda params, inputs, **kwargs: np.reshape(inputs, (inputs.shape[0], -1)),
)


def FanOut(num):
    """Copies of the input."""
    return lambda rng, shape: ([shape] * num, ()), lambda params, inputs, **kwargs: [inputs] * num


FanInSum = (lambda rng, shapes: (shapes[0], ()), lambda params, inputs, **kwargs: sum(inputs))


def FanInConcat(axis=-1):
    """Inputs joined along an axis."""

    def init_fun(rng, input_shape):
        shape = list(input_shape[0])
        shape[axis] = sum(each[axis] for each in input_shape)
        return tuple(shape), ()

    return init_fun, lambda params, inputs, **kwargs: np.concatenate(inputs, axis)


def Dropout(rate, mode="train"):
    """Keeps elements with probability rate, in training."""

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout layer requires apply_fun to be called with a PRNG key argument: apply_fun(params, inputs, rng)"
            )
        keep = random.bernoulli(rng, rate, inputs.shape)
        return np.where(keep, inputs / rate, 0) if mode == "train" else inputs

    return lambda rng, input_shape: (input_shape, ()), apply_fun


def serial(*layers):
    """Layers one after the other."""
    inits, applies = zip(*layers)

    def init_fun(rng, input_shape):
        params = []
        for init in inits:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.pop("rng", None)
        keys = random.split(rng, len(layers)) if rng is not None else [None] * len(layers)
        for apply, param, key in zip(applies, params, keys):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers):
    """Layers beside each other, on a list of inputs."""
    inits, applies = zip(*layers)

    def init_fun(rng, input_shape):
        keys = random.split(rng, len(layers))
        return tuple(zip(*[init(key, shape) for init, key, shape in zip(inits, keys, input_shape)]))

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.pop("rng", None)
        keys = random.split(rng, len(layers)) if rng is not None else [None] * len(layers)
        return [f(p, x, rng=key, **kwargs) for f, p, x, key in zip(applies, params, inputs, keys)]

    return init_fun, apply_fun


def shape_dependent(make_layer):
    """A layer that make_layer gives for the shape of its input."""
    return (
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(inputs.shape)[1](params, inputs, **kwargs),
    )


__getattr__ = _doors.lacking(__name__)
