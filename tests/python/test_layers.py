"""Modules and layers of plait.nn: what they are, and their values against NumPy.

SPDX-License-Identifier: Apache-2.0
"""

import collections.abc
import copy
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import grad, jit, lax, mask, nn, random, vmap

KEY = random.key(0)
rng = np.random.default_rng(7)
F64 = {"key": KEY, "dtype": "float64"}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check(result, expected, tolerance=1e-12):
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=tolerance)


def arrays(module, *names):
    return [np.asarray(getattr(module, name)) for name in names]


# --- Modules ---


class Affine(nn.Module):
    weight: plait.Array
    bias: plait.Array | None
    power: int = 1
    function: collections.abc.Callable | None = None

    def __call__(self, x):
        y = (x @ self.weight) ** self.power
        return y if self.bias is None else y + self.bias


class Net(nn.Module):
    layers: list
    name: "str"  # an annotation of the future

    def __init__(self, key, name="net"):
        self.layers = [
            nn.Linear(3, 4, key=key),
            nn.Lambda(nn.relu),
            {"out": nn.Linear(4, 2, key=key)},
        ]
        self.name = name

    @jit
    def __call__(self, x):
        return self.layers[2]["out"](self.layers[1](self.layers[0](x)))


def test_a_module_is_a_tree_of_its_arrays_and_the_rest_is_structure():
    module = Affine(np.ones((2, 2)), None, power=2)
    leaves, structure = plait.tree.flatten(module)
    assert [leaf.shape for leaf in leaves] == [(2, 2)]
    assert structure == plait.tree.structure(Affine(np.zeros((2, 2)), None, 2))
    assert structure != plait.tree.structure(Affine(np.zeros((2, 2)), None, 3))
    assert plait.tree.leaves_with_path(module)[0][0] == (plait.tree.GetAttrKey("weight"),)
    doubled = plait.tree.map(lambda leaf: 2 * leaf, module)
    assert type(doubled) is Affine and doubled.power == 2
    check(jit(lambda m, x: m(x))(doubled, np.ones(2)), [16, 16])
    check(grad(lambda m: m(np.ones(2)).sum())(module).weight, np.full((2, 2), 4.0))
    flags = plait.tree.map(lambda leaf: leaf.ndim > 1, Net(KEY))  # leaves may be anything
    assert plait.tree.leaves(flags) == [True, False] * 2


def test_modules_of_modules_and_methods_that_are_jitted():
    net = Net(KEY)
    x = rng.normal(size=(5, 3)).astype(np.float32)
    w, b = arrays(net.layers[0], "weight", "bias")
    v, c = arrays(net.layers[2]["out"], "weight", "bias")
    check(net(x), np.maximum(x @ w + b, 0) @ v + c, 1e-5)
    check(net.replace(name="other")(x), np.asarray(net(x)))
    for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
        check(twin(x), np.asarray(net(x)))
        assert twin is not net and twin != net


def test_what_a_module_refuses():
    net = Net(KEY)
    with pytest.raises(TypeError, match="Net is immutable, and 'name' was assigned"):
        net.name = "x"
    with pytest.raises(TypeError, match="no field 'nam'; did you mean 'name'"):
        net.replace(nam="x")
    with pytest.raises(TypeError, match=r"layers\[0\] is .*, no array"):
        net.replace(layers=[nn.relu])
    with pytest.raises(TypeError, match=r"'power' is static, and holds the array f32\[\]"):
        Affine(np.ones((2, 2)), None, power=pnp.float32(2))

    class Bare(nn.Module):
        weight: plait.Array

        def __init__(self, **values):
            for name, value in values.items():
                setattr(self, name, value)

    with pytest.raises(TypeError, match="Bare: __init__ has not set the field 'weight'"):
        Bare()
    with pytest.raises(TypeError, match="Bare has no field 'bias'"):
        Bare(bias=1)

    class Heir(Bare):  # keeps the __init__ of its base
        other: plait.Array

    assert Heir(weight=np.ones(2), other=np.ones(3)).other.shape == (3,)


