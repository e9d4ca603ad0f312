"""jax.random over plait's: the same bits.

SPDX-License-Identifier: Apache-2.0
"""

import inspect as _inspect

import numpy as _np

import plait.random as _random
from plait._key_dtype import KEY as _KEY, KeyDType as _KeyDType
from plait._plait import Array as _Array

from jax import _doors
from jax._config import config as _config
from jax._dtypes import (
    creating as _creating,
    default_float as _default_float,
    canonical as _canonical,
    dtype_of as _dtype_of,
)
from jax._narrow import narrowing as _narrowing

PRNGKeyArray = _Array
_NAME = "threefry2x32"
_OTHERS = ("threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg")


class _Threefry:
    """The generator of keys, as JAX's private attributes have it."""

    name, key_shape, tag = _NAME, (2,), "fry"

    def __repr__(self):
        return self.tag


_THREEFRY = _Threefry()


def _of_keys(read):
    """An attribute that arrays of keys alone have."""

    def get(array):
        if not isinstance(array.dtype, _KeyDType):
            raise AttributeError("an array of numbers has no generator of keys")
        return read(array)

    return property(get)


_Array._impl = _of_keys(lambda keys: _THREEFRY)
_Array._base_array = _of_keys(lambda keys: _random.key_data(keys))


def key_dtype(impl=None):
    """The dtype of the keys of a generator, given by its name or that dtype: threefry's is here."""
    if impl in (None, _THREEFRY, _NAME, "fry") or isinstance(impl, _KeyDType):
        return _KEY
    if impl in _OTHERS:
        _doors.refuse(
            "jax.random", f"the generator {impl!r}; keys are threefry's", "leave impl out"
        )
    if isinstance(impl, str):
        raise ValueError(
            f'unrecognized PRNG implementation "{impl}". Did you mean one of: "{_NAME}"?'
        )
    raise TypeError(f"unrecognized type {type(impl)} for specifying PRNG implementation.")


def _checked(function, impl, dtype):
    if impl is not None and dtype is not None:
        raise ValueError(
            f"Cannot specify both `impl` and `dtype` arguments to jax.random.{function}"
        )
    key_dtype(dtype if impl is None else impl)


def _seeded(function, seed):
    """A key of a seed, which is one integer."""
    what = "a PRNG key" if isinstance(getattr(seed, "dtype", None), _KeyDType) else None
    if what is None and _np.ndim(seed):
        what = f"an array of shape {_np.shape(seed)} != (). Use jax.vmap for batching"
    if what is not None:
        raise TypeError(f"{function.__name__} accepts a scalar seed, but was given {what}")
    if _dtype_of(seed).kind not in "biu":
        raise TypeError(f"PRNG key seed must be an integer; got {seed!r:.60}")
    seed = seed + _config.jax_random_seed_offset if _config.jax_random_seed_offset else seed
    if not _config.x64_enabled and not isinstance(seed, _Array):
        seed = int(seed) & 0xFFFFFFFF
    return function(seed)


def key(seed, *, impl=None, dtype=None):
    """A key from a seed, as a typed array."""
    _checked("key", impl, dtype)
    return _seeded(_random.key, seed)


def PRNGKey(seed, *, impl=None):
    """A key from a seed, as two words; a typed one where jax_enable_custom_prng says so."""
    _checked("PRNGKey", impl, None)
    return _seeded(_random.key if _config.jax_enable_custom_prng else _random.PRNGKey, seed)


def key_impl(keys):
    """The generator of keys."""
    return _NAME


def wrap_key_data(key_bits_array, *, impl=None, dtype=None):
    """Keys from their bits."""
    _checked("wrap_key_data", impl, dtype)
    return _random.wrap_key_data(key_bits_array)


# Distributions of integers, whose dtype is JAX's default integer.
_INTEGERS = {"randint", "rademacher", "poisson", "geometric", "binomial"}

for _name in _random.__all__:
    if _name in globals() or _name == "Generator":
        continue
    _function = getattr(_random, _name)
    _names = list(_inspect.signature(_function).parameters)
    if "dtype" in _names and _name != "bits":
        _default = (lambda: _canonical(int)) if _name in _INTEGERS else _default_float
        _function = _creating(_function, _default)
    else:
        _function = _narrowing(_function)
    globals()[_name] = _function

_bits = bits  # noqa: F821


def bits(key, shape=(), dtype=None, **options):
    """Random bits as numbers of an unsigned dtype."""
    if dtype is not None and _dtype_of(dtype).kind != "u":
        raise ValueError(f"dtype argument `dtype` must be an unsigned int dtype, got {dtype}")
    return _bits(key, shape, *([] if dtype is None else [dtype]), **options)


__getattr__ = _doors.lacking(__name__)
__all__ = _doors.public(globals())
