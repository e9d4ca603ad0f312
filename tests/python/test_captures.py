"""Captured arrays are hidden inputs of jit, found again by every path; scalars and lengths are guarded.

SPDX-License-Identifier: Apache-2.0
"""

import dataclasses
import decimal
import functools

import numpy as np
import pytest

import plait
import plait.numpy as pnp

weight = None
table = {"w": None}


def array(*values):
    return pnp.asarray(np.float32(values)) * 1


def check(jitted, change, before, after, misses=1):
    """The call follows the changed array without another trace."""
    x = array(1, 1)
    np.testing.assert_allclose(jitted(x), before)
    change()
    np.testing.assert_allclose(jitted(x), after)
    assert jitted.cache.misses == misses, jitted.cache
    assert not jitted.cache.frozen


def test_globals_and_containers():
    global weight
    weight = array(1, 2)
    check(
        plait.jit(lambda x: x * weight),
        lambda: globals().update(weight=array(3, 4)),
        [1, 2],
        [3, 4],
    )
    table["w"] = [array(1, 2)]
    check(
        plait.jit(lambda x: x * table["w"][0]),
        lambda: table["w"].__setitem__(0, array(3, 4)),
        [1, 2],
        [3, 4],
    )


def test_cells_defaults_and_partials():
    w = array(1, 2)

    def change():
        nonlocal w
        w = array(3, 4)

    check(plait.jit(lambda x: x * w), change, [1, 2], [3, 4])

    def with_default(x, w=[array(1, 2)], *, v=[array(1, 1)]):  # noqa: B006
        return x * with_default.__defaults__[0][0] * with_default.__kwdefaults__["v"][0]

    check(
        plait.jit(with_default),
        lambda: (
            with_default.__defaults__[0].__setitem__(0, array(3, 4)),
            with_default.__kwdefaults__["v"].__setitem__(0, array(2, 2)),
        ),
        [1, 2],
        [6, 8],
    )
    holder = [array(1, 2)]
    part = functools.partial(lambda h, x: x * holder[0], None)
    check(plait.jit(part), lambda: holder.__setitem__(0, array(3, 4)), [1, 2], [3, 4])


def test_objects_methods_and_slots():
    class Slotted:
        __slots__ = ("w",)

    @dataclasses.dataclass(eq=False)
    class Model:
        w: object
        inner: object = None

        def apply(self, x):
            return x * self.w * self.inner.w

        @plait.jit
        def jitted(self, x):
            return x * self.w * self.inner.w

        def __call__(self, x):
            return self.apply(x)

    inner = Slotted()
    inner.w = array(1, 1)
    model = Model(array(1, 2), inner)

    def change():
        model.w = array(3, 4)
        inner.w = array(2, 2)

    def restore():
        model.w, inner.w = array(1, 2), array(1, 1)

    for function in (
        model.apply,
        model,
        lambda x: model(x),
        plait.vmap(lambda x: model.apply(x), in_axes=None, out_axes=None, axis_size=2),
    ):
        restore()
        check(plait.jit(function), change, [1, 2], [6, 8])
    # A method that is jitted in its class: the object is part of the signature, its arrays are captured.
    restore()
    x = array(1, 1)
    np.testing.assert_allclose(model.jitted(x), [1, 2])
    change()
    np.testing.assert_allclose(model.jitted(x), [6, 8])
    assert Model.jitted.cache.misses == 1 and not Model.jitted.cache.frozen
    np.testing.assert_allclose(Model(array(1, 1), inner).jitted(x), [2, 2])


def test_functions_that_functions_call():
    w = {"deep": [array(1, 2)]}

    def inner(x):
        return x * w["deep"][0]

    def outer(x):
        return inner(x) + 0

    check(plait.jit(outer), lambda: w["deep"].__setitem__(0, array(3, 4)), [1, 2], [3, 4])
    w["deep"][0] = array(1, 2)
    nested = plait.jit(plait.grad(lambda x: plait.jit(outer)(x).sum()))
    check(nested, lambda: w["deep"].__setitem__(0, array(3, 4)), [1, 2], [3, 4])


def test_other_shapes_retrace_and_the_cache_says_so():
    w = [array(1, 2)]
    jitted = plait.jit(lambda x: x * w[0])
    jitted(1.0)
    w[0] = array(1, 2, 3)
    assert jitted(1.0).shape == (3,)
    assert jitted.cache.misses == 2
    assert "the captured array w[0] is f32[3] where it was f32[2]" in jitted.cache.last_miss
    assert jitted.cache.captured == ["w[0]: f32[2]", "w[0]: f32[3]"]
    assert "read at each call: w[0]: f32[3]" in repr(jitted.cache)


def test_paths_that_no_longer_agree_retrace():
    first = array(1, 2)
    names = {"a": first, "b": first}
    jitted = plait.jit(lambda x: x * names["a"] + names["b"])
    np.testing.assert_allclose(jitted(1.0), [2, 4])
    names["a"] = array(10, 20)
    np.testing.assert_allclose(jitted(1.0), [11, 22])
    assert jitted.cache.misses == 2
    assert "lead to several" in jitted.cache.last_miss
    names["b"] = names["a"] = array(5, 5)
    np.testing.assert_allclose(jitted(1.0), [10, 10])
    np.testing.assert_allclose(jitted(2.0), [15, 15])


def test_longer_containers_retrace():
    layers = [array(1, 2), array(3, 4)]

    @plait.jit
    def f(x):
        for w in layers:
            x = x * w
        return x

    np.testing.assert_allclose(f(1.0), [3, 8])
    layers.append(array(10, 10))
    np.testing.assert_allclose(f(1.0), [30, 80])
    assert f.cache.last_miss == "len(layers) is 3 where it was 2"
    layers[2] = array(1, 1)
    np.testing.assert_allclose(f(1.0), [3, 8])
    assert f.cache.misses == 2


