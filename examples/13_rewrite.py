"""Lesson 13: rewriting programs: rules written as functions, passes of your own, pipelines.

Prints the same as its twin, 13_rewrite.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp
from plait import grad, jit, vmap


def names(f, *args):  # the primitives of a function's program, in order
    return " ".join(e.primitive for e in plait.walk(plait.make_jaxpr(f)(*args).jaxpr))


# A rule is a pattern and a replacement: two functions. Arguments match any value of any shape and
# dtype; the rest must be the same, but for the order of a sum's or product's operands.
def naive(x):
    return jnp.log(jnp.sum(jnp.exp(x), axis=-1))


def stable(x):
    highest = jnp.max(x, axis=-1)
    return jnp.log(jnp.sum(jnp.exp(x - highest[..., None]), axis=-1)) + highest


careful = plait.rewrite(naive, stable, name="logsumexp", repeat=False)


def loss(x):
    return naive(x * 2) - x[0]


x = jnp.asarray([1.0, 500.0, 2.0])
print(f"{float(loss(x))} is {float(careful(loss)(x))}")

# What rewrite gives is a transform: it composes with the others, on either side.
slope = grad(careful(loss))(x)
print("slope", " ".join(f"{float(v):.1f}" for v in slope))
batch = jnp.stack([x, x / 2])
print("batch", " ".join(f"{float(v):.1f}" for v in jit(vmap(careful(loss)))(batch)))

# Rules are applied until none matches. where is asked about each match; a value that something else
# needs is left alone; numbers of the program match arguments too.
tidy = plait.rewrite(
    [
        plait.Rule(lambda x: jnp.log(jnp.exp(x)), lambda x: x, name="log_exp"),
        plait.Rule(lambda a, b, c: a * b + a * c, lambda a, b, c: a * (b + c), name="factor"),
        plait.Rule(
            lambda x, c: jnp.exp(x) ** c,
            lambda x, c: jnp.exp(x * c),
            where=lambda match: match.values[1] is not None and float(match.values[1]) > 2.5,
            name="power_of_exp",
        ),
    ]
)


def wordy(x, y):
    return jnp.log(jnp.exp(y)) * x + jnp.log(jnp.exp(x * jnp.exp(y)))


print(names(wordy, x, x))
print(names(tidy(wordy), x, x))
print(names(tidy(lambda x: jnp.exp(x) ** 2.6 + jnp.exp(x) ** 2.4), x))

# Several results are replaced together. Bodies of jit, loops and branches are entered.
both = plait.rewrite(
    lambda x: (jnp.sin(x), jnp.cos(x)),
    lambda x: (jnp.tanh(x), 1 - jnp.tanh(x) ** 2),
    name="sin_cos",
)
inner = jit(lambda y: jnp.sin(y) * jnp.cos(y) + y)
print(names(both(lambda x: inner(x * 3)), x))


# A pass is any function from programs to programs. rebuild asks it about each equation: here,
# exponentials get arguments of 80 at most.
def bound_exponents(jaxpr):
    def rule(builder, equation, *inputs):
        if equation.primitive != "exp":
            return None  # as it was
        (bounded,) = builder.add("min", *inputs, 80.0)
        return builder.add(equation, bounded)

    return plait.rebuild(jaxpr, rule)


print(f"{float(plait.apply_pass(bound_exponents)(loss)(x)):.1f}")

# A builder begins with a program and changes it here and there; it refuses what would be ill-formed.
jaxpr = plait.make_jaxpr(wordy)(x, x).jaxpr
builder = plait.Builder(jaxpr)
for equation in builder.eqns:
    if equation.primitive == "exp":
        (old,) = equation.outputs
        users = builder.users_of(old)
        if [user.primitive for user in users] == ["log"]:
            builder.replace(users[0].outputs[0], equation.inputs[0])
print(" ".join(e.primitive for e in builder.close().eqns))
try:
    builder.add("add", builder.inputs[0], builder.inputs[0], 1.0)
except plait.UserError as error:
    print("refused:", str(error).splitlines()[0])

# Passes in a row are one, which says what each did.
passes = plait.pipeline(tidy, plait.apply_pass(bound_exponents))
passes(wordy)(x, x)
for part in passes.statistics.parts:
    print(part.name, part.equations_before, part.equations_after, part.matches)

# With verify, both functions of a rule run on random numbers, and a rule that does not hold is
# named.
wrong = plait.rewrite(lambda x: jnp.sqrt(x * x), lambda x: x, name="root", verify=True)
try:
    wrong(lambda x: jnp.sqrt(x * x))(x)
except plait.ValueError as error:
    print(str(error).splitlines()[0])
