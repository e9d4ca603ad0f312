"""jax.api_util: parts of JAX's transforms that libraries use.

SPDX-License-Identifier: Apache-2.0
"""

from jax import _doors
from plait._plait import flatten, unflatten

from jax.extend import linear_util as lu


def safe_map(f, *sequences):
    """The list of f of the elements of sequences of equal lengths."""
    return [f(*row) for row in zip(*sequences, strict=True)]


def safe_zip(*sequences):
    return list(zip(*sequences, strict=True))


@lu.transformation_with_aux2
def flatten_fun(f, store, in_tree, *leaves):
    """f(*args, **kwargs) as a function of the leaves of (args, kwargs); the structure of the result is stored."""
    args, kwargs = unflatten(in_tree, leaves)
    found, structure = flatten(f(*args, **kwargs))
    store.store(structure)
    return found


@lu.transformation_with_aux2
def flatten_fun_nokwargs(f, store, in_tree, *leaves):
    """f(*args) as a function of the leaves of args; the structure of the result is stored."""
    found, structure = flatten(f(*unflatten(in_tree, leaves)))
    store.store(structure)
    return found


def argnums_partial(f, dyn_argnums, args, require_static_args_hashable=True):
    """f with all arguments but those of dyn_argnums fixed, and these arguments."""
    numbers = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)

    def call(*dynamic, **kwargs):
        every = list(args)
        for number, value in zip(numbers, dynamic):
            every[number] = value
        return f.call_wrapped(*every, **kwargs)

    return f.wrap(call), tuple(args[number] for number in numbers)


def debug_info(*args, **kwargs):
    """Nothing: plait keeps the lines of a program itself."""
    return None


def shaped_abstractify(x):
    """The type of a value."""
    from jax._arrays import typeof

    return typeof(x)


__getattr__ = _doors.lacking(__name__)
