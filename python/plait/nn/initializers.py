"""Arrays to start a network from: functions of (key, shape, dtype), and JAX's factories of them.

>>> from plait.nn import initializers
>>> initializers.glorot_uniform()(plait.random.key(0), (3, 4)).shape
(3, 4)

The numbers are made by the catalogue's C++ functions, which take the factories' arguments behind
(key, shape, dtype).

SPDX-License-Identifier: Apache-2.0
"""

from plait import _names
from plait import _plait

_functions = _plait.catalogue("nn.initializers")

zeros, ones = _functions["zeros"], _functions["ones"]


def _initializer(name, dtype, **options):
    function = _functions[name]

    def init(key, shape, dtype=dtype):
        return function(key, shape, dtype, **options)

    init.__name__ = init.__qualname__ = name
    init.__doc__ = f"An array of this shape by {name}, in dtype (default: float32)."
    return init


def constant(value, dtype=None):
    """An initializer that gives value everywhere. Its key is not used."""
    return _initializer("constant", dtype, value=value)


def uniform(scale=1e-2, dtype=None):
    """An initializer of numbers evenly distributed in [0, scale)."""
    return _initializer("uniform", dtype, scale=scale)


def normal(stddev=1e-2, dtype=None):
    """An initializer of normal numbers with mean 0 and this deviation."""
    return _initializer("normal", dtype, stddev=stddev)


def truncated_normal(stddev=1e-2, dtype=None, lower=-2.0, upper=2.0):
    """An initializer of normal numbers between lower and upper, times stddev."""
    return _initializer("truncated_normal", dtype, stddev=stddev, lower=lower, upper=upper)


def variance_scaling(scale, mode, distribution, in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
    """An initializer of numbers of variance scale / n.

    n counts inputs (mode "fan_in"), outputs ("fan_out") or is their mean ("fan_avg", "fan_geo_avg"): in_axis holds
    inputs, out_axis outputs, batch_axis networks, and other axes are a receptive field. distribution is
    "truncated_normal", "normal" or "uniform"; a complex dtype has them in the plane. ShapeError when the shape has
    not got the axes that are named.
    """
    return _initializer(
        "variance_scaling", dtype, scale=scale, mode=mode, distribution=distribution,
        in_axis=in_axis, out_axis=out_axis, batch_axis=batch_axis,
    )  # fmt: skip


def _fan(name, doc):
    def factory(in_axis=-2, out_axis=-1, batch_axis=(), dtype=None):
        return _initializer(name, dtype, in_axis=in_axis, out_axis=out_axis, batch_axis=batch_axis)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = doc
    return factory


glorot_uniform = _fan(
    "glorot_uniform", "variance_scaling(1, fan_avg, uniform). Glorot and Bengio, 2010."
)
glorot_normal = _fan(
    "glorot_normal", "variance_scaling(1, fan_avg, truncated_normal). Glorot and Bengio, 2010."
)
he_uniform = _fan("he_uniform", "variance_scaling(2, fan_in, uniform). He et al., 2015.")
he_normal = _fan("he_normal", "variance_scaling(2, fan_in, truncated_normal). He et al., 2015.")
lecun_uniform = _fan("lecun_uniform", "variance_scaling(1, fan_in, uniform). LeCun et al., 1998.")
lecun_normal = _fan(
    "lecun_normal", "variance_scaling(1, fan_in, truncated_normal). LeCun et al., 1998."
)
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """An initializer of matrices with orthogonal columns of length scale.

    column_axis counts columns, all other axes rows; where there are more columns than rows, the rows are
    orthogonal. ShapeError when the shape has fewer than two axes. Saxe et al., 2013.
    """
    return _initializer("orthogonal", dtype, scale=scale, column_axis=column_axis)


def delta_orthogonal(scale=1.0, column_axis=-1, dtype=None):
    """An initializer of convolution kernels (spatial ..., inputs, outputs): orthogonal at the center, 0 elsewhere.

    ShapeError unless there are one to three spatial axes and no fewer outputs than inputs. Xiao et al., 2018.
    """
    return _initializer("delta_orthogonal", dtype, scale=scale, column_axis=column_axis)


__getattr__ = _names.missing(__name__, globals())
__all__ = sorted(name for name in globals() if not name.startswith("_"))
