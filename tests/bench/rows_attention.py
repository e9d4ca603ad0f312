"""A transformer block: on one length, and on sequences of unequal length."""

# SPDX-License-Identifier: Apache-2.0

import math

import numpy as np
from libraries import compiled
from rows import NOTHING, Row, Work, best_peer, both, leaves, milliseconds, of_row

# --- The block -------------------------------------------------------------------------------------


def parameters(width, seed=0):
    """Weights of queries, keys and values, of their projection, of the two layers; two scales."""
    rng = np.random.default_rng(seed)
    shapes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    weights = [rng.normal(0, shape[0] ** -0.5, shape).astype(np.float32) for shape in shapes]
    return (*weights, *(rng.uniform(0.8, 1.2, width).astype(np.float32) for _ in range(2)))


def block(own, heads, params, x, present=None):
    """x [b, t, d]; present [b, t] says which places count. own has what libraries name differently."""
    qkv, out, up, down, first, second = params
    shape = (*x.shape[:-1], heads, -1)
    h = own.normal(x, first) @ qkv
    width = x.shape[-1]
    q, k, v = (h[..., i * width : (i + 1) * width].reshape(shape) for i in range(3))
    x = x + own.attend(q, k, v, present).reshape(x.shape) @ out
    return x + own.gelu(own.normal(x, second) @ up) @ down


def loss(own, heads, params, x, cotangent, present=None):
    return (own.single(block(own, heads, params, x, present)) * cotangent).sum()


class OfNumPy:
    """What the reference is computed with."""

    def normal(self, x, scale):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale

    def attend(self, q, k, v, present):
        scores = np.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bhts,bshd->bthd", e / e.sum(-1, keepdims=True), v)

    def gelu(self, x):
        return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))

    def single(self, x):
        return x


def erf(x):
    try:
        from scipy.special import erf
    except ImportError:
        erf = np.vectorize(math.erf, otypes=[np.float64])
    return erf(x)


class OfJax:
    """The functions of plait.nn and jax.nn."""

    def __init__(self, library):
        self.nn, self.xp = library.module.nn, library.xp
        if library.name == "plait":
            self.normal = self.nn.layer_norm

    def normal(self, x, scale):
        wide = self.single(x)
        return (self.nn.standardize(wide, axis=-1, epsilon=1e-5) * scale).astype(x.dtype)

    def attend(self, q, k, v, present):
        mask = None if present is None else present[:, None, None, :]
        return self.nn.dot_product_attention(q, k, v, mask=mask)

    def gelu(self, x):
        return self.nn.gelu(x, approximate=False)

    def single(self, x):
        return x.astype(np.float32)


class OfTorch:
    def __init__(self, library):
        self.functional = library.module.nn.functional

    def normal(self, x, scale):
        return self.functional.layer_norm(x, x.shape[-1:], scale, None, 1e-5)

    def attend(self, q, k, v, present):
        mask = None if present is None else present[:, None, None, :]
        q, k, v = (a.transpose(1, 2) for a in (q, k, v))
        return self.functional.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2)

    def gelu(self, x):
        return self.functional.gelu(x)

    def single(self, x):
        return x.float()


def own_of(library):
    return OfTorch(library) if library.kind == "torchlike" else OfJax(library)


# --- Checks by differences -------------------------------------------------------------------------


def directions(arrays):
    return [np.random.default_rng(100 + i).normal(size=a.shape) for i, a in enumerate(arrays)]


def slopes(gradients):
    """The derivative along one direction for each array, from gradients."""
    ways = directions(gradients)
    return [(g.astype(np.float64) * way).sum() for g, way in zip(gradients, ways)]


def slopes_by_differences(function, arrays, size=1e-5):
    """The same of a function of float64 arrays, without its gradient."""
    found = []
    for i, way in enumerate(directions(arrays)):

        def at(by, i=i, way=way):
            return function([a + by * way if j == i else a for j, a in enumerate(arrays)])

        found.append((at(size) - at(-size)) / (2 * size))
    return found


def of_gradients(result):
    """(value, gradients) of a library, as the reference has them."""
    value, *gradients = leaves(result)
    return value, np.array(slopes(gradients))


