"""Whatever way a function reads what it captured, a jitted call after a change gives what the function gives.

SPDX-License-Identifier: Apache-2.0
"""

import sys
import textwrap
import types

import numpy as np
import pytest

import plait
import plait.numpy as pnp

START = """
import collections, enum, functools, operator, threading, types
import numpy as np
import plait
import plait.numpy as pnp
class Plain: pass
config = Plain(); config.s = 2.0
S = 2.0
xs = [2.0, 3.0, 5.0]
"""


def run(source, change, **names):
    """Runs the source, which defines f, and compares it with its jitted self before and after the change."""
    scope = {"__name__": "cases_of_a_test", **names}
    exec(START + textwrap.dedent(source), scope)
    jitted, x = plait.jit(scope["f"]), pnp.ones(3)
    for step in ("", change):
        exec(step, scope)
        expected = np.asarray(scope["f"](x))
        np.testing.assert_array_equal(np.asarray(jitted(x)), expected)
        misses = jitted.cache.misses
        np.testing.assert_array_equal(np.asarray(jitted(x)), expected)
        assert jitted.cache.misses == misses, jitted.cache.last_miss
    return jitted


def cases(text):
    """Cases are apart by an empty line: a name and a change, and below them the source."""
    found = []
    for block in text.strip().split("\n\n"):
        head, source = block.split("\n", 1)
        name, change = head.split(": ", 1)
        found.append(pytest.param(source, change, id=name))
    return found


OBJECTS = """
default that an object shadows: n.s = 3.0
class N: s = 2.0
n = N()
def f(x): return x * n.s

default that self shadows: n.training = False
class N:
    training = True
    def __call__(self, x): return x * 2 if self.training else x * 3
n = N()
def f(x): return n(x)

default of the class: N.s = 3.0
class Base: s = 2.0
class N(Base): pass
n = N()
def f(x): return x * n.s

method that an object shadows: n.act = lambda x: x * 5
class N:
    def act(self, x): return x * 2
n = N()
def f(x): return n.act(x)

static method of an object: N.act = staticmethod(lambda x: x * 3)
class N: act = staticmethod(lambda x: x * 2)
n = N()
def f(x): return n.act(x)

static method of a class: N.act = staticmethod(lambda x: x * 3)
class N: act = staticmethod(lambda x: x * 2)
def f(x): return N.act(x)

class method: N.s = classmethod(lambda cls: 3.0)
class N: s = classmethod(lambda cls: 2.0)
n = N()
def f(x): return x * n.s() * N.s()

property: N.s = property(lambda self: 3.0)
class N: s = property(lambda self: 2.0)
n = N()
def f(x): return x * n.s

descriptor: n.s = 3.0
class P:
    def __get__(self, owner, kind): return owner.kept
    def __set__(self, owner, value): owner.kept = value
class N: s = P()
n = N(); n.s = 2.0
def f(x): return x * n.s

partial method: S = 3.0
class N:
    def scaled(self, k, x): return x * S * k
    twice = functools.partialmethod(scaled, 2)
n = N()
def f(x): return n.twice(x)

jitted function of a class: S = 3.0
class N:
    @plait.jit
    def act(x): return x * S
def f(x): return N.act(x)

attribute of super: A.s = 3.0
class A: s = 2.0
class B(A):
    s = 7.0
    def act(self, x): return x * super().s
b = B()
def f(x): return b.act(x)

property of super: b.kept = 3.0
class A:
    @property
    def s(self): return self.kept
class B(A):
    @property
    def s(self): return super().s * 2
b = B(); b.kept = 1.0
def f(x): return x * b.s

property of a metaclass: N.kept = 3.0
class M(type):
    @property
    def s(cls): return cls.kept
class N(metaclass=M): kept = 2.0
def f(x): return x * N.s

getattribute: S = 3.0
class N:
    def __getattribute__(self, name): return S if name == "s" else object.__getattribute__(self, name)
n = N()
def f(x): return x * n.s

method of an enum: T["A"] = 3.0
T = {"A": 2.0}
class E(enum.Enum):
    A = 1
    def factor(self): return T[self.name]
mode = E.A
def f(x): return x * mode.factor() * E.A.factor()

attribute of a number: number.s = 3.0
class Number(float): pass
number = Number(2.0); number.s = 2.0
def f(x): return x * number.s

str: n.name = "b"
class N:
    def __str__(self): return self.name
n = N(); n.name = "a"
def f(x): return x * 2 if str(n) == "a" else x * 3

text of a key: n.name = "b"
class N:
    def __str__(self): return self.name
n = N(); n.name = "a"
T = {"k_a": 2.0, "k_b": 3.0}
def f(x): return x * T[f"k_{n}"]

type of self: N.s = 3.0
class N:
    s = 2.0
    def __call__(self, x): return x * type(self).s
n = N()
def f(x): return n(x)

attribute that a module gets: m.s = 3.0
m = types.ModuleType("m")
def f(x): return x * getattr(m, "s", 2.0)

vars of a module: m.s = 3.0
m = types.ModuleType("m"); m.s = 2.0
def f(x): return x * vars(m)["s"]

attribute of a thread: local.s = 3.0
local = threading.local(); local.s = 2.0
def f(x): return x * local.s
"""

