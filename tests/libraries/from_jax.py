"""Programs as users of JAX write them, through plait.from_jax and in JAX: values, gradients, batches.

    python tests/libraries/from_jax.py [PROGRAM ...]

with an interpreter that has JAX and finds plait; prints what differs, and how many results agree.
SPDX-License-Identifier: Apache-2.0
"""

# ruff: noqa: E731

import sys

import jax
import jax.numpy as jnp
import numpy as np
import plait
import plait.numpy as pnp
from jax import lax

PROGRAMS = {}  # name -> (function, arguments, which are differentiated, whether all can be batched)
numbers = np.random.RandomState(0)


def r(*shape):
    return np.asarray(numbers.randn(*shape), np.float32)


def program(args, wrt=(0,), batches=True):
    def define(function):
        PROGRAMS[function.__name__] = (function, args, wrt, batches)
        return function

    return define


@program(([{"w": r(4, 8), "b": r(8)}, {"w": r(8, 2), "b": r(2)}], r(5, 4)), (0, 1))
def mlp(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


@program((r(2, 8, 8, 1), r(3, 3, 1, 4), r(64, 3)), (0, 1, 2))
def cnn(x, k, w):
    x = lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.gelu(x)
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = x.reshape(x.shape[0], -1)
    return jax.nn.log_softmax(x @ w)


@program((r(2, 6, 8), r(8, 24), r(8, 8)), (0, 1, 2))
def attention(x, wqkv, wo):
    b, t, d = x.shape
    q, k, v = jnp.split(x @ wqkv, 3, axis=-1)
    q, k, v = [y.reshape(b, t, 2, d // 2).transpose(0, 2, 1, 3) for y in (q, k, v)]
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(d / 2)
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
    o = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, axis=-1), v)
    return o.transpose(0, 2, 1, 3).reshape(b, t, d) @ wo


@program((r(7, 3), r(3, 5), r(5, 5)), (0, 1, 2))
def rnn(xs, wx, wh):
    def step(h, x):
        h = jnp.tanh(x @ wx + h @ wh)
        return h, h

    h, hs = lax.scan(step, jnp.zeros(5), xs)
    return h, hs


@program((r(3),))
def rk4(y0):
    def lorenz(y, t):
        return jnp.array(
            [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]
        )

    def step(i, y):
        h, t = 0.01, i * 0.01
        k1 = lorenz(y, t)
        k2 = lorenz(y + h / 2 * k1, t)
        k3 = lorenz(y + h / 2 * k2, t)
        k4 = lorenz(y + h * k3, t)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return lax.fori_loop(0, 50, step, y0)


@program((np.float32(9.0),), (0,))
def newton_sqrt(a):
    return lax.while_loop(
        lambda c: c[1] < 8, lambda c: (0.5 * (c[0] + a / c[0]), c[1] + 1), (a, 0)
    )[0]


@program((r(4), r()))
def conds(x, s):
    y = lax.cond(s > 0, lambda x: jnp.sin(x), lambda x: x**2, x)
    z = lax.switch(jnp.argmax(x) % 3, [jnp.exp, jnp.cos, lambda x: -x], x)
    return y + z


@program((r(6, 4), np.array([2, 0, 1, 1, 2, 0])), (0,))
def segments(x, ids):
    return jax.ops.segment_sum(x, ids, 3), jax.ops.segment_max(x, ids, 3)


@program((r(32),))
def fft_filter(x):
    f = jnp.fft.rfft(x)
    f = f * jnp.exp(-jnp.arange(f.shape[0]) / 4)
    return jnp.fft.irfft(f, 32)


@program((r(4, 4) + 4 * np.eye(4, dtype=np.float32), r(4)), (0, 1))
def solves(a, b):
    x = jnp.linalg.solve(a, b)
    spd = a @ a.T + jnp.eye(4)
    y = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(spd), b)
    return x, y, jnp.linalg.slogdet(a)[1], jnp.linalg.inv(spd)


