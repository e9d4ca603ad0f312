"""mask among grad, vmap and jit, in every order to depth 3: as a loop over unpadded examples.

Each case is a function over ragged axes. A stack of transforms is applied to it, with NaN in all padding;
the reference runs the same derivatives on the arrays without padding, and every vmap as a loop.

SPDX-License-Identifier: Apache-2.0
"""

import itertools

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax

# --- Cases: a function, its specs, and the sizes of three examples; the last ones are the bounds ---------

CASES = {}


def case(*specs, sizes, bounds, **options):
    def register(function):
        examples = [dict(zip(bounds, values)) for values in sizes]
        CASES[function.__name__] = (function, specs, examples, bounds, options)
        return function

    return register


@case("q d", "k d", "k 2", sizes=[(1, 3), (3, 1), (2, 4)], bounds={"q": 3, "k": 4}, d=2)
def attention(q, k, v):
    return plait.nn.softmax(q @ k.T * 0.5) @ v


@case("n 2", "2 3", sizes=[(1,), (3,), (4,)], bounds={"n": 4})
def causal_attention(x, w):
    scores = x @ w @ (x @ w).T
    n = x.shape[0]
    earlier = pnp.arange(n)[:, None] >= pnp.arange(n)[None, :]
    return plait.nn.softmax(pnp.where(earlier, scores, -np.inf)) @ x


@case("n d", "d", sizes=[(1, 2), (3, 4), (2, 1)], bounds={"n": 3, "d": 4})
def layer_norm(x, scale):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / pnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 0.1) * scale


@case("n 3 2", "2 4", "1 4", "4", sizes=[(0,), (1,), (3,)], bounds={"n": 3})
def unrolled_cell(x, w, u, b):
    h = c = pnp.zeros((x.shape[0], 1), np.float64)
    for t in range(3):
        gates = x[:, t] @ w + h @ u + b
        i, f, g, o = [gates[:, k : k + 1] for k in range(4)]
        c = plait.nn.sigmoid(f) * c + plait.nn.sigmoid(i) * pnp.tanh(g)
        h = plait.nn.sigmoid(o) * pnp.tanh(c)
    return h, c


@case("n 2", "i32[n]", sizes=[(0,), (1,), (4,)], bounds={"n": 4})
def segment_sum(x, segments):
    return pnp.zeros((3, 2), np.float64).at[segments].add(x)


@case("n 2", "i32[n]", "m 2", sizes=[(0, 3), (1, 3), (4, 4)], bounds={"n": 4, "m": 4})
def ragged_segments(x, segments, start):
    return start.at[segments].add(x), start.at[segments].max(x)


@case("n 2", "i32[m]", sizes=[(3, 1), (3, 0), (4, 3)], bounds={"n": 4, "m": 3})
def rows(x, indices):
    return pnp.take(x, indices, axis=0), x[indices]


@case("1 2 n", "3 2 3", sizes=[(3,), (4,), (6,)], bounds={"n": 6})
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1,), [(1, 1)])


@case("1 2 n", "3 2 2", sizes=[(3,), (4,), (7,)], bounds={"n": 7})
def strided_convolution(x, w):
    return lax.conv_general_dilated(x, w, (2,), "SAME")


@case("n m", sizes=[(1, 3), (4, 2), (2, 1)], bounds={"n": 4, "m": 3})
def sums(x):
    return pnp.cumsum(x, axis=0), pnp.cumsum(x, axis=1)[::-1], pnp.cumprod(x, axis=0)


@case("n", "n", sizes=[(1,), (3,), (5,)], bounds={"n": 5})
def sorted_pairs(keys, values):
    order = pnp.argsort(keys)
    return pnp.sort(keys), values[order], pnp.sort(keys)[::-1] * values


@case("n", sizes=[(2,), (3,), (5,)], bounds={"n": 5})
def largest(x):
    return lax.top_k(x, 2)[0], pnp.max(x), x[pnp.argmax(x)]


