"""What the code of a jitted function reads besides arrays: a change of it makes a new trace, or is an error.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import dataclasses
import enum
import types
import weakref

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import _bytecode, _reads


def follows(function, *changes):
    """The jitted function gives what the function gives, before and after each change."""
    jitted = plait.jit(function)
    for change in (lambda: None, *changes):
        change()
        expected = np.asarray(function(2.0))
        np.testing.assert_allclose(np.asarray(jitted(2.0)), expected)
        misses = jitted.cache.misses
        np.testing.assert_allclose(np.asarray(jitted(2.0)), expected)
        assert jitted.cache.misses == misses, jitted.cache.last_miss
    return jitted


def array(*values):
    return pnp.asarray(np.float32(values))


def test_a_list_of_dicts_that_grows():
    layers = [{"w": array(2.0), "b": array(1.0)}]

    def f(x):
        for layer in layers:
            x = x * layer["w"] + layer["b"]
        return x

    jitted = follows(f, lambda: layers.append({"w": array(3.0), "b": array(4.0)}))
    assert jitted.cache.last_miss == "len(layers) is 2 where it was 1"
    layers[0]["w"] = array(7.0)
    assert jitted(2.0).tolist() == [49.0] and jitted.cache.misses == 2


@pytest.mark.parametrize(
    "read",
    [
        lambda items, x: x * sum(items),
        lambda items, x: x * len(items),
        lambda items, x: x * max(items) + min(items),
        lambda items, x: x * items[-1],
        lambda items, x: x * sum(v * v for v in items),
        lambda items, x: x * sum([v + 1 for v in items]),
        lambda items, x: x * sum(i * v for i, v in enumerate(items)),
        lambda items, x: x * sum(a * b for a, b in zip(items, items)),
        lambda items, x: x * sum(map(float, items)),
        lambda items, x: x * sum(reversed(items)),
        lambda items, x: x * sum(items[1:]),
        lambda items, x: x * len([*items]),
        lambda items, x: x * (lambda *numbers: sum(numbers))(*items),
        lambda items, x: x * (5 if 4.0 in items else 6),
        lambda items, x: x * (items and items[0]),
        lambda items, x: x * pnp.asarray(items).sum(),
        lambda items, x: x * np.sum(items),
    ],
)
def test_numbers_of_a_list(read):
    items = [1.0, 2.0, 3.0]
    follows(lambda x: read(items, x), lambda: items.append(4.0), lambda: items.__setitem__(0, 9.0))
    long = [float(i) for i in range(10)]
    follows(lambda x: read(long, x), lambda: long.append(4.5), lambda: long.__setitem__(0, 9.0))


@pytest.mark.parametrize(
    "read",
    [
        lambda d, x: x * d.get("a"),
        lambda d, x: x * d.get("b", 5.0),
        lambda d, x: x * d.get("a", 5.0) if "b" in d else x,
        lambda d, x: x * sum(d.values()),
        lambda d, x: x * sum(v for _, v in d.items()),
        lambda d, x: x * len(d),
        lambda d, x: x * sum(d[k] for k in d),
        lambda d, x: x * sum(d[k] for k in sorted(d)),
        lambda d, x: x * sum(d[k] for k in ("a", "b") if k in d),
        lambda d, x: (lambda a, b=1.0: x * a * b)(**d),
        lambda d, x: x * sum({**d}.values()),
    ],
)
def test_numbers_of_a_dict(read):
    numbers = {"a": 2.0}
    follows(
        lambda x: read(numbers, x),
        lambda: numbers.update(b=3.0),
        lambda: numbers.update(a=7.0),
        lambda: numbers.pop("b"),
    )


@pytest.mark.parametrize(
    "read",
    [
        lambda c, x: x * getattr(c, "rate"),
        lambda c, x: x * getattr(c, "other", 3.0),
        lambda c, x: x * (2.0 if hasattr(c, "other") else 1.0),
        lambda c, x: x * sum(vars(c).values()),
        lambda c, x: x * vars(c)["rate"],
        lambda c, x: x * c.__dict__["rate"],
        lambda c, x: x * sum(getattr(c, name) for name in ("rate", "other") if hasattr(c, name)),
        lambda c, x: x * sum(getattr(c, name) for name in vars(c)),
    ],
)
@pytest.mark.parametrize("kind", [types.SimpleNamespace, lambda **k: type("Own", (), {})()])
def test_attributes_that_are_read_by_name(read, kind):
    config = kind(rate=2.0)
    config.rate = 2.0
    follows(
        lambda x: read(config, x),
        lambda: setattr(config, "other", 5.0),
        lambda: setattr(config, "rate", 7.0),
        lambda: delattr(config, "other"),
    )


def test_sets_deques_and_other_containers():
    numbers = {1.0, 2.0}
    follows(lambda x: x * sum(numbers), lambda: numbers.add(3.0), lambda: numbers.discard(1.0))
    queue = collections.deque([1.0, 2.0])
    follows(lambda x: x * sum(queue), lambda: queue.append(3.0), lambda: queue.popleft())
    arrays = collections.deque([array(1.0), array(2.0)], maxlen=2)
    jitted = follows(lambda x: x * sum(arrays), lambda: arrays.append(array(5.0)))
    assert jitted.cache.misses == 1
    counts = collections.Counter("aab")
    follows(lambda x: x * counts["a"], lambda: counts.update("a"))
    ordered = collections.OrderedDict(a=1.0, b=2.0)
    follows(lambda x: x * list(ordered.values())[0], lambda: ordered.move_to_end("a"))
    proxy = types.MappingProxyType(ordered)
    follows(lambda x: x * proxy["a"], lambda: ordered.update(a=4.0))


class Color(enum.Enum):
    RED = 2.0
    BLUE = 3.0


@pytest.mark.parametrize(
    "values",
    [
        ((1.0, 2.0), (1.0, 3.0)),
        (slice(0, 1), slice(1, 3)),
        (Color.RED, Color.BLUE),
        (np.dtype("float32"), np.dtype("float16")),
        (np.float32, np.float16),
        (np.float32(2), np.float32(3)),
        (np.int64(2), np.float64(2.5)),
        (range(3), range(1, 3)),
        (np.float64("nan"), np.float64(1)),
        (2.0, -0.0),
        (1 + 2j, 2 + 2j),
    ],
    ids=repr,
)
def test_values_of_other_types(values):
    holder = {"value": values[0]}
    state = types.SimpleNamespace(value=values[0])
    x = array(1.0, 2.0, 3.0)

    def use(value):
        if isinstance(value, slice):
            return x[value].sum()
        if isinstance(value, enum.Enum):
            return x * value.value
        if isinstance(value, (np.dtype, type)):
            return (x / 3).astype(value)
        if isinstance(value, (tuple, range)):
            return x * sum(value)
        return x * value

    def change():
        holder["value"] = state.value = values[1]

    def restore():
        holder["value"] = state.value = values[0]

    follows(lambda y: use(holder["value"]), change)
    restore()
    follows(lambda y: use(state.value), change)
    restore()
    follows(lambda y: use(*[v for v in holder.values()]), change)


def helper(x):
    return x * scale_of(x)


def scale_of(x):
    return 2.0


def test_functions_that_are_defined_again():
    def other(x):
        return 5.0

    def restore(function=scale_of):
        globals()["scale_of"] = function

    try:
        jitted = follows(lambda x: helper(x), lambda: globals().update(scale_of=other))
        assert "scale_of" in jitted.cache.last_miss
    finally:
        restore()
    scope = {"plait": plait}
    define = "def g(x):\n    return x {} 3\nf = plait.jit(lambda x: g(x))"
    exec(define.format("+"), scope)
    f = scope["f"]
    assert float(f(2.0)) == 5
    exec(define.format("*"), scope)
    assert float(f(2.0)) == 6
    # The same text again is the same program.
    exec(define.format("*"), scope)
    misses = f.cache.misses
    assert float(f(2.0)) == 6 and f.cache.misses == misses


def test_functions_in_containers_and_attributes():
    steps = [pnp.sin, pnp.cos]

    def f(x):
        for step in steps:
            x = step(x)
        return x

    follows(f, lambda: steps.append(pnp.exp), lambda: steps.__setitem__(0, lambda x: x + 1))
    config = types.SimpleNamespace(activation=pnp.tanh)
    follows(lambda x: config.activation(x), lambda: setattr(config, "activation", pnp.exp))
    rates = [3.0]
    follows(plait.vmap(lambda x: x * rates[0], in_axes=None, out_axes=None, axis_size=1),
            lambda: rates.__setitem__(0, 4.0))  # fmt: skip
    table = {"f": lambda x: x * rates[0]}
    follows(lambda x: plait.grad(table["f"])(x), lambda: rates.__setitem__(0, 5.0))
    follows(lambda x: plait.grad(lambda y: y * rates[0])(x), lambda: rates.__setitem__(0, 6.0))


class Layer:
    def __init__(self, w, scale):
        self.w, self.scale, self.calls = array(w), scale, 0

    def __call__(self, x):
        return self.apply(x) * self.gain

    def apply(self, x):
        return x * self.w * self.scale

    @property
    def gain(self):
        return self.scale + 1


class Residual(Layer):
    extra = 1.0

    def apply(self, x):
        return x + self.extra * super().apply(x)


@dataclasses.dataclass
class Model:
    layers: list
    depth: int = 1

    def __call__(self, x):
        for layer in self.layers[: self.depth]:
            x = layer(x)
        return x

    def __len__(self):
        return self.depth

    def __getitem__(self, index):
        return self.layers[index]


@pytest.mark.parametrize(
    "run",
    [
        lambda m, x: m(x),
        lambda m, x: m[0](x) * len(m),
        lambda m, x: [x := layer(x) for layer in m.layers][-1],
        lambda m, x: sum(layer.apply(x) for layer in m.layers),
        lambda m, x: plait.grad(lambda y: m(y).sum())(x),
        lambda m, x: apply_all(m.layers, x),
        lambda m, x: apply_rest(x, *m.layers),
    ],
)
def test_objects_in_lists_of_objects(run):
    model = Model([Layer(2.0, 3.0), Residual(3.0, 0.5)])

    def f(x):
        return run(model, x)

    jitted = follows(
        f,
        lambda: setattr(model.layers[0], "scale", 4.0),
        lambda: setattr(model.layers[1], "scale", 5.0),
        lambda: setattr(model, "depth", 2),
        lambda: setattr(Residual, "extra", 2.0),
        lambda: model.layers.append(Layer(1.5, 2.0)),
        lambda: model.layers.__setitem__(0, Residual(1.0, 4.0)),
        lambda: setattr(Residual, "extra", 1.0),
    )
    misses = jitted.cache.misses
    model.layers[0].calls += 1  # which no code reads
    model.layers[0].w = array(9.0)
    np.testing.assert_allclose(np.asarray(jitted(2.0)), np.asarray(f(2.0)))
    assert jitted.cache.misses == misses


def apply_all(layers, x):
    if not layers:
        return x
    first, *rest = layers
    return apply_all(rest, first(x))


def apply_rest(x, *layers):
    for layer in layers:
        x = layer(x)
    return x


@pytest.mark.parametrize(
    "use",
    [
        lambda w, x: x * (w * 2),
        lambda w, x: x * w.sum(),
        lambda w, x: x * np.linalg.norm(w),
        lambda w, x: x * w[0],
        lambda w, x: x * w.T,
        lambda w, x: pnp.ones(3)[w > 1.5] * x,
        lambda w, x: pnp.arange(5.0)[w.astype(int)] * x,
        lambda w, x: x * float(w[1]),
        lambda w, x: x * (1.0 if w.any() else 2.0),
        lambda w, x: x * pnp.asarray([v for v in w]),
        lambda w, x: x * w + w.sum(),
        lambda w, x: x * double_of(w),
        lambda w, x: x * (-w),
    ],
)
def test_numpy_arrays_that_numpy_computes_with(use):
    w = np.float32([1, 2, 3])
    follows(lambda x: use(w, x), lambda: w.__setitem__(0, 0.0), lambda: w.__setitem__(2, 1.0))


def double_of(w):
    return w + w


def test_masks_and_indices():
    mask, index = np.array([True, False, True]), np.array([0, 2])
    values = pnp.asarray(np.float32([1, 2, 3]))
    follows(lambda x: values[mask] * x, lambda: mask.__setitem__(1, True))
    follows(lambda x: values[index] * x, lambda: index.__setitem__(0, 1))
    own = [pnp.asarray(mask)]
    follows(lambda x: values[own[0]] * x, lambda: own.__setitem__(0, ~own[0]))


def test_values_of_arrays_that_python_reads():
    scale = [pnp.asarray(np.float32(2))]
    follows(lambda x: x * float(scale[0]), lambda: scale.__setitem__(0, pnp.asarray(3.0)))
    follows(
        lambda x: x if scale[0] else -x,
        lambda: scale.__setitem__(0, pnp.asarray(np.float32(0))),
    )
    follows(lambda x: x * scale[0].shape[0] if scale[0].ndim else x,
            lambda: scale.__setitem__(0, pnp.ones(3)), lambda: scale.__setitem__(0, pnp.ones(4)))  # fmt: skip


def test_large_numpy_arrays_that_numpy_computes_with_are_an_error():
    w = np.ones(1 << 20, np.float32)
    with pytest.raises(plait.TracerError, match=r"w, of 4.19 MB, .*(.|\n)*w = plait.numpy.asarray"):
        plait.jit(lambda x: x * (w * 2))(1.0)
    jitted = plait.jit(lambda x: (x * w).sum())
    assert float(jitted(1.0)) == 1 << 20
    w[0] = 0
    assert float(jitted(1.0)) == (1 << 20) - 1 and jitted.cache.misses == 1
    root = plait.jit(lambda x: (x @ w) / np.sqrt(4.0) + np.arange(3.0))
    root(np.ones(1 << 20, np.float32))


@pytest.mark.parametrize("size", [4, 4000])
def test_results_never_share_memory_with_numpy(size):
    first, second = np.arange(size, dtype="float32"), np.arange(size, dtype="float32") + 5
    w, x = first.copy(), second.copy()
    jitted = plait.jit(lambda x: (x, w, pnp.reshape(x, (2, -1)).T, x[1:]))
    for _ in range(3):
        w[:], x[:] = first, second
        results = jitted(x)
        w[:] = x[:] = 0
        for result, expected in zip(results, (second, first, second.reshape(2, -1).T, second[1:])):
            np.testing.assert_array_equal(np.asarray(result), expected)
    kept = []
    keeping = plait.jit(lambda x: plait.host_call(lambda v: (kept.append(v), v)[1], x, x))
    for _ in range(2):
        x[:] = second
        keeping(x)
        x[:] = 0
    for value in kept:
        np.testing.assert_array_equal(np.asarray(value), second)
    recorded = plait.variable(pnp.ones(size))
    x[:] = second
    loss = (plait.jit(lambda v, x: v * x)(recorded, x)).sum()
    x[:] = 0
    loss.backward()
    np.testing.assert_array_equal(np.asarray(recorded.grad), second)


def test_numpy_arrays_of_every_layout_are_read():
    base = np.arange(24.0).reshape(4, 6)
    for x in (base, base[::2], base.T, base[:, ::-1], base.astype(">f8"), base.astype("e")):
        jitted = plait.jit(lambda v: v + 1)
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(jitted(x)), x + 1)
    raw = np.zeros(33, np.uint8)[1:].view(np.float64)
    assert plait.jit(lambda v: v + 1)(raw).tolist() == [1, 1, 1, 1]


def test_numpy_arrays_that_a_call_read_can_be_freed():
    w = np.ones(1000)
    state = types.SimpleNamespace(w=w)
    jitted = plait.jit(lambda x: x * state.w)
    for _ in range(3):
        jitted(1.0)
    gone = weakref.ref(w)
    state.w = np.zeros(1000)
    del w
    jitted(1.0)
    assert gone() is None


def test_what_the_code_does_not_read_makes_no_trace():
    class Trainer:
        def __init__(self):
            self.w, self.history, self.steps = array(2.0), [], 0
            self.options = {"rate": 2.0, "unread": 1.0}

        def loss(self, x):
            return (x * self.w * self.options["rate"]).sum()

    trainer = Trainer()
    jitted = plait.jit(trainer.loss)
    for i in range(4):
        trainer.history.append(float(jitted(1.0)))
        trainer.steps += 1
        trainer.options["unread"] = i
        trainer.w = trainer.w * 1
    assert jitted.cache.misses == 1


def test_names_that_led_to_one_object_and_then_to_two():
    first = types.SimpleNamespace(rate=2.0)
    state = types.SimpleNamespace(a=first, b=first)
    follows(
        lambda x: x * state.a.rate + state.b.rate,
        lambda: setattr(state, "b", types.SimpleNamespace(rate=3.0)),
        lambda: setattr(state.b, "rate", 4.0),
    )


def test_local_imports_and_modules_of_the_user(monkeypatch):
    module = types.ModuleType("settings_of_a_test")
    module.rate, module.apply = 2.0, lambda x: x * 3
    monkeypatch.setitem(__import__("sys").modules, "settings_of_a_test", module)

    def f(x):
        import settings_of_a_test
        from settings_of_a_test import rate

        return settings_of_a_test.apply(x) * rate

    follows(f, lambda: setattr(module, "rate", 5.0), lambda: setattr(module, "apply", lambda x: x))


def test_try_with_and_match_are_followed():
    options = {"mode": "a", "rate": 2.0}
    manager = types.SimpleNamespace(rate=1.0)

    class Managed:
        def __enter__(self):
            return manager.rate

        def __exit__(self, *error):
            return False

    managed = Managed()

    def f(x):
        try:
            x = x * options["absent"]
        except KeyError:
            x = x * options["rate"]
        with managed as rate:
            x = x * rate
        match options["mode"]:
            case "a":
                return x
            case _:
                return -x

    follows(
        f,
        lambda: options.update(rate=3.0),
        lambda: options.update(mode="b"),
        lambda: options.update(absent=7.0),
        lambda: setattr(manager, "rate", 4.0),
    )


def test_numpy_arrays_of_jitted_functions_within_jitted_functions():
    w, v = np.float32([1, 2]), np.float32([3, 4])
    inner = plait.jit(lambda x: x * w)
    jitted = plait.jit(lambda x: inner(x) * v)
    assert jitted(1.0).tolist() == [3, 8]
    w[:], v[:] = [2, 1], [1, 1]
    assert jitted(1.0).tolist() == [2, 1]
    assert jitted.cache.misses == 1 and not jitted.cache.frozen


def test_what_code_of_a_library_is_given_is_compared_as_a_whole(monkeypatch):
    library = types.ModuleType("library_of_a_test")
    library.__file__ = "/usr/lib/python3/site-packages/library_of_a_test.py"
    exec("def apply(layer, x):\n    return x * layer.unnamed_here", library.__dict__)
    monkeypatch.setitem(__import__("sys").modules, "library_of_a_test", library)
    layer = Layer(2.0, 3.0)
    setattr(layer, "unnamed" + "_here", 2.0)
    follows(
        lambda x: library.apply(layer, x),
        lambda: setattr(layer, "unnamed" + "_here", 5.0),
        lambda: setattr(library, "apply", lambda layer, x: x),
    )


def test_functions_in_functions_are_followed_a_bounded_number_of_times():
    """Each holds the next one and calls it in a loop, with what it has stored; each reads what is changed last."""
    depth, scale = 12, [2.0]
    lines = [f"{'  ' * i}def f{i}(x{i}):" for i in range(depth)]
    lines.append("  " * depth + "return x0 * scale[0]")
    for i in range(depth - 1, 0, -1):
        lines += [
            "  " * i + line
            for line in (f"y{i} = x{i - 1}", f"for _ in (0, 1): y{i} = f{i}(f{i}(y{i}))", f"return y{i}")
        ]  # fmt: skip
    names = {"scale": scale, "__name__": __name__}
    exec("\n".join(lines), names)
    reader = _reads.Reader({})
    reader.start(names["f0"])
    assert reader.num_nested <= 3 * _bytecode.MOST_NESTED
    assert any(kind == _reads.VALUE and expected == 2.0 for _, kind, expected in reader.guards)


def test_a_closure_reads_a_variable_that_its_maker_stores_later():
    numbers = [3.0]

    def f(x):
        def inner(y):
            return y * factor

        factor = numbers[0]
        for _ in range(2):
            x = inner(x)
            factor = numbers[0] + 1.0
        return x

    follows(f, lambda: numbers.__setitem__(0, 5.0))