CODE = """
index that grows: xs[1] = 7.0
def f(x):
    i = 0
    while i < 2:
        x = x * xs[i]
        i += 1
    return x

name that is built: config.w1 = 7.0
config.w0, config.w1 = 2.0, 3.0
def f(x):
    name = "w0"
    for i in range(2):
        x = x * getattr(config, name)
        name = "w" + str(i + 1)
    return x

function at an index that grows: S = 7.0
fs = [lambda x: x * 2, lambda x: x * S]
def f(x):
    i = 0
    while i < 2:
        x = fs[i](x)
        i += 1
    return x

default or static: xs[1] = 7.0
def at(i=0): return xs[i]
def f(x): return x * at() * at(len(xs) - 2)

item of a local dict: S = 3.0
def f(x):
    p = {}
    p["s"] = S
    return x * p["s"]

attribute of a local object: S = 3.0
def f(x):
    p = types.SimpleNamespace()
    p.s = S
    return x * p.s

body of a class: S = 3.0
def f(x):
    class Local:
        s = S
    return x * Local.s

yield from: xs[0] = 7.0
def each(): yield from xs
def f(x):
    for s in each(): x = x * s
    return x

objects by yield from: config.s = 7.0
objects = [config]
def each(): yield from objects
def f(x):
    for o in each(): x = x * o.s
    return x

case of a class: config.s = 3.0
def f(x):
    match config:
        case Plain(s=s): return x * s

nonlocal: S = 3.0
def f(x):
    s = None
    def pick():
        nonlocal s
        s = S
    pick()
    return x * s

sorted: xs[1] = 0.5
def f(x): return x * sorted(xs)[0]

reversed: xs[2] = 0.5
def f(x): return x * list(reversed(xs))[0]

unpacked reversed: xs[2] = 0.5
def f(x):
    a, b, c = reversed(xs)
    return x * a

key of sorted: rank["a"] = 5
rank, values = {"a": 1, "b": 2}, {"a": 2.0, "b": 3.0}
def f(x): return x * values[sorted(["a", "b"], key=lambda n: rank[n])[0]]

filter: config.s = 7.0
config.active = True
objects = [config]
def f(x):
    for o in filter(lambda o: o.active, objects): x = x * o.s
    return x

globals: S = 3.0
def f(x): return x * globals()["S"]

attrgetter: config.s = 3.0
get = operator.attrgetter("s")
def f(x): return x * get(config) * operator.attrgetter("s")(config)

index that is a bool: xs[0] = 7.0
xs[2], flag = xs[0], False
def f(x): return x * xs[flag]

index of NumPy: xs[0] = 7.0
i = np.int64(0)
def f(x): return x * xs[i]
"""

ARRAYS = """
module: params.W = pnp.zeros(3)
params = types.ModuleType("params"); params.W = pnp.ones(3)
def f(x): return x * params.W

class: N.W = pnp.zeros(3)
class N: W = pnp.ones(3)
def f(x): return x * N.W

class of an object: n.W = pnp.zeros(3)
class N: W = pnp.ones(3)
n = N()
def f(x): return x * n.W

ordered dict: d["W"] = pnp.zeros(3)
d = collections.OrderedDict(W=pnp.ones(3))
def f(x): return x * d["W"]

default dict: d["W"] = pnp.zeros(3)
d = collections.defaultdict(list, W=pnp.ones(3))
def f(x): return x * d["W"]

subclass of dict: d["W"] = pnp.zeros(3)
class D(dict): pass
d = D(W=pnp.ones(3))
def f(x): return x * d["W"]

mapping proxy: e["W"] = pnp.zeros(3)
e = {"W": pnp.ones(3)}
d = types.MappingProxyType(e)
def f(x): return x * d["W"]

attribute of a function: g.W = pnp.zeros(3)
def g(x): return x * g.W
g.W = pnp.ones(3)
def f(x): return g(x)

list of a class: N.W[0] = pnp.zeros(3)
class N: W = [pnp.ones(3)]
def f(x): return x * N.W[0]

array of NumPy: params.W = np.zeros(3, np.float32)
params = types.ModuleType("params"); params.W = np.ones(3, np.float32)
def f(x): return x * params.W
"""