@case("n 2", sizes=[(1,), (3,), (4,)], bounds={"n": 4})
def arithmetic(x):
    n = x.shape[0]
    weights = pnp.arange(2 * n) / n
    flat = x.reshape(2 * n) * weights
    return flat[1 : n + 1], flat.reshape(n, 2).T, x.mean(axis=0), x.sum() / (n + 1), x[: n // 2]


@case("2*n", sizes=[(1,), (2,), (3,)], bounds={"n": 3})
def halves(x):
    n = x.shape[0] // 2
    return x[:n] * x[n:], x.reshape(2, n).sum(axis=0), x.reshape(n, 2).mean(axis=1)


@case("n", "m", "n+m", sizes=[(1, 2), (3, 0), (2, 2)], bounds={"n": 3, "m": 2})
def joined(x, y, z):
    return pnp.concatenate([x, y]) * z, pnp.concatenate([y, x]) + z[::-1]


@case("4*n+4 d", "n", sizes=[(0, 1), (1, 2), (2, 2)], bounds={"n": 2, "d": 2})
def quarters(x, y):
    n = y.shape[0]
    parts = x.reshape(n + 1, 4, x.shape[1])
    return parts.sum(axis=1), x[:n].sum(axis=1) * y


@case("n _", "_ _", sizes=[(0,), (2,), (4,)], bounds={"n": 4}, _=3)
def from_call(x, w):
    return pnp.tanh(x @ w), x.sum(axis=0)


@case("n 2", sizes=[(1,), (3,), (4,)], bounds={"n": 4})
def windows(x):
    padded = pnp.pad(x, ((1, 1), (0, 0)))
    return padded[2:] - padded[:-2], pnp.roll(x, 1, axis=0), pnp.diff(x, axis=0)


@case("n 2", "i32[]", sizes=[(3,), (4,), (5,)], bounds={"n": 5})
def dynamic(x, start):
    part = lax.dynamic_slice(x, (start, 0), (2, 2))
    return part, lax.dynamic_update_slice(x, part * 3, (start + 1, 0))


@case("n m", sizes=[(1, 2), (2, 3), (3, 1)], bounds={"n": 3, "m": 3})
def pairs(x):
    distances = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=-1)
    return pnp.exp(-distances), pnp.einsum("im,jm->ij", x, x), pnp.stack([x, x]).sum(axis=(0, 2))


@case("n", sizes=[(2,), (3,), (6,)], bounds={"n": 6})
def pooled(x):
    return lax.reduce_window_max(x, (2,), (1,), "VALID"), x.var(), plait.nn.logsumexp(x)


@case("n", sizes=[(1,), (2,), (4,)], bounds={"n": 4})
def compiled_parts(x):
    return plait.jit(lambda y: pnp.exp(y) * y.shape[0])(x), plait.checkpoint(pnp.sin)(x)


@case("n 2", "2", sizes=[(0,), (1,), (4,)], bounds={"n": 4})
def recurrent(x, w):
    def settle(c):
        """Halves c while it is large: a number of steps that depends on the data."""
        return lax.while_loop(lambda c: (c * c).sum() > 0.3, lambda c: 0.5 * pnp.sin(c), c)

    def step(c, row):
        c = settle(pnp.tanh(c * w + row))
        return c, c * row

    last, ys = lax.scan(step, 0.1 * w, x)
    first, zs = lax.scan(step, last, x, reverse=True)
    return last, ys, first + zs.sum(axis=0)


@case("n m", sizes=[(1, 2), (2, 3), (3, 0)], bounds={"n": 3, "m": 3})
def nested_loops(x):
    def fold(row):
        return lax.scan(lambda c, v: (0.9 * c + pnp.sin(v), c * v), 0.5, row)

    sums, products = lax.map(fold, x)
    steps = lax.fori_loop(0, x.shape[0], lambda i, s: 0.5 * s + pnp.sin(s + i), x.sum())
    return sums, products, steps


@case("n 2", sizes=[(1,), (2,), (4,)], bounds={"n": 4})
def branches(x):
    chosen = lax.cond(x.sum() > 0, lambda x: pnp.sin(x) * x.sum(), lambda x: x * x, x)
    switched = lax.switch(x.shape[0] - 1, [pnp.cos, lambda x: 2 * x, lambda x: x**3], x)
    rows = lax.map(lambda r: lax.cond(r[0] > 0, pnp.log, pnp.exp, pnp.abs(r[0])), x)
    return chosen, switched.sum(axis=0), rows


# --- Stacks ------------------------------------------------------------------------------------------

OTHERS = ("grad", "vmap", "jit")
STACKS = [
    (*outer, "mask", *inner)
    for depth in range(3)
    for layers in itertools.product(OTHERS, repeat=depth)
    for outer, inner in [(layers[:k], layers[k:]) for k in range(depth + 1)]
]


def leaves(outputs):
    return plait.tree.leaves(outputs)


def gradient_of(function):
    """All gradients of the sum of sines of the outputs, by every float argument."""

    def total(*args):
        return sum(pnp.sin(x).sum() for x in leaves(function(*args)) if x.dtype == np.float64)

    def gradients(*args):
        wrt = [i for i, x in enumerate(args) if x.dtype == np.float64]
        return plait.grad(total, argnums=tuple(wrt))(*args)

    return gradients


