"""Lesson 5: looking inside: the program, where it runs and why, and who has which rule.

Prints the same as its twin, 05_explain.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp
from plait import explain, grad, make_jaxpr


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w) - y) ** 2)


# Whatever transforms were composed, the result is one program, and its text can be read: typed vars, then
# one equation a line. A composite such as mean shows its body.
w, x, y = jnp.ones((256, 128)), jnp.ones((64, 256)), jnp.ones((64, 128))
program = make_jaxpr(grad(loss))(w, x, y)
print(program)
print("equations:", ", ".join(equation.primitive for equation in program.eqns))

# explain compiles it and shows the steps: which backend runs them, how much memory they make, and for
# those that stay with the reference, why another did not take them. A smaller product is not worth its call.
print(explain(grad(loss), w, x, y))
print(explain(loss, jnp.ones((4, 2)), jnp.ones((3, 4)), jnp.ones((3, 2))))

# Every transform is a table of rules, one for each primitive. A rule is written in the primitive's block,
# or comes from its family, or from what it decomposes to; a refusal says why.
for kind in ("jvp", "batch", "mask"):
    for name, state, _file, _line in plait.rules(kind):
        if name in ("tanh", "dot_general", "check_sizes"):
            print(f"{kind:<6} {name:<12} {state}")

# What this installation found on the machine; plait.info() has more.
print("backends:", plait.info()["backends"])