VALUES = """
NumPy's length: W[0] = 5
W = np.ones(3, np.float32)
def f(x):
    n = len(W)
    return x * W + W / n

NumPy's number: W[0] = 5
W = np.ones(3, np.float32)
def f(x):
    s = np.sqrt(4.0).astype("float32")
    return x * W + W * s

two names of NumPy: V = np.zeros(3)
W = np.ones(3); V = W
def f(x): return x * W.sum() + V.sum()

two names: V = pnp.zeros(())
W = pnp.ones(()); V = W
def f(x): return x * float(W) + float(V)

bfloat16: W = pnp.zeros((), pnp.bfloat16)
W = pnp.ones((), pnp.bfloat16)
def f(x): return x * float(W)
"""


@pytest.mark.parametrize(("source", "change"), cases(OBJECTS))
def test_what_classes_and_objects_say(source, change):
    run(source, change)


@pytest.mark.parametrize(("source", "change"), cases(CODE))
def test_what_code_does_with_values(source, change):
    run(source, change)


@pytest.mark.parametrize(("source", "change"), cases(ARRAYS))
def test_arrays_are_inputs_wherever_they_lie(source, change):
    jitted = run(source, change)
    assert not jitted.cache.frozen and len(jitted.cache.captured) == 1


@pytest.mark.parametrize(("source", "change"), cases(VALUES))
def test_values_that_the_program_keeps(source, change):
    run(source, change)


def test_arrays_of_classes_and_modules_need_no_other_trace():
    params = types.ModuleType("params")
    params.W = pnp.ones(3)
    jitted = plait.jit(lambda x: x * params.W)
    jitted(1.0)
    params.W = pnp.zeros(3)
    assert jitted(1.0).tolist() == [0, 0, 0] and jitted.cache.misses == 1


def test_functions_that_plait_is_given_get_arrays_and_not_numbers():
    w = np.ones(3, np.float32)

    def with_scan(x):
        def body(carry, _):
            return carry * w, None

        return plait.lax.scan(body, x, None, length=1)[0] + np.arange(3.0)

    def with_grad(x):
        return plait.grad(lambda y: (y * w).sum())(x) + np.arange(3.0)

    for function in (with_scan, with_grad):
        jitted = plait.jit(function)
        w[0] = 1
        jitted(pnp.ones(3))
        w[0] = 5
        assert jitted(pnp.ones(3)).tolist() == [5, 2, 3] and jitted.cache.misses == 1


def test_large_arrays_of_modules_are_inputs():
    params = types.ModuleType("params")
    params.W = np.ones((600, 600), np.float32)  # above what is compared by bytes
    jitted = plait.jit(lambda x: (x @ params.W).sum())
    assert float(jitted(pnp.ones((1, 600)))) == 360_000
    params.W[0] = 0
    assert float(jitted(pnp.ones((1, 600)))) == 359_400 and jitted.cache.misses == 1


@pytest.mark.parametrize(
    "statement",
    ["import package.m; s = package.m.S", "import package.m as q; s = q.S", "from .m import S as s",
     "from package.m import S as s", "from . import m; s = m.S"],
)  # fmt: skip
def test_imports_in_functions(statement, monkeypatch):
    package, m = types.ModuleType("package"), types.ModuleType("package.m")
    package.m, m.S, package.__path__ = m, 2.0, []
    monkeypatch.setitem(sys.modules, "package", package)
    monkeypatch.setitem(sys.modules, "package.m", m)
    source = f"def f(x):\n    {statement}\n    return x * s"
    run(source, "m.S = 3.0", m=m, __package__="package")


def test_what_held_others_may_become_a_number():
    nested = {"a": {"b": 1.0}}
    f = plait.jit(lambda x: x * (2.0 if nested == {"a": 1} else 3.0))
    assert float(f(1.0)) == 3
    nested["a"] = 1
    assert float(f(1.0)) == 2

    owner = types.SimpleNamespace(action={"act": 2.0})

    @plait.jit
    def act(x):
        match owner.action:
            case {"act": factor}:
                return x * factor
        return x

    assert float(act(1.0)) == 2
    owner.action = None
    assert float(act(1.0)) == 1