def looped(function):
    def stacked(*args):
        results = [leaves(function(*[x[i] for x in args])) for i in range(2)]
        return tuple(pnp.stack(each) for each in zip(*results))

    return stacked


def transformed(stack, function, specs, names):
    """The function of arrays, then sizes, that the stack makes."""
    num_args = len(specs)
    below = 0
    masked = False
    for layer in reversed(stack):
        if layer == "mask":
            masked = True
            shapes = [with_axes(spec, below) for spec in specs]
            m = plait.mask(function, shapes)

            def function(*args, m=m):
                return m(*args[:num_args], **dict(zip(names, args[num_args:])))
        elif layer == "grad":
            inner = function

            def function(*args, inner=inner, masked=masked):
                sizes = args[num_args:]
                return gradient_of(lambda *arrays: inner(*arrays, *sizes))(*args[:num_args])
        elif layer == "vmap":
            below += not masked
            function = plait.vmap(function)
        else:
            function = plait.jit(function)
    return function


def with_axes(spec, count):
    if not count:
        return spec
    dtype, _, dims = spec.rpartition("[")
    text = "2 " * count + dims.rstrip("]")
    return f"{dtype}[{text}]" if dtype else text


def reference(stack, function):
    """What the stack makes of unpadded arrays; a vmap above mask, which is a loop over examples, left out."""
    masked = False
    for layer in reversed(stack):
        masked |= layer == "mask"
        if layer == "grad":
            function = gradient_of(function)
        elif layer == "vmap" and not masked:
            function = looped(function)
    return function


def shape_of(spec, sizes, options):
    dims = spec.rpartition("[")[2].rstrip("]").split()
    names = {**sizes, **{k: v for k, v in options.items() if k != "_"}}
    return tuple(options["_"] if d == "_" else eval(d, {}, names) for d in dims)


def padded(array, shape):
    result = np.full(shape, np.nan if array.dtype == np.float64 else 77, array.dtype)
    result[tuple(slice(n) for n in array.shape)] = array
    return result


def zero_padded(array, shape):
    result = np.zeros(shape, array.dtype)
    assert all(n <= m for n, m in zip(array.shape, shape)), (array.shape, shape)
    result[tuple(slice(n) for n in array.shape)] = array
    return result


def check(name, stack):
    function, specs, examples, bounds, options = CASES[name]
    options = dict(options)
    if "d" in options:
        specs = tuple(spec.replace("d", str(options["d"])) for spec in specs)
    rng = np.random.default_rng(3)
    at = stack.index("mask")
    inner = (2,) * stack[at:].count("vmap")
    outer = stack[:at].count("vmap")
    count = {0: 1, 1: 3, 2: 6}[outer]
    real, full = [], []
    for e in range(count):
        sizes = examples[e % 3] if outer else examples[1]
        arrays = []
        for spec in specs:
            shape = inner + shape_of(spec, sizes, options)
            integer = spec.startswith("i32")
            values = (
                rng.integers(0, 3, shape).astype(np.int32) if integer else rng.normal(size=shape)
            )
            arrays.append(np.asarray(values))
        real.append((arrays, list(sizes.values())))
        full.append(
            [padded(a, inner + shape_of(s, bounds, options)) for a, s in zip(arrays, specs)]
        )
    batch = {0: (), 1: (3,), 2: (2, 3)}[outer]
    arguments = [np.stack(a).reshape(batch + a[0].shape) for a in zip(*full)]
    lengths = [np.array(n, np.int32).reshape(batch) for n in zip(*[sizes for _, sizes in real])]
    results = leaves(transformed(stack, function, specs, list(bounds))(*arguments, *lengths))
    plain = reference(stack, function)
    # What the function gives for arrays of the bounds has the shapes of padded results.
    whole = [np.zeros_like(array) if array.dtype.kind == "i" else array for array in full[0]]
    shapes = [np.shape(value) for value in leaves(plain(*map(pnp.asarray, whole)))]
    assert shapes
    for e, (arrays, _) in enumerate(real):
        wanted = leaves(plain(*map(pnp.asarray, arrays)))
        for result, expected, shape in zip(results, wanted, shapes, strict=True):
            result = np.asarray(result)
            result = result.reshape((count, *result.shape[outer:]))[e]
            np.testing.assert_allclose(
                result, zero_padded(np.asarray(expected), shape), rtol=1e-9, atol=1e-9
            )


@pytest.mark.parametrize("name", CASES)
def test_every_order_to_depth_three(name):
    for stack in STACKS:
        try:
            check(name, stack)
        except Exception as error:
            raise AssertionError(f"{'('.join(stack)}({name}: {error}") from error
