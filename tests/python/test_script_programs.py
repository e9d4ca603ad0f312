"""plait.script on random functions with branches, loops and jumps, against Python itself.

SPDX-License-Identifier: Apache-2.0
"""

import linecache
import random

import numpy as np
import pytest

import plait
from plait import grad, jit, script, tree, vmap

XS = (-1.75, 0.5, 3.0)
VARIABLES = ("a", "b", "c")


class Program:
    """The text of a function f(x, n, p) of a float, an integer and a bool, which always ends."""

    def __init__(self, seed, depth=3):
        self.random = random.Random(seed)
        self.lines, self.counters = [], 0
        self.scope = ["a", "b", "c"]  # variables that surely have a value
        self.emit(0, "def f(x, n, p):")
        self.emit(1, "a, b, c = x, 0.5 * x + 1.0, 2.0")
        self.result = self.choose("a + b - c", "(a, {'b': b, 'c': c})", "[c if p else a, x]")
        self.block(1, depth, loop=False)
        self.emit(1, f"return {self.result}")
        self.text = "\n".join(self.lines) + "\n"

    def emit(self, indent, line):
        self.lines.append("    " * indent + line)

    def choose(self, *choices):
        return self.random.choice(choices)

    def chance(self, probability):
        return self.random.random() < probability

    # --- Expressions ---

    def value(self, depth=2):
        if depth == 0:
            return self.choose(*self.scope, "x", "1.5", "-0.25")
        kind = self.random.randrange(6)
        if kind < 3:
            return f"({self.value(depth - 1)} {self.choose('+', '-')} {self.value(depth - 1)})"
        if kind == 3:
            return f"0.5 * {self.value(depth - 1)}"
        if kind == 4:
            return f"({self.value(0)} if {self.test(1)} else {self.value(depth - 1)})"
        return f"{self.choose('max', 'min')}({self.value(0)}, {self.value(0)})"

    def test(self, depth=2):
        kind = self.random.randrange(8 if depth else 3)
        if kind < 2:
            return f"{self.value(0)} {self.choose('<', '>', '<=', '>=')} {self.value(0)}"
        if kind == 2:
            return self.choose("p", "not p", "n > 2", "n == 1", "n % 2 == 0")
        if kind == 3:
            return f"-1.0 < {self.value(0)} <= {self.value(0)}"
        if kind == 4:
            return f"not ({self.test(depth - 1)})"
        if kind == 5:
            return f"helper({self.value(0)}) > 0.0"
        return f"({self.test(depth - 1)} {self.choose('and', 'or')} {self.test(depth - 1)})"

    # --- Statements ---

    def block(self, indent, depth, loop):
        scope = list(self.scope)
        for _ in range(self.random.randrange(1, 4)):
            if self.chance(0.3):
                self.local(indent)
            if self.statement(indent, depth, loop):
                break
        self.scope = scope

    def local(self, indent):
        """A variable of this block, which may be assigned in both branches of an `if`."""
        self.counters += 1
        name = f"t{self.counters}"
        if self.chance(0.5):
            self.emit(indent, f"{name} = {self.value()}")
        else:
            self.emit(indent, f"if {self.test(1)}:")
            if self.chance(0.3):
                self.emit(indent + 1, f"return {self.result}")
            else:
                self.emit(indent + 1, f"{name} = {self.value(1)}")
            self.emit(indent, "else:")
            self.emit(indent + 1, f"{name} = {self.value(1)}")
        self.scope.append(name)

    def statement(self, indent, depth, loop):
        """Writes a statement; True when nothing after it would run."""
        kind = self.random.randrange(12)
        if depth == 0 or kind < 3:
            return self.simple(indent, loop)
        if kind < 7:
            self.branch(indent, depth, loop)
        elif kind < 9:
            self.for_loop(indent, depth)
        elif kind < 11:
            self.while_loop(indent, depth)
        else:
            self.emit(indent, f"assert {self.value(0)} == {self.value(0)} or n < 100")
        return False

    def simple(self, indent, loop):
        if loop and self.chance(0.25):
            self.emit(indent, self.choose("break", "continue"))
            return True
        if self.chance(0.1):
            self.emit(indent, f"return {self.result}")
            return True
        kind = self.random.randrange(4)
        if kind == 0:
            self.emit(
                indent, f"{self.choose(*VARIABLES)} {self.choose('+=', '-=')} {self.value(1)}"
            )
        elif kind == 1:
            self.emit(indent, f"a, b = {self.value(1)}, {self.value(1)}")
        else:
            self.emit(indent, f"{self.choose(*VARIABLES)} = {self.value()}")
        return False

    def branch(self, indent, depth, loop):
        self.emit(indent, f"if {self.test()}:")
        self.block(indent + 1, depth - 1, loop)
        if self.chance(0.3):
            self.emit(indent, f"elif {self.test(1)}:")
            self.block(indent + 1, depth - 1, loop)
        if self.chance(0.5):
            self.emit(indent, "else:")
            self.block(indent + 1, depth - 1, loop)

    def for_loop(self, indent, depth):
        name = self.counter()
        bounds = self.choose("n", "3", "1, n", "n, 0, -1", "0, 5, 2")
        self.emit(indent, f"for {name} in range({bounds}):")
        self.emit(indent + 1, f"c = c + 0.125 * x * {name}")
        self.block(indent + 1, depth - 1, loop=True)
        self.orelse(indent)

    def while_loop(self, indent, depth):
        name = self.counter()
        self.emit(indent, f"{name} = 0")
        self.emit(indent, f"while {self.choose('True', self.test(1))}:")
        self.emit(indent + 1, f"{name} += 1")
        self.emit(indent + 1, f"if {name} > {self.choose('n', '3')}:")
        self.emit(indent + 2, "break")
        self.block(indent + 1, depth - 1, loop=True)
        self.orelse(indent)

    def orelse(self, indent):
        if self.chance(0.3):
            self.emit(indent, "else:")
            self.emit(indent + 1, f"b = b + {self.value(0)}")

    def counter(self):
        self.counters += 1
        return f"i{self.counters}"