@program((r(5, 3), r(4, 4)), (0, 1))
def factors(a, s):
    q, rr = jnp.linalg.qr(a)
    w, v = jnp.linalg.eigh(s + s.T)
    sv = jnp.linalg.svd(a, compute_uv=False)
    return jnp.abs(rr), w, sv, jnp.linalg.norm(a), jnp.linalg.pinv(a)


@program((np.array([0, 7], np.uint32), r(3)), (1,), False)
def sampling(key, mu):
    k1, k2, k3, k4 = jax.random.split(key, 4)
    z = mu + jax.random.normal(k1, (5, 3))
    u = jax.random.uniform(k2, (4,), minval=-1, maxval=2)
    c = jax.random.categorical(k3, jnp.log(jnp.array([0.1, 0.3, 0.6])), shape=(8,))
    p = jax.random.permutation(k4, 10)
    return (
        z,
        u,
        c,
        p,
        jax.random.bernoulli(jax.random.fold_in(key, 3), 0.3, (6,)),
        jax.random.randint(k1, (3,), 0, 100),
    )


@program((r(3),), (0,))
def typed_keys(x):
    key = jax.random.key(42)
    keys = jax.random.split(key, 3)
    noise = jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys)

    def step(k, _):
        k, sub = jax.random.split(k)
        return k, jax.random.exponential(sub)

    _, ys = lax.scan(step, key, None, length=4)
    return (
        x[:, None] * noise,
        ys,
        jax.random.gumbel(keys[1], (2,)),
        jax.random.gamma(keys[0], jnp.exp(x)),
    )


@program(({"w": r(4, 3), "b": r(3)}, r(8, 4), np.array([0, 1, 2, 0, 1, 2, 0, 1])), (0,))
def adam_step(params, x, y):
    def loss(p):
        logits = x @ p["w"] + p["b"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))

    m = v = jax.tree.map(jnp.zeros_like, params)
    for t in range(1, 4):
        value, g = jax.value_and_grad(loss)(params)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        params = jax.tree.map(
            lambda p, m, v: p - 0.1 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8),
            params,
            m,
            v,
        )
    return params, value


@jax.custom_vjp
def clip_gradient(x, lo, hi):
    return x * 1.0


clip_gradient.defvjp(
    lambda x, lo, hi: (x, (lo, hi)), lambda res, g: (jnp.clip(g, res[0], res[1]), None, None)
)


@program((r(5),))
def custom_vjp_clip(x):
    return jnp.sum(clip_gradient(x, -0.1, 0.1) * x)


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def _(primals, tangents):
    (x,) = primals
    (t,) = tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


@program((np.array([1.0, 50.0, 100.0], np.float32),))
def custom_jvp_log1pexp(x):
    return log1pexp(x)


@program((r(3, 4), r(4, 5), r(5)), (0, 1, 2))
def einsums(a, b, c):
    return (
        jnp.einsum("ij,jk,k->i", a, b, c),
        jnp.einsum("ij->ji", a),
        jnp.tensordot(a, b, 1),
        jnp.einsum("ij,ij->", a, a),
    )


@program((r(6, 3),))
def pairwise(x):
    d = jax.vmap(lambda a: jax.vmap(lambda b: jnp.sqrt(jnp.sum((a - b) ** 2) + 1e-6))(x))(x)
    return d, jax.vmap(jnp.dot, in_axes=(0, None))(x, x[0])


@program((r(8), r(3), np.array([1, 5, 5])), (0, 1))
def scatters(x, v, i):
    return (
        x.at[i].add(v),
        x.at[2].set(v[0]),
        x.at[i].multiply(v),
        x.at[i].max(v),
        x.at[::2].set(0.0),
        x.at[jnp.array([0, 3])].apply(jnp.exp),
        x[i] * v,
        x[-3:],
    )


@program((r(8, 5), np.array([0, 4, 1, 2, 3, 0, 1, 2])))
def cross_entropy(logits, labels):
    onehot = jax.nn.one_hot(labels, 5)
    return -jnp.mean(jnp.sum(onehot * jax.nn.log_softmax(logits), axis=-1)), jax.nn.logsumexp(
        logits, axis=1
    )


