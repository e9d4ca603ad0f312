"""jax.random over plait's: the same bits.

SPDX-License-Identifier: Apache-2.0
"""

import inspect as _inspect

import plait.random as _random
from plait._plait import Array as _Array

from jax import _doors
from jax._dtypes import (
    creating as _creating,
    default_float as _default_float,
    canonical as _canonical,
)
from jax._narrow import narrowing as _narrowing

PRNGKeyArray = _Array


def _impl_checked(function):
    """key and PRNGKey take the name of a generator, of which threefry is here."""

    def make(seed, *, impl=None):
        if impl not in (None, "threefry2x32", "fry"):
            _doors.refuse(
                "jax.random." + function.__name__,
                f"the generator {impl!r}; keys are threefry's",
                "leave impl out",
            )
        return function(seed)

    make.__name__, make.__doc__ = function.__name__, function.__doc__
    return make


key, PRNGKey = _impl_checked(_random.key), _impl_checked(_random.PRNGKey)


def key_impl(keys):
    """The generator of keys."""
    return "threefry2x32"


def wrap_key_data(key_bits_array, *, impl=None):
    """Keys from their bits."""
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

__getattr__ = _doors.lacking(__name__)
__all__ = _doors.public(globals())