def test_modules_show_types_in_place_of_arrays():
    assert repr(nn.Linear(3, 4, key=KEY)) == "Linear(weight=f32[3,4], bias=f32[4])"
    assert repr(Affine(np.ones((2, 2)), None, 3)) == (
        "Affine(weight=f64[2,2], bias=None, power=3, function=None)"
    )
    text = repr(nn.MLP(2, 3, 4, 2, key=KEY))
    assert text.splitlines()[:3] == [
        "MLP(",
        "  layers=(",
        "    Linear(weight=f32[2,4], bias=f32[4]),",
    ]
    assert "activation=relu" in text
    shapes = plait.eval_shape(lambda: nn.Linear(3, 4, key=KEY))
    assert repr(shapes) == "Linear(weight=f32[3,4], bias=f32[4])"


def test_parts_are_replaced_taken_apart_and_put_together():
    model = nn.MLP(3, 2, 4, 2, key=KEY)
    zeros = pnp.zeros((3, 4))
    changed = nn.tree_at(lambda m: m.layers[0].weight, model, zeros)
    assert changed.layers[0].weight is zeros and changed.layers[1].weight is model.layers[1].weight
    both = nn.tree_at(
        lambda m: (m.layers[0].weight, m.layers[2]), model, (zeros, nn.Linear(4, 9, key=KEY))
    )
    assert both(pnp.ones(3)).shape == (9,) and both.layers[0].weight is zeros
    assert nn.tree_at(lambda t: t[1], (1.0, 1.0), 2.0) == (1.0, 2.0)  # equal leaves
    assert len(nn.tree_at(lambda m: m.layers, model, model.layers[:1]).layers) == 1
    for where in (lambda m: m.layers[0].weight.leaf, lambda m: None):
        with pytest.raises(TypeError, match="tree_at: where"):
            nn.tree_at(where, model, zeros)
    matrices, rest = nn.partition(model, lambda leaf: leaf.ndim == 2)
    assert matrices.layers[0].bias is None and rest.layers[0].weight is None
    check(nn.combine(matrices, rest)(pnp.ones(3)), np.asarray(model(pnp.ones(3))))
    first, others = nn.partition(model, nn.tree_at(lambda m: m.layers[0], plait.tree.map(lambda _: False, model), True))  # fmt: skip
    assert len(plait.tree.leaves(first)) == 2 and len(plait.tree.leaves(others)) == 4
    gradient = grad(lambda m: nn.combine(m, rest)(pnp.ones(3)).sum())(matrices)
    assert gradient.layers[2].bias is None
    check(gradient.layers[2].weight, np.asarray(grad(lambda m: m(pnp.ones(3)).sum())(model).layers[2].weight))  # fmt: skip


def test_weights_are_written_and_read(tmp_path):
    model = (nn.MLP(3, 2, 4, 1, key=KEY), nn.Linear(2, 2, key=KEY, dtype="bfloat16"))
    nn.save_weights(tmp_path / "w.npz", model)
    like = plait.eval_shape(lambda: (nn.MLP(3, 2, 4, 1, key=KEY), nn.Linear(2, 2, key=KEY, dtype="bfloat16")))  # fmt: skip
    loaded = nn.load_weights(tmp_path / "w.npz", like)
    for ours, theirs in zip(plait.tree.leaves(loaded), plait.tree.leaves(model), strict=True):
        assert ours.dtype == theirs.dtype and (np.asarray(ours) == np.asarray(theirs)).all()
    with pytest.raises(ValueError, match="is not in both"):
        nn.load_weights(tmp_path / "w.npz", like[0])
    with pytest.raises(ValueError, match="float32.*in the file, and f32"):
        nn.load_weights(tmp_path / "w.npz", (nn.MLP(3, 2, 5, 1, key=KEY), like[1]))


