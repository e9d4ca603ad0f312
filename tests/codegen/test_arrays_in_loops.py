"""Loops whose steps compute with arrays, as one loop program: interpreted, and as generated code.

Each program runs as JAX's users write it, and as the loop in Python that calls NumPy in its place. What the cases are about:
which memory a step reads after it was written, sizes that fill no vector, orders of axes, and indices that are computed.
"""

import contextlib

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

fori, where = lax.fori_loop, jnp.where
random = np.random.default_rng(11)
SIZES = [9, 16, 31, 64, 100]


def both(program, *inputs, rtol=1e-10, wait=(False, True), refused=False):
    """Compares jit with the loop that Python runs."""
    arguments = [jnp.asarray(x) for x in inputs]
    with plait.disable_jit():
        expected = plait.tree.leaves(program(*arguments))
    for is_waiting in wait:
        jitted = plait.jit(program, wait=is_waiting)
        for _ in range(2):
            for got, wanted in zip(plait.tree.leaves(jitted(*arguments)), expected, strict=True):
                got, wanted = np.asarray(got), np.asarray(wanted)
                assert got.dtype == wanted.dtype
                np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)
        text = str(jitted.explain(*arguments))
        if "llvm" in text or not is_waiting:
            is_one = "one loop program" in text
            assert is_one != refused, text
    for argument, given in zip(arguments, inputs):
        np.testing.assert_array_equal(np.asarray(argument), given)


def numbers(*shape):
    return random.standard_normal(shape)


@pytest.mark.parametrize("n", SIZES)
def test_elementwise(n):
    def program(x, y):
        return fori(0, 5, lambda i, s: (s[0] * 0.5 + jnp.sin(s[1]), s[1] - s[0] * i), (x, y))

    both(program, numbers(n), numbers(n))


@pytest.mark.parametrize("n", SIZES)
def test_a_swap_of_formulas(n):
    both(lambda x, y: fori(0, 3, lambda i, s: (s[1] * 2, s[0] + 1), (x, y)), numbers(n), numbers(n))


@pytest.mark.parametrize("n", SIZES)
def test_neighbours_are_read_before_they_are_written(n):
    def program(x):
        return fori(0, 4, lambda i, x: x.at[1:].set(x[:-1] + x[1:]), x)

    both(program, numbers(n))
    both(lambda x: fori(0, 4, lambda i, x: x.at[:-1].add(0.5 * x[1:]), x), numbers(n))
    both(lambda x: fori(0, 4, lambda i, x: x[::-1] * 1.5, x), numbers(n))


def test_a_transposed_matrix_is_read_before_it_is_written():
    both(lambda x: fori(0, 3, lambda i, x: x.T + 0.5 * x, x), numbers(17, 17))


@pytest.mark.parametrize("shape", [(12, 33), (40, 5), (3, 4, 20), (20, 1)])
def test_columns_and_rows(shape):
    def program(x):
        def column(j, x):
            return x.at[..., j].set(x[..., j - 1] * 0.5 + jnp.sum(x[..., j]))

        x = fori(1, x.shape[-1], column, x)
        return fori(1, x.shape[0], lambda i, x: x.at[i].add(x[i - 1]), x)

    both(program, numbers(*shape))


def test_an_old_value_is_read_after_the_update():
    def program(x, y):
        def step(i, s):
            x, y = s
            old = x * 2 + 1
            x = x.at[i].set(7.0)
            return x + 0.5 * old, y + old

        return fori(0, 6, step, (x, y))

    both(program, numbers(20), numbers(20))


def test_one_formula_in_several_carries():
    def program(x, y):
        def step(i, s):
            x, y = s
            z = jnp.exp(-x * x) + y
            return z, z * 0.5

        return fori(0, 6, step, (x, y))

    both(program, numbers(20), numbers(20))


def test_invariants_and_outer_products():
    def program(x, y, m):
        def step(i, m):
            return m * 0.9 + jnp.sin(x)[:, None] * y[None, :] * i

        return fori(0, 6, step, m)

    both(program, numbers(11), numbers(23), numbers(11, 23))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("shape, axis", [((40,), 0), ((1,), 0), ((2100,), 0), ((12, 19), 0),
                                         ((12, 19), 1), ((12, 19), None), ((130, 20), 0),
                                         ((3, 300), None), ((4, 5, 6), (0, 2)), ((2, 2), 0)])  # fmt: skip