# --- One length ------------------------------------------------------------------------------------

BATCH, TIME, WIDTH, HEADS = 4, 256, 512, 8


def block_inputs(dtype):
    def inputs():
        rng = np.random.default_rng(1)
        shape = (BATCH, TIME, WIDTH)
        x, cotangent = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
        return *(rounded(a, dtype) for a in (*parameters(WIDTH), x)), cotangent / math.sqrt(x.size)

    return inputs


def rounded(array, dtype):
    if dtype == "f32":
        return array
    import ml_dtypes

    return array.astype(ml_dtypes.bfloat16)


def block_reference(*arrays):
    *moved, cotangent = arrays

    def value(moved):
        return loss(OfNumPy(), HEADS, moved[:-1], moved[-1], cotangent)

    return value(moved), np.array(slopes_by_differences(value, moved))


def block_call(library, *arrays):
    """Value, gradients by parameters and by x."""
    *moved, cotangent = arrays
    own = own_of(library)

    def value(moved):
        return loss(own, HEADS, moved[:-1], moved[-1], cotangent)

    return valued(library, value, moved)


def valued(library, value, moved):
    """Calls of value and gradient by a list of arrays."""
    if library.kind == "jaxlike":
        return compiled(library, library.module.value_and_grad(value), moved)
    for array in moved:
        array.requires_grad_()
    grad = library.module.autograd.grad

    def calling(value):
        def call():
            result = value(moved)
            return result, grad(result, moved)

        return call

    return {name: calling(function) for name, function in library.compilations(value).items()}


def block_flops(tokens, pairs, width):
    """Forward and backward of the products: 12 d² for a token, 2 d for a pair of tokens."""
    return 3 * 2 * (12 * width**2 * tokens + 2 * width * pairs)


def block_row(dtype):
    flops = block_flops(BATCH * TIME, BATCH * TIME**2, WIDTH)
    return Row(
        f"transformer/block-{dtype}",
        f"B=4 T=256 d=512 h=8, value and gradient, {dtype}",
        best_peer(),
        block_inputs(dtype),
        block_reference,
        calls={"jaxlike": block_call, "torchlike": block_call},
        pick=of_gradients,
        tolerance=1e-3 if dtype == "f32" else 5e-2,
        work=Work(flops=flops) if dtype == "f32" else Work(flops16=flops),
        fresh=True,
    )


# --- Unequal lengths -------------------------------------------------------------------------------

SEQUENCES, BOUND, NARROW, FEW = 16, 512, 256, 4


def lengths(seed=0):
    """Log-normal, 18 % of the places real."""
    drawn = np.random.default_rng(seed).lognormal(0, 0.8, SEQUENCES)
    return np.clip(drawn * 0.18 * BOUND / drawn.mean(), 4, BOUND).astype(np.int32)


def ragged_inputs():
    rng = np.random.default_rng(1)
    shape = (SEQUENCES, BOUND, NARROW)
    x, cotangent = (rng.standard_normal(shape, dtype=np.float32) for _ in range(2))
    return parameters(NARROW), x, cotangent / math.sqrt(NARROW * lengths().sum()), lengths()


def ragged_value(params, x, cotangent, lengths):
    """Each sequence by itself."""
    own = OfNumPy()
    return sum(
        loss(own, FEW, params, x[i : i + 1, :n], cotangent[i : i + 1, :n])
        for i, n in enumerate(lengths)
    )


def ragged_reference(params, x, cotangent, lengths):
    """The value, and its slopes by parameters."""

    def value(params):
        return ragged_value(params, x, cotangent, lengths)

    return value(params), np.array(slopes_by_differences(value, list(params)))


def masked_value(library):
    """plait: one program of one length, masked and batched."""
    plait, own = library.module, own_of(library)
    spec = f"t {NARROW}"

    def one(params, x, cotangent):
        return loss(own, FEW, params, x[None], cotangent[None])

    def value(params, x, cotangent, lengths):
        each = plait.vmap(lambda x, c, n: plait.mask(one, (None, spec, spec))(params, x, c, t=n))
        return each(x, cotangent, lengths).sum()

    return value


def masked(library, params, x, cotangent, lengths):
    run = library.module.value_and_grad(masked_value(library))
    return compiled(library, run, params, x, cotangent, lengths)