def helper(value):
    if value > 1.0:
        return value - 1.0
    return -value


def defined(text, name):
    """The function f that a text defines, with the text where tracebacks look for it."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"helper": helper, "__name__": __name__}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def numbers(result):
    return [float(leaf) for leaf in tree.leaves(result)]


def same(actual, expected):
    """Equal trees of numbers; NumPy's, Python's and plait's count alike."""
    np.testing.assert_allclose(numbers(actual), numbers(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_are_what_python_computes(seed):
    f = defined(Program(seed, depth=2).text, f"program_{seed}.py")
    scripted = script(f)
    variants = [jit(scripted), jit(scripted, static_argnums=1), jit(scripted, static_argnums=2)]
    for x in XS:
        for n, p in ((0, True), (1, False), (4, True)):
            expected = f(x, n, p)
            same(scripted(x, n, p), expected)
            for jitted in variants:
                same(jitted(np.float64(x), n, p), expected)


@pytest.mark.parametrize("seed", range(60, 80))
def test_random_programs_under_vmap(seed):
    f = defined(Program(seed, depth=2).text, f"program_{seed}.py")
    xs, ns = np.array([x for x in XS for _ in range(2)]), np.array([0, 3] * len(XS))
    for transformed in (vmap(script(f), (0, 0, None)), jit(vmap(script(f), (0, 0, None)))):
        results = transformed(xs, ns, True)
        for index in range(len(xs)):
            got = tree.map(lambda leaf: leaf[index], results)  # noqa: B023
            same(got, f(xs[index], int(ns[index]), True))


@pytest.mark.parametrize("seed", range(80, 110))
def test_random_programs_differentiate(seed):
    f = defined(Program(seed, depth=2).text, f"program_{seed}.py")

    def total(x, n):
        return sum(numbers(f(x, n, False)))

    def traced(x, n):
        return sum(tree.leaves(script(f)(x, n, False)))

    step = 1e-4  # the programs are linear between the jumps of their tests
    for x in XS:
        here, below, above = (total(x + d, 3) for d in (0.0, -step, step))
        if abs((above - here) - (here - below)) > 1e-9:
            continue
        slope = (above - below) / (2 * step)
        for gradient in (grad(traced), jit(grad(traced)), jit(grad(traced), static_argnums=1)):
            np.testing.assert_allclose(float(gradient(np.float64(x), 3)), slope, atol=1e-6)


def test_float_and_int_of_traced_values():
    def f(x, n):
        y = float(x) * 2.0
        k = int(x * n)
        total = 0.0
        for i in range(int(n)):
            total = total + i * y
        return (
            (y, k, total, float(n), float("2.5"), int("11", base=2))
            if n > -5
            else (y, k, total, 0.0, 2.5, 3)
        )

    scripted = script(f)
    for x, n in ((2.75, 3), (-2.75, 3), (1.5, 0)):
        expected = f(x, n)
        for run in (scripted, jit(scripted)):
            np.testing.assert_allclose([float(v) for v in run(x, n)], expected)
        slope = sum(2 * i for i in range(n)) + 2
        for run in (grad, lambda g: jit(grad(g))):
            assert run(lambda x: scripted(x, n)[0] + scripted(x, n)[2])(x) == slope
    assert jit(script(lambda x: float(x)))(np.float32([[3]])).dtype == np.float32
    with pytest.raises(plait.ShapeError, match="float: only an array of one element"):
        jit(script(lambda x: float(x)))(np.zeros(3))
    with pytest.raises(plait.ShapeError, match="int: only an array of one element"):
        jit(script(lambda x: int(x)))(np.zeros(3))


def test_containers_of_the_caller_are_changed():
    @plait.script
    def absolute(x, kept):
        if x > 0:
            kept[0] = x
        else:
            kept[0] = -x
        return x

    @plait.script
    def total(n, table):
        i = 0
        while i < n:
            table["sum"] = table["sum"] + i
            i = i + 1
        return n

    @plait.script
    def append(x, kept):
        if x > 0:
            kept.append(x)
        return x

    def outer(x, n):
        kept, table = [x], {"sum": 0}
        absolute(x, kept)
        total(n, table)
        return kept[0], table["sum"]

    assert [float(v) for v in plait.jit(outer)(-2.0, 5)] == [2, 10]
    assert [
        float(v) for v in plait.vmap(outer)(plait.numpy.asarray([3.0]), plait.numpy.asarray([4]))
    ] == [3, 6]
    with pytest.raises(plait.TreeError, match="`kept` of the traced `if` is"):
        plait.jit(lambda x: append(x, []))(1.0)