def test_reductions(kind, shape, axis):
    def program(x):
        def step(i, s):
            x, total = s
            r = getattr(jnp, kind)(x, axis=axis)
            return x * 1.0001, total + r

        return fori(0, 3, step, (x, jnp.zeros_like(getattr(jnp, kind)(x, axis=axis))))

    x = 1 + 0.01 * numbers(*shape)
    both(program, x)


def test_reductions_have_the_bits_of_eager_calls():
    def program(x):
        def step(i, s):
            return s[0] * 1.5, s[1] + jnp.sum(s[0] * s[0]) + jnp.max(s[0], axis=0)

        return fori(0, 4, step, (x, jnp.zeros(x.shape[1], x.dtype)))

    for dtype in (np.float32, np.float64):
        for shape in [(70, 30), (1500, 9), (5, 1100)]:
            x = numbers(*shape).astype(dtype)
            with plait.disable_jit():
                expected = np.asarray(program(jnp.asarray(x))[1])
            for wait in (False, True):
                got = np.asarray(plait.jit(program, wait=wait)(jnp.asarray(x))[1])
                np.testing.assert_array_equal(got, expected)


def test_nan_and_signed_zeros_in_extremes():
    def program(x):
        def step(i, s):
            return s[0], jnp.stack([jnp.max(s[0]), jnp.min(s[0]), jnp.max(s[0] * s[1][0] * 0)])

        return fori(0, 3, step, (x, jnp.ones(3, x.dtype)))[1]

    x = np.zeros(20)
    x[3] = -0.0
    both(program, x)
    x[7] = np.nan
    both(program, x)


@pytest.mark.parametrize("k", [2, 8, 32, 33, 40, 600, 1500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_vectors(k, dtype):
    def program(a, b):
        def step(i, s):
            return s[0] * dtype(0.9), s[1] + s[0] @ b

        return fori(0, 4, step, (a, jnp.zeros((), dtype)))[1]

    a, b = numbers(k).astype(dtype), numbers(k).astype(dtype)
    both(program, a, b, rtol=1e-10 if dtype == np.float64 else 1e-4)
    with plait.disable_jit():
        expected = np.asarray(program(jnp.asarray(a), jnp.asarray(b)))
    for wait in (False, True):
        got = np.asarray(plait.jit(program, wait=wait)(jnp.asarray(a), jnp.asarray(b)))
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("m, k", [(20, 40), (9, 100), (70, 33), (13, 12)])
def test_products_of_vectors_and_matrices(m, k):
    def program(a, x):
        def step(i, x):
            y = a @ x
            return (y @ a) * 0.01 + a[i] + a.T @ y * 0.01

        return fori(0, 4, step, x)

    both(program, numbers(m, k), numbers(k))


def test_products_with_scattered_axes_and_windows():
    def program(x, kernel):
        def at(i, out):
            patch = lax.dynamic_slice(x, (0, i, i, 0), (2, 3, 3, 2))
            new = jnp.einsum("nhwc,hwcd->nd", patch, kernel)[:, None]
            return lax.dynamic_update_slice(out, new, (0, i, 0))

        return fori(0, 5, at, jnp.zeros((2, 5, 4), x.dtype))

    both(program, numbers(2, 8, 8, 2), numbers(3, 3, 2, 4))


def test_iota_and_masks():
    def program(a, b):
        def row(i, x):
            s = jnp.sum(where(jnp.arange(b.size) < i, a[i] * x, 0.0))
            return x.at[i].set((b[i] - s) / a[i, i])

        return fori(0, b.size, row, jnp.zeros_like(b))

    both(program, numbers(30, 30) + 20 * np.eye(30), numbers(30))


@pytest.mark.parametrize("mode", [None, "clip", "promise_in_bounds"])
def test_gathers(mode):
    def program(w, best):
        def item(i, best):
            k = jnp.arange(best.size)
            other = best.at[jnp.maximum(k - w[i], 0)].get(mode=mode)
            return where(k >= w[i], jnp.maximum(best, other + i), best)

        return fori(0, w.size, item, best)

    both(program, random.integers(1, 9, 12).astype(np.int32), np.zeros(50))


def test_gathers_of_rows_and_elements():
    def program(x, rows, columns):
        def step(i, x):
            return (
                0.5 * x
                + x[rows]
                + x[rows, columns][:, None]
                + jnp.take_along_axis(x, (rows[:, None] + i) % 7, axis=1)
            )

        return fori(0, 3, step, x)

    rows = random.integers(0, 12, 12).astype(np.int32)
    both(program, numbers(12, 7), rows, random.integers(0, 7, 12).astype(np.int32))


@pytest.mark.parametrize("wait", [False, True])
def test_a_gather_outside_is_the_error_of_eager_evaluation(wait):
    x, rows = jnp.asarray(numbers(20)), jnp.asarray(np.arange(20, dtype=np.int32))

    def program(x, rows):
        return fori(0, 4, lambda i, x: x[rows + i] * 2, x)

    with pytest.raises(IndexError) as eager, plait.disable_jit():
        program(x, rows)
    with pytest.raises(IndexError) as compiled:
        plait.jit(program, wait=wait)(x, rows)
    assert str(compiled.value).split("\n")[0] == str(eager.value).split("\n")[0]


def test_pad_concatenate_roll_and_reshape():
    def program(x):
        def step(i, x):
            y = jnp.roll(x, 1) + jnp.pad(x[1:-1], (2, 0), constant_values=i)
            z = jnp.concatenate([y[3:], y[:3]]).reshape(4, 6)
            return (z.T * 0.5).reshape(-1) + z[1:3].reshape(-1).sum()

        return fori(0, 4, step, x)

    both(program, numbers(24))


def test_branches_and_nested_loops():
    def program(x, y):
        def step(i, s):
            x, y = s
            x = lax.cond(x[i] > 0, lambda x: x + y, lambda x: x, x)
            y = fori(0, 3, lambda j, y: y * 0.5 + x, y)
            return lax.while_loop(
                lambda s: jnp.sum(s[0] * s[0]) > 4, lambda s: (s[0] / 2, s[1] + s[0]), (x, y)
            )

        return fori(0, 5, step, (x, y))

    both(program, numbers(20), numbers(20))


def test_stacked_results():
    def program(x, ys):
        def step(x, y):
            z = jnp.tanh(x * 0.5 + y)
            return z, (z * 2, jnp.sum(z), x)

        return lax.scan(step, x, ys)

    both(program, numbers(20), numbers(7, 20))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.uint64, np.int64])
