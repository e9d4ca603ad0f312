"""Reductions of arrays of any size in the steps of loops: of what is computed from arrays as of these.

What is right are the numbers of NumPy, and the bits of the same steps one by one.
"""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

random = np.random.default_rng(17)

# Rows and columns of one block, of a few and of many: of as many as a power of two, and of others.
SHAPES = [
    ((5000,), (0,)),
    ((18 * 1024,), (0,)),
    ((32 * 1024,), (0,)),
    ((150001,), (0,)),
    ((3, 40000), (1,)),
    ((2, 3000, 24), (1,)),
    ((64 * 18, 12), (0,)),
    ((64 * 16, 12), (0,)),
    ((70, 3, 40), (0,)),
    ((12, 5000), (0,)),
    ((70, 5000), (0,)),
    ((4, 300, 17), (0, 1)),
    ((300, 70, 3), (0, 1)),
    ((300, 300, 3), (1,)),
    ((5, 2500, 3), (1,)),
    ((64, 33, 1), (0, 1, 2)),
    ((9, 8, 7, 6), (0, 2)),
    ((9, 300, 7, 260), (1, 3)),
    ((1, 5000), (0,)),
]
OF = {
    "the array": lambda x, y: x,
    "a formula": lambda x, y: x * x + x,
    "rows and columns": lambda x, y: x * y[..., :1] + y[:1],
    "another order": lambda x, y: jnp.swapaxes(jnp.swapaxes(x, 0, -1) + 1, 0, -1),
}


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("float64", "sum"), ("float32", "prod"), ("bfloat16", "sum"), ("int32", "max")],
)
def test_a_reduction_in_a_step(dtype, kind, of):
    for shape, axes in SHAPES:
        x = random.standard_normal(shape) + (kind == "prod")
        x = jnp.asarray(np.round(4 * x) if dtype == "int32" else x).astype(dtype)
        y = x[::-1]
        reduce = getattr(lax, "reduce_" + kind)

        def step(s, t, x, y, reduce=reduce, axes=axes):
            r = reduce(OF[of](x + t.astype(x.dtype), y), axes)
            return jnp.minimum(s, r), r

        def steps(x, y, step=step):
            first = jnp.asarray(step(0, jnp.asarray(0), x, y)[1])
            return lax.scan(lambda s, t: step(s, t, x, y), first, jnp.arange(2))

        found = plait.jit(steps, wait=True)(x, y)
        s = step(0, jnp.asarray(0), x, y)[1]
        for t in range(2):
            s, r = step(s, jnp.asarray(t), x, y)
            np.testing.assert_array_equal(np.asarray(found[1][t]), np.asarray(r), err_msg=shape)
        np.testing.assert_array_equal(np.asarray(found[0]), np.asarray(s), err_msg=shape)
        if dtype == "float64":
            wide = np.asarray(OF[of](x + 1, y))
            wanted = getattr(np, kind)(wide, axis=axes)
            np.testing.assert_allclose(np.asarray(found[1][1]), wanted, 1e-10, 1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16"])
@pytest.mark.parametrize("stride", [2, 3, 4, 5, -1, -2])
def test_elements_that_are_apart(stride, dtype):
    """Lanes of every n-th element, as many as fill registers and a few more."""
    for size in (8, 64, 67, 1029):
        x = jnp.asarray(random.integers(-9, 9, size * abs(stride))).astype(dtype)

        def step(y, t, size=size):
            y = y + t.astype(y.dtype)
            return y, y[::stride][:size] * 2 + y[1 :: abs(stride)][0]

        found = plait.jit(lambda x: lax.scan(step, x, jnp.arange(3)), wait=True)(x)[1]  # noqa: B023
        y = np.asarray(x.astype("float32"))
        for t in range(3):
            y = y + t
            wanted = y[::stride][:size] * 2 + y[1 :: abs(stride)][0]
            np.testing.assert_array_equal(np.asarray(found[t].astype("float32")), wanted)
