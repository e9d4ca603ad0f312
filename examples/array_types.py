"""Array types of your own, each a transform: LoRA, int8 weights, units of measure.

A type is what flows through an interpreter in place of some arrays, with rules for the primitives that know better than
to make an array of it. Functions that are written for arrays, models of plait.nn among them, then take values of the
type unchanged. Where the values are made of arrays, the transform composes with grad, vmap and jit.
"""

# SPDX-License-Identifier: Apache-2.0
from fractions import Fraction
from typing import NamedTuple

import plait
import plait.numpy as jnp
from plait import nn, random


def over_trees(transform, kind, f):
    """f, a function of trees, with values of this type among their leaves."""

    def function(*args):
        leaves, structure = plait.tree.flatten(args, is_leaf=lambda leaf: isinstance(leaf, kind))
        flat = lambda *leaves: f(*plait.tree.unflatten(structure, leaves))  # noqa: E731
        return transform(flat)(*leaves)

    return function


def multiplies_from_the_left(equation, x, y):
    """Whether an equation is x @ y for an array x and a matrix y."""
    p = equation.params
    return not p["lhs_batch"] and list(p["rhs_contract"]) == [0] and len(y.shape) == 2


# --- LoRA: W + A B, kept apart. Hu et al., arXiv:2106.09685 ---


class Lora(NamedTuple):
    weight: plait.Array  # (m, n)
    a: plait.Array  # (m, rank)
    b: plait.Array  # (rank, n)

    shape = property(lambda self: self.weight.shape)


def merged(x):
    return x.weight + x.a @ x.b if isinstance(x, Lora) else x


lora = plait.Transform(
    "lora", lift=lambda constant: constant, aval=lambda x: x.weight if isinstance(x, Lora) else x
)


@lora.rule("dot_general")
def _(x, y, equation):
    if isinstance(y, Lora) and not isinstance(x, Lora) and multiplies_from_the_left(equation, x, y):
        # x (W + A B) = x W + (x A) B, without the product of A and B.
        return equation.bind(x, y.weight)[0] + equation.bind(x, y.a)[0] @ y.b
    return equation.bind(merged(x), merged(y))[0]


@lora.rule("transpose")
def _(x, equation):
    if isinstance(x, Lora) and list(equation.params["permutation"]) == [1, 0]:
        return Lora(x.weight.T, x.b.T, x.a.T)
    return equation.bind(merged(x))[0]


@lora.otherwise
def _(*inputs, equation):
    outputs = equation.bind(*map(merged, inputs))
    return outputs if len(outputs) > 1 else outputs[0]


def adapted(model, rank, key):
    """A model of plait.nn whose matrices have adapters of this rank: zero at first, as b is."""

    def adapt(leaf, key):
        if leaf.ndim != 2:
            return leaf
        m, n = leaf.shape
        return Lora(leaf, random.normal(key, (m, rank)) / rank, jnp.zeros((rank, n)))

    leaves, structure = plait.tree.flatten(model)
    keys = random.split(key, len(leaves))
    return plait.tree.unflatten(structure, [adapt(*pair) for pair in zip(leaves, keys)])


# --- Weights in int8, with a scale for each column. Dettmers et al., arXiv:2208.07339 ---


class Int8(NamedTuple):
    codes: plait.Array  # int8 (m, n)
    scale: plait.Array  # (n,)

    shape = property(lambda self: self.codes.shape)


def quantized(weight):
    scale = jnp.max(abs(weight), axis=0) / 127
    return Int8(jnp.round(weight / scale).astype("int8"), scale)


def floats(x):
    return x.codes.astype(x.scale.dtype) * x.scale if isinstance(x, Int8) else x


int8 = plait.Transform(
    "int8",
    lift=lambda constant: constant,
    aval=lambda x: plait.ShapeDtypeStruct(x.shape, x.scale.dtype) if isinstance(x, Int8) else x,
)


@int8.rule("dot_general")
def _(x, y, equation):
    if isinstance(y, Int8) and not isinstance(x, Int8) and multiplies_from_the_left(equation, x, y):
        # The scales of columns are factors of the result.
        return equation.bind(x, y.codes.astype(x.dtype))[0] * y.scale
    return equation.bind(floats(x), floats(y))[0]


@int8.otherwise
def _(*inputs, equation):
    outputs = equation.bind(*map(floats, inputs))
    return outputs if len(outputs) > 1 else outputs[0]


# --- Units of measure ---


class Quantity(NamedTuple):
    value: plait.Array
    unit: tuple = ()  # pairs of a base unit and its exponent, in order

    def __str__(self):
        return f"{float(self.value):g} {powers_text(self.unit)}"


def powers_text(unit):
    return " ".join(name if power == 1 else f"{name}^{power}" for name, power in unit) or "1"