def test_dtypes(dtype):
    def program(x, y):
        def step(i, s):
            x, y = s
            big = x > y
            return where(big, x - y, x + x), where(big & (y > 1), y, y + x.astype(y.dtype))

        return fori(0, 4, step, (x, y))

    x, y = random.integers(0, 5, 37).astype(dtype), random.integers(0, 5, 37).astype(dtype)
    both(program, x, y, rtol=0)
    both(lambda x, n: fori(1, 4, lambda i, x: (x * 3 + i) % 7 + x // 2, x),
         random.integers(0, 5, 37), np.int64(3), rtol=0)  # fmt: skip


def test_bools():
    def program(x):
        def step(i, s):
            b, n = s
            return (b ^ jnp.roll(b, 1)) | (n > 2), n + b

        return fori(0, 5, step, (x > 0, jnp.zeros(x.size, jnp.int32)))

    both(program, numbers(45), rtol=0)


def test_complex_numbers_are_interpreted():
    def program(z):
        return fori(0, 4, lambda i, z: z * z + 0.1j, z)

    both(program, 0.3 * (numbers(20) + 1j * numbers(20)), wait=[False])


@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("mode", [None, "drop", "clip"])
def test_scatters_of_several_windows(kind, mode):
    def program(x, i, v):
        def step(k, x):
            rows = (i + k) % (x.shape[0] if mode is None else x.shape[0] + 3)
            return getattr(x.at[rows], kind)(v * 0.5, mode=mode) + x

        return fori(0, 3, step, x)

    i = random.integers(0, 12, 5).astype(np.int32)
    both(program, numbers(12), i, numbers(5))
    both(program, numbers(12, 10), i, numbers(5, 10))


@pytest.mark.parametrize("wait", [False, True])
def test_a_scatter_outside_is_the_error_of_eager_evaluation(wait):
    x, rows = jnp.asarray(numbers(20)), jnp.asarray(np.arange(20, dtype=np.int32))

    def program(x, rows):
        return fori(0, 4, lambda i, x: x.at[rows + i].add(x * 2), x)

    with pytest.raises(IndexError) as eager, plait.disable_jit():
        program(x, rows)
    with pytest.raises(IndexError) as compiled:
        plait.jit(program, wait=wait)(x, rows)
    assert str(compiled.value).split("\n")[0] == str(eager.value).split("\n")[0]


@pytest.mark.parametrize("shape, axis", [((40,), 0), ((12, 19), 0), ((12, 19), 1), ((5,), 0)])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_positions_of_extremes(shape, axis, kind):
    def program(x):
        def step(i, s):
            x, total = s
            return jnp.roll(x, 1, axis) * 0.9, total * 3 + getattr(jnp, kind)(x, axis=axis)

        start = jnp.zeros_like(getattr(jnp, kind)(x, axis=axis))
        return fori(0, 4, step, (x, start))[1]

    x = np.round(numbers(*shape), 1)
    both(program, x, rtol=0)
    x[(2,) * len(shape)] = np.nan
    both(program, x, rtol=0)


def test_pieces():
    def program(x):
        def step(i, x):
            a, b, c = jnp.split(x, 3)
            return jnp.concatenate([b + c, a * 0.5, jnp.tanh(a)])

        return fori(0, 4, step, x)

    both(program, numbers(36))


@pytest.mark.parametrize("n", [5, 20, 33])
def test_complex_numbers(n):
    def program(z, w):
        def step(i, s):
            z, n, total = s
            z = where(n > 1, z * z + w, z - w * 0.5j) ** 3 / 2.0
            n = n + (jnp.abs(z) < 2)
            return z.conj() * 0.3, n, total + z.real * z.imag - jnp.abs(z)

        return fori(0, 5, step, (z, jnp.zeros(z.shape, jnp.int32), jnp.zeros_like(z.real)))

    z = 0.3 * (numbers(n) + 1j * numbers(n))
    both(program, z, z[::-1].copy())
    both(lambda z: fori(1, n, lambda i, z: z.at[i].set(z[i] * z[i - 1] + 1j), z), z)


@pytest.mark.parametrize("n", [4096, 4103])
def test_loops_of_examples(n):
    def root(t):
        def step(s):
            low, high, n = s
            middle = (low + high) / 2
            is_below = middle * middle * middle < t
            return where(is_below, middle, low), where(is_below, high, middle), n + 1

        return lax.while_loop(lambda s: s[1] - s[0] > 1e-9 * (1 + t), step, (t * 0, 1 + t, 0))

    both(plait.vmap(root), 10 * random.random(n))

    def collatz(k, limit):
        def step(s):
            k, steps = s
            return where(k % 2 == 0, k // 2, 3 * k + 1), steps + 1

        return lax.while_loop(lambda s: (s[0] > 1) & (s[1] < limit), step, (k, 0))

    k = random.integers(0, 500, n).astype(np.int32)
    both(lambda k, m: plait.vmap(collatz, in_axes=(0, None))(k, m), k, np.int32(60), rtol=0)


def test_loops_of_examples_that_hold_loops_and_branches():
    def one(x):
        def step(s):
            x, n = s
            x = lax.cond(x > 2, lambda x: x / 2, lambda x: x + 0.3, x)
            return fori(0, 3, lambda i, x: x * 1.01, x), n + 1

        return lax.while_loop(lambda s: (s[0] < 5) & (s[1] < 20), step, (x, 0))

    both(plait.vmap(one), 4 * random.random(4100))


def test_loops_of_examples_inside_a_loop():
    def program(x):
        def halve(t):
            return lax.while_loop(lambda t: t > 1, lambda t: t / 3, t)

        return fori(0, 4, lambda i, x: plait.vmap(halve)(x * 5) + 0.1 * i, x)

    both(program, 10 * random.random(4099))


def relaxation(x):
    def cell(j, s):
        i, x = s
        return i, x.at[i, j].set(0.3 * (x[i - 1, j] + x[i, j - 1] + x[i + 1, j]) + x[i, j] ** 2)

    return fori(1, 4, lambda i, x: fori(1, 6, cell, (i, x))[1], x)


def columns(x):
    return fori(2, 6, lambda j, x: x.at[:, j].set(x[:, j] * x[:, j - 1] + 0.2 * x[:, j - 2]), x)


def constants(x):
    def step(i, s):
        return jnp.sin(s + x[i]) * lax.dynamic_slice(x, (i, 0), (2, 6))[1] + x[:, i].sum()

    return fori(0, 4, step, jnp.ones(6, x.dtype))


def rows_at_computed_places(x):
    rows = jnp.asarray([3, 1, 3, 0])
    return fori(0, 3, lambda i, x: x.at[(rows + i) % 5].multiply(0.5 + x[rows] ** 2), x)


@pytest.mark.parametrize("program", [relaxation, columns, constants, rows_at_computed_places])
@pytest.mark.parametrize("wait", [False, True])
def test_gradients_through_parts_of_arrays(program, wait):
    x, direction = 0.5 * numbers(5, 6), numbers(5, 6)

    def loss(x):
        return jnp.sum(jnp.cos(program(x)))

    gradient = np.asarray(plait.jit(plait.grad(loss), wait=wait)(jnp.asarray(x)))
    h = 1e-6
    ahead, behind = (float(loss(jnp.asarray(x + s * h * direction))) for s in (1, -1))
    assert np.sum(gradient * direction) == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)


def test_a_part_is_read_after_the_array_was_overwritten():
    def program(x):
        def step(i, x):
            row = x[i]
            return x.at[i].set(0.0).at[i + 1].add(row * 0.5 + x[0])

        return fori(0, 5, step, x)

    both(program, numbers(8, 20))


# --- Arrays made of parts ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shift", [1, -1, 5, -7])
def test_roll(n, shift):
    both(lambda x: fori(0, 3, lambda i, x: x + 0.5 * jnp.roll(x, shift), x), numbers(n))


@pytest.mark.parametrize("shape", [(9, 13), (16, 5), (3, 40)])
def test_rolls_along_both_axes(shape):
    def step(i, x):
        moved = [jnp.roll(x, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 2) if a or b]
        return 0.1 * sum(moved) + jnp.roll(jnp.roll(x * x, 1, 1), -2, 0)

    both(lambda x: fori(0, 3, step, x), numbers(*shape))


@pytest.mark.parametrize("n", SIZES)
def test_pads_with_any_signs(n):
    def step(i, x):
        zero = jnp.zeros((), x.dtype)
        wide = lax.pad(x, zero + 2, [(2, 3, 0)])
        return x + lax.pad(wide, zero, [(-1, -4, 0)]) * lax.pad(x, zero, [(3, -3, 0)])

    both(lambda x: fori(0, 3, step, x), numbers(n))


@pytest.mark.parametrize("axis", [0, 1])
def test_many_parts_of_unequal_sizes(axis):
    def step(i, x):
        parts = [x[:3], x[3:4] * 2, x[4:11] + x[:7], x[11:]]
        if axis == 1:
            parts = [x[:, :3], x[:, 3:4] * 2, x[:, 4:11] + x[:, :7], x[:, 11:]]
        return jnp.concatenate(parts[::-1], axis) + jnp.tanh(x)

    both(lambda x: fori(0, 3, step, x), numbers(20, 20))


def test_a_stack_of_moved_arrays():
    def step(i, f):
        mean = jnp.sum(f, 0) / 5
        moves = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)]
        out = f - 0.3 * (f - mean)
        return jnp.stack([jnp.roll(out[k], move, (0, 1)) for k, move in enumerate(moves)])

    both(lambda f: fori(0, 4, step, f), numbers(5, 12, 17))


