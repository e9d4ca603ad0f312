"""Programs as people write them: loops whose state is updated in place, small bodies, ends that
depend on data, and short array programs; the second half from the literature: automata, particles,
dynamic programming, graphs, finite volumes.

Each is a function of arrays in the names that JAX and plait share, after `use(module)` has said
whose. Nothing here is shaped for a particular compiler. They have float64, or float32 where they
are `single`.
"""

# SPDX-License-Identifier: Apache-2.0

import dataclasses
import zlib

import numpy as np

jax = jnp = lax = None
PROGRAMS = {}


def use(module, numpy_names, lax_names):
    """The library whose names the programs have from now on."""
    global jax, jnp, lax
    jax, jnp, lax = module, numpy_names, lax_names


@dataclasses.dataclass(frozen=True)
class Program:
    function: object
    draw: object  # (Random) -> inputs
    by: tuple  # the inputs that the gradient of a loss is for
    single: bool

    def inputs(self):
        drawn = self.draw(Random(self.function.__name__))
        return tuple(map(np.float32, drawn)) if self.single else tuple(drawn)


class Random:
    def __init__(self, name):
        self.generator = np.random.default_rng(zlib.crc32(name.encode()))

    def normal(self, *shape):
        return self.generator.standard_normal(shape)

    def uniform(self, *shape):
        return self.generator.random(shape)

    def integers(self, high, *shape):
        return self.generator.integers(0, high, shape).astype(np.int32)


def program(draw, by=(), single=False):
    def add(function):
        PROGRAMS[function.__name__] = Program(function, draw, by, single)
        return function

    return add


def fori(low, high, body, start):
    return lax.fori_loop(low, high, body, start)


def where(condition, x, y):
    return jnp.where(condition, x, y)


def lower_triangle(r, n):
    return np.tril(r.normal(n, n)) + 30 * np.eye(n)


def positive(r, n):
    a = r.normal(n, n)
    return a @ a.T + n * np.eye(n)


def plane(left, right, low, high, n):
    x, y = np.meshgrid(np.linspace(left, right, n), np.linspace(low, high, n))
    return x + 1j * y


def sparse_inputs(r):
    rows = np.concatenate([[0], np.cumsum(r.integers(20, 4000))]).astype(np.int32)
    return [rows, r.integers(4000, rows[-1]), r.normal(rows[-1]), r.normal(4000)]


@program(lambda r: [lower_triangle(r, 600), r.normal(600)], by=(0, 1))
def forward_substitution(L, b):
    def row(i, x):
        return x.at[i].set((b[i] - jnp.sum(where(jnp.arange(b.size) < i, L[i] * x, 0.0))) / L[i, i])

    return fori(0, b.size, row, jnp.zeros_like(b))


@program(lambda r: [lower_triangle(r, 600), r.normal(600)], by=(0, 1))
def forward_substitution_carrying_all(L, b):  # the matrix goes round the loop unchanged
    def row(i, s):
        L, b, x = s
        return L, b, x.at[i].set((b[i] - L[i] @ x) / L[i, i])

    return fori(0, b.size, row, (L, b, jnp.zeros_like(b)))[2]


@program(
    lambda r: [r.normal(20000), 5 + r.uniform(20000), r.normal(20000), r.normal(20000)],
    by=(0, 1, 2, 3),
)
def thomas(a, b, c, d):  # tridiagonal system, two sweeps of scalars
    def down(s, r):
        cp, dp = s
        a, b, c, d = r
        m = b - a * cp
        s = (c / m, (d - a * dp) / m)
        return s, s

    _, (cp, dp) = lax.scan(down, (jnp.zeros_like(a[0]), jnp.zeros_like(a[0])), (a, b, c, d))

    def up(x, r):
        x = r[1] - r[0] * x
        return x, x

    return lax.scan(up, jnp.zeros_like(a[0]), (cp, dp), reverse=True)[1]


@program(lambda r: [r.normal(64, 64), r.normal(64, 64)], by=(0, 1))
def gauss_seidel(u, f):
    n, m = u.shape

    def cell(j, s):
        i, u = s
        return i, u.at[i, j].set(
            0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
        )

    def row(i, u):
        return fori(1, m - 1, cell, (i, u))[1]

    return fori(0, 4, lambda t, u: fori(1, n - 1, row, u), u)


