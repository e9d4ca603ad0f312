"""An interpreter: which inputs each output depends on, and the Jacobian in as few passes as that allows.

What flows is a row of booleans for each element, the inputs that it depends on; what depends on none flows as it is.
Columns of the Jacobian that share no row have one colour and are found by one jvp, all colours by one vmap: a
tridiagonal Jacobian of any size takes three passes instead of one for each column.
Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM Review 47 (2005).
"""

# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

import numpy as np

import plait
import plait.numpy as jnp
from plait import jvp, vmap


class Depends(NamedTuple):
    """Elements of this type that are not known, and rows: (*shape, n), whether they depend on each of n inputs."""

    aval: plait.ShapeDtypeStruct
    rows: np.ndarray


sparsity = plait.Transform(
    "sparsity",
    lift=lambda constant: constant,
    aval=lambda x: x.aval if isinstance(x, Depends) else x,
)
ELEMENTWISE = [name for name, state, *_ in plait.rules("pointwise") if state == "rule"]
MOVEMENT = """reshape transpose broadcast_in_dim slice pad concatenate split rev gather scatter dynamic_slice
    dynamic_update_slice""".split()


def rows(x):
    return x.rows if isinstance(x, Depends) else np.zeros((*np.shape(x), 1), bool)


def dependence(rows_of):
    """A rule from the rows of each output; what depends on nothing is computed."""

    def rule(*inputs, equation):
        if not any(isinstance(x, Depends) for x in inputs):
            results = equation.bind(*inputs)
        else:
            # What is no float has no derivative, though its value is not known either.
            results = [
                Depends(aval, found & (aval.dtype.kind == "f"))
                for aval, found in zip(equation.out_avals, rows_of(*inputs, equation=equation))
            ]
        return results if len(results) > 1 else results[0]

    return rule


def everything(*inputs, equation):
    """Each output on all that the inputs depend on: right for whatever has no better rule."""
    width = max(rows(x).shape[-1] for x in inputs)
    union = np.zeros(width, bool)
    for x in inputs:
        union = union | rows(x).any(axis=tuple(range(rows(x).ndim - 1)))
    return [np.broadcast_to(union, (*aval.shape, width)) for aval in equation.out_avals]


def each_element(*inputs, equation):
    union = np.zeros((*equation.out_avals[0].shape, 1), bool)
    for x in inputs:
        union = union | rows(x)
    return [union]


def moved(*inputs, equation):
    """The rows go where the elements go: each column of them, as zeros and ones, through the equation itself."""
    if any(isinstance(x, Depends) and x.aval.dtype.kind != "f" for x in inputs):
        return everything(*inputs, equation=equation)  # places that are not known
    marks, axes = [], []
    for x in inputs:
        depends = isinstance(x, Depends)
        kept = x if depends or x.dtype.kind != "f" else jnp.zeros_like(x)
        marks.append(x.rows.astype(x.aval.dtype) if depends else kept)
        axes.append(-1 if depends else None)
    return [np.asarray(m) != 0 for m in vmap(equation.bind, tuple(axes), -1)(*marks)]


def products(x, y, equation):
    """Each output on what is multiplied for it; a factor that is known to be zero multiplies nothing."""

    def factors(x):
        return jnp.ones(x.aval.shape, x.aval.dtype) if isinstance(x, Depends) else abs(jnp.sign(x))

    union = False
    for first, second, axes in (
        (rows(x), factors(y), (-1, None)),
        (factors(x), rows(y), (None, -1)),
    ):
        first, second = (jnp.asarray(f).astype(factors(x).dtype) for f in (first, second))
        union = union | (np.asarray(vmap(equation.bind, axes, -1)(first, second)[0]) != 0)
    return [union]


sparsity.rule(*ELEMENTWISE)(dependence(each_element))
sparsity.rule(*MOVEMENT)(dependence(moved))
sparsity.rule("dot_general", "conv")(dependence(products))
sparsity.rule("reduce")(dependence(lambda x, equation: [rows(x).any(axis=equation.params["axes"])]))
sparsity.rule("stop_gradient")(dependence(lambda x, equation: [np.zeros_like(rows(x))]))
sparsity.otherwise(dependence(everything))


def pattern(f, x):
    """Where the Jacobian of f, an array of an array, may be other than zero: booleans (f(x).size, x.size)."""
    inputs = np.eye(x.size, dtype=bool).reshape(*x.shape, x.size)
    y = sparsity(f)(Depends(plait.ShapeDtypeStruct(x.shape, x.dtype), inputs))
    return np.broadcast_to(rows(y), (*rows(y).shape[:-1], x.size)).reshape(-1, x.size)


def colours(pattern):
    """A number for each column, the same only where columns share no row: the least that is free, in order."""
    taken, numbers = [], []  # the rows that columns of each colour have
    for column in pattern.T:
        free = [number for number, others in enumerate(taken) if not (others & column).any()]
        if not free:
            free = [len(taken)]
            taken.append(np.zeros_like(column))
        taken[free[0]] |= column
        numbers.append(free[0])
    return np.asarray(numbers)


def sparse_jacobian(f, example):
    """A function of arrays like example: the Jacobian of f, (f(x).size, x.size). Its passes are an attribute."""
    where = pattern(f, example)
    colour = colours(where)
    passes = int(colour.max(initial=-1)) + 1
    seeds = (np.arange(passes)[:, None] == colour).astype(example.dtype)
    at_row, at_column = np.nonzero(where)

    def jacobian(x):
        along = lambda seed: jnp.ravel(jvp(f, (x,), (jnp.reshape(seed, x.shape),))[1])  # noqa: E731
        compressed = vmap(along)(seeds)  # each row the sum of the columns of one colour
        values = compressed[colour[at_column], at_row]
        return jnp.zeros(where.shape, values.dtype).at[at_row, at_column].set(values)

    jacobian.passes = passes
    return jacobian


def burgers(u):
    """du/dt of Burgers' equation in one dimension, by central differences between walls."""
    padded = jnp.pad(u, 1)
    left, right = padded[:-2], padded[2:]
    return 0.1 * (left - 2 * u + right) - u * (right - left) / 2


if __name__ == "__main__":
    u = jnp.sin(jnp.arange(12.0))
    where = pattern(burgers, u)
    for row in where:
        print("".join(".#"[int(there)] for there in row))
    print("colours", *colours(where))
    jacobian = plait.jit(sparse_jacobian(burgers, u))
    error = jnp.max(jnp.abs(jacobian(u) - plait.jacfwd(burgers)(u)))
    print(f"largest difference from jacfwd {float(error):.1e}")
    for n in (100, 300):
        example = jnp.zeros(n)
        print(f"{n} columns in {sparse_jacobian(burgers, example).passes} passes")