def many_inputs():
    """As above, with 20 vectors of lengths."""
    params, x, cotangent, _ = ragged_inputs()
    return params, x, cotangent, np.stack([lengths(seed) for seed in range(20)])


def many_reference(params, x, cotangent, vectors):
    return [ragged_value(params, x, cotangent, vector) for vector in vectors]


def many(library, params, x, cotangent, vectors):
    """Value and gradients for each vector of lengths, by one program; gives the values."""
    own = own_of(library)
    vectors = [vectors[i] for i in range(20)]
    if library.name == "plait":
        function = masked_value(library)
    else:

        def function(params, x, cotangent, lengths):
            present = library.xp.arange(BOUND)[None, :] < lengths[:, None]
            return loss(own, FEW, params, x, cotangent * present[..., None], present)

    if library.kind == "jaxlike":
        run = library.jit(library.module.value_and_grad(function))
    else:
        value = library.jit(function)
        for array in params:
            array.requires_grad_()

        def run(*arguments):
            result = value(*arguments)
            return result, library.module.autograd.grad(result, params)

    return lambda: [library.wait(run(params, x, cotangent, v))[0] for v in vectors]


def padded(library, params, x, cotangent, lengths):
    """What peers do: one batch with a mask, buckets of like lengths, or each length by itself."""
    counts = np.asarray(library.numpy(lengths))
    own, arange = own_of(library), library.xp.arange
    order = np.argsort(counts)
    width = -(-counts // 64) * 64
    buckets = [[i for i in order if width[i] == w] for w in sorted(set(width))]

    def over(groups, exact):
        """Value over groups of sequences, each cut to the length of its longest."""
        parts = []
        for group in groups:
            longest = int(counts[group].max() if exact else width[group].max())
            index = library.array(np.array(group))
            cut = (x[index][:, :longest], cotangent[index][:, :longest], lengths[index])
            parts.append(cut)

        def value(params):
            total = 0
            for part, targets, ends in parts:
                present = None if exact else arange(part.shape[1])[None, :] < ends[:, None]
                if not exact:
                    targets = targets * present[..., None]
                total = total + loss(own, FEW, params, part, targets, present)
            return total

        return value

    ways = {
        "padded": over([list(range(len(counts)))], False),
        "bucketed": over(buckets, False),
        "loop": over([[i] for i in range(len(counts))], True),
    }
    if library.name == "compile":
        del ways["loop"]  # compiles for minutes
    calls = {}
    for way, value in ways.items():
        fresh = library.arrays(list(map(np.array, library.numpy(list(params)))))
        for mode, call in valued(library, value, fresh).items():
            if not mode.startswith("max"):
                calls[way] = call
    return calls


def exact(library, params, x, cotangent, lengths):
    """Each sequence by itself at its own length: the work of the real tokens."""
    return {"loop": padded(library, params, x, cotangent, lengths)["loop"]}


def ragged_row(name, what, reach, calls):
    counts = lengths().astype(np.int64)
    return Row(
        name,
        what,
        reach,
        ragged_inputs,
        ragged_reference,
        calls=calls,
        pick=of_gradients,
        tolerance=1e-3,
        work=Work(flops=block_flops(counts.sum(), (counts**2).sum(), NARROW)),
        fresh=True,
    )


ROWS = [
    block_row("f32"),
    block_row("bf16"),
    ragged_row(
        "ragged/exact",
        "plait on each of 16 sequences by itself",
        calls={"plait": exact},
        reach=NOTHING,
    ),
    ragged_row(
        "ragged/encoder",
        "encoder block, d=256, 16 log-normal lengths up to 512",
        both(best_peer(0.6), of_row("ragged/exact", 1.3)),
        {"plait": masked, "jax": padded, "torch": padded, "compile": padded},
    ),
    Row(
        "ragged/20-vectors",
        "the same for 20 vectors of lengths, from cold, beyond the warm time",
        milliseconds(300),
        many_inputs,
        many_reference,
        calls={"plait": many, "jax": many, "torch": many, "compile": many},
        tolerance=1e-3,
        cold=True,
        beyond_warm=True,
    ),
]