@program(lambda r: [r.normal(256, 256), np.float64(0.3), np.array([0.5, 0.1])], by=(0, 1, 2))
def recursive_filter(image, a, b):  # a second-order filter along columns, then along rows
    def column(j, y):
        return y.at[:, j].set(a * image[:, j] + b[0] * y[:, j - 1] + b[1] * y[:, j - 2])

    y = fori(2, image.shape[1], column, image)

    def row(i, z):
        return z.at[i].set(a * y[i] + b[0] * z[i - 1] + b[1] * z[i - 2])

    return fori(2, image.shape[0], row, y)


@program(lambda r: [r.normal(256, 256)], by=(0,))
def heat(u):  # explicit steps, the interior written in place
    def step(t, u):
        return u.at[1:-1, 1:-1].add(
            0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        )

    return fori(0, 100, step, u)


@program(lambda r: [r.normal(120, 140), r.normal(120, 140), r.normal(120, 140)], by=(0, 1, 2))
def yee(ex, ey, hz):  # three fields that update each other
    def step(t, s):
        ex, ey, hz = s
        ey = ey.at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        return (
            ex,
            ey,
            hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])),
        )

    return fori(0, 50, step, (ex, ey, hz))


@program(lambda r: [r.integers(2, 256, 256)])
def life(board):
    def step(t, b):
        n = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((n == 3) | ((b == 1) & (n == 2))).astype(b.dtype)

    return fori(0, 50, step, board)


@program(lambda r: [r.uniform(160, 160)], by=(0,))
def floyd_warshall(d):
    return fori(0, d.shape[0], lambda k, d: jnp.minimum(d, d[:, k, None] + d[None, k, :]), d)


@program(lambda r: [r.normal(120, 80)], by=(0,))
def gram_schmidt(a):
    def column(k, s):
        q, r, a = s
        v = a[:, k]
        n = jnp.sqrt(v @ v)
        q = q.at[:, k].set(v / n)
        row = q[:, k] @ a
        row = where(jnp.arange(a.shape[1]) > k, row, 0.0)
        return q, r.at[k].set(row).at[k, k].set(n), a - q[:, k, None] * row[None]

    return fori(
        0, a.shape[1], column, (jnp.zeros_like(a), jnp.zeros((a.shape[1],) * 2, a.dtype), a)
    )[:2]


@program(lambda r: [positive(r, 120)], by=(0,))
def cholesky_by_columns(a):
    def column(j, L):
        v = a[:, j] - L @ L[j]
        d = jnp.sqrt(v[j])
        return L.at[:, j].set(where(jnp.arange(a.shape[0]) >= j, v / d, 0.0))

    return fori(0, a.shape[0], column, jnp.zeros_like(a))


@program(lambda r: [r.normal(150, 150), r.normal(150, 60)], by=(0, 1))
def rank_updates(c, a):  # symmetric rank-k update, row by row, under a triangle
    def row(i, c):
        return c.at[i].add(where(jnp.arange(c.shape[1]) <= i, a[i] @ a.T, 0.0))

    return fori(0, c.shape[0], row, c)


@program(lambda r: [r.integers(4, 200), r.integers(4, 220)])
def edit_distance(s, t):
    def row(prev, a):
        i, prev = prev

        def cell(left, x):
            b, up, diag = x
            v = jnp.minimum(jnp.minimum(left, up) + 1, diag + (a != b))
            return v, v

        _, rest = lax.scan(cell, i + 1, (t, prev[1:], prev[:-1]))
        new = jnp.concatenate([(i + 1)[None], rest])
        return (i + 1, new), None

    return lax.scan(
        row, (jnp.asarray(0, dtype=jnp.int32), jnp.arange(t.size + 1, dtype=jnp.int32)), s
    )[0][1][-1]


@program(lambda r: [r.integers(4, 150), r.integers(4, 150)])
def smith_waterman(s, t):
    n, m = s.size, t.size

    def cell(k, h):
        i, j = k // m + 1, k % m + 1
        best = jnp.maximum(
            h[i - 1, j - 1] + where(s[i - 1] == t[j - 1], 2, -1),
            jnp.maximum(h[i - 1, j], h[i, j - 1]) - 1,
        )
        return h.at[i, j].set(jnp.maximum(best, 0))

    return jnp.max(fori(0, n * m, cell, jnp.zeros((n + 1, m + 1), jnp.int32)))