def test_models_are_saved_as_programs(tmp_path):
    model = nn.MLP(3, 2, 4, 1, key=KEY)
    plait.save(
        tmp_path / "m.plait", {"own": (model, "n 3"), "given": (lambda m, x: m(x), model, "n 3")}
    )
    program = plait.load(tmp_path / "m.plait", verify=True)
    x = pnp.ones((5, 3))
    check(program.own(x), np.asarray(model(x)))
    check(program.given(model, x), np.asarray(model(x)))
    step = lambda m: plait.tree.map(lambda w: 2 * w, m)  # noqa: E731
    plait.save(tmp_path / "step.plait", step, model)
    types = {"MLP": model, "Linear": nn.Linear}
    doubled = plait.load(tmp_path / "step.plait", types=types)(model)
    assert plait.tree.structure(doubled) == plait.tree.structure(model)
    check(doubled(x), np.asarray(step(model)(x)))
    with pytest.raises(TypeError, match="the static field activation of MLP has no default"):
        plait.load(tmp_path / "step.plait", types={**types, "MLP": nn.MLP})
    assert [name.partition(".")[2] for name in program.own.constants][:2] == ["layers[0].weight", "layers[0].bias"]  # fmt: skip


# --- Layers ---


def test_linear_and_mlp():
    layer = nn.Linear(3, 4, **F64)
    w, b = arrays(layer, "weight", "bias")
    x = rng.normal(size=(2, 5, 3))
    check(layer(x), x @ w + b)
    assert nn.Linear(3, 4, key=KEY, use_bias=False).bias is None
    assert (
        abs(np.std(np.asarray(nn.Linear(400, 300, key=KEY).weight)) * 20 - 1) < 0.02
    )  # 1 / sqrt(400)
    model = nn.MLP(3, 2, 4, 2, activation=pnp.tanh, final_activation=nn.softmax, **F64)
    y = x
    for i, part in enumerate(model.layers):
        y = y @ np.asarray(part.weight) + np.asarray(part.bias)
        y = np.tanh(y) if i < 2 else softmax(y)
    check(model(x), y)
    with pytest.raises(ValueError, match="Linear: out_features is 0"):
        nn.Linear(3, 0, key=KEY)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(n):
    layer = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n - 1](4, 6, 3, stride=2, padding=1, groups=2, **F64)
    w, b = arrays(layer, "weight", "bias")
    x = rng.normal(size=(2, *[5] * n, 4))
    padded = np.pad(x, [(0, 0), *[(1, 1)] * n, (0, 0)])
    expected = np.zeros((2, *[3] * n, 6))
    for place in np.ndindex(*[3] * n):
        window = padded[(slice(None), *(slice(2 * i, 2 * i + 3) for i in place))].reshape(2, -1, 4)
        for group in range(2):
            kernel = w.reshape(-1, 2, 6)[..., 3 * group : 3 * group + 3]
            part = np.einsum("nkc,kco->no", window[..., 2 * group : 2 * group + 2], kernel)
            expected[(slice(None), *place, slice(3 * group, 3 * group + 3))] = part
    check(layer(x), expected + b)
    check(layer(x[0]), (expected + b)[0])
    check(layer(x[:, None]), (expected + b)[:, None])
    check(vmap(layer)(x), expected + b)
    assert nn.Conv(n, 4, 6, 3, key=KEY)(x.astype("float32")).shape == (2, *[5] * n, 6)  # "SAME"


