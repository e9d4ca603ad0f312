"""An interpreter: a debugger that runs a program step by step, stops at an equation, and shows values and lines.

It evaluates one equation after the other, those of called functions too, and asks for a command before one that
it stops at. Commands come from the keyboard, or from any list of text. What it debugs may be the result of
transforms: in the program of grad(f), equations still have the lines of f.
"""

# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

import plait
import plait.numpy as jnp

HELP = """break WHERE   stop at a line (12, or model.py:12), a primitive (log), or a scope (encoder/attention)
clear         forget where to stop
continue      run to the next place to stop
step          run one equation
into          step into the function that is called
list          the program, with the next equation marked
print TEXT    the value of a var, or of Python with vars in it: print a.sum()
where         the next equation, its line, scope and transforms, and the calls that it is in
quit          run to the end without stopping"""


class Frame(NamedTuple):
    jaxpr: plait.Jaxpr
    scope: str  # that of the call
    values: dict


class Debugger:
    def __init__(self, commands=None, write=print):
        self.commands = iter(keyboard() if commands is None else commands)
        self.write, self.places, self.frames = write, [], []
        self.stepping = True

    def run(self, jaxpr, arrays, scope=""):
        """The outputs of a program, a list."""
        frame = Frame(jaxpr, scope, dict(zip(jaxpr.inputs, arrays)))
        self.frames.append(frame)

        def read(atom):
            return frame.values[atom] if isinstance(atom, str) else atom

        for equation in jaxpr.eqns:
            within = joined(scope, equation.source.scope)
            stops = self.stepping or self.is_at_place(equation, within)
            entering = self.stop(equation) if stops else False
            inputs = [read(atom) for atom in equation.inputs]
            body = body_of(equation)
            if body and (entering or self.has_place(body, within)):
                outputs = self.run(body, inputs, within)
            else:
                outputs = equation.bind(*inputs)
            frame.values.update(zip(equation.outputs, outputs))
        self.frames.pop()
        return [read(atom) for atom in jaxpr.outputs]

    def is_at_place(self, equation, scope):
        line, file = equation.source.line, equation.source.file.rpartition("/")[2]
        names = {equation.primitive, str(line), f"{file}:{line}"}
        return any(place in names or f"{scope}/".startswith(f"{place}/") for place in self.places)

    def has_place(self, body, scope):
        """Whether it stops anywhere in a function that is called."""
        for equation in body.eqns:
            within, inner = joined(scope, equation.source.scope), body_of(equation)
            if self.is_at_place(equation, within) or (inner and self.has_place(inner, within)):
                return True
        return False

    def stop(self, equation):
        """Commands before an equation, until one that goes on. Whether to enter the function that it calls."""
        self.stepping = False
        self.write(f"-> {text_of(equation)}")
        self.write(f"   {equation.source}")
        for line in self.commands:
            command, _, rest = line.strip().partition(" ")
            name = next((name for name in COMMANDS if command and name.startswith(command)), None)
            if name is None:
                self.write(HELP)
            elif COMMANDS[name](self, equation, rest.strip()):
                return name == "into"
        self.places.clear()  # no more commands: run to the end
        return False

    def on_break(self, equation, where):
        self.places.append(where)

    def on_clear(self, equation, rest):
        self.places.clear()

    def on_continue(self, equation, rest):
        return True

    def on_step(self, equation, rest):
        self.stepping = True
        return True

    on_into = on_step

    def on_quit(self, equation, rest):
        self.places.clear()
        self.commands = iter(())
        return True

    def on_list(self, equation, rest):
        for each in self.frames[-1].jaxpr.eqns:
            self.write(f"{'->' if each.outputs == equation.outputs else '  '} {text_of(each)}")

    def on_print(self, equation, text):
        try:
            self.write(
                f"{text} = {eval(text, {'jnp': jnp, 'plait': plait}, self.frames[-1].values)}"
            )
        except Exception as error:
            self.write(f"{type(error).__name__}: {error}")

    def on_where(self, equation, rest):
        for depth, frame in enumerate(self.frames[1:], 1):
            self.write(f"   call {depth} in scope {frame.scope or 'of no name'}")
        source = equation.source
        scope = joined(self.frames[-1].scope, source.scope)
        self.write(f"   {source}; scope {scope or '-'}; made by {source.transforms or 'tracing'}")


COMMANDS = {
    name: getattr(Debugger, f"on_{name}")
    for name in "break clear continue step into list print where quit".split()
}


# Primitives that do what the program in their body does, and nothing else.
APPLY_BODY = {
    name for name, state, *_ in plait.rules("inline") if state.startswith(("rule", "family"))
}


def body_of(equation):
    return equation.params["body"] if equation.primitive in APPLY_BODY else None


def joined(outer, inner):
    return "/".join(filter(None, (outer, inner)))


def text_of(equation):
    first, *more = str(equation).splitlines()
    return first + (" ..." if more else "")


def keyboard():
    while True:
        try:
            yield input("(plait) ")
        except EOFError:
            return


def debug(f, commands=None, write=print):
    """f, run step by step: it stops at the first equation. commands is an iterable of text; else it asks."""

    def debugged(*args):
        closed = plait.make_jaxpr(f)(*args)
        arrays = [jnp.asarray(leaf) for leaf in plait.tree.leaves(args)]
        outputs = Debugger(commands, write).run(closed.jaxpr, [*arrays, *closed.consts])
        return plait.tree.unflatten(closed.out_tree, outputs)

    return debugged


@plait.jit
def entropy(p):
    return -jnp.sum(p * jnp.log(p))


def loss(w, x):
    with plait.named_scope("model"):
        p = jnp.tanh(x @ w) ** 2
    with plait.named_scope("loss"):
        return entropy(p)


SESSION = """break log
continue
where
print a
clear
break loss
step
print b
quit"""

if __name__ == "__main__":
    w, x = jnp.ones((3, 2)), jnp.asarray([[0.1, 0.2, 0.3], [0.0, 1.0, -1.0]])

    def typed():
        for command in SESSION.splitlines():
            print(f"(plait) {command}")
            yield command

    print("loss", float(debug(loss, typed())(w, x)))