@program(lambda r: [1 + r.integers(59, 100), r.uniform(100), np.zeros(1000)], by=(1,))
def knapsack(weights, values, table):
    def item(i, best):
        w, v = weights[i], values[i]
        k = jnp.arange(best.size)
        return where(k >= w, jnp.maximum(best, best[jnp.maximum(k - w, 0)] + v), best)

    return fori(0, weights.size, item, table)


@program(lambda r: [r.normal(32), r.normal(32, 32), r.normal(500, 32)])
def viterbi(start, trans, emit):
    def step(p, e):
        s = p[:, None] + trans
        return jnp.max(s, 0) + e, jnp.argmax(s, 0)

    p, back = lax.scan(step, start, emit)
    last = jnp.argmax(p)

    def trace(k, b):
        return b[k], k

    return lax.scan(trace, last, back, reverse=True)[1]


@program(
    lambda r: [
        np.eye(4) + np.diag([0.1, 0.1], 2),
        np.eye(2, 4),
        0.01 * np.eye(4),
        0.1 * np.eye(2),
        r.normal(4),
        np.eye(4),
        r.normal(1000, 2),
    ],
    by=(0, 1, 2, 3, 4, 5, 6),
)
def kalman(F, H, Q, R, x, P, zs):
    def step(s, z):
        x, P = s
        x, P = F @ x, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = jnp.linalg.solve(S, H @ P).T
        x = x + K @ (z - H @ x)
        P = P - K @ H @ P
        return (x, P), x

    return lax.scan(step, (x, P), zs)[1]


@program(sparse_inputs)
def sparse_rows(row, col, val, x):  # y = A x, A in compressed rows, one row after the other
    def line(i, y):
        def add(k, s):
            return s + val[k] * x[col[k]]

        return y.at[i].set(fori(row[i], row[i + 1], add, jnp.zeros_like(val[0])))

    return fori(0, row.size - 1, line, jnp.zeros(row.size - 1, val.dtype))


@program(lambda r: [positive(r, 200), r.normal(200)])
def conjugate_gradient(a, b):
    def go(s):
        return (s[3] > 1e-10) & (s[4] < 500)

    def step(s):
        x, r, p, rr, n = s
        ap = a @ p
        alpha = rr / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        return x, r, r + new / rr * p, new, n + 1

    return lax.while_loop(
        go, step, (jnp.zeros_like(b), b, b, b @ b, jnp.asarray(0, dtype=jnp.int32))
    )[0]


@program(lambda r: [plane(-2, 0.6, -1.2, 1.2, 200)])
def mandelbrot(c):
    def go(s):
        return jnp.any(s[2]) & (s[3] < 200)

    def step(s):
        z, n, live, k = s
        z = where(live, z * z + c, z)
        live = live & (z.real**2 + z.imag**2 < 4)
        return z, n + live, live, k + 1

    return lax.while_loop(
        go,
        step,
        (
            jnp.zeros_like(c),
            jnp.zeros(c.shape, jnp.int32),
            jnp.ones(c.shape, bool),
            jnp.asarray(0, dtype=jnp.int32),
        ),
    )[1]


@program(lambda r: [10 * r.uniform(10000)])
def bisection(target):  # a loop for each element: vmap of while
    def one(t):
        def step(s):
            lo, hi = s
            m = (lo + hi) / 2
            up = m * m * m < t
            return where(up, m, lo), where(up, hi, m)

        return lax.while_loop(
            lambda s: s[1] - s[0] > 1e-9 * (1 + t), step, (jnp.zeros_like(t), 1 + t)
        )[0]

    return jax.vmap(one)(target)


@program(lambda r: [np.arange(100000) > 1])
def sieve(flags):
    n = flags.size

    def prime(p, f):
        return lax.cond(
            f[p],
            lambda f: where((jnp.arange(n) >= p * p) & (jnp.arange(n) % p == 0), False, f),
            lambda f: f,
            f,
        )

    return jnp.sum(fori(2, int(n**0.5) + 1, prime, flags))


@program(
    lambda r: [
        np.where(r.uniform(64, 64) < 0.5, -1.0, 1.0),
        r.integers(64, 20000, 2),
        r.uniform(20000),
    ]
)
def ising(spins, sites, uniforms):  # one spin after the other
    n = spins.shape[0]

    def flip(k, s):
        i, j = sites[k, 0], sites[k, 1]
        h = s[(i + 1) % n, j] + s[(i - 1) % n, j] + s[i, (j + 1) % n] + s[i, (j - 1) % n]
        return s.at[i, j].multiply(where(uniforms[k] < jnp.exp(-0.9 * s[i, j] * h), -1.0, 1.0))

    return jnp.sum(fori(0, sites.shape[0], flip, spins))