@pytest.mark.parametrize("value", [2.0, 3, True, "double", None])
def test_scalars_are_guarded(value):
    options = {"mode": 1.0}

    class Config:
        def __init__(self):
            self.mode = 1.0
            self.inner = {"mode": [1.0]}

        def by_self(self, x):
            return use(x, self.mode)

        def by_inner(self, x):
            return use(x, self.inner["mode"][0])

    def use(x, mode):
        return x * {"double": 2.0, None: 7.0}.get(mode, mode)

    config = Config()
    expected = float(use(1.0, value))

    def set_inner():
        config.inner["mode"][0] = value

    cases = (
        (lambda x: use(x, options["mode"]), lambda: options.update(mode=value), "options['mode']"),
        (lambda x: use(x, config.mode), lambda: setattr(config, "mode", value), "config.mode"),
        (Config().by_self, None, "self.mode"),
        (Config().by_inner, None, "self.inner['mode'][0]"),
        (lambda x: use(x, config.inner["mode"][0]), set_inner, "config.inner['mode'][0]"),
    )
    for function, change, text in cases:
        if change is None:
            owner = function.__self__

            def change(owner=owner):
                owner.mode = owner.inner["mode"][0] = value

        jitted = plait.jit(function)
        assert float(jitted(1.0)) == 1
        change()
        assert float(jitted(1.0)) == expected
        assert jitted.cache.misses == 2
        assert jitted.cache.last_miss == f"{text} is {value!r} where it was 1.0"


def test_numpy_arrays_and_frozen_ones():
    w = np.float32([1, 2])
    jitted = plait.jit(lambda x: x * w)
    check(jitted, lambda: w.__setitem__(slice(None), [3, 4]), [1, 2], [3, 4])
    hidden = iter([array(1, 2)])
    jitted = plait.jit(lambda x: x * next(hidden))
    np.testing.assert_allclose(jitted(1.0), [1, 2])
    np.testing.assert_allclose(jitted(1.0), [1, 2])
    assert jitted.cache.frozen == ["f32[2]"] and "frozen" in repr(jitted.cache)


def test_captured_arrays_can_be_freed():
    import weakref

    w = [array(1, 2)]
    jitted = plait.jit(lambda x: x * w[0])
    jitted(1.0)
    before = plait.info()["allocated bytes"]
    old = weakref.ref(w[0])
    w[0] = array(3, 4)
    assert old() is None
    np.testing.assert_allclose(jitted(1.0), [3, 4])
    assert plait.info()["allocated bytes"] <= before + 256


class Scaled:
    limit = 10.0

    def __init__(self):
        self.k, self.options, self.unread = 2.0, {"rate": 1.0}, 0.0

    def __call__(self, x):
        return self.shifted(x) * self.k

    def shifted(self, x):
        return x + self.options["rate"]

    @property
    def effect(self):
        raise AssertionError("a property is not read by a guard")


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0

    def __call__(self, x):
        return x * self.k


@pytest.mark.parametrize(
    "use",
    [
        lambda s: s,
        lambda s: s.__call__,
        lambda s: lambda x: s(x),
        lambda s: functools.partial(s),
        lambda s: lambda x: s.shifted(x) * s.k,
    ],
    ids=["object", "method", "closure", "partial", "chain"],
)
def test_scalars_of_callable_objects_are_guarded(use):
    scaled = Scaled()
    jitted = plait.jit(use(scaled))
    assert jitted(3.0) == (3 + 1) * 2
    scaled.k = 5.0
    assert jitted(3.0) == (3 + 1) * 5
    assert "k is 5.0 where it was 2.0" in str(jitted.cache.last_miss)
    scaled.options["rate"] = 7.0
    assert jitted(3.0) == (3 + 7) * 5
    assert "['rate'] is 7.0 where it was 1.0" in str(jitted.cache.last_miss)
    scaled.unread = 1.0
    assert jitted(3.0) == 50 and jitted.cache.misses == 3


def test_scalars_in_slots_are_guarded():
    slotted = Slotted()
    jitted = plait.jit(slotted)
    assert jitted(3.0) == 6
    slotted.k = 5.0
    assert jitted(3.0) == 15
    assert "k is 5.0 where it was 2.0" in str(jitted.cache.last_miss)


def test_methods_that_call_each_other_are_followed_once():
    class Odd:
        def __init__(self):
            self.step = 1

        def odd(self, n):
            return False if n == 0 else self.even(n - self.step)

        def even(self, n):
            return True if n == 0 else self.odd(n - self.step)

        def __call__(self, x):
            return x if self.odd(4) else -x

    odd = Odd()
    jitted = plait.jit(odd)
    assert jitted(3.0) == -3
    odd.step = 2
    assert jitted(3.0) == -3 and jitted.cache.misses == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((2,), (2.0,)),
        ((1,), (True,)),
        ((0.0,), (-0.0,)),
        (((2,), "a"), ((2.0,), "a")),
        (range(0), range(5, 5)),
        (frozenset([1]), frozenset([1.0])),
        (decimal.Decimal("1"), decimal.Decimal("1.00")),
        (type("Number", (float,), {}),) * 2,
    ],
    ids=repr,
)
def test_static_values_that_are_equal_but_not_the_same(first, second):
    if isinstance(first, type):
        first, second = first(0.0), first(-0.0)
    jitted = plait.jit(lambda x, value: x, static_argnums=1)
    for value in (first, second, first, second):
        jitted(1.0, value)
    assert jitted.cache.misses == 2
    holder = [first]
    captured = plait.jit(lambda x: x * len(str(holder[0])))
    captured(1.0)
    holder[0] = second
    captured(1.0)
    assert captured.cache.misses == 2
