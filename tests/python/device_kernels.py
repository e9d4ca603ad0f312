"""What test_device_kernels.py runs where a GPU, or its stand-in, is: one line for each case.

SPDX-License-Identifier: Apache-2.0
"""

import sys

import numpy as np

import plait
import plait.lax as lax
import plait.numpy as pnp

DEVICE = "cuda:0"
RANDOM = np.random.default_rng(7)


def floats(*shape, dtype="f8"):
    return RANDOM.normal(size=shape).astype(dtype)


def complexes(*shape, dtype="c16"):
    return (floats(*shape) + 1j * floats(*shape)).astype(dtype)


def small(*shape, dtype="i4", most=9):
    return RANDOM.integers(0, most, size=shape).astype(dtype)


def there(*arrays):
    return [plait.device_put(array, DEVICE) for array in arrays]


def tolerance(dtype):
    size = np.dtype(dtype).itemsize // (2 if np.dtype(dtype).kind == "c" else 1)
    kind = np.dtype(dtype).kind
    return 0 if kind not in "fc" else {2: 2e-3, 4: 2e-5, 8: 1e-10}[size]


def close(actual, expected, rtol=None):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    bound = tolerance(expected.dtype) if rtol is None else rtol
    np.testing.assert_allclose(
        actual.astype(expected.dtype), expected, rtol=bound, atol=bound, equal_nan=True
    )


CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def like_cpu(f, *inputs):
    """The same numbers as on the CPU."""
    actual, expected = plait.jit(f)(*there(*inputs)), f(*inputs)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for a, b in zip(actual, expected, strict=True):
        close(a, b)


# --- Programs without arithmetic -----------------------------------------------------------------


@case
def views_and_numbers_alone():
    x = floats(3, 4)
    like_cpu(lambda a: pnp.ones_like(a), x)
    like_cpu(lambda a: a.T.reshape(-1), x)
    like_cpu(lambda a: (a[::2], a[:, ::-1], a.T, a), x)
    like_cpu(lambda a: (pnp.arange(5), pnp.eye(3)), x)


@case
def arrays_without_elements():
    empty, x = floats(0, 3, dtype="f4"), floats(2, 3, dtype="f4")
    like_cpu(lambda a: (a + 1, pnp.sort(a, 0), pnp.cumsum(a, 0), plait.nn.softmax(a)), empty)
    like_cpu(lambda a: (a.sum(), a.sum(0), a.mean(), a.max(initial=0.0), a.T @ a), empty)
    like_cpu(
        lambda a, b: (pnp.concatenate([a, b]), lax.pad(a, 5.0, [(1, 1, 0), (0, 0, 0)])), empty, x
    )
    like_cpu(lambda a, b: pnp.asarray(b).at[pnp.zeros(0, int)].add(a), empty, x)
    like_cpu(lambda a: lax.scan(lambda c, row: (c + row.sum(), row * 2), 0.0, a), empty)
    like_cpu(lambda b: plait.grad(lambda b: (b[:0] ** 2).sum() + b.sum())(b), x)
    like_cpu(lambda b: pnp.linalg.det(pnp.asarray(b)[:0, :0]), x)


# --- Many updates of a small array ---------------------------------------------------------------


@case
def histograms():
    n = 33000

    def adds(size, dtype):
        like_cpu(
            lambda a, i, v: pnp.asarray(a).at[i].add(v),
            floats(size).astype(dtype),
            small(n, most=size),
            floats(n).astype(dtype),
        )

    adds(3, "f2")
    adds(3, "?")
    adds(4100, "f4")
    like_cpu(
        lambda a, i, v: pnp.asarray(a).at[i[:, 0] - 1, i[:, 1]].max(v, mode="drop"),
        floats(2, 2),
        small(n, 2, most=2),
        floats(n),
    )


@case
def updates_of_an_array_in_order():
    """The sums of the CPU to the bit, whichever elements the updates change."""

    def same(kind, size, rows, dtype, **options):
        x, updates = floats(size).astype(dtype), (100 * floats(len(rows))).astype(dtype)
        updates[:5] = 0

        def f(x, rows, updates):
            return getattr(pnp.asarray(x).at[rows], kind)(updates, **options)

        actual = np.asarray(plait.jit(f)(*there(x, rows, updates)))
        assert actual.tobytes() == np.asarray(f(x, rows, updates)).tobytes(), (kind, size, dtype)

    n = 70001
    same("add", 2000, small(n, most=2000), "f4")
    same("add", 4200, small(n, most=4200), "c8", mode="clip")
    same("max", 2000, small(n, most=2500, dtype="i8"), "f8", mode="drop")
    same("min", 5000, small(n, most=5100) - 50, "i2", mode="clip")
    for rows in [np.full(n, 3), np.minimum(small(n, most=3000), 1000), np.arange(n) % 2000]:
        same("add", 2000, rows.astype("i4"), "f4", mode="clip")


