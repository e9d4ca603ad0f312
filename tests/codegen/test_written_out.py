"""What rules write out in loop programs: random numbers, factorizations of small matrices, and running sums.

Each program has the bits of the loop that Python runs over eager calls, interpreted and as generated code.
"""

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax, random

numbers_of = np.random.default_rng(5)
WIDTHS = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}
SHAPES = [(), (1,), (3,), (2, 3), (9,), (5, 7), (64,), (3, 4, 6)]
BATCHES = [(), (1,), (2,), (11,), (3, 5)]
DTYPES = [np.float32, np.float64]


def exactly(program, *inputs):
    arguments = [jnp.asarray(x) for x in inputs]
    with plait.disable_jit():
        expected = plait.tree.leaves(program(*arguments))
    for is_waiting in (False, True):
        jitted = plait.jit(program, wait=is_waiting)
        for got, wanted in zip(plait.tree.leaves(jitted(*arguments)), expected, strict=True):
            got, wanted = np.asarray(got), np.asarray(wanted)
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
        text = str(jitted.explain(*arguments))
        is_interpreted = not is_waiting and "while" not in text  # or step by step, at first
        if "llvm" in text or is_interpreted:
            assert "one loop program" in text, text


# --- Random numbers -----------------------------------------------------------------------------------


def key(seed=7):
    return np.array([0x9E3779B9, seed], np.uint32)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", SHAPES)
def test_bits_of_every_width_and_shape(width, shape):
    def step(k, _):
        k = random.fold_in(k, 3)
        return k, random.bits(k, shape, WIDTHS[width])

    exactly(lambda k: lax.scan(step, k, None, length=4), key())


@pytest.mark.parametrize("num", [2, 3, 4, 5, 16])
def test_keys_that_are_split(num):
    def step(k, x):
        keys = random.split(k, num)
        return keys[-1], (keys, random.fold_in(k, x))

    exactly(lambda k, x: lax.scan(step, k, x), key(), np.arange(5, dtype=np.uint32))


@pytest.mark.parametrize("num", [2, 4, 5, 33])
def test_a_key_for_each_example(num):
    """Keys with data of their own, keys with one datum, and bits behind the axes of the keys."""

    def step(k, x):
        folded = jnp.stack([random.fold_in(k[i], x + i) for i in range(num)])
        all_of_them = plait.vmap(random.fold_in, (0, None))(folded, x)
        both = plait.vmap(random.fold_in)(all_of_them, jnp.arange(num, dtype=jnp.uint32))
        return both, plait.vmap(lambda k: random.bits(k, (3,), jnp.uint32))(both)

    keys = np.asarray(random.split(jnp.asarray(key()), num))
    exactly(lambda k, x: lax.scan(step, k, x), keys, np.arange(3, dtype=np.uint32))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (6,), (50,)])
def test_draws_from_distributions(dtype, shape):
    def step(i, s):
        k, x = s
        k, a, b, c = random.split(k, 4)
        x = x + random.normal(a, shape, dtype) * random.uniform(b, shape, dtype)
        return k, jnp.where(random.bernoulli(c, 0.3, shape), x, -x)

    exactly(lambda k, x: lax.fori_loop(0, 6, step, (k, x)), key(), np.zeros(shape, dtype))


def test_a_walk_that_ends_and_accepts():
    def go(s):
        return (jnp.abs(s[1]) < 3) & (s[2] < 40)

    def step(s):
        k, x, i = s
        k, a, b = random.split(k, 3)
        y = x + random.normal(a, (), jnp.float64)
        accepts = jnp.log(random.uniform(b, (), jnp.float64)) < 0.5 * (x * x - y * y)
        return k, lax.cond(accepts, lambda: y, lambda: x + random.normal(b, (), jnp.float64)), i + 1

    exactly(lambda k, x: lax.while_loop(go, step, (k, x, 0)), key(), np.float64(0.5))


def test_shifts_by_the_width_and_more():
    counts = np.array([0, 1, 7, 8, 31, 32, 63, 64, 100, -1], np.int32)

    def program(x):
        def step(i, x):
            for shift in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic):
                x = (
                    x
                    ^ shift(x, jnp.asarray(counts).astype(x.dtype))
                    ^ shift(x, (i + 3).astype(x.dtype))
                )
            return x

        return lax.fori_loop(0, 5, step, x)

    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64):
        numbers = np.random.default_rng(1).integers(0, 2**63, counts.size).astype(np.uint64)
        exactly(program, numbers.astype(dtype))


# --- Small matrices -----------------------------------------------------------------------------------


def numbers(*shape, dtype=np.float64):
    return numbers_of.standard_normal(shape).astype(dtype)