def test_parts_that_are_read_at_computed_indices():
    def step(i, s):
        x, y = s
        z = jnp.concatenate([x[5:], x[:5]])
        return x + 1, y.at[i].set(z[(3 * i) % 20] + jnp.sum(z * z) + jnp.max(z[::2]))

    both(lambda x: fori(0, 9, step, (x, jnp.zeros(9, x.dtype))), numbers(20))


def test_parts_that_are_numbers():
    def step(i, s):
        x, a = s
        edge = jnp.stack([a, a + 1, a * 2])
        return jnp.concatenate([edge, x[3:], a[None]])[:-1] * 0.9, a + x[-1]

    both(lambda x: fori(0, 5, step, (x, x[0])), numbers(30))


# --- Memories that change places --------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("n", [63, 64, 65, 200])
def test_a_stencil(steps, n):
    def program(x):
        y = fori(0, steps, lambda i, x: 0.5 * (jnp.roll(x, 1) + jnp.roll(x, -1)), x)
        return y, y + x

    both(program, numbers(n))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_wave_that_keeps_two_states(steps):
    def step(i, s):
        u, old = s
        return 2 * u - old + 0.1 * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)), u

    both(lambda u, v: fori(0, steps, step, (u, v)), numbers(100), numbers(100))


@pytest.mark.parametrize("inner", [1, 2, 3])
def test_stencils_within_loops(inner):
    def smooth(x):
        return fori(0, inner, lambda i, x: 0.5 * (jnp.roll(x, 1) + x), x)

    def step(i, s):
        x, y = s
        return smooth(x) + y, lax.cond(i % 2 == 0, smooth, lambda y: y * 2, y)

    both(lambda x, y: fori(0, 3, step, (x, y)), numbers(80), numbers(80))


