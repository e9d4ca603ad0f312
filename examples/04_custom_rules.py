"""Lesson 4: derivatives by rules of one's own, and what reverse mode keeps.

Prints the same as its twin, 04_custom_rules.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp
from plait import (
    checkpoint,
    checkpoint_policies,
    custom_jvp,
    custom_vjp,
    grad,
    jit,
    value_and_grad,
    vmap,
)


# The derivative of log(1 + exp(x)) is 1 / (1 + exp(-x)), but made of the function's parts it is inf / inf
# where exp(x) overflows.
def plain(x):
    return jnp.log(1.0 + jnp.exp(x))


softplus = custom_jvp(plain)


@softplus.defjvp
def softplus_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return plain(x), dx / (1.0 + jnp.exp(-x))


large = jnp.asarray(1000.0)
print("plain is finite:", bool(jnp.isfinite(grad(plain)(large))))
print("by the rule", float(grad(softplus)(large)))
x = jnp.arange(4) * 1.0 - 1.5
print("under jit and vmap", " ".join(f"{v:.6f}" for v in jit(vmap(grad(softplus)))(x).tolist()))
print("twice", " ".join(f"{v:.6f}" for v in vmap(grad(grad(softplus)))(x).tolist()))


# A rule for reverse mode alone: x passes through, and its cotangent is cut to [-limit, limit] on the way
# back. fwd returns the output and what bwd needs; bwd gives a cotangent for each argument.
@custom_vjp
def cut_gradient(x, limit):
    return x


def cut_fwd(x, limit):
    return x, limit


def cut_bwd(limit, cotangent):
    return jnp.clip(cotangent, -limit, limit), jnp.zeros_like(limit)


cut_gradient.defvjp(cut_fwd, cut_bwd)


def steep(x):
    return jnp.sum(cut_gradient(x, jnp.asarray(2.0)) ** 3)


print("cut", " ".join(f"{v:.6f}" for v in grad(steep)(x).tolist()))


# Reverse mode keeps the intermediate results that it needs. checkpoint computes them again instead, but for
# those that its policy keeps: here the products of matrices, which cost most.
def layer(x):
    return jnp.sum(jnp.tanh(jnp.sin(x @ x) @ x))


def show(what, f):
    program = str(plait.make_jaxpr(value_and_grad(f))("4 4"))
    products, sines = program.count("= dot_general"), program.count("= sin")
    print(f"{what}: {products} products, {sines} sines")


show("plain", layer)
show("checkpoint", checkpoint(layer))
show("keeping products", checkpoint(layer, policy=checkpoint_policies.dots_saveable))
