"""An interpreter: value, Jacobian and Laplacian of a function in one pass.

What flows is (x, J, L): a value, its derivatives by each of the n inputs, stacked, and the sum of its second
derivatives. A constant has none. The Laplacian of y = f(x) is f'(x) L + the sum over i of f''(x)(J_i, J_i), so what
is linear needs f' alone, what is bilinear one product more, and a function of each element the sum of J_i^2.
Li et al., "Forward Laplacian", arXiv:2307.08214. Prints the same as its twin, forward_laplacian.cpp.
"""

# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

import plait
import plait.numpy as jnp
from plait import jvp, vmap


class Second(NamedTuple):
    value: plait.Array
    jacobian: plait.Array = None  # (n, *shape of the value); None: a constant
    laplacian: plait.Array = None


laplace = plait.Transform("laplace", lift=Second, aval=lambda x: x.value)

LINEAR = """neg add sub reshape transpose broadcast_in_dim slice pad concatenate split rev gather scatter
    dynamic_slice dynamic_update_slice cumreduce reduce reduce_window sort top_k select cast abs max min tag
    barrier""".split()
ELEMENTWISE = "exp expm1 log log1p sqrt sin cos tanh erf lgamma integer_pow".split()


def moving_part(inputs, equation):
    """The equation as a function of those inputs that are no constants, and these."""
    places = [i for i, x in enumerate(inputs) if x.jacobian is not None]

    def function(*values):
        arrays = [x.value for x in inputs]
        for i, value in zip(places, values):
            arrays[i] = value
        return equation.bind(*arrays)

    return function, [inputs[i] for i in places]


def packed(results):
    return results if len(results) > 1 else results[0]


def constant(inputs, equation):
    return packed([Second(y) for y in equation.bind(*(x.value for x in inputs))])


@laplace.rule(*LINEAR)
def _(*inputs, equation):
    if equation.params.get("kind") in ("prod", "mul"):
        return general(*inputs, equation=equation)
    f, moving = moving_part(inputs, equation)
    if not moving:
        return constant(inputs, equation)
    values, df = plait.linearize(f, *(x.value for x in moving))
    jacobians = vmap(df)(*(x.jacobian for x in moving))
    laplacians = df(*(x.laplacian for x in moving))
    return packed([Second(*of) for of in zip(values, jacobians, laplacians)])


@laplace.rule(*ELEMENTWISE)
def _(x, equation):
    if x.jacobian is None:
        return constant([x], equation)
    f = lambda x: equation.bind(x)[0]  # noqa: E731
    ones = jnp.ones_like(x.value)
    slope = lambda x: jvp(f, (x,), (ones,))[1]  # noqa: E731
    first, second = jvp(slope, (x.value,), (ones,))
    squares = jnp.sum(x.jacobian**2, axis=0)
    return Second(f(x.value), first * x.jacobian, first * x.laplacian + second * squares)


@laplace.rule("mul", "dot_general", "conv")
def _(x, y, equation):
    f = lambda x, y: equation.bind(x, y)[0]  # noqa: E731
    value, jacobians, laplacians = f(x.value, y.value), [], []
    if x.jacobian is not None:
        jacobians.append(vmap(lambda dx: f(dx, y.value))(x.jacobian))
        laplacians.append(f(x.laplacian, y.value))
    if y.jacobian is not None:
        jacobians.append(vmap(lambda dy: f(x.value, dy))(y.jacobian))
        laplacians.append(f(x.value, y.laplacian))
    if len(jacobians) == 2:
        laplacians.append(2 * jnp.sum(vmap(f)(x.jacobian, y.jacobian), axis=0))
    return Second(value, sum(jacobians), sum(laplacians)) if jacobians else Second(value)


@laplace.rule("div")
def _(x, y):
    return laplace(lambda x, y: x * y**-1)(x, y)


@laplace.otherwise
def general(*inputs, equation):
    """Anything that can be differentiated twice: the sum of f''(J_i, J_i) by forward mode over forward mode."""
    f, moving = moving_part(inputs, equation)
    if not moving:
        return constant(inputs, equation)
    x, jacobians, laplacians = zip(*moving)

    def along(*direction):
        pushed = lambda *x: jvp(f, x, direction)[1]  # noqa: E731
        return jvp(pushed, x, direction)

    first, second = vmap(along)(*jacobians)
    values, pushed = jvp(f, x, laplacians)
    rows = zip(values, first, pushed, second)
    return packed([Second(y, j, p + jnp.sum(s, axis=0)) for y, j, p, s in rows])


def forward_laplacian(f):
    """A function of an array x that returns f(x), its Jacobian (*shape of f(x), *shape of x) and its Laplacian."""

    def function(x):
        n = x.size
        directions = jnp.reshape(jnp.eye(n, dtype=x.dtype), (n, *x.shape))
        y = laplace(f)(Second(x, directions, jnp.zeros_like(x)))
        if y.jacobian is None:
            return y.value, jnp.zeros((*y.value.shape, *x.shape)), jnp.zeros_like(y.value)
        jacobian = jnp.reshape(jnp.moveaxis(y.jacobian, 0, -1), (*y.value.shape, *x.shape))
        return y.value, jacobian, y.laplacian

    return function


def log_psi(x):
    """The logarithm of a wave function of three electrons."""
    distances = jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=2) + jnp.eye(3))
    return -jnp.sum(x**2) / 2 + jnp.sum(jnp.tanh(distances)) / 4


def local_energy(x):
    """The energy of exp(f) in a harmonic trap: -(L f + |f'|^2) / 2 + |x|^2 / 2."""
    _, slope, laplacian = forward_laplacian(log_psi)(x)
    return -(laplacian + jnp.sum(slope**2)) / 2 + jnp.sum(x**2) / 2


if __name__ == "__main__":
    x = jnp.reshape(jnp.sin(jnp.arange(9.0)), (3, 3))
    value, slope, laplacian = forward_laplacian(log_psi)(x)
    print(f"value {float(value):.5f}, |slope|^2 {float(jnp.sum(slope**2)):.5f}")
    trace = jnp.trace(jnp.reshape(plait.hessian(log_psi)(x), (9, 9)))
    print(f"laplacian {float(laplacian):.5f}, trace of the hessian {float(trace):.5f}")
    walkers = jnp.reshape(jnp.sin(jnp.arange(36.0)), (4, 3, 3))
    energies = plait.jit(vmap(local_energy))(walkers)
    print("local energies", " ".join(f"{energy:.4f}" for energy in energies.tolist()))
    force = plait.grad(local_energy)(x)
    print(f"and their gradient: {float(jnp.sqrt(jnp.sum(force**2))):.4f}")