@pytest.mark.parametrize("end", [1, 4, 7])
def test_a_stencil_until_it_ends(end):
    def program(x):
        def go(s):
            return (jnp.max(s[0]) > 0) & (s[1] < end)

        def step(s):
            return (0.5 * (jnp.roll(s[0], 1) + jnp.roll(s[0], -1)), s[1] + 1)

        return lax.while_loop(go, step, (x, jnp.zeros((), jnp.int32)))

    both(program, np.abs(numbers(90)), wait=(True,))


def test_elimination_that_moves_rows():
    def step(k, a):
        pivot = a[k] / a[k, k]
        return (a - a[:, k, None] * pivot[None]).at[k].set(pivot)

    both(lambda a: fori(0, 12, step, a), numbers(12, 24) + 10 * np.eye(12, 24))


# --- Others -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 5, 8, 13])
def test_rows_that_are_summed_together(n):
    both(
        lambda a, x: fori(0, 4, lambda i, x: jnp.tanh(a @ x) + jnp.max(a * x, 1), x),
        numbers(n * 3, n * 3),
        numbers(n * 3),
    )


@pytest.mark.parametrize("n", [9, 70])
def test_quotients_of_complex_numbers(n):
    z = numbers(n) + 1j * numbers(n)
    both(lambda z: fori(0, 5, lambda i, z: z - (z**3 - 1) / (3 * z**2), z), z, rtol=1e-6)

    def roll(z):
        return (jnp.roll(z, 1) + 1) / (jnp.roll(z, -1) * 1j + 2.5)

    both(lambda z: fori(0, 3, lambda i, z: roll(z), z), z, rtol=1e-8)