def test_norms():
    x = rng.normal(size=(2, 3, 5, 6)) * 2 + 1
    scale, bias = rng.normal(size=(2, 6))
    standard = lambda x, axes, eps=1e-5: (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)  # noqa: E731  # fmt: skip
    layer = nn.LayerNorm(6, dtype="float64").replace(scale=scale, bias=bias)
    check(layer(x), standard(x, -1) * scale + bias)
    check(nn.LayerNorm(6, use_scale=False, use_bias=False)(x), standard(x, -1))
    check(nn.RMSNorm(6, dtype="float64").replace(scale=scale)(x), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale)  # fmt: skip
    group = nn.GroupNorm(3, 6, dtype="float64").replace(scale=scale, bias=bias)
    grouped = standard(x.reshape(2, 3, 5, 3, 2), (1, 2, 4)).reshape(x.shape) * scale + bias
    check(group(x), grouped)
    check(group(x[0]), grouped[0])
    check(vmap(group)(x), grouped)

    batch = nn.BatchNorm(6, momentum=0.75, dtype="float64").replace(scale=scale, bias=bias)
    state = batch.init_state()
    y, after = jit(lambda x, s: batch(x, s, training=True))(x, state)
    check(y, standard(x, (0, 1, 2)) * scale + bias)
    check(after.mean, 0.25 * x.mean((0, 1, 2)))
    check(after.var, 0.75 + 0.25 * x.var((0, 1, 2)))
    y, same = batch(x, after, training=False)
    check(y, (x - after.mean) / np.sqrt(np.asarray(after.var) + 1e-5) * scale + bias)
    assert same is after
    of_batch = lambda x: batch.replace(axis_name="b")(x, state, training=True)  # noqa: E731
    y, over_examples = vmap(of_batch, out_axes=(0, None), axis_name="b")(x)
    check(y, standard(x, (0, 1, 2)) * scale + bias)
    check(over_examples.var, np.asarray(after.var))


