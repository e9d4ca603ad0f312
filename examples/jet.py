"""An interpreter: Taylor mode, all derivatives along a curve in one pass.

What flows is the tuple of Taylor coefficients of x(t) = x0 + x1 t + x2 t^2 + ...; a constant has one. Rules are the
recurrences of Griewank and Walther, "Evaluating Derivatives", chapter 13. Nested forward mode takes twice as
much for each order; this takes the square of the order. Prints the same as its twin, jet.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
import functools
import math
import operator

import plait
import plait.numpy as jnp

taylor = plait.Transform("jet", lift=lambda constant: (constant,))

# What is linear in its inputs, or is so nearly everywhere, acts on each coefficient by itself.
LINEAR = """neg add sub reshape transpose broadcast_in_dim slice pad concatenate split rev gather scatter
    dynamic_slice dynamic_update_slice cumreduce reduce reduce_window sort top_k select cast real imag complex
    abs max min stop_gradient tag barrier""".split()


def sum_of(arrays):
    return functools.reduce(operator.add, arrays) if arrays else 0.0


def terms(x, y, k, multiply=operator.mul, first=0):
    """The sum over j = first .. k of x_j y_(k-j)."""
    there = [j for j in range(first, k + 1) if j < len(x) and k - j < len(y)]
    return sum_of([multiply(x[j], y[k - j]) for j in there])


def product(x, y, multiply=operator.mul):
    return tuple(terms(x, y, k, multiply) for k in range(max(len(x), len(y))))


def quotient(x, y):
    """z with z y = x: z_k = (x_k - sum of y_j z_(k-j), j = 1 .. k) / y_0."""
    z = ()
    for k in range(max(len(x), len(y))):
        z += (((x[k] if k < len(x) else 0.0) - terms(y, z, k, first=1)) / y[0],)
    return z


def plus(constant, x):
    return (constant + x[0], *x[1:])


def scaled(factor, x):
    return tuple(factor * c for c in x)


def solve(x, starts, slopes):
    """The series y with dy/dt = slope(x, y) dx/dt, one for each start: k y_k = sum of j x_j slope_(k-j)."""
    velocity = tuple(j * c for j, c in enumerate(x))
    ys = [(start,) for start in starts]
    for k in range(1, len(x)):
        ys = [
            (*y, terms(velocity, slope, k, first=1) / k) for y, slope in zip(ys, slopes(x[:k], *ys))
        ]
    return ys


def elementwise(primitive, slope):
    """y = f(x) where f' is given as a series of those of x and y."""

    @taylor.rule(primitive)
    def rule(x, equation):
        return solve(x, equation.bind(x[0]), lambda x, y: [slope(x, y)])[0]


elementwise("exp", lambda x, y: y)
elementwise("expm1", lambda x, y: plus(1.0, y))
elementwise("log", lambda x, y: quotient((1.0,), x))
elementwise("log1p", lambda x, y: quotient((1.0,), plus(1.0, x)))
elementwise("sqrt", lambda x, y: quotient((0.5,), y))
elementwise("tanh", lambda x, y: plus(1.0, scaled(-1.0, product(y, y))))
elementwise("erf", lambda x, y: scaled(2 / math.pi**0.5, gauss(x)))


def gauss(x):
    """exp(-x^2)."""
    return taylor(lambda x: jnp.exp(-x * x))(x)


def sine_and_cosine(x):
    return solve(x, [jnp.sin(x[0]), jnp.cos(x[0])], lambda x, sin, cos: [cos, scaled(-1.0, sin)])


taylor.rule("sin")(lambda x: sine_and_cosine(x)[0])
taylor.rule("cos")(lambda x: sine_and_cosine(x)[1])
taylor.rule("mul")(lambda x, y: product(x, y))
taylor.rule("div")(lambda x, y: quotient(x, y))


@taylor.rule("dot_general", "conv")
def _(x, y, equation):
    return product(x, y, lambda a, b: equation.bind(a, b)[0])