@program((r(10),))
def sorts(x):
    i = jnp.argsort(x)
    v, j = lax.top_k(x, 3)
    return (
        jnp.sort(x),
        i,
        v,
        j,
        jnp.median(x),
        jnp.quantile(x, 0.3),
        jnp.searchsorted(jnp.sort(x), x[:3]),
        x[jnp.argsort(-x)][:2],
    )


@program((r(20),))
def windows(x):
    return (
        jnp.cumsum(x),
        jnp.cumprod(x),
        lax.cummax(x),
        jnp.convolve(x, jnp.ones(3) / 3, mode="same"),
        jnp.diff(x),
        lax.associative_scan(jnp.add, x),
        lax.cumlogsumexp(x),
    )


@program((np.abs(r(6)) + 0.5,))
def special(x):
    s = jax.scipy.special
    return (
        s.gammaln(x),
        s.digamma(x),
        s.erf(x),
        s.erfinv(x / 4),
        s.gammainc(2.0, x),
        s.betainc(2.0, 3.0, x / 4),
        s.i0e(x),
        s.xlogy(x, x),
        s.expit(x),
        s.ndtr(x),
        jax.scipy.stats.norm.logpdf(x),
        s.polygamma(1, x),
    )


@program((r(3, 3),))
def derivatives(x):
    f = lambda v: jnp.sum(jnp.sin(v) ** 2 * v[0])
    h = jax.hessian(f)(x[0])
    j = jax.jacrev(lambda v: jnp.tanh(x @ v))(x[1])
    return (
        h,
        j,
        jax.jvp(f, (x[0],), (x[1],))[1],
        jax.grad(jax.checkpoint(lambda v: jnp.sum(jnp.exp(jnp.sin(v)))))(x[2]),
    )


@program((r(4, 4), r(4)), (1,))
def cg_solve(a, b):
    A = a @ a.T + 4 * jnp.eye(4)
    return jax.scipy.sparse.linalg.cg(lambda v: A @ v, b)[0]


@program((r(4, 6), r(6), r(6)), (0, 1, 2))
def layer_norm_dropout(x, g, b):
    y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b
    keep = jax.random.bernoulli(jax.random.PRNGKey(1), 0.8, y.shape)
    return jnp.where(keep, y / 0.8, 0)