def test_the_first_of_few_wins():
    x = np.array([[1, 3, 3], [np.nan, 5, 1], [2, np.nan, np.nan], [-1, -1, -1]], float)

    def program(x):
        def step(i, s):
            return s + i + jnp.argmax(x + 0 * i, 1) + 10 * jnp.argmin(x[i])

        return fori(0, 4, step, jnp.zeros(4, jnp.int32))

    both(program, x)
    assert list(np.asarray(plait.jit(lambda x: jnp.argmax(x, 1))(x))) == [1, 0, 1, 0]


@pytest.mark.parametrize("n", [10, 41, 64])
def test_every_other_element(n):
    def step(i, x):
        a, b = x[0 : n - 1 : 2], x[1::2]
        x = x.at[0 : 2 * a.size : 2].set(jnp.minimum(a, b[: a.size]))
        return x.at[1 : 2 * b.size : 2].add(x[-1::-2][: b.size])

    both(lambda x: fori(0, 3, step, x), numbers(n))


@pytest.mark.parametrize("n", [10, 41])
def test_gradient_of_an_exchange_of_neighbours(n):
    def passing(i, x):
        for first in (0, 1):
            a = x[first : n - 1 : 2]
            b = x[first + 1 :: 2]
            x = x.at[first : first + 2 * a.size : 2].set(jnp.minimum(a, b))
            x = x.at[first + 1 : first + 1 + 2 * b.size : 2].set(jnp.maximum(a, b))
        return x

    def loss(x):
        return jnp.sum(jnp.sin(fori(0, n // 2, passing, x)) * jnp.arange(n, dtype=x.dtype))

    x = numbers(n)
    rank = np.argsort(np.argsort(x))  # enough passes sort, and each element keeps its weight

    def full(x):
        return jnp.sum(jnp.sin(fori(0, n, passing, x)) * jnp.arange(n, dtype=x.dtype))

    np.testing.assert_allclose(plait.grad(full)(x), np.cos(x) * rank, rtol=1e-12)
    both(plait.grad(loss), x)


# --- Calls ------------------------------------------------------------------------------------------


def test_products_of_matrices_are_called():
    def step(k, s):
        total, t = s
        t = t @ s[1].T / (k + 1.0)
        return total + t, t

    both(lambda a: fori(0, 6, step, (a, a))[0], 0.2 * numbers(40, 40))


@pytest.mark.parametrize("n", [3, 12])
def test_factorizations_are_called(n):
    def step(i, a):
        q, r = jnp.linalg.qr(a)
        return r @ q + 0.1 * a.T

    both(lambda a: fori(0, 4, step, a), numbers(n, n), rtol=1e-8)
    spd = numbers(n, n)
    spd = spd @ spd.T + n * np.eye(n)
    both(lambda a: fori(0, 4, lambda i, x: jnp.linalg.cholesky(x + a), a), spd)


def test_sorted_and_cumulative_arrays():
    def step(x, i):
        order = jnp.argsort(x)
        c = jnp.cumsum(jnp.abs(x)) / jnp.sum(jnp.abs(x))
        return jnp.sin(x[order] + c), (jnp.sort(x)[i], jnp.searchsorted(c, 0.3 + 0 * x[0]))

    both(lambda x: lax.scan(step, x, jnp.arange(5)), numbers(33))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32, np.float64, np.bool_])
def test_few_elements_are_sorted_as_by_numpy(n, dtype):
    rows = random.integers(-3, 4, (20, n)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        rows[random.random((20, n)) < 0.2] = np.nan
        rows[random.random((20, n)) < 0.2] = -0.0

    def step(row):
        return jnp.sort(row), jnp.argsort(row), jnp.argsort(row, descending=True)

    f = plait.jit(lambda rows: lax.map(step, rows), wait=True)
    text = f.explain(jnp.asarray(rows))
    assert "llvm" not in text or "one loop program" in text
    up, order, down = map(np.asarray, f(jnp.asarray(rows)))
    wanted = np.argsort(rows, axis=1, kind="stable")
    assert np.array_equal(order, wanted)
    assert np.take_along_axis(rows, wanted, 1).tobytes() == up.tobytes()
    flipped = n - 1 - np.argsort(rows[:, ::-1], axis=1, kind="stable")[:, ::-1]
    assert np.array_equal(down, flipped)


def test_few_elements_of_many_rows_are_sorted_as_by_numpy():
    rows = random.integers(0, 3, (6, 5, 4, 3))

    def step(x, extra):
        return x, (jnp.sort(extra, 1), jnp.argsort(extra, 0))

    f = plait.jit(lambda rows: lax.scan(step, 0, rows)[1], wait=True)
    by_second, of_first = map(np.asarray, f(jnp.asarray(rows)))
    assert np.array_equal(by_second, np.sort(rows, 2))
    assert np.array_equal(of_first, np.argsort(rows, 1, kind="stable"))


def test_views_and_numbers_are_given_to_calls():
    def step(i, s):
        x, y = s
        part = lax.dynamic_slice(x, (i, 0), (3, 8)).T
        few = jnp.cumsum(jnp.stack([x[0, 0], y[0], x[i, i]]))
        return x.at[i].set(jnp.sort(x[i] + few[2])), y + jnp.cumsum(part, 1)[:, 2]

    both(lambda x, y: fori(0, 5, step, (x, y)), numbers(8, 8), numbers(8))


def test_complex_arrays_are_called():
    def step(i, z):
        return jnp.cumsum(z) / (1 + jnp.abs(z)) + jnp.roll(z, 1)

    both(lambda z: fori(0, 4, step, z), numbers(20) + 1j * numbers(20), rtol=1e-8)


def test_calls_within_branches_and_nested_loops():
    def inner(j, x):
        return lax.cond(j % 2 == 0, lambda x: jnp.cumsum(x), lambda x: jnp.sort(x) * 0.5, x)

    both(lambda x: fori(0, 3, lambda i, x: fori(0, 4, inner, x) - x, x), numbers(25))


# --- Loops that become one --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7, 3), (3, 50), (20, 20), (5, 4, 3)])
def test_neighbouring_loops(shape):
    def step(i, s):
        x, y = s
        a = jnp.exp(-x * x) + y  # used three times, so it is an array
        b = jnp.tanh(a) / (1 + a * a)
        m = jnp.max(b, 0)
        c = jnp.sum(a * b, -1, keepdims=True)
        return (a - b * m + c) * 0.3, b + jnp.flip(a, 0) - m

    both(lambda x, y: fori(0, 3, step, (x, y)), numbers(*shape), numbers(*shape))


def test_neighbours_that_must_not_become_one():
    def step(i, x):
        a = jnp.sin(x) + x * x
        b = a[::-1] * a + a
        c = jnp.roll(b, 2) + b * a
        d = c.at[1:].add(b[:-1] * c[1:])
        return 0.2 * d + 0.1 * jnp.roll(d, -1) * c

    both(lambda x: fori(0, 4, step, x), numbers(37))


def test_searches_in_sorted_arrays():
    def step(x, u):
        c = jnp.cumsum(jnp.abs(x) + 0.1)
        at = jnp.searchsorted(c, (jnp.arange(x.size) + u) / x.size * c[-1])
        return x[at.clip(0, x.size - 1)] + jnp.cos(x), jnp.mean(x)

    both(lambda x, u: lax.scan(step, x, u), numbers(45), random.random(4))


INDICES = {  # of elements of a row of 40, by a number that is known when it runs
    "shifted": lambda m, k, w: k - w,
    "from the end": lambda m, k, w: 39 - k + w,
    "limited below": lambda m, k, w: m.maximum(k - w, 0),
    "limited above": lambda m, k, w: m.minimum(k - w, 39),
    "limited by each other": lambda m, k, w: m.maximum(m.minimum(k - w, 30), w - 5),
    "turned": lambda m, k, w: m.maximum(w - k, 0),
    "there and back": lambda m, k, w: m.maximum(k - w, w - k),
    "by bytes": lambda m, k, w: (k - w).astype(np.int8),
    "squared": lambda m, k, w: (k - w) * (k - w),
}
ENDS = [2**31 - 1, -(2**31), 20 - 2**31, 2**31 - 20]


@pytest.mark.parametrize("kind", INDICES)
@pytest.mark.parametrize("offset", [0, 1, -1, 5, 39, 40, -39, -40, 41, 1000, -1000, *ENDS])
def test_indices_of_rows_are_checked_by_their_ends_where_those_tell(kind, offset):
    """Whatever goes around the ends of int32 on the way, the first index that is out is named."""

    def program(x, offsets):
        k = jnp.arange(40)
        return lax.scan(lambda s, w: (s + x[INDICES[kind](jnp, k, w)], None), 0.0 * x, offsets)[0]

    x, inside = numbers(40), 20 if kind == "squared" else 0
    k, want = np.arange(40, dtype=np.int32), np.zeros(40)
    outside = None
    for w in (inside, offset):
        with np.errstate(over="ignore"):
            index = INDICES[kind](np, k, np.full(40, w, np.int32))
        index = np.where(index < 0, index.astype(np.int64) + 40, index)
        if ((index < 0) | (index >= 40)).any():
            outside = index[(index < 0) | (index >= 40)][0]
            break
        want += x[index]
    given = jnp.asarray(x), jnp.asarray(np.array([inside, offset], np.int32))
    for run in (contextlib.nullcontext(), plait.disable_jit()):
        with run:
            if outside is None:
                np.testing.assert_allclose(plait.jit(program, wait=True)(*given), want, rtol=1e-15)
            else:
                with pytest.raises(plait.IndexError, match=f"index {outside} is out of bounds"):
                    plait.jit(program, wait=True)(*given)


def test_rows_are_read_behind_the_checks_of_their_indices():
    """The loop that computes indices could be one with that which reads by them, but for the checks between."""

    def program(x, offsets):
        k = jnp.arange(40)

        def step(s, w):
            rows = jnp.maximum(jnp.minimum(k - w, 30), w - 5)
            return jnp.maximum(s, 0.0) + x[rows], None

        return lax.scan(step, 0.0 * x, offsets)[0]

    x = jnp.asarray(numbers(40, 24))
    jitted = plait.jit(program, wait=True)
    both(program, x, np.array([3, 7], np.int32))
    with pytest.raises(plait.IndexError, match="index 2147483642 is out of bounds for axis 0"):
        jitted(x, jnp.asarray(np.array([3, 2**31 - 1], np.int32)))