@program(lambda r: [r.uniform(256), 0.1 * r.normal(256, 256), 0.2 * r.uniform(500, 256)])
def neurons(v, weights, noise):  # leaky integrate and fire, spikes fed back
    def step(s, x):
        v, spikes = s
        v = 0.95 * v + weights @ spikes + x
        fired = v > 1.0
        return (where(fired, 0.0, v), fired.astype(v.dtype)), jnp.sum(fired)

    return lax.scan(step, (v, jnp.zeros_like(v)), noise)[1]


@program(lambda r: [r.normal(16, 2), r.normal(16), r.normal(16), r.normal(64, 2)], by=(0, 1, 2))
def rollout(a, b, c, x):  # 200 steps of a small controller, from many starts
    def cost(x):
        def step(s, _):
            q, w = s
            u = jnp.tanh(a @ jnp.stack([q, w]) + b) @ c
            w = w + 0.02 * (9.8 * jnp.sin(q) + u)
            q = q + 0.02 * w
            return (q, w), q * q + 0.01 * u * u

        return jnp.mean(lax.scan(step, (x[0], x[1]), None, length=200)[1])

    return jnp.mean(jax.vmap(cost)(x))


@program(lambda r: [r.normal(1 << 15) + 1j * r.normal(1 << 15)])
def stockham(x):  # a radix-2 transform by reshapes
    y, n = x, x.size
    k = n.bit_length() - 1
    for s in range(k):
        y = y.reshape(2, n >> (s + 1), 1 << s)
        w = jnp.exp(-1j * np.pi / (1 << s) * jnp.arange(1 << s, dtype=x.real.dtype))
        a, b = y[0], y[1] * w
        y = jnp.concatenate([(a + b)[:, None], (a - b)[:, None]], 1).reshape(-1)
    return y


