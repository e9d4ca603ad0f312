"""Division of integers in generated code: of every dtype, by zero and minus one, at the ends of the range."""

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

DTYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def numbers(dtype):
    ends = np.iinfo(dtype)
    some = [0, 1, 2, 3, 7, 100, ends.max - 1, ends.max, ends.min, ends.min + 1]
    if ends.min < 0:
        some += [-1, -2, -7, -100]
    return np.array(some, dtype)


def quotient(x, y):
    """Rounded to zero, with x / 0 = 0 and the smallest value / -1 = itself."""
    x, y = int(x), int(y)
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_and_remainders(dtype):
    x, y = (a.reshape(-1) for a in np.meshgrid(numbers(dtype), numbers(dtype)))
    with np.errstate(over="ignore"):
        expected = np.array([quotient(a, b) for a, b in zip(x, y)], object)
        rests = [int(a) - q * int(b) if b else 0 for a, b, q in zip(x, y, expected)]
    wrapped = np.array(
        [(int(q) + 2**80) % 2 ** (8 * x.itemsize) for q in expected], np.uint64
    ).astype(dtype)
    function = plait.jit(lambda x, y: (lax.div(x, y), lax.rem(x, y)), wait=True)
    for by, rest in (
        function(jnp.asarray(x), jnp.asarray(y)),
        plait.jit(function)(jnp.asarray(x), jnp.asarray(y)),
    ):
        np.testing.assert_array_equal(np.asarray(by), wrapped)
        np.testing.assert_array_equal(np.asarray(rest), np.array(rests, object).astype(dtype))


@pytest.mark.parametrize("by", [1, 2, 3, 7, -1, -5])
def test_by_literals_in_a_loop(by):
    x = np.arange(-20, 20, dtype=np.int32)

    def program(x):
        def step(i, s):
            q, r = s
            return q.at[i].set(x[i] // by), r.at[i].set(x[i] % by)

        return lax.fori_loop(0, 40, step, (jnp.zeros_like(x), jnp.zeros_like(x)))

    for wait in (False, True):
        q, r = plait.jit(program, wait=wait)(jnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(q), x // by)
        np.testing.assert_array_equal(np.asarray(r), x % by)


@pytest.mark.parametrize("shift", [-30, -1, 0, 1, 29])
def test_remainders_of_counters(shift):
    """Those whose range is known need no test of the sign."""
    x = np.arange(30.0)

    def program(x):
        return lax.fori_loop(
            0, 30, lambda i, y: y.at[i].set(x[(i + shift) % 30]), jnp.zeros_like(x)
        )

    for wait in (False, True):
        np.testing.assert_array_equal(
            np.asarray(plait.jit(program, wait=wait)(jnp.asarray(x))), np.roll(x, -shift)
        )
