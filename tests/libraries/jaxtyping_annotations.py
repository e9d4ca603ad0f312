"""jaxtyping: shapes and dtypes in annotations, checked at run time.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped, UInt, jaxtyped

from report import report

x, i = jnp.ones((3, 4)), jnp.arange(3)
tests = [
    isinstance(x, Float[Array, "a b"]),
    isinstance(x, Float[Array, "3 4"]),
    isinstance(x, Float[Array, "..."]),
    isinstance(x, Int[Array, "a b"]),
    isinstance(x, Float[Array, "a"]),
    isinstance(i, Int[Array, "n"]),
    isinstance(i > 1, Bool[Array, "n"]),
    isinstance(jax.random.PRNGKey(0), UInt[Array, "2"]),
    isinstance({"a": x, "b": [x]}, PyTree[Float[Array, "a b"]]),
    isinstance({"a": x, "b": i}, PyTree[Float[Array, "a b"]]),
    isinstance(jnp.float32(1.0), Shaped[Array, ""]),
]
report("isinstance", tests)


def typechecker(function):
    """A small checker of annotations: jaxtyping works with any."""
    import functools
    import inspect

    @functools.wraps(function)
    def checked(*args, **kwargs):
        bound = inspect.signature(function).bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            expected = function.__annotations__.get(name)
            if expected is not None and not isinstance(value, expected):
                raise TypeError(f"{name} does not fit {expected}")
        return function(*args, **kwargs)

    return checked


@jaxtyped(typechecker=typechecker)
def product(a: Float[Array, "m k"], b: Float[Array, "k n"]):  # noqa: F722
    return a @ b


report(
    "product",
    product(x, x.T),
    jax.jit(product)(x, x.T),
    jax.grad(lambda v: product(v, v.T).sum())(x),
)
failed = 0
try:
    product(x, x)
except Exception:  # of the checker's type
    failed = 1
report("refused", failed)