@case
def windows_updated_in_order():
    """Many updates of single elements and of rows, of which some lie at the same place."""

    def same(f, *inputs):
        actual, expected = np.asarray(plait.jit(f)(*there(*inputs))), np.asarray(f(*inputs))
        assert actual.tobytes() == expected.tobytes()

    n = 5000
    x, i, v = floats(n, dtype="f4"), small(n, most=n), (100 * floats(n)).astype("f4")
    same(lambda x, i, v: x.at[i].add(v), pnp.asarray(x), i, v)
    same(lambda x, i, v: x.at[i].set(v, mode="drop"), pnp.asarray(x), i * 2, v)
    same(lambda x, i, v: x.at[i // 100].multiply(v * 1e-2, mode="clip"), pnp.asarray(x), i, v)
    x, v = floats(300, 7), floats(50, 60, 7)
    i = small(50, 60, most=310)
    same(lambda x, i, v: x.at[i].add(v, mode="clip"), pnp.asarray(x), i, v)
    same(lambda x, i, v: x.T.at[:, i].max(v.transpose(2, 0, 1), mode="drop"), pnp.asarray(x), i, v)
    same(lambda x, i, v: x.at[i, i % 7].add(v[..., 0], mode="drop"), pnp.asarray(x), i, v)
    same(
        lambda x, i, v: plait.vmap(lambda x, i, v: x.at[i].add(v, mode="clip"))(x, i, v),
        pnp.asarray(floats(50, 300)),
        i,
        v[..., 0],
    )
    same(lambda x, i: plait.grad(lambda x: (x[i] ** 3).sum())(x), pnp.asarray(x), i % 300)
    same(
        lambda x, i, v: plait.vmap(lambda x, i, v: x.at[i].add(v))(x, i, v),
        pnp.asarray(floats(5, 40)),
        small(5, 30, most=40),
        floats(5, 30),
    )
    same(
        lambda x, i, v: x.at[i].add(v, unique_indices=True),
        pnp.asarray(x),
        RANDOM.permutation(300).reshape(3, 100),
        floats(3, 100, 7),
    )


# --- Products ------------------------------------------------------------------------------------


@case
def products_of_matrices():
    for dtype in ["f4", "f8", "f2", "c8", "c16", "?", "i8"]:
        for m, k, n in [(5, 7, 3), (33, 65, 17), (1, 9, 40), (40, 9, 1), (3, 2100, 2)]:
            if np.dtype(dtype).kind == "c":
                x, y = complexes(m, k, dtype=dtype), complexes(k, n, dtype=dtype)
            elif np.dtype(dtype).kind == "f":
                x, y = floats(m, k, dtype=dtype), floats(k, n, dtype=dtype)
            else:
                x, y = small(m, k, dtype=dtype, most=2), small(k, n, dtype=dtype, most=2)
            wide = x.astype("f4") @ y.astype("f4") if dtype == "f2" else x @ y
            bound = 1e-2 if dtype == "f2" else 1e-4 if dtype in ("f4", "c8") else None
            close(plait.jit(pnp.matmul)(*there(x, y)), wide.astype(dtype), bound)


@case
def products_over_scattered_axes():
    x, y = floats(3, 4, 5, 6), floats(5, 7, 3)
    f = plait.jit(lambda x, y: lax.dot_general(x, y, (([0, 2], [2, 0]), ([], []))))
    close(f(*there(x, y)), np.einsum("abcd,cea->bde", x, y))


@case
def long_vectors():
    for dtype in ["f8", "c16", "f4"]:
        x = floats(70001).astype(dtype)
        close(plait.jit(pnp.dot)(*there(x, x)), np.dot(x, x), 1e-5 if dtype == "f4" else None)


@case
def loops_whose_steps_are_products():
    """Which a library computes, and the host starts; small ones are steps of a kernel."""

    def run(w, x):
        return lax.scan(lambda h, x: (pnp.tanh(h @ w + x), h), pnp.zeros_like(x[0]), x)[0]

    for width, step in [(256, "control"), (16, "cuda")]:
        w, x = floats(width, width, dtype="f4") / 16, floats(3, 32, width, dtype="f4")
        f = plait.jit(run)
        close(f(*there(w, x)), f(w, x), 1e-5)
        lines = f.explain(*there(w, x)).splitlines()
        (scan,) = [line for line in lines if " scan" in line]
        assert f" {step} " in scan, scan


# --- Combinations of the same elements -----------------------------------------------------------


@case
def combinations_of_few_turns():
    """Each computes what all of them take in, which no memory holds."""

    def forces(p, m):
        apart = p[None] - p[:, None]
        inverse = ((apart * apart).sum(-1) + 1e-3) ** -1.5 * m
        return (apart * inverse[..., None]).sum(1)

    def same(f, *inputs):
        actual, expected = plait.jit(f)(*there(*inputs)), plait.jit(f)(*inputs)
        assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes()

    for n, dims in [(1024, 3), (1100, 2), (2100, 3)]:
        p, m = floats(n, dims, dtype="f4"), floats(n, dtype="f4")
        actual, expected = plait.jit(forces)(*there(p, m)), forces(p.astype("f8"), m.astype("f8"))
        np.testing.assert_allclose(np.asarray(actual), expected, atol=1e-5 * abs(expected).max())
    p, m = floats(1200, 3), floats(1200)
    same(lambda p, m: pnp.max(1 + (p[None] - p[:, None]) * m[:, None], 1), p, m)
    like_cpu(lambda p, m: pnp.prod(1 + 0.01 * (p[None] - p[:, None]) * m[:, None], 1), p, m)
    same(lambda x, y: (x[:, None] * y).sum(-1), floats(1500, 70), floats(4, 70))


# --- Windows -------------------------------------------------------------------------------------


@case
def convolutions():
    x, w = floats(2, 6, 9, 11, dtype="f4"), floats(8, 3, 3, 2, dtype="f4")
    for options in [
        dict(window_strides=(1, 1), padding="SAME"),
        dict(window_strides=(2, 3), padding="VALID"),
        dict(window_strides=(2, 1), padding=[(1, 3), (-1, 2)], lhs_dilation=(2, 1)),
        dict(window_strides=(1, 1), padding=[(2, 2), (3, 0)], rhs_dilation=(2, 3)),
    ]:
        like_cpu(
            lambda x, w, options=options: lax.conv_general_dilated(
                x, w, feature_group_count=2, **options
            ),
            x,
            w,
        )
    like_cpu(
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        floats(3, 8, 7, 5, dtype="f4"),
        floats(3, 3, 5, 4, dtype="f4"),
    )
    like_cpu(
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", batch_group_count=2),
        complexes(4, 3, 13),
        complexes(6, 3, 4),
    )
    like_cpu(
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID"),
        floats(2, 3, 33, dtype="f2"),
        floats(4, 3, 5, dtype="f2"),
    )


@case
def windows():
    x = floats(3, 17, 14)
    x[0, 3, 5] = np.nan
    for name in ["sum", "prod", "max", "min"]:
        f = getattr(lax, "reduce_window_" + name)
        like_cpu(lambda x, f=f: f(x, (1, 3, 2), (1, 2, 1), "SAME"), x)
        like_cpu(
            lambda x, f=f: f(
                x, (2, 3, 2), (1, 2, 1), [(0, 1), (2, 1), (1, 4)], (1, 2, 1), (1, 1, 3)
            ),
            x,
        )
    like_cpu(
        lambda x: plait.grad(
            lambda x: lax.reduce_window_max(x, (1, 3, 3), (1, 1, 1), "SAME").sum()
        )(x),
        floats(2, 9, 8),
    )


# --- Order ---------------------------------------------------------------------------------------


@case
def sorted_rows():
    for n in [1, 5, 8, 9, 31, 32, 33, 64, 100, 257, 1000]:
        x = floats(3, n)
        x[0, : n // 4] = x[0, n - n // 4 :]
        x[1, n // 2] = np.nan
        close(plait.jit(pnp.sort)(*there(x)), np.sort(x, axis=-1))
        close(plait.jit(pnp.argsort)(*there(x)), np.argsort(x, axis=-1, kind="stable"))
        close(plait.jit(lambda x: pnp.sort(x, axis=0))(*there(x)), np.sort(x, axis=0))


@case
def sorted_numbers_of_all_kinds():
    for dtype in ["?", "i1", "u8", "f2", "i8"]:
        x = small(2, 77, dtype=dtype, most=2 if dtype == "?" else 40)
        close(plait.jit(pnp.sort)(*there(x)), np.sort(x, axis=-1))
    x = small(3, 50, most=3) + 1j * small(3, 50, most=3)
    x[1, 4] = complex(np.nan, 1)
    x[1, 9] = complex(0, np.nan)
    close(plait.jit(pnp.sort)(*there(x)), np.sort(x, axis=-1))


@case
def rows_sorted_by_several_keys():
    keys, others, values = small(2, 90, most=4), floats(2, 90, dtype="f4"), small(2, 90, most=99)
    like_cpu(
        lambda a, b, c: tuple(lax.sort((a, b, c), num_keys=2)),
        keys,
        small(2, 90, dtype="f4"),
        values,
    )
    like_cpu(lambda a, b: tuple(lax.sort((a, b), num_keys=1)), keys, others)


@case
def long_rows_sorted():
    """Ties, zeros of both signs and NaN along rows that all blocks order together."""
    n = 20_003
    x = floats(n, dtype="f4")
    x[100:900], x[20:30], x[25:40] = x[7], 0, -0.0
    x[[4, 50]], x[10:12] = [np.nan, -np.nan], [np.inf, -np.inf]
    like_cpu(lambda x: (pnp.argsort(x), pnp.sort(x), pnp.argsort(x, descending=True)), x)
    like_cpu(lambda x: tuple(lax.top_k(x, 5000)), x)
    for dtype in ["?", "i2", "u8", "f2", "f8"]:
        numbers = RANDOM.integers(-(2**62), 2**62, n) >> RANDOM.integers(0, 60, n)
        numbers = {"?": numbers > 0, "f2": numbers % 3000}.get(dtype, numbers)
        like_cpu(pnp.argsort, numbers.astype(dtype))
    z = small(2, n, most=3) + 1j * small(2, n, most=3)
    z[1, [4, 9]] = [complex(np.nan, 1), complex(0, np.nan)]
    like_cpu(lambda z: pnp.argsort(z), z.astype("c8"))
    like_cpu(lambda x: pnp.argsort(x, axis=0), small(n, 3, most=500))
    like_cpu(lambda x: pnp.argsort(x, axis=1), small(2, n, 2, most=500, dtype="f4"))
    keys, others, values = small(n, most=4), floats(n, dtype="f4"), small(n)
    others[:12000] = others[8003:]
    like_cpu(lambda *rows: tuple(lax.sort(rows, num_keys=2)), keys, others, values)


def same_bits(f, *inputs):
    """The same bits as on the CPU: NaN, and zeros of both signs, where they were."""
    actual, expected = plait.jit(f)(*there(*inputs)), f(*inputs)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for a, b in zip(actual, expected, strict=True):
        assert a.device == DEVICE and a.dtype == b.dtype
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def with_ties(*shape, dtype="f4"):
    x = floats(*shape, dtype=dtype)
    x[..., 7:90], x[..., 100:140], x[..., 120:130] = x[..., :83], 0, -0.0
    x[..., [4, 50]] = [np.nan, -np.nan]
    x[..., 60:62] = [np.inf, -np.inf]
    return x


@case
def rows_sorted_together():
    """Of one tile and of several, one row and many, with values of every size."""
    for rows, n in [(1, 512), (3, 700), (70, 600), (2, 2048), (3, 3072), (1, 3073), (4, 6200)]:
        x = with_ties(rows, n)
        same_bits(lambda x: (pnp.sort(x), pnp.argsort(x)), x)
    x = with_ties(60, 3100)
    same_bits(lambda x: pnp.sort(x, descending=True), x)
    same_bits(lambda x: pnp.argsort(x, axis=0), small(600, 5, most=300))
    keys = small(2, 3100, most=200, dtype="i2")
    for dtype in ["i1", "f2", "i4", "f8", "c8"]:
        values = small(2, 3100, most=100).astype(dtype)
        same_bits(lambda k, v: tuple(lax.sort((k, v), num_keys=1)), keys, values)
    for dtype in ["f8", "i8", "u4", "i1"]:
        numbers = (floats(2, 2500) * 2.0 ** small(2, 2500, most=40)).astype("i8").astype(dtype)
        same_bits(lambda k, v: tuple(lax.sort((k, v), num_keys=1)), numbers, floats(2, 2500))
    same_bits(lambda x: tuple(lax.top_k(x, 300)), with_ties(5, 3333))
    same_bits(lambda x: tuple(lax.top_k(x, 200, axis=0)), floats(800, 3))


@case
def rows_sorted_in_loops():
    def turn(x):
        return lax.fori_loop(0, 3, lambda i, x: pnp.sort(x * (1 - 2.0 * (i % 2))) + x * 0.5, x)

    def until(x):
        return lax.while_loop(
            lambda x: x[0] < 4, lambda x: pnp.sort(x[::-1], descending=True) + 1, x
        )

    for n in (600, 3500, 9000):
        same_bits(turn, floats(n, dtype="f4"))
    for shape in [(5, 600), (18, 520), (3, 3100)]:
        same_bits(plait.vmap(turn), floats(*shape, dtype="f4"))
    same_bits(until, floats(3500, dtype="f4"))
    same_bits(plait.vmap(until), floats(18, 520, dtype="f4"))


@case
def largest_elements():
    for n, k in [(5, 2), (33, 1), (100, 7), (1000, 33), (1000, 40), (777, 777)]:
        x = small(3, n, dtype="f8", most=50)
        x[1, n // 3] = np.nan
        like_cpu(lambda x, k=k: tuple(lax.top_k(x, k)), x)


# --- Unequal sizes -------------------------------------------------------------------------------


@case
def sequences_of_unequal_lengths():
    """Of sizes that programs round up: what lies beyond the ends must not count."""
    width, lengths = 16, np.array([256, 192, 154, 81], "i4")

    def one(w, x):
        scores = x @ w @ x.T
        return pnp.sum((plait.nn.softmax(scores / 8) @ x) ** 2) + pnp.sum(scores**2) * 1e-6

    def value(w, x, lengths):
        masked = plait.mask(one, (None, f"t {width}"))
        return pnp.sum(plait.vmap(lambda x, n: masked(w, x, t=n))(x, lengths))

    w, x = floats(width, width), floats(4, 300, width)
    actual, gradient = plait.jit(plait.value_and_grad(value))(*there(w, x, lengths))
    alone = plait.value_and_grad(lambda w: sum(one(w, x[i, :n]) for i, n in enumerate(lengths)))
    expected, slopes = alone(w)
    close(actual, expected, 1e-9)
    close(gradient, slopes, 1e-9)


# --- Indices outside -----------------------------------------------------------------------------


@case
def indices_outside():
    """Wherever they are checked, nothing is read by them, and the device goes on."""
    n = 2400
    programs = {
        "branch": lambda x, i: lax.cond(x[0] < 1, lambda: x[i] * 2, lambda: x[i] + 1),
        "loop": lambda x, i: lax.fori_loop(0, 3, lambda k, c: c + x[i], pnp.zeros(n)),
        "updates": lambda x, i: lax.fori_loop(0, 3, lambda k, c: c.at[i].add(1.0), x),
        "scan": lambda x, i: lax.scan(lambda c, j: (c + x[j], x[j]), 0.0, i)[1],
        "while": lambda x, i: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x[i]), (0, pnp.zeros(n))
        )[1],
        "sum": lambda x, i: pnp.sum(x[i] * 2),
    }
    x, i = there(np.arange(8, dtype="f4"), np.array([1, 2, 100_000_000, 3] * (n // 4), "i4"))
    for name, f in programs.items():
        try:
            np.asarray(plait.jit(f)(x, i))
        except IndexError as error:
            assert "100000000 is out of bounds" in str(error), (name, error)
        else:
            raise AssertionError(f"{name}: an index outside was taken")
        close(x + 1, np.arange(8.0) + 1)


# --- Rows and neighbours -------------------------------------------------------------------------


@case
def long_rows_gone_through_several_times():
    """Which a block keeps in its memory; those of the last size find no room there."""

    def standardized(x):
        mean = pnp.mean(x, -1, keepdims=True)
        return (x - mean) / pnp.sqrt(pnp.mean((x - mean) ** 2, -1, keepdims=True) + 1e-5)

    def loss(x):
        return pnp.sum(plait.nn.softmax(x) ** 3)

    for shape in [(5, 256), (3, 1000), (2, 9001)]:
        x = floats(*shape, dtype="f4")
        for f in (plait.nn.log_softmax, standardized, plait.grad(loss)):
            close(plait.jit(f)(*there(x)), plait.jit(f)(x), 1e-5)
    x = floats(2300, 260, dtype="f4")
    like_cpu(lambda x: x - pnp.max(x, 1, keepdims=True), x)
    # An index into the row, and one outside.
    labels = small(2300, most=260)
    picked = plait.jit(lambda x, i: pnp.take_along_axis(plait.nn.softmax(x), i[:, None], 1))
    close(picked(*there(x, labels)), picked(x, labels), 1e-6)
    labels[[7, 2000]] = 1000, 2000
    try:
        np.asarray(picked(*there(x, labels)))
    except IndexError as error:
        assert "index 1000 is out of bounds" in str(error), error  # the first one
    else:
        raise AssertionError("an index outside was taken")


@case
def arrays_of_examples_that_blocks_keep():
    """While the steps of a loop follow each other: those that change places too, and go back."""

    def stencil(u):
        def step(i, u):
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1]))

        return lax.fori_loop(0, 5, step, u)

    def fields(e, h):
        def step(i, s):
            e, h = s
            e = e.at[1:].add(-0.5 * (h[1:] - h[:-1]))
            return e, h.at[:-1].add(0.7 * (e[1:] - e[:-1]))

        return lax.fori_loop(0, 6, step, (e, h))

    def shortest(d):
        return lax.fori_loop(
            0, d.shape[0], lambda k, d: pnp.minimum(d, d[:, k, None] + d[None, k, :]), d
        )

    def columns(a):
        def column(j, r):
            v = a[:, j] - r @ r[j]
            return r.at[:, j].set(pnp.where(pnp.arange(a.shape[0]) >= j, v / pnp.sqrt(v[j]), 0.0))

        return lax.fori_loop(0, a.shape[0], column, pnp.zeros_like(a))

    x = floats(3, 18, 18, dtype="f4")
    same_bits(plait.vmap(stencil), floats(3, 21, 18, dtype="f4"))
    same_bits(plait.vmap(stencil, in_axes=2, out_axes=1), floats(18, 20, 3, dtype="f4"))
    same_bits(plait.vmap(stencil), floats(2, 200, 200, dtype="f4"))  # which find no room
    same_bits(plait.vmap(fields), floats(3, 20, 30), floats(3, 20, 30))
    same_bits(plait.vmap(shortest), np.abs(x))
    same_bits(plait.vmap(columns), x @ x.transpose(0, 2, 1) + 18 * np.eye(18, dtype="f4"))
    same_bits(
        plait.vmap(lambda x, n: lax.fori_loop(0, n, lambda i, x: x[::-1] * 0.5 + x.T, x)),
        x,
        np.array([3, 0, 6], "i4"),
    )


@case
def rows_of_a_loop_that_blocks_share():
    """Of a board whose steps all blocks run: too few rows for an octet each."""

    def life(board):
        def step(t, b):
            turned = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
            n = sum(pnp.roll(b, by, (0, 1)) for by in turned)
            return ((n == 3) | ((b == 1) & (n == 2))).astype(b.dtype)

        return lax.fori_loop(0, 6, step, board)

    same_bits(life, small(40, 260, most=2))
    same_bits(life, small(260, 40, most=2))


@case
def sums_of_the_same_bits():
    """However often they are asked for, in jit and outside of it; long ones have no CPU's bits."""

    def f(x):
        return x.sum(1), (x * x).sum(1), x.T.sum(0), pnp.max(x, 1), x.mean()

    for n in (200, 1000):
        (x,) = there(floats(5, n, dtype="f4"))
        compiled = plait.jit(f)
        first = [np.asarray(array).tobytes() for array in compiled(x)]
        for again in (compiled(x), f(x)):
            assert [np.asarray(array).tobytes() for array in again] == first, n


@case
def neighbours_at_once():
    """Which threads load and store by fours, where their memory begins so."""
    n = 1 << 20
    x, y = floats(n + 8, dtype="f4"), floats(n + 8, dtype="f4")
    for first in (0, 1, 4):
        like_cpu(lambda x, y, i=first: (x[i : n + i] + y[:n]) * 2, x, y)
    (on_device,) = there(x)
    close(on_device[1 : n + 1] * 2, x[1 : n + 1] * 2, 0)
    matrix = x[:n].reshape(1024, 1024)
    like_cpu(lambda a, b: a * 2 + b, matrix, y[:1024])
    like_cpu(lambda a, b: a.T * 2 + b[:, None], matrix, y[:1024])
    like_cpu(lambda x: x * 3, small(n, dtype="i1", most=40))
    like_cpu(lambda x: x * x, complexes(n, dtype="c8"))
    index = small(n // 16, most=500)
    like_cpu(lambda a, i: pnp.take(a, i, 0, mode="clip"), floats(500, 16, dtype="f4"), index)
    like_cpu(lambda a, b: pnp.where(a > b, a, -b) + pnp.arange(n), x[:n], y[:n])


# --- Scans ---------------------------------------------------------------------------------------


@case
def running_reductions():
    for n in [1, 7, 31, 32, 33, 1000, 1025]:
        for dtype in ["f8", "f4", "f2", "i4", "c16"]:
            x = floats(3, n).astype(dtype) if dtype != "i4" else small(3, n)
            bound = 2e-2 if dtype == "f2" else 1e-4 if dtype == "f4" else 1e-9
            for reverse in [False, True]:
                f = plait.jit(lambda x, reverse=reverse: lax.cumsum(x, axis=1, reverse=reverse))
                turned = x[:, ::-1] if reverse else x
                wide = np.cumsum(turned, axis=1, dtype="f4" if dtype == "f2" else dtype)
                expected = wide.astype(dtype)
                close(f(*there(x)), expected[:, ::-1] if reverse else expected, bound)
            if dtype != "c16":
                close(
                    plait.jit(lambda x: lax.cummax(x, axis=1))(*there(x)),
                    np.maximum.accumulate(x, 1),
                )
                like_cpu(lambda x: lax.cummin(x, axis=0, reverse=True), x)
    like_cpu(lambda x: lax.cumprod(x, axis=1), floats(5, 300))


@case
def long_running_reductions():
    """By elements and by blocks, of several sizes: what that depends on are shapes."""
    for shape, axis in [((600_001,), 0), ((2, 70_000, 9), 1), ((200_000, 3), 0), ((5, 3000), 1)]:
        x, factors = floats(*shape), RANDOM.uniform(-1, 1, shape)
        x.flat[3] = -0.0
        like_cpu(
            lambda x, a, axis=axis: (
                lax.cumsum(x, axis, reverse=True),
                lax.cumprod(1 + x * 1e-3, axis),
                lax.cummax(x, axis),
                lax.linear_recurrence(a, x, axis),
                lax.linear_recurrence(a, x, axis, reverse=True),
            ),
            x,
            factors,
        )
    like_cpu(lambda x: lax.cumlogsumexp(x), floats(3000))
    like_cpu(lambda x: lax.cumsum(x), small((1 << 23) + 3))
    x = there(floats(600_001, dtype="f4"))
    again = [np.asarray(plait.jit(lambda x: lax.cumsum(x))(*x)).tobytes() for _ in range(2)]
    assert again[0] == again[1]


@case
def recurrences():
    for dtype in ["f8", "c16", "f2"]:
        a, b = (floats(4, 50) * 0.5).astype(dtype), floats(4, 50).astype(dtype)
        for axis in [0, 1]:
            like_cpu(
                lambda a, b, axis=axis: lax.linear_recurrence(a, b, axis=axis, reverse=True), a, b
            )


# --- Matrices ------------------------------------------------------------------------------------


def matrices(dtype, *shapes):
    for shape in shapes:
        yield (complexes if np.dtype(dtype).kind == "c" else floats)(*shape, dtype=dtype)


def adjoint(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


SQUARE = [(1, 1), (3, 3), (2, 5, 5), (17, 17), (2, 3, 9, 9)]
KINDS = ["f4", "f8", "c8", "c16"]


@case
def factors_of_matrices():
    for dtype in KINDS:
        for x in matrices(dtype, *SQUARE, (9, 4), (2, 20, 31)):
            like_cpu(lambda x: tuple(lax.linalg.lu(x)), x)
        for x in matrices(dtype, *SQUARE):
            close(
                plait.jit(pnp.linalg.det)(*there(x)),
                np.linalg.det(x),
                1e-3 if dtype in ("f4", "c8") else None,
            )
            definite = x @ adjoint(x) + 4 * np.eye(x.shape[-1], dtype=dtype)
            close(
                plait.jit(pnp.linalg.cholesky)(*there(definite)),
                np.linalg.cholesky(definite),
                1e-3 if dtype in ("f4", "c8") else None,
            )


@case
def triangular_systems():
    for dtype in ["f8", "c16"]:
        for x in matrices(dtype, (3, 3), (2, 18, 18)):
            x = x + 5 * np.eye(x.shape[-1], dtype=dtype)
            for sides in [3, 33]:
                b = next(matrices(dtype, (*x.shape[:-1], sides)))
                for left in [True, False]:
                    for lower in [True, False]:
                        for transpose in [True, False]:
                            like_cpu(
                                lambda a, b: lax.linalg.triangular_solve(
                                    a,
                                    b,
                                    left_side=left,
                                    lower=lower,
                                    transpose_a=transpose,
                                    conjugate_a=transpose,
                                    unit_diagonal=not left and lower,
                                ),
                                x,
                                b if left else np.ascontiguousarray(np.swapaxes(b, -1, -2)),
                            )


@case
def orthogonal_factors():
    for dtype in KINDS:
        for x in matrices(dtype, *SQUARE, (9, 4), (4, 9), (2, 20, 31)):
            for full in [False, True]:
                like_cpu(lambda x, full=full: tuple(lax.linalg.qr(x, full_matrices=full)), x)


@case
def eigenvectors():
    for dtype in KINDS:
        for x in matrices(dtype, *SQUARE, (33, 33)):
            like_cpu(lambda x: tuple(lax.linalg.eigh(x)), x)
            like_cpu(lambda x: pnp.linalg.eigvalsh(x, UPLO="U"), x)
    degenerate = np.ones((6, 6)) + np.eye(6)
    vectors, values = plait.jit(lambda x: tuple(lax.linalg.eigh(x)))(*there(degenerate))
    vectors = np.asarray(vectors)
    close(vectors * np.asarray(values) @ vectors.T, degenerate)
    close(vectors.T @ vectors, np.eye(6))


@case
def singular_values():
    for dtype in KINDS:
        for x in matrices(dtype, *SQUARE, (9, 4), (4, 9), (2, 20, 31)):
            like_cpu(lambda x: tuple(lax.linalg.svd(x, full_matrices=False)), x)
            close(
                plait.jit(lambda x: pnp.linalg.svd(x, compute_uv=False))(*there(x)),
                np.linalg.svd(x, compute_uv=False),
            )
            u, s, vh = (
                np.asarray(y)
                for y in plait.jit(lambda x: tuple(lax.linalg.svd(x, full_matrices=True)))(
                    *there(x)
                )
            )
            k = s.shape[-1]
            bound = 1e-4 if dtype in ("f4", "c8") else None
            close(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x, bound)
            for q in [u, adjoint(vh)]:
                close(
                    adjoint(q) @ q,
                    np.broadcast_to(np.eye(q.shape[-1]), q.shape).astype(dtype),
                    bound,
                )


@case
def singular_matrices():
    for dtype in ["f8", "c16"]:
        for x in matrices(dtype, (7, 2)):
            low = x @ adjoint(x[:5])  # of rank 2
            for each in [low, np.zeros_like(low)]:
                u, s, vh = (
                    np.asarray(y)
                    for y in plait.jit(lambda x: tuple(lax.linalg.svd(x, full_matrices=True)))(
                        *there(each)
                    )
                )
                close(u[:, :5] * s @ vh, each)
                close(adjoint(u) @ u, np.eye(7, dtype=dtype))
                close(plait.jit(pnp.linalg.pinv)(*there(each)), np.linalg.pinv(each, rcond=1e-12))


@case
def pseudo_inverses():
    for dtype in KINDS:
        for x in matrices(dtype, (3, 3), (9, 4), (2, 5, 8)):
            like_cpu(pnp.linalg.pinv, x)


@case
def systems_of_three_diagonals():
    for dtype in KINDS:
        for n, sides in [(1, 2), (2, 1), (7, 3), (33, 40)]:
            dl, d, du = matrices(dtype, (2, n), (2, n), (2, n))
            like_cpu(lax.linalg.tridiagonal_solve, dl, d, du, next(matrices(dtype, (2, n, sides))))
    d = np.array([1.0, 0.0, 0.0, 2.0])  # whose rows change places
    like_cpu(lax.linalg.tridiagonal_solve, d * 0 + 3, d, d * 0 + 0.5, floats(4, 2))


@case
def updated_factors():
    for dtype in KINDS:
        for x, w in zip(matrices(dtype, *SQUARE), matrices(dtype, *(s[:-1] for s in SQUARE))):
            like_cpu(lax.linalg.cholesky_update, np.triu(x), w)
    like_cpu(lax.linalg.cholesky_update, np.zeros((3, 3)), np.array([0.0, 2.0, 0.0]))


@case
def columns_in_order_of_their_rest():
    for dtype in KINDS:
        for x in matrices(dtype, *SQUARE, (9, 4), (4, 9), (2, 20, 31)):
            like_cpu(lambda x: tuple(lax.linalg.qr(x, pivoting=True, full_matrices=False)), x)
    low = floats(7, 2) @ floats(2, 7)
    like_cpu(lambda x: lax.linalg.qr(x, pivoting=True)[2][:2], low)


@case
def unitary_factors():
    for dtype in KINDS:
        for x in matrices(dtype, *SQUARE, (9, 4), (4, 9)):
            like_cpu(lambda x: tuple(plait.scipy.linalg.polar(x)), x)
    close(
        plait.jit(lambda x: plait.scipy.linalg.polar(x)[0])(*there(np.zeros((3, 2)))), np.eye(3, 2)
    )


@case
def general_matrices():
    """Eigenvalues in any part of the plane, in the order of the CPU, and eigenvectors of its phases."""
    for dtype in KINDS:
        is_wide = dtype in ("f8", "c16")
        bound = 1e-9 if is_wide else 2e-4
        for x in matrices(dtype, *([(1, 1), (2, 5, 5), (12, 12)] if is_wide else [(4, 4)])):

            def same(f, x=x):
                actual, expected = plait.jit(f)(*there(x)), f(x)
                for a, b in zip(actual, expected, strict=True):
                    close(a, b, bound)

            # Blocks of two rows may be turned in themselves.
            t, z = (np.asarray(y) for y in plait.jit(plait.scipy.linalg.schur)(*there(x)))
            close(z @ t @ adjoint(z), x, bound)
            close(adjoint(z) @ z, np.broadcast_to(np.eye(x.shape[-1], dtype=dtype), x.shape), bound)
            assert not np.tril(t, -2).any()
            same(lambda x: tuple(plait.scipy.linalg.schur(x, output="complex")))
            same(lambda x: tuple(lax.linalg.eig(x)))
            same(lambda x: (pnp.linalg.eigvals(x), plait.scipy.linalg.sqrtm(x @ x)))
    turn = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 2]])
    like_cpu(lambda x: tuple(lax.linalg.eig(x)), turn)
    like_cpu(lambda x: tuple(lax.linalg.schur(x)), np.triu(floats(4, 4)))
    like_cpu(lambda x: tuple(lax.linalg.eig(x)), np.zeros((3, 3)))
    unknown = turn.copy()
    unknown[1, 1] = np.nan
    like_cpu(lambda x: (*lax.linalg.eig(x), *lax.linalg.schur(x)), unknown)


@case
def derivatives_of_general_matrices():
    x = floats(4, 4) + 5 * np.eye(4)
    like_cpu(plait.grad(lambda x: abs(plait.scipy.linalg.sqrtm(x)).sum()), x)
    like_cpu(plait.grad(lambda x: plait.scipy.linalg.polar(x)[0].sum()), x)
    like_cpu(plait.vmap(lambda x: plait.scipy.linalg.expm(x)), floats(3, 4, 4))


# --- Known arrays --------------------------------------------------------------------------------


@case
def known_arrays():
    """Those that rules take along lie on the device before the first call, or are numbers of a kernel."""
    for n in [5, 50, 100]:
        table = pnp.asarray(floats(n, dtype="f4"))

        @plait.custom_jvp
        def weighted(x):
            return x * table

        weighted.defjvp(lambda x, dx: (weighted(x[0]), dx[0] * table))
        x = floats(n, dtype="f4")
        slope = plait.grad(lambda x: pnp.tanh(weighted(x)).sum())
        same_bits(slope, x)
        same_bits(lambda x: lax.scan(lambda c, e: (c * table + e, c.sum()), x, x)[0], x)
        assert " host" not in plait.jit(slope, device=DEVICE).explain(*there(x))


# --- Dtypes for storage ---------------------------------------------------------------------------


@case
def stored_numbers():
    x = np.concatenate([floats(61, dtype="f4") * 200, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-6]])
    x = x.astype("f4")
    for name in ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"]:
        stored = pnp.asarray(x).astype(name)
        same_bits(lambda x, name=name: x.astype(name), pnp.asarray(x))
        same_bits(lambda s: (s.astype("f4") * 2, s.reshape(-1, 1)[::2], s), stored)
        same_bits(lambda s: pnp.concatenate([s, s[::-1]])[np.array([3, 99, 5])], stored)
        same_bits(lambda s, w: s.astype("bfloat16").astype("f4") * w, stored, x)
        same_bits(
            lambda s, name=name: lax.scan(
                lambda c, e: ((c.astype("f4") + e.astype("f4")).astype(name), c), s[0], s
            ),
            stored[:9],
        )
        alone = plait.device_put(stored, DEVICE)
        assert np.asarray(alone.astype("f4")).tobytes() == np.asarray(stored.astype("f4")).tobytes()
        assert np.asarray(alone).tobytes() == np.asarray(stored).tobytes()


@case
def keys_of_random_numbers():
    random = plait.random

    def draw(key):
        first, second = random.split(key)
        keys = random.split(random.fold_in(second, 7), 3)
        return random.normal(first, (5,)), plait.vmap(lambda k: random.bits(k, (4,)))(keys), keys

    step, key = plait.jit(draw), random.key(3)
    actual, expected = step(plait.device_put(key, DEVICE)), step(key)
    for a, b in zip(actual[:2], expected[:2], strict=True):
        assert a.device == DEVICE and np.asarray(a).tobytes() == np.asarray(b).tobytes()
    data = [np.asarray(random.key_data(keys)) for keys in (actual[2], expected[2])]
    assert actual[2].device == DEVICE and data[0].tobytes() == data[1].tobytes()


# --- Places of a mesh -----------------------------------------------------------------------------


@case
def places_of_a_mesh():
    """One after the other on the device: the bits of the CPU."""
    mesh = plait.mesh((2, 2), ("x", "y"))

    def steps(x, w):
        def place(x, w):
            total = lax.psum(x * w, "x")
            ring = [(i, (i + 1) % 2) for i in range(2)]
            moved = lax.ppermute(x, "y", ring) + lax.axis_index("x").astype(x.dtype)
            rows = lax.all_gather(x[0], "y")
            turned = lax.all_to_all(rows, "y", 0, 0)
            most = lax.pmax(abs(x).max(), "x")
            return moved * most + total, rows.sum(0) + turned.max(0)

        specs = (plait.P("x", "y"), plait.P(None, "y"))
        results = (plait.P("x", "y"), plait.P(("x", "y")))
        return plait.shard_map(place, mesh, specs, results)(x, w)

    x, w = floats(4, 6, dtype="f4"), floats(2, 6, dtype="f4")
    same_bits(steps, x, w)
    same_bits(lambda x, w: plait.grad(lambda x: (steps(x, w)[0] ** 2).max())(x), x, w)


# --- Indices -------------------------------------------------------------------------------------


@case
def permutations():
    pivots = small(3, 6, most=8)
    like_cpu(lambda p: lax.linalg.lu_pivots_to_permutation(p, 9), pivots)
    like_cpu(lambda p: lax.linalg.lu_pivots_to_permutation(p, 4), pivots)


def main(names):
    for name in names or CASES:
        try:
            CASES[name]()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:600]!r}")
        else:
            print(f"{name}: passed")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