@program(
    lambda r: [
        r.normal(8, 28, 28, 1),
        r.normal(5, 5, 1, 6) / 5,
        r.normal(5, 5, 6, 16) / 12,
        r.normal(256, 120) / 16,
        r.normal(120, 10) / 11,
    ],
    by=(0, 1, 2, 3, 4),
    single=True,
)
def small_convnet(x, w1, w2, w3, w4):  # digits-sized images, channels last, valid windows
    def conv(x, w):
        return lax.conv_general_dilated(
            x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    x = pool(jax.nn.relu(conv(x, w1)))
    x = pool(jax.nn.relu(conv(x, w2)))
    return jax.nn.relu(x.reshape(x.shape[0], -1) @ w3) @ w4


@program(
    lambda r: [
        r.normal(4, 14, 14, 64),
        r.normal(1, 1, 64, 32) / 8,
        r.normal(3, 3, 32, 32) / 17,
        r.normal(1, 1, 32, 64) / 6,
    ],
    by=(0, 1, 2, 3),
    single=True,
)
def residual_block(x, w1, w2, w3):
    def conv(x, w, p):
        return lax.conv_general_dilated(x, w, (1, 1), p, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def norm(x):
        return (x - jnp.mean(x, (1, 2), keepdims=True)) / jnp.sqrt(
            jnp.var(x, (1, 2), keepdims=True) + 1e-5
        )

    y = jax.nn.relu(norm(conv(x, w1, "VALID")))
    y = jax.nn.relu(norm(conv(y, w2, "SAME")))
    return jax.nn.relu(norm(conv(y, w3, "VALID")) + x)


@program(lambda r: [r.normal(2000, 1600), r.normal(1600)], by=(0, 1))
def normal_equations_step(a, x):
    return (a @ x) @ a


@program(lambda r: [r.normal(500, 400)], by=(0,))
def correlation(x):
    x = x - jnp.mean(x, 0)
    x = x / (jnp.sqrt(float(x.shape[0])) * where(jnp.std(x, 0) <= 0.1, 1.0, jnp.std(x, 0)))
    return x.T @ x


@program(lambda r: [r.uniform(200000), r.normal(200000)], by=(1,))
def histogram_of_means(r, v):  # mean of v in 100 rings of r
    k = jnp.clip((r * 100).astype(jnp.int32), 0, 99)
    z = jnp.zeros(100, v.dtype)
    return z.at[k].add(v) / z.at[k].add(1.0)


@program(
    lambda r: [
        r.normal(60, 60) + 0j,
        np.eye(60) + 0j,
        np.exp(2j * np.pi * np.arange(12) / 12),
        r.normal(60, 20) + 0j,
    ]
)
def resolvents(h, s, energies, y):  # a small complex system for each energy
    return sum(jnp.linalg.solve(e * s - h, y) for e in energies)


@program(lambda r: [r.normal(40, 64, 64), r.uniform(40, 64, 64)], by=(0, 1))
def vertical_advection(u, w):  # implicit columns: forward and backward sweeps over levels of planes
    def down(s, x):
        c0, d0 = s
        u, w = x
        m = 1 / (1 + 0.3 * w - 0.3 * w * c0)
        s = (0.3 * w * m, (u - 0.3 * w * d0) * m)
        return s, s

    z = jnp.zeros_like(u[0])
    _, (c, d) = lax.scan(down, (z, z), (u, w))
    return lax.scan(lambda x, s: (s[1] - s[0] * x,) * 2, z, (c, d), reverse=True)[1]


@program(lambda r: [r.normal(4, 20, 20, 3), r.normal(3, 3, 3, 8), r.normal(8)], by=(0, 1, 2))
def sliding_products(x, kernel, bias):  # a convolution written out as windows, as users do
    n = x.shape[1] - kernel.shape[0] + 1

    def at(i, out):
        def cell(j, out):
            patch = lax.dynamic_slice(
                x, (0, i, j, 0), (x.shape[0], kernel.shape[0], kernel.shape[1], x.shape[3])
            )
            return lax.dynamic_update_slice(
                out,
                jnp.einsum("nhwc,hwcd->nd", patch, kernel)[:, None, None] + bias,
                (0, i, j, 0),
            )

        return fori(0, n, cell, out)

    return fori(0, n, at, jnp.zeros((x.shape[0], n, n, kernel.shape[3]), x.dtype))


@program(lambda r: [1 + 0.01 * r.uniform(9, 64, 64), r.uniform(64, 64) < 0.05], by=(0,))
def lattice_boltzmann(f, solid):  # nine directions on a square lattice, walls bounce back
    cx = jnp.asarray([0, 1, 0, -1, 0, 1, -1, -1, 1.0], dtype=f.dtype)
    cy = jnp.asarray([0, 0, 1, 0, -1, 1, 1, -1, -1.0], dtype=f.dtype)
    w = jnp.asarray([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, dtype=f.dtype)
    shifts = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    opposite = [0, 3, 4, 1, 2, 7, 8, 5, 6]

    def step(t, f):
        rho = jnp.sum(f, 0)
        ux = jnp.sum(f * cx[:, None, None], 0) / rho
        uy = jnp.sum(f * cy[:, None, None], 0) / rho
        cu = cx[:, None, None] * ux + cy[:, None, None] * uy
        eq = w[:, None, None] * rho * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * (ux**2 + uy**2))
        out = f - 0.6 * (f - eq)
        out = where(solid, f[jnp.asarray(opposite)], out)
        return jnp.stack([jnp.roll(out[i], shifts[i], (0, 1)) for i in range(9)])

    return fori(0, 50, step, f)


@program(
    lambda r: [1 + 0.1 * r.uniform(100, 100), 0.01 * r.normal(100, 100), 0.01 * r.normal(100, 100)],
    by=(0, 1, 2),
)
def shallow_water(h, hu, hv):  # Lax-Friedrichs fluxes on a periodic grid
    def fluxes(h, hu, hv):
        u, v, p = hu / h, hv / h, 4.9 * h * h
        return (hu, hu * u + p, hu * v), (hv, hv * u, hv * v + p)

    def step(t, s):
        fx, fy = fluxes(*s)

        def mean(q):
            return 0.25 * (
                jnp.roll(q, 1, 0) + jnp.roll(q, -1, 0) + jnp.roll(q, 1, 1) + jnp.roll(q, -1, 1)
            )

        return tuple(
            mean(q)
            - 0.02
            * (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0) + jnp.roll(b, -1, 1) - jnp.roll(b, 1, 1))
            for q, a, b in zip(s, fx, fy)
        )

    return fori(0, 100, step, (h, hu, hv))


@program(lambda r: [np.where(r.uniform(200, 200) < 0.1, 10 * r.uniform(200, 200), np.inf)])
def dijkstra(w):
    n = w.shape[0]

    def step(k, s):
        d, done = s
        i = jnp.argmin(where(done, jnp.inf, d))
        return jnp.minimum(d, d[i] + w[i]), done.at[i].set(True)

    start = jnp.full(n, jnp.inf, w.dtype).at[0].set(0.0)
    return fori(0, n, step, (start, jnp.zeros(n, bool)))[0]


@program(lambda r: [r.uniform(300)])
def insertion_sort(x):
    def place(i, x):
        def go(s):
            j, x = s
            return (j > 0) & (x[jnp.maximum(j - 1, 0)] > x[j])

        def swap(s):
            j, x = s
            a, b = x[j - 1], x[j]
            return j - 1, x.at[j - 1].set(b).at[j].set(a)

        return lax.while_loop(go, swap, (i, x))[1]

    return fori(1, x.size, place, x)


@program(lambda r: [5.0 + r.integers(45, 61)])
def matrix_chain(p):  # the least cost of a product of matrices, by spans
    n = p.size - 1

    def span(length, m):
        def start(i, m):
            j = i + length

            def cut(k, best):
                return jnp.minimum(best, m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1])

            return m.at[i, j].set(fori(i, j, cut, jnp.asarray(jnp.inf, dtype=p.dtype)))

        return fori(0, n - length, start, m)

    return fori(1, n, span, jnp.zeros((n, n), p.dtype))[0, n - 1]


