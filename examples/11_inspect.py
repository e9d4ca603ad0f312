"""Lesson 11: looking inside: what a program costs by scope, its code, and how two of them differ.

Prints the same as its twin, 11_inspect.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp
from plait import grad, make_jaxpr, named_scope


def attention(x, wq, wk, wv):
    with named_scope("attention"):
        with named_scope("scores"):
            scores = jnp.matmul(jnp.matmul(x, wq), jnp.matmul(x, wk).T)
        return jnp.matmul(plait.nn.softmax(scores), jnp.matmul(x, wv))


def encoder(x, wq, wk, wv, wo):
    y = attention(x, wq, wk, wv)
    with named_scope("output"):
        return jnp.tanh(jnp.matmul(y, wo))


x, wq, wk, wv = jnp.ones((16, 32)), jnp.ones((32, 8)), jnp.ones((32, 8)), jnp.ones((32, 8))
wo = jnp.ones((8, 32))

# A table by named scope: what leaves it, the elements of arguments that it reads, equations, arithmetic,
# memory read and written, and the most memory that its values take. Transforms keep scopes: the gradient's
# work is counted where it comes from.
program = make_jaxpr(encoder)(x, wq, wk, wv, wo)
print(plait.summary(program))


def loss(x, wq, wk, wv, wo):
    return jnp.sum(encoder(x, wq, wk, wv, wo))


print(plait.summary(make_jaxpr(grad(loss))(x, wq, wk, wv, wo)))
total = plait.summary(program).total
print(f"{total.flops:.0f} operations on {total.bytes_read + total.bytes_written:.0f} bytes")


# A program is code too: a line for each equation, which traced again gives the same program.
def wave(x, rate):
    return jnp.sum(jnp.sin(x * rate), axis=0)


waves = make_jaxpr(wave)(jnp.ones((4, 3)), jnp.ones(3))
code = plait.code(waves)
print(code)
again = make_jaxpr(code.function())(jnp.ones((4, 3)), jnp.ones(3))
print("the same program:", again.jaxpr == waves.jaxpr)


# Two programs are compared equation by equation: what was removed (-), added (+), or changed (~). What comes
# after a change is the same as before.
def damped(x, rate):
    return jnp.sum(jnp.exp(-x) * jnp.sin(x * rate), axis=1)


difference = plait.diff(waves, make_jaxpr(damped)(jnp.ones((4, 3)), jnp.ones(3)))
kinds = [kind for kind, _, _ in difference.changes]
print("they differ:", bool(difference))
print(", ".join(f"{kinds.count(kind)} {kind}" for kind in ("same", "removed", "added", "changed")))