def positive(*shape, dtype=np.float64):
    x = numbers(*shape)
    return (x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_cholesky(n, batch, dtype):
    a = positive(*batch, n, n, dtype=dtype)

    def program(a):
        def step(i, s):
            x, total = s
            factor = lax.linalg.cholesky(x)
            return x * 0.5 + a, total + factor

        return lax.fori_loop(0, 3, step, (a, a))

    exactly(program, a)
    exactly(program, -a)  # not positive definite


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (2, 4), (4, 2)])
def test_lu(shape, batch, dtype):
    def step(a, _):
        lu, pivots, order = lax.linalg.lu(a)
        return jnp.roll(lu, 1, -2) + a, (lu, pivots, order)

    a = numbers(*batch, *shape, dtype=dtype)
    exactly(lambda a: lax.scan(step, a, None, length=3), a)
    exactly(lambda a: lax.scan(step, a, None, length=3), np.round(a) * 0)  # nothing to eliminate
    exactly(lambda a: lax.scan(step, a, None, length=3), np.round(2 * a))  # pivots of equal size


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_determinants(n, batch, dtype):
    def step(a, _):
        det = jnp.linalg.det(a)
        return 0.5 * a + jnp.roll(a, 1, -2) * jnp.tanh(det)[..., None, None], det

    for a in (numbers(*batch, n, n, dtype=dtype), np.zeros((*batch, n, n), dtype)):
        exactly(lambda a: lax.scan(step, a, None, length=3), a)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize(
    "n, m, batch", [(1, 1, ()), (2, 1, ()), (3, 2, (2,)), (4, 3, (7,)), (5, 9, ())]
)
def test_triangular_solve(left, lower, transposed, unit, n, m, batch):
    for dtype in DTYPES:
        b = numbers(*batch, *((n, m) if left else (m, n)), dtype=dtype)

        def step(x, a):
            x = lax.linalg.triangular_solve(
                a, x, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit
            )
            return x, x

        exactly(lambda a, b: lax.scan(step, b, a), positive(3, *batch, n, n, dtype=dtype), b)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_systems_in_branches_and_while_loops(n):
    def program(a, b):
        def go(s):
            return (s[1] < 5) & (jnp.max(jnp.abs(s[0])) < 1e6)

        def step(s):
            x, i = s
            x = lax.cond(
                i % 2 == 0,
                lambda x: jnp.linalg.solve(a + i * x[0], x),
                lambda x: lax.linalg.triangular_solve(a, x[:, None], left_side=True)[:, 0],
                x,
            )
            return x, i + 1

        return lax.while_loop(go, step, (b, 0))

    exactly(program, positive(n, n), numbers(n))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_systems_for_each_example(n):
    def program(a, b):
        def step(x, _):
            x = jnp.linalg.solve(a, x)
            return x, x

        return lax.scan(step, b, None, length=4)

    exactly(plait.vmap(program), positive(6, n, n), numbers(6, n))
    exactly(plait.vmap(program, (None, 0)), positive(n, n), numbers(6, n))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("shape", [(1,), (5,), (32,), (2, 3), (3, 2, 5), (40,)])
def test_cumulative_arrays(kind, shape):
    cumulate = getattr(lax, "cum" + kind)

    def step(i, x):
        for axis in range(len(shape)):
            x = cumulate(x, axis) - cumulate(-x * 0, axis, True) + 1
        return x

    for dtype in (np.float32, np.float64, np.int8, np.int32, np.uint64):
        x = (10 * numbers(*shape)).astype(np.int64).astype(dtype)
        exactly(lambda x: lax.fori_loop(0, 3, step, x), x)


@pytest.mark.parametrize("shape", [(6,), (4, 5), (70,)])
def test_linear_recurrences_and_barriers(shape):
    """Which the derivatives of running products are, and of what is computed again."""

    def step(i, x):
        for axis in range(len(shape)):

            @plait.checkpoint
            def loss(x):
                return lax.cumprod(jnp.cos(x), axis, axis == 0)

            x = 0.5 * x + plait.vjp(loss, x)[1](x)[0] + plait.jvp(loss, (x,), (x,))[1]
        return x

    for dtype in DTYPES:
        exactly(lambda x: lax.fori_loop(0, 3, step, x), numbers(*shape, dtype=dtype))


# --- Products ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "m, k, n", [(2, 2, 2), (1, 3, 1), (2, 8, 1), (1, 4, 3), (3, 3, 3), (4, 8, 4), (5, 2, 9)]
)
@pytest.mark.parametrize("batch", [(), (2,), (6,)])
def test_products_of_few_terms(m, k, n, batch):
    def step(a, b):
        product = a @ b
        return a + 0.5 * (product[..., :1, :1] - a), (
            product,
            jnp.swapaxes(b, -1, -2) @ jnp.swapaxes(a, -1, -2),
        )

    for dtype in DTYPES:
        a, b = numbers(*batch, m, k, dtype=dtype), numbers(3, *batch, k, n, dtype=dtype)
        b[0] *= np.finfo(dtype).tiny  # products that are rounded to zeros with signs
        a[..., 0] *= np.finfo(dtype).eps
        exactly(lambda a, b: lax.scan(step, a, b), a, b)


@pytest.mark.parametrize("m, k, n", [(2, 2, 2), (1, 5, 1), (3, 9, 4), (1, 40, 3), (6, 33, 5)])
def test_products_of_integers(m, k, n):
    for dtype in (np.int8, np.uint16, np.int32, np.int64, np.uint64):
        a, b = (numbers_of.integers(0, 2**62, shape).astype(dtype) for shape in [(m, k), (3, k, n)])
        exactly(lambda a, b: lax.scan(lambda a, b: (a + (a @ b)[0, 0], a @ b), a, b), a, b)


# --- Bounds of while loops ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 20])
def test_while_loops_with_a_bound(n):
    def halved(x):
        return lax.while_loop(lambda x: jnp.max(jnp.abs(x)) > 1, lambda x: 0.5 * x, x, max_steps=9)

    def program(x):
        return lax.scan(lambda c, x: (c + halved(x), c), x[0], x)

    exactly(program, 100 * numbers(4, n))
    for is_waiting in (False, True):
        jitted = plait.jit(program, wait=is_waiting)
        for _ in range(2):
            with pytest.raises(plait.ValueError, match="still holds after max_steps = 9 steps"):
                jitted(jnp.asarray(1e6 * np.ones((4, n))))
        jitted(jnp.asarray(numbers(4, n)))