def powers(*factors):
    """The unit of a product of pairs (unit, exponent)."""
    total = {}
    for unit, exponent in factors:
        for name, power in unit:
            total[name] = total.get(name, 0) + power * Fraction(exponent)
    return tuple(sorted((name, power) for name, power in total.items() if power != 0))


units = plait.Transform("units", lift=Quantity, aval=lambda x: x.value)
SAME = "add sub max min concatenate pad rem".split()  # of one unit, which the result has
KEPT = """neg abs reshape transpose broadcast_in_dim slice split rev gather dynamic_slice reduce cumreduce sort cast
    narrow stop_gradient""".split()


def computed(inputs, equation, unit):
    results = [Quantity(y, unit) for y in equation.bind(*(x.value for x in inputs))]
    return results if len(results) > 1 else results[0]


def one_unit(equation, inputs):
    for x in inputs[1:]:
        if x.unit != inputs[0].unit:
            names = " and ".join(powers_text(x.unit) for x in (inputs[0], x))
            raise TypeError(f"{equation.primitive} of {names}")
    return inputs[0].unit


@units.rule(*SAME)
def _(*inputs, equation):
    return computed(inputs, equation, one_unit(equation, inputs))


@units.rule("cmp")
def _(x, y, equation):
    one_unit(equation, [x, y])
    return computed([x, y], equation, ())


@units.rule("select")
def _(condition, x, y, equation):
    return computed([condition, x, y], equation, one_unit(equation, [x, y]))


@units.rule("mul", "dot_general", "conv")
def _(x, y, equation):
    return computed([x, y], equation, powers((x.unit, 1), (y.unit, 1)))


@units.rule("div")
def _(x, y, equation):
    return computed([x, y], equation, powers((x.unit, 1), (y.unit, -1)))


@units.rule("integer_pow")
def _(x, equation):
    return computed([x], equation, powers((x.unit, equation.params["y"])))


@units.rule("sqrt")
def _(x, equation):
    return computed([x], equation, powers((x.unit, Fraction(1, 2))))


@units.rule(*KEPT)
def _(*inputs, equation):
    if equation.params.get("kind") in ("prod", "mul"):
        return plain(*inputs, equation=equation)
    return computed(inputs, equation, inputs[0].unit)  # of indices, the array comes first


@units.otherwise
def plain(*inputs, equation):
    """Functions of numbers: exp, sin and all others."""
    for x in inputs:
        if x.unit:
            raise TypeError(f"{equation.primitive} of {powers_text(x.unit)}, which is no number")
    return computed(inputs, equation, ())


if __name__ == "__main__":
    model = nn.MLP(16, 4, width=64, depth=2, key=random.key(0))
    x = random.normal(random.key(1), (8, 16))
    apply = lambda model, x: model(x)  # noqa: E731

    fine = adapted(model, 2, random.key(2))
    run = over_trees(lora, Lora, apply)
    print(
        "adapters change nothing at first:", bool(jnp.allclose(run(fine, x), model(x), atol=1e-5))
    )
    # Only a and b are trained: the others are held by nn.partition.
    is_adapter = plait.tree.map(
        lambda leaf: Lora(False, True, True) if isinstance(leaf, Lora) else False,
        fine, is_leaf=lambda leaf: isinstance(leaf, Lora),
    )  # fmt: skip
    adapters, rest = nn.partition(fine, is_adapter)
    loss = lambda adapters: jnp.mean((run(nn.combine(adapters, rest), x) - 1) ** 2)  # noqa: E731
    step = plait.jit(plait.value_and_grad(loss))
    state = plait.optim.adam_init(adapters)
    for _ in range(100):
        value, gradient = step(adapters)
        updates, state = plait.optim.adam(gradient, state, learning_rate=1e-2)
        adapters = plait.optim.apply_updates(adapters, updates)
    trained = sum(leaf.size for leaf in plait.tree.leaves(adapters))
    print(f"{trained} of {sum(leaf.size for leaf in plait.tree.leaves(model))} numbers trained: "
          f"loss below 0.1: {float(value) < 0.1}")  # fmt: skip

    small = plait.tree.map(lambda leaf: quantized(leaf) if leaf.ndim == 2 else leaf, model)
    error = jnp.max(abs(plait.jit(over_trees(int8, Int8, apply))(small, x) - model(x)))
    print(f"weights in int8: error below 0.05: {float(error) < 0.05}")

    def kinetic(mass, distance, time):
        return 0.5 * mass * jnp.square(distance / time)

    kg, m, s = (
        lambda value, u=u: Quantity(jnp.asarray(value), ((u, Fraction(1)),))
        for u in ("kg", "m", "s")
    )
    print("energy:", units(kinetic)(kg(2.0), m(6.0), s(3.0)))
    try:
        units(lambda x, y: x + y)(m(1.0), s(1.0))
    except TypeError as error:
        print("refused:", str(error).splitlines()[0])
