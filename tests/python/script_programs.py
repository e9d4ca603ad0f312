"""Random functions with branches, loops and jumps, as text: what test_script.py compares with Python itself.

SPDX-License-Identifier: Apache-2.0
"""

import random

VARIABLES = ("a", "b", "c")


class Program:
    """The text of a function f(x, n, p) of a float, an integer and a bool, which always ends."""

    def __init__(self, seed, depth=3):
        self.random = random.Random(seed)
        self.lines, self.counters = [], 0
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
            return self.choose(*VARIABLES, "x", "1.5", "-0.25")
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
        for _ in range(self.random.randrange(1, 4)):
            if self.statement(indent, depth, loop):
                return

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
        self.emit(indent + 1, f"c = c + 0.125 * {name}")
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