@program((r(5, 5),))
def life_and_pads(x):
    p = jnp.pad(x, 1, mode="wrap")
    n = sum(jnp.roll(jnp.roll(x, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1))
    return (
        p,
        n,
        jnp.flip(x, 1),
        jnp.rot90(x),
        jnp.tile(x, (2, 1)),
        jnp.repeat(x, 2, axis=0),
        jnp.concatenate([x, x], 1),
        jnp.stack([x, x]),
        jnp.triu(x),
        jnp.meshgrid(x[0], x[1]),
    )


@program((r(2, 6, 6, 1), r(3, 3, 1, 2), np.array([0, 1])), (1,))
def cnn_train_step(x, k, y):
    def loss(k):
        z = lax.conv_general_dilated(
            x, k, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        z = lax.reduce_window(z, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        z = z.mean((1, 2))
        return -jnp.mean(jnp.sum(jax.nn.one_hot(y, 2) * jax.nn.log_softmax(z), -1))

    return k - 0.1 * jax.grad(loss)(k)


@program((np.array([3, 1, 2], np.int32), r(3)), (1,))
def integers(i, x):
    return (
        i // 2,
        i % 2,
        i << 1,
        i & 1,
        ~i,
        (i > 1).sum(),
        jnp.bitwise_xor(i, 5),
        x.astype(jnp.int32),
        i / 2,
        x.astype(jnp.bfloat16) * 2,
        jnp.round(x * 3),
        lax.population_count(i),
        jnp.where(i > 1, x, 0.0),
        x**i,
    )


@program((r(4) + 1j * r(4),), ())
def complexes(z):
    return (
        jnp.abs(z),
        jnp.conj(z) * z,
        jnp.exp(z),
        jnp.angle(z),
        z.real + z.imag,
        jnp.fft.fft2(jnp.outer(z, z)),
    )


@program((r(3, 3, 2), r(3)), (0, 1))
def mapped_control(x, s):
    return (
        jax.vmap(lambda a, b: lax.cond(b > 0, lambda a: a * 2, lambda a: jnp.sin(a), a))(x, s),
        lax.map(lambda a: a @ a.T, x),
        jax.vmap(lambda a: lax.while_loop(lambda c: jnp.sum(c) < 10, lambda c: c * 1.5 + 1, a))(
            jnp.abs(x)
        ),
    )


@program((r(5),))
def implicit_root(x):
    f = lambda y: y**3 + y - x

    def solve(f, y0):
        return lax.fori_loop(0, 20, lambda i, y: y - f(y) / (3 * y**2 + 1), y0)

    return lax.custom_root(f, jnp.zeros_like(x), solve, lambda g, y: y / g(jnp.ones_like(y)))


# --- The comparison ------------------------------------------------------------------------------

tree = jax.tree_util


def difference(found, expected):
    """The largest difference relative to 1 and to the size, or what is of another type."""
    found, expected = tree.tree_leaves(found), tree.tree_leaves(expected)
    if len(found) != len(expected):
        return f"{len(found)} results for {len(expected)}"
    worst = 0.0
    for x, y in zip(map(np.asarray, found), map(np.asarray, expected)):
        if (x.shape, str(x.dtype)) != (y.shape, str(y.dtype)):
            return f"{x.dtype}{x.shape} for {y.dtype}{y.shape}"
        x, y = (v.astype(complex if v.dtype.kind == "c" else float) for v in (x, y))
        if not np.array_equal(np.isnan(x), np.isnan(y)):
            return "NaN"
        with np.errstate(invalid="ignore"):
            gap = np.where(x == y, 0, np.abs(x - y) / np.maximum(1, np.abs(y)))
        worst = max(worst, float(np.nanmax(gap, initial=0)))
    return worst


def scalar(function, numpy):
    """A weighted sum of what function gives, to be differentiated."""

    def total(*args):
        result = 0.0
        for i, leaf in enumerate(tree.tree_leaves(function(*args))):
            if leaf.dtype.kind == "f":
                weights = numpy.cos(numpy.arange(leaf.size).astype(numpy.float32) + i)
                result = result + numpy.sum(leaf * weights.reshape(leaf.shape))
        return result

    return total


def cases(function, args, wrt, batches):
    """(name, what plait does, what JAX does) for the ways to run a program."""
    ours, compiled = plait.from_jax(function), jax.jit(function)
    theirs = tree.tree_map(jnp.asarray, args)
    rows = tree.tree_map(lambda x: np.stack([x, x[::-1] if np.ndim(x) else x, x]), args)
    yield "value", lambda: ours(*args), lambda: compiled(*theirs)
    yield "jit", lambda: plait.jit(ours)(*args), lambda: compiled(*theirs)
    if batches:
        yield "vmap", lambda: plait.vmap(ours)(*rows), lambda: jax.jit(jax.vmap(function))(*rows)
    if not wrt:
        return
    gradient = plait.grad(scalar(ours, pnp), wrt)
    expected = jax.jit(jax.grad(scalar(function, jnp), wrt))
    yield "grad", lambda: gradient(*args), lambda: expected(*theirs)
    yield "jit of grad", lambda: plait.jit(gradient)(*args), lambda: expected(*theirs)
    if batches:
        yield (
            "vmap of grad",
            lambda: plait.vmap(gradient)(*rows),
            lambda: jax.jit(jax.vmap(expected))(*rows),
        )


def main():
    agree = total = 0
    for name in sys.argv[1:] or PROGRAMS:
        for case, ours, theirs in cases(*PROGRAMS[name]):
            try:
                expected = theirs()
            except Exception as error:
                print(f"{name}, {case}: not in JAX: {str(error).splitlines()[0]:.80}")
                continue
            total += 1
            try:
                gap = difference(ours(), expected)
            except Exception as error:
                gap = f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}"
            if isinstance(gap, str) or gap > 2e-4:
                print(f"{name}, {case}: {gap}")
            else:
                agree += 1
    print(f"{agree} of {total} results agree")


if __name__ == "__main__":
    main()