@program(lambda r: [np.zeros((80, 80), np.int32)])
def langtons_ant(grid):
    n = grid.shape[0]

    def step(t, s):
        g, i, j, d = s
        here = g[i, j]
        d = (d + where(here == 0, 1, 3)) % 4
        g = g.at[i, j].set(1 - here)
        i = (i + where(d == 0, -1, where(d == 2, 1, 0))) % n
        j = (j + where(d == 1, 1, where(d == 3, -1, 0))) % n
        return g, i, j, d

    zero = jnp.asarray(0, dtype=jnp.int32)
    return fori(0, 10000, step, (grid, zero + n // 2, zero + n // 2, zero))[0]


@program(lambda r: [128 * r.uniform(5000), r.normal(5000)], by=(0, 1))
def particle_in_cell(x, v):  # charges to cells, a field from their sums, forces back
    n = 128

    def step(s, _):
        x, v = s
        cell = jnp.floor(x).astype(jnp.int32) % n
        share = x - jnp.floor(x)
        rho = jnp.zeros(n, x.dtype).at[cell].add(1 - share).at[(cell + 1) % n].add(share)
        field = jnp.cumsum(rho - jnp.mean(rho)) * 0.001
        v = v + 0.1 * ((1 - share) * field[cell] + share * field[(cell + 1) % n])
        return ((x + 0.1 * v) % n, v), jnp.sum(field * field)

    return lax.scan(step, (x, v), None, length=50)[1]


@program(lambda r: [r.integers(8, 64, 64)])
def sandpile(grid):
    def topple(s):
        over = (s >= 4).astype(s.dtype)
        padded = jnp.pad(over, 1)
        near = padded[2:, 1:-1] + padded[:-2, 1:-1] + padded[1:-1, 2:] + padded[1:-1, :-2]
        return s - 4 * over + near

    return lax.while_loop(lambda s: jnp.any(s >= 4), topple, grid)


@program(lambda r: [np.exp(-r.uniform(150, 120)), r.uniform(150), r.uniform(120)], by=(0, 1, 2))
def sinkhorn(k, a, b):
    def step(_, s):
        u, v = s
        u = a / (k @ v)
        return u, b / (k.T @ u)

    u, v = fori(0, 100, step, (jnp.ones_like(a), jnp.ones_like(b)))
    return u[:, None] * k * v


@program(
    lambda r: [
        np.zeros((50, 4)),
        r.integers(50, 50, 4),
        r.normal(50, 4),
        r.uniform(20000),
        r.integers(4, 20000),
    ],
    by=(2,),
)
def q_learning(q, next_state, reward, explore, actions):
    def step(s, r):
        q, state = s
        e, a = r
        a = where(e < 0.1, a, jnp.argmax(q[state]).astype(jnp.int32))
        to = next_state[state, a]
        target = reward[state, a] + 0.9 * jnp.max(q[to])
        return (q.at[state, a].add(0.1 * (target - q[state, a])), to), target

    zero = jnp.asarray(0, dtype=jnp.int32)
    return lax.scan(step, (q, zero), (explore, actions))[0][0]


@program(lambda r: [6 * r.uniform(128), r.normal(128)], by=(0, 1))
def kuramoto(theta, omega):
    def step(t, th):
        return th + 0.01 * (omega + jnp.mean(jnp.sin(th[None, :] - th[:, None]), 1))

    return fori(0, 100, step, theta)


@program(lambda r: [r.normal(500, 3)])
def lorenz(starts):  # Runge-Kutta of fourth order from many starts
    def slope(p):
        x, y, z = p
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def one(p):
        def step(p, _):
            k1 = slope(p)
            k2 = slope(p + 0.005 * k1)
            k3 = slope(p + 0.005 * k2)
            k4 = slope(p + 0.01 * k3)
            return p + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

        return lax.scan(step, p, None, length=300)[0]

    return jax.vmap(one)(starts)


@program(
    lambda r: [
        np.zeros(64),
        r.normal(200, 32),
        0.3 * r.normal(3, 32, 64),
        0.1 * r.normal(3, 64, 64),
    ],
    by=(0, 1, 2, 3),
)
def gated_recurrence(h, xs, w, u):
    def step(h, x):
        g = jax.nn.sigmoid(x @ w[0] + h @ u[0])
        r = jax.nn.sigmoid(x @ w[1] + h @ u[1])
        n = jnp.tanh(x @ w[2] + (r * h) @ u[2])
        h = g * h + (1 - g) * n
        return h, h

    return lax.scan(step, h, xs)[1]


@program(lambda r: [r.integers(4, 150), r.integers(4, 160)])
def alignment_path(s, t):  # Needleman-Wunsch, then the way back through the table
    n, m = s.size, t.size

    def row(i, h):
        def cell(j, h):
            best = jnp.maximum(
                h[i - 1, j - 1] + where(s[i - 1] == t[j - 1], 1, -1),
                jnp.maximum(h[i - 1, j], h[i, j - 1]) - 1,
            )
            return h.at[i, j].set(best)

        return fori(1, m + 1, cell, h)

    h = jnp.zeros((n + 1, m + 1), jnp.int32)
    h = h.at[:, 0].set(-jnp.arange(n + 1, dtype=jnp.int32))
    h = h.at[0].set(-jnp.arange(m + 1, dtype=jnp.int32))
    h = fori(1, n + 1, row, h)

    def back(c):
        i, j, k, path = c
        diagonal = h[i, j] == h[i - 1, j - 1] + where(s[i - 1] == t[j - 1], 1, -1)
        up = h[i, j] == h[i - 1, j] - 1
        path = path.at[k].set(where(diagonal, 0, where(up, 1, 2)).astype(jnp.int32))
        i, j = where(diagonal | up, i - 1, i), where(diagonal | ~up, j - 1, j)
        return i, j, k + 1, path

    def whole(x):
        return jnp.asarray(x, dtype=jnp.int32)

    start = (whole(n), whole(m), whole(0), jnp.full(n + m, 3, jnp.int32))
    return lax.while_loop(lambda c: (c[0] > 0) & (c[1] > 0), back, start)[3]


@program(lambda r: [plane(-1.5, 1.5, -1.5, 1.5, 150) + 1e-3])
def newton_fractal(z):
    return fori(0, 30, lambda t, z: z - (z**3 - 1) / (3 * z**2), z)


@program(lambda r: [r.normal(50000)])
def compensated_sum(x):  # Kahan's
    def step(s, v):
        total, c = s
        y = v - c
        t = total + y
        return (t, (t - total) - y), None

    zero = jnp.zeros_like(x[0])
    return lax.scan(step, (zero, zero), x)[0][0]


@program(lambda r: [r.normal(24), r.normal(24, 24), r.normal(300, 24)], by=(0, 1, 2))
def forward_backward(start, trans, emit):  # a chain of hidden states, in logarithms
    def lse(x):
        return jax.nn.logsumexp(x, axis=-1)

    def forth(a, e):
        a = lse(a[None] + trans.T) + e
        return a, a

    def back(b, e):
        b = lse(trans + (b + e)[None])
        return b, b

    first = start + emit[0]
    a = jnp.concatenate([first[None], lax.scan(forth, first, emit[1:])[1]])
    last = jnp.zeros_like(start)
    b = jnp.concatenate([lax.scan(back, last, emit[1:], reverse=True)[1], last[None]])
    return a + b - lse(a[-1])


@program(lambda r: [np.cumsum(np.ones((50, 3)), 0) / np.sqrt(3), 0.1 * r.normal(50, 3)], by=(0, 1))
def verlet_chain(x, v):  # beads on springs, the first one held
    def force(x):
        d = x[1:] - x[:-1]
        r = jnp.sqrt(jnp.sum(d * d, 1, keepdims=True))
        f = 50.0 * (r - 1.0) * d / r
        pull = jnp.zeros_like(x).at[:-1].add(f).at[1:].add(-f)
        return (pull - jnp.asarray([0.0, 0.0, 1.0], dtype=x.dtype)).at[0].set(0.0)

    def step(s, _):
        x, v = s
        v = v + 0.005 * force(x)
        x = x + 0.01 * v
        return (x, v + 0.005 * force(x)), jnp.sum(v * v)

    return lax.scan(step, (x, v), None, length=500)


@program(lambda r: [r.uniform(400)], by=(0,))
def odd_even_sort(x):
    n = x.size

    def pass_(t, x):
        def at(x, first):
            a = x[first : n - 1 : 2] if first else x[: n - 1 : 2]
            b = x[first + 1 :: 2]
            x = x.at[first : first + 2 * a.size : 2].set(jnp.minimum(a, b))
            return x.at[first + 1 : first + 1 + 2 * b.size : 2].set(jnp.maximum(a, b))

        return at(at(x, 0), 1)

    return fori(0, n // 2, pass_, x)


@program(lambda r: [r.normal(100, 100), r.normal(100, 100)], by=(0, 1))
def red_black(u, f):  # successive over-relaxation on a checkerboard
    i, j = jnp.arange(u.shape[0])[:, None], jnp.arange(u.shape[1])[None]
    inside = (i > 0) & (i < u.shape[0] - 1) & (j > 0) & (j < u.shape[1] - 1)

    def sweep(t, u):
        for colour in (0, 1):
            near = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
            new = u + 1.7 * (0.25 * (near - f) - u)
            u = where(inside & ((i + j) % 2 == colour), new, u)
        return u

    return fori(0, 60, sweep, u)


@program(lambda r: [0.1 * r.normal(48, 48)], by=(0,))
def matrix_exponential(a):  # by its series
    def term(k, s):
        total, t = s
        t = t @ a / (k + 1.0)
        return total + t, t

    one = jnp.eye(a.shape[0], dtype=a.dtype)
    return fori(0, 20, term, (one, one))[0]


@program(lambda r: [(lambda a: a + a.T)(r.normal(16, 16))])
def qr_iteration(a):
    def step(t, a):
        q, r = jnp.linalg.qr(a)
        return r @ q

    return jnp.diagonal(fori(0, 50, step, a))


@program(lambda r: [r.normal(1000), r.normal(100, 1000), r.uniform(100), r.normal(100)])
def bootstrap_filter(x, noise, uniforms, ys):  # weights, resampling in order
    def step(x, r):
        e, u, y = r
        x = 0.9 * x + e
        w = jnp.exp(-0.5 * (y - x) ** 2)
        c = jnp.cumsum(w) / jnp.sum(w)
        x = x[jnp.searchsorted(c, (jnp.arange(x.size) + u) / x.size).clip(0, x.size - 1)]
        return x, jnp.mean(x)

    return lax.scan(step, x, (noise, uniforms, ys))[1]


@program(lambda r: [(r.uniform(64, 64) < 0.6).astype(np.int32)])
def label_components(cells):  # each cell takes the largest label around it, until none changes
    labels = jnp.arange(1, cells.size + 1, dtype=jnp.int32).reshape(cells.shape) * cells

    def step(s):
        b, _ = s
        p = jnp.pad(b, 1)
        m = jnp.maximum(
            jnp.maximum(p[2:, 1:-1], p[:-2, 1:-1]), jnp.maximum(p[1:-1, 2:], p[1:-1, :-2])
        )
        n = jnp.maximum(b, m) * cells
        return n, jnp.any(n != b)

    return lax.while_loop(lambda s: s[1], step, (labels, jnp.asarray(True)))[0]