@taylor.rule("integer_pow")
def _(x, y):  # works at zero too
    power = functools.reduce(product, [x] * abs(y), (jnp.ones_like(x[0]),))
    return power if y >= 0 else quotient((1.0,), power)


@taylor.rule("pow")
def _(x, y):
    if len(y) == 1:  # (x^p)' = p x^p / x
        return solve(x, [x[0] ** y[0]], lambda x, z: [scaled(y[0], quotient(z, x))])[0]
    return taylor(lambda x, y: jnp.exp(y * jnp.log(x)))(x, y)


@taylor.rule(*LINEAR)
def linear(*inputs, equation):
    if equation.params.get("kind") in ("prod", "mul"):
        return NotImplemented
    moving = [i for i, x in enumerate(inputs) if len(x) > 1]

    def function(*values):
        arrays = [x[0] for x in inputs]
        for i, value in zip(moving, values):
            arrays[i] = value
        return equation.bind(*arrays)

    if not moving:
        outputs = [(value,) for value in function()]
    else:
        values, push = plait.linearize(function, *(inputs[i][0] for i in moving))
        orders = range(1, len(inputs[moving[0]]))
        outputs = [*zip(values, *(push(*(inputs[i][k] for i in moving)) for k in orders))]
    return outputs if len(outputs) > 1 else outputs[0]


@taylor.rule("reduce")
def _(x, equation, kind, axes):
    if kind != "prod":
        return linear(x, equation=equation)
    first = [jnp.moveaxis(c, axes, range(len(axes))) for c in x]
    rows = [jnp.reshape(c, (-1, *c.shape[len(axes) :])) for c in first]
    return functools.reduce(product, [tuple(c[i] for c in rows) for i in range(len(rows[0]))])


@taylor.otherwise
def _(*inputs, equation):
    """What has no derivative, as comparisons and random bits, and what is constant."""
    outputs = equation.bind(*(x[0] for x in inputs))
    if any(len(x) > 1 for x in inputs) and any(y.dtype.kind == "f" for y in outputs):
        return NotImplemented
    return [(y,) for y in outputs] if len(outputs) > 1 else (outputs[0],)


def jet(f, primals, series):
    """The value of f along a curve, and the list of its derivatives by t at 0.

    primals are the points x(0), series the list x'(0), x''(0), ... for each of them, all of one length.
    """
    curves = [
        (x, *(d / math.factorial(k) for k, d in enumerate(derivatives, 1)))
        for x, derivatives in zip(primals, series)
    ]
    value, *coefficients = taylor(f)(*curves)
    zero = jnp.zeros_like(value)
    coefficients += [zero] * (len(series[0]) - len(coefficients))
    return value, [c * math.factorial(k) for k, c in enumerate(coefficients, 1)]


def derivatives(f, x, order):
    """f and its derivatives at a number, up to an order."""
    value, series = jet(f, (x,), ([jnp.ones_like(x)] + [jnp.zeros_like(x)] * (order - 1),))
    return [value, *series]


def f(x):
    return jnp.tanh(jnp.sin(x) * jnp.exp(x)) / (1 + x**2)


def network(t):
    """A network along a line: products, sums, powers and what moves elements."""
    w = jnp.reshape(jnp.sin(jnp.arange(12.0)), (3, 4))
    x = jnp.concatenate([jnp.stack([t, 1 - t]), jnp.cos(jnp.reshape(t, (1,)))])
    return jnp.log(1 + jnp.sum(jnp.exp(x @ w) ** 1.5))


if __name__ == "__main__":
    x = jnp.asarray(0.5, plait.float64)
    for function in (f, network):
        nested = function
        for order, by_jet in enumerate(derivatives(function, x, 5)):
            print(
                f"order {order}: {float(by_jet):11.4f} by jet, {float(nested(x)):11.4f} by nested grad"
            )
            nested = plait.grad(nested)
