"""Recipe: a transform of your own: interval arithmetic.

Values and rules for some primitives; what has no rule is reached through its decomposition, so calls work unheard
of. Where values are made of arrays, the transform composes with every other. Prints the same as its twin,
new_transform.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import plait
import plait.numpy as jnp

# A value is a pair of arrays, its lower and its upper bound; a constant is both.
interval = plait.Transform("interval", lift=lambda constant: (constant, constant))


@interval.rule("add")
def _(x, y):
    return x[0] + y[0], x[1] + y[1]


@interval.rule("neg")
def _(x):
    return -x[1], -x[0]


@interval.rule("mul")
def _(x, y):
    products = jnp.stack([a * b for a in x for b in y])
    return jnp.min(products, axis=0), jnp.max(products, axis=0)


@interval.rule("tanh")
def _(x):
    return jnp.tanh(x[0]), jnp.tanh(x[1])


@plait.jit
def f(x):
    return jnp.tanh(x) * x + 1.0


if __name__ == "__main__":
    low, high = interval(f)((-1.0, 2.0))
    print(f"f([-1, 2]) is within [{float(low):.4f}, {float(high):.4f}]")
    try:
        interval(jnp.exp)((0.0, 1.0))
    except plait.MissingRuleError as error:
        print(error.problem)