def reference_attention(layer, x, context, allowed):
    heads, shared = layer.num_heads, layer.num_kv_heads
    project = lambda part, x, n: (x @ np.asarray(part.weight)).reshape(len(x), n, -1)  # noqa: E731
    q, k, v = project(layer.query, x, heads), project(layer.key, context, shared), project(layer.value, context, shared)  # fmt: skip
    k, v = np.repeat(k, heads // shared, 1), np.repeat(v, heads // shared, 1)
    scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(q.shape[-1])
    weights = softmax(np.where(allowed, scores, -1e300))
    return np.einsum("hts,shd->thd", weights, v).reshape(len(x), -1) @ np.asarray(
        layer.output.weight
    )


def test_attention():
    layer = nn.MultiHeadAttention(4, 12, num_kv_heads=2, **F64)
    x, context = rng.normal(size=(5, 12)), rng.normal(size=(7, 12))
    check(layer(x), reference_attention(layer, x, x, True))
    check(layer(x, is_causal=True), reference_attention(layer, x, x, np.tri(5, dtype=bool)))
    allowed = rng.random((4, 5, 7)) < 0.7
    check(layer(x, context, mask=allowed), reference_attention(layer, x, context, allowed))
    check(layer(x[None]), reference_attention(layer, x, x, True)[None])
    padded = np.concatenate([x, np.full((3, 12), np.nan)])
    check(
        mask(layer, in_shapes=("f64[t 12]",))(padded, t=5)[:5],
        reference_attention(layer, x, x, True),
    )
    with pytest.raises(ValueError, match="MultiHeadAttention: 1 axes, and 1 of the context"):
        layer(x[0])
    with pytest.raises(ValueError, match="10 features for 4 heads"):
        nn.MultiHeadAttention(4, 10, key=KEY)


def test_attention_with_a_cache_is_attention_to_all_so_far():
    layer = nn.MultiHeadAttention(2, 6, **F64)
    x = rng.normal(size=(3, 7, 6))
    whole = np.asarray(layer(x, is_causal=True))
    step = jit(lambda layer, x, cache: layer(x, cache=cache, is_causal=True))
    cache, at, parts = layer.init_cache(7, batch=3, dtype="float64"), 0, []
    for length in (3, 1, 1, 2):
        y, cache = step(layer, x[:, at : at + length], cache)
        parts.append(np.asarray(y))
        at += length
    check(np.concatenate(parts, axis=1), whole)
    assert int(cache.length) == 7
    assert np.isnan(np.asarray(step(layer, x[:, :1], cache)[0])).all()  # no place is left
    one = layer.init_cache(7, dtype="float64")
    y, _ = vmap(lambda x: layer(x, cache=one))(x[:, :3])  # each to all three
    check(y, np.asarray(layer(x[:, :3])))


def test_recurrent_cells():
    x, h, c = rng.normal(size=(2, 3)), rng.normal(size=(2, 5)), rng.normal(size=(2, 5))
    gru = plait.tree.map(lambda w: pnp.asarray(rng.normal(size=w.shape)), nn.GRUCell(3, 5, **F64))
    wi, wh, b, bh = arrays(gru, "weight_input", "weight_hidden", "bias", "bias_hidden")
    xr, xz, xn = np.split(x @ wi + b, 3, -1)
    hr, hz, hn = np.split(h @ wh, 3, -1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    check(gru(x, h), (1 - z) * np.tanh(xn + r * (hn + bh)) + z * h)
    assert gru.init_state((4, 2)).shape == (4, 2, 5)
    lstm = plait.tree.map(lambda w: pnp.asarray(rng.normal(size=w.shape)), nn.LSTMCell(3, 5, **F64))
    wi, wh, b = arrays(lstm, "weight_input", "weight_hidden", "bias")
    i, f, g, o = np.split(x @ wi + h @ wh + b, 4, -1)
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    for result, expected in zip(lstm(x, (h, c)), (sigmoid(o) * np.tanh(cell), cell)):
        check(result, expected)
    square = np.asarray(nn.GRUCell(3, 5, **F64).weight_hidden)[:, :5]
    check(square @ square.T, np.eye(5))


def test_a_cell_over_sequences_of_unequal_length():
    cell = nn.LSTMCell(3, 4, key=KEY)

    def last(cell, xs):
        (h, _), _ = lax.scan(lambda state, x: (cell(x, state), None), cell.init_state(), xs)
        return h

    xs = rng.normal(size=(2, 6, 3)).astype(np.float32)
    padded = xs.copy()
    padded[1, 4:] = np.nan
    both = vmap(mask(last, in_shapes=(None, "t 3")), (None, 0))
    result = jit(both)(cell, padded, t=np.array([6, 4]))
    check(result[0], np.asarray(last(cell, xs[0])), 1e-6)
    check(result[1], np.asarray(last(cell, xs[1, :4])), 1e-6)
    slopes = grad(lambda cell: both(cell, padded, t=np.array([6, 4])).sum())(cell)
    assert all(np.isfinite(np.asarray(leaf)).all() for leaf in plait.tree.leaves(slopes))


def test_embedding_dropout_and_sequential():
    table = nn.Embedding(9, 4, key=KEY)
    check(table(np.array([[1, 8]])), np.asarray(table.weight)[[[1, 8]]])
    check(table.attend(np.ones(4, np.float32)), np.asarray(table.weight).sum(1), 1e-6)
    slope = grad(lambda t: t(np.array([1, 1, 3])).sum())(table).weight
    check(slope, np.bincount([1, 1, 3], minlength=9)[:, None] * np.ones((9, 4)))
    drop, x = nn.Dropout(0.25), np.ones(10_000, np.float32)
    y = np.asarray(drop(x, key=KEY))
    assert set(np.unique(y)) == {0, np.float32(1 / 0.75)} and abs((y == 0).mean() - 0.25) < 0.02
    assert drop(x, key=None) is x and nn.Dropout(0.0)(x, key=KEY) is x
    with pytest.raises(ValueError, match="rate is 1"):
        nn.Dropout(1)

    model = nn.Sequential(
        [nn.Linear(3, 4, key=KEY), nn.relu, nn.Sequential([nn.Dropout(0.5)]), lambda x: x + 1]
    )
    x = np.ones((2, 3), np.float32)
    hidden = np.maximum(x @ np.asarray(model[0].weight), 0)
    check(model(x, key=None), hidden + 1, 1e-6)
    dropped = np.asarray(jit(lambda m, x, key: m(x, key=key))(model, x, KEY)) - 1
    assert (np.isclose(dropped, 0, atol=1e-6) | np.isclose(dropped, 2 * hidden, rtol=1e-5)).all()
    assert len(model) == 4 and isinstance(model[:2], nn.Sequential) and len(list(model)) == 4
    with pytest.raises(ValueError, match="layer 0, Dropout, takes a key"):
        model(x)
    check(nn.Sequential([nn.Linear(3, 4, key=KEY)])(x), x @ np.asarray(model[0].weight), 1e-6)


def test_gradients_of_all_layers_are_finite_differences():
    keys = random.split(KEY, 8)
    options = {"dtype": "float64"}

    class All(nn.Module):
        conv: nn.Conv
        group: nn.GroupNorm
        attention: nn.MultiHeadAttention
        norm: nn.LayerNorm
        rms: nn.RMSNorm
        gru: nn.GRUCell
        lstm: nn.LSTMCell
        batch: nn.BatchNorm

        def __call__(self, x):
            y = self.group(self.conv(x))
            y = y + self.attention(self.norm(y), is_causal=True)
            h = self.gru(self.rms(y), pnp.ones((6, 4)))
            y, _ = self.lstm(h, (h, y))
            y, _ = self.batch(y, self.batch.init_state(), training=True)
            return pnp.sum(pnp.sin(pnp.arange(24.0).reshape(6, 4)) * y)

    model = All(
        nn.Conv1d(3, 4, 3, key=keys[0], **options), nn.GroupNorm(2, 4, 1, **options),
        nn.MultiHeadAttention(2, 4, key=keys[1], **options), nn.LayerNorm(4, **options), nn.RMSNorm(4, **options),
        nn.GRUCell(4, 4, key=keys[2], **options), nn.LSTMCell(4, 4, key=keys[3], **options), nn.BatchNorm(4, **options),
    )  # fmt: skip
    x = rng.normal(size=(6, 3))
    direction = plait.tree.map(lambda w: pnp.asarray(rng.normal(size=w.shape)), model)
    moved = lambda t: plait.tree.map(lambda w, d: w + t * d, model, direction)  # noqa: E731
    run, h = jit(lambda m: m(x)), 1e-5
    slope = (float(run(moved(h))) - float(run(moved(-h)))) / (2 * h)
    for function in (run, plait.checkpoint(run)):
        gradient = grad(function)(model)
        inner = sum(float((g * d).sum()) for g, d in zip(plait.tree.leaves(gradient), plait.tree.leaves(direction)))  # fmt: skip
        np.testing.assert_allclose(inner, slope, rtol=1e-6)


def test_an_ensemble_is_made_and_run_by_vmap():
    make = lambda key: nn.MLP(3, 2, 4, 1, key=key)  # noqa: E731
    keys = random.split(KEY, 5)
    ensemble = vmap(make)(keys)
    x = np.ones(3, np.float32)
    outputs = vmap(lambda model: model(x))(ensemble)
    for i in range(5):
        check(outputs[i], np.asarray(make(keys[i])(x)), 1e-6)


def test_a_call_of_jit_compares_the_static_fields_of_its_arguments():
    class Holder(nn.Module):
        weight: plait.Array
        note: object = plait.tree.static()

    f = jit(lambda m: m.weight[0] if m.note[0] else m.weight[1])
    weight = pnp.array([1.0, 2.0])
    for note, value, traces in (([1], 1, 1), ([1], 1, 1), ([0], 2, 2), ((1,), 1, 3), ([0], 2, 3)):
        assert f(Holder(weight, note)) == value and len(f.cache) == traces
    assert f(Holder([weight, 2 * weight], [1]))[1] == 2 and len(f.cache) == 4  # a list of arrays
