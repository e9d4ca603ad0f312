"""Builders of programs, walks, queries and rebuilding.

SPDX-License-Identifier: Apache-2.0
"""

import random

import numpy as np
import pytest

import plait
import plait.numpy as jnp

F32 = plait.ShapeDtypeStruct((3,), np.float32)
X = np.array([0.5, 1.0, 2.0], np.float32)


def program(f, *args):
    return plait.make_jaxpr(f)(*(args or (X,))).jaxpr


def test_a_builder_makes_programs_that_run_and_equal_traced_ones():
    builder = plait.Builder()
    x = builder.input(F32)
    (y,) = builder.add("sin", x)
    (z,) = builder.add("mul", y, 2.0)
    built = builder.close(z)
    assert built == program(lambda x: jnp.sin(x) * 2.0)
    np.testing.assert_allclose(built(X)[0], np.sin(X) * 2, rtol=1e-6)
    assert (x, str(y), y.aval.shape) == ("a", "b", (3,))


def test_a_builder_drops_what_is_dead_and_what_changes_nothing():
    builder = plait.Builder()
    x = builder.input(F32)
    builder.add("exp", x)
    assert builder.add("reshape", x, shape=(3,)) == [x]
    assert len(builder.close(x).eqns) == 0


@pytest.mark.parametrize(
    "add, words",
    [
        (lambda b, x: b.add("sine", x), "no primitive"),
        (lambda b, x: b.add("sin", "a"), "is no var"),
        (lambda b, x: b.add("sin", plait.Builder().input(F32)), "another program"),
        (lambda b, x: b.add("sin", program(jnp.sin).inputs[0]), "another program"),
        (lambda b, x: b.add("sin", X), "no literal"),
        (lambda b, x: b.add("reshape", x), "parameters"),
        (lambda b, x: b.add("reshape", x, shape=(4,)), "4"),
        (lambda b, x: b.add("add", x), "operands"),
        (lambda b, x: b.add("add", x, b.input(plait.ShapeDtypeStruct((4,), np.float32))), "add"),
        (lambda b, x: b.replace(x, b.add("reshape", x, shape=(3, 1))[0]), "cannot be replaced"),
        (lambda b, x: b.splice(program(jnp.add, X, X), x), "inputs"),
        (lambda b, x: b.splice(lambda v: v + X, x), "no argument"),
        (lambda b, x: b.close("q"), "no var"),
    ],
)
def test_a_builder_refuses_what_would_be_ill_formed(add, words):
    builder = plait.Builder()
    x = builder.input(F32)
    with pytest.raises(plait.UserError, match=words):
        add(builder, x)
    assert builder.close(x).out_avals[0].shape == (3,)


def test_replace_leaves_what_the_new_value_is_made_of():
    jaxpr = program(lambda x: jnp.sin(x) + jnp.exp(jnp.sin(x)))
    builder = plait.Builder(jaxpr)
    sines = [e for e in builder.eqns if e.primitive == "sin"]
    for sine in sines:
        (old,) = sine.outputs
        (new,) = builder.add("mul", old, 3.0)  # computed from what it replaces
        builder.replace(old, new)
    np.testing.assert_allclose(
        builder.close()(X)[0], 3 * np.sin(X) + np.exp(3 * np.sin(X)), rtol=1e-5
    )


def test_splice_takes_programs_and_functions():
    builder = plait.Builder()
    x = builder.input(F32)
    (y,) = builder.splice(program(lambda x: jnp.tanh(x) + 1), x)
    tree = builder.splice(lambda a, b: {"sum": a + b, "both": (a * b,)}, x, y)
    out = builder.close(tree["sum"], *tree["both"])(X)
    t = np.tanh(X) + 1
    np.testing.assert_allclose(out[0], X + t, rtol=1e-6)
    np.testing.assert_allclose(out[1], X * t, rtol=1e-6)


def random_program(seed):
    """A straight-line program of random adds and sines over earlier values, and its edges."""
    rng = random.Random(seed)
    builder = plait.Builder()
    values = [builder.input(F32), builder.input(F32)]
    for _ in range(20):
        if rng.random() < 0.5:
            values += builder.add("add", rng.choice(values), rng.choice(values))
        else:
            values += builder.add("sin", rng.choice(values))
    return builder.close(*rng.sample(values, 3))


@pytest.mark.parametrize("seed", range(5))
def test_queries_agree_with_a_search_over_the_equations(seed):
    jaxpr = random_program(seed)
    uses, builder = plait.Uses(jaxpr), plait.Builder(jaxpr)
    variables = jaxpr.inputs + [var for e in jaxpr.eqns for var in e.outputs]
    ancestors = {var: {var} for var in jaxpr.inputs}
    for equation in jaxpr.eqns:
        above = set().union(*(ancestors[v] for v in equation.inputs))
        ancestors[equation.outputs[0]] = above | {equation.outputs[0]}
    for var in variables:
        users = [list(e.outputs) for e in jaxpr.eqns if var in e.inputs]
        assert [list(e.outputs) for e in uses.users_of(var)] == users
        assert [list(e.outputs) for e in builder.users_of(var)] == users
        assert uses.is_output(var) == (var in jaxpr.outputs)
        for other in variables:
            assert uses.depends_on(var, other) == (other in ancestors[var])
            assert builder.depends_on(var, other) == (other in ancestors[var])
        definition = uses.definition_of(var)
        assert definition is None if var in jaxpr.inputs else var in definition.outputs
    with pytest.raises(plait.ValueError, match="another program"):
        uses.users_of(random_program(seed + 100).inputs[0])


def test_walk_enters_bodies():
    def f(x):
        return plait.lax.fori_loop(0, 3, lambda i, c: plait.jit(jnp.sin)(c), x)

    jaxpr = program(f)
    assert "sin" in [e.primitive for e in plait.walk(jaxpr)]
    assert "sin" not in [e.primitive for e in plait.walk(jaxpr, nested=False)]


def test_rebuild_replaces_equations_in_bodies_and_keeps_named_sizes():
    def rule(builder, equation, *inputs):
        if equation.primitive == "sin":
            return builder.add("cos", *inputs)
        return None

    def f(x):
        return plait.lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), x)

    np.testing.assert_allclose(
        plait.rebuild(program(f), rule)(X)[0], np.cos(np.cos(np.cos(X))), rtol=1e-6
    )
    sized = plait.make_jaxpr(lambda x, y: jnp.sin(x) @ y)("n d", "d k").jaxpr
    rebuilt = plait.rebuild(sized, rule)
    assert rebuilt.sizes == sized.sizes
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_allclose(rebuilt(x, y)[0], np.cos(x) @ y, rtol=1e-6)
    with pytest.raises(plait.TreeError, match="2 values"):
        plait.rebuild(sized, lambda b, e, *i: [i[0], i[0]])


def test_effects_keep_their_order():
    def f(x):
        plait.debug.print("first {}", x)
        plait.debug.print("second {}", x)
        return x

    jaxpr = program(f, np.float32(1))
    again = plait.Builder(jaxpr).close()
    assert again == jaxpr


@pytest.mark.parametrize(
    "primitive, count, params",
    [
        ("sin", 2, {}),
        ("add", 3, {}),
        ("reduce", 2, {"kind": "sum", "axes": (0,)}),
        ("reshape", 2, {"shape": (1, 3)}),
        ("neg", 0, {}),
        ("cumreduce", 2, {"axis": 0, "kind": "sum", "reverse": False}),
        ("top_k", 2, {"axis": 0, "k": 2}),
        ("split", 3, {"axis": 0, "pieces": (1, 2)}),
    ],
)
def test_an_equation_has_as_many_operands_as_its_primitive_takes(primitive, count, params):
    builder = plait.Builder()
    x = builder.input(plait.ShapeDtypeStruct((3,), np.float32))
    with pytest.raises(plait.ValueError, match=f"`{primitive}` has {count} operands and takes"):
        builder.add(primitive, *[x] * count, **params)
    assert builder.close(
        *builder.add("sort", x, x, axis=0, num_keys=1, descending=False, stable=True)
    )


WRONG = {
    "rewrite: None of type NoneType is no function": lambda: plait.rewrite(None),
    "rewrite: 3 of type int is no rule": lambda: plait.rewrite([3]),
    "given beside rules": lambda: plait.rewrite([RULE], lambda x: x),
    "the name is 3 of type int": lambda: plait.rewrite(jnp.exp, jnp.exp, name=3),
    "like is 3 of type int": lambda: plait.Rule(lambda x: jnp.exp(x), lambda x: x, like=3),
    "nested is 'a' of type str": lambda: plait.rewrite(RULE, nested="a"),
    r"verify is \(1,\) of type tuple": lambda: plait.rewrite(RULE, verify=(1,)),
    "bounds no numbers": lambda: plait.rewrite(RULE, verify=(2.0, float("nan"))),
    "pipeline: the name is 3": lambda: plait.pipeline(name=3),
    "Builder: the program is 3": lambda: plait.Builder(3),
    "add: the primitive is None": lambda: plait.Builder().add(None),
    "set_params: the equation is 3": lambda: plait.Builder().set_params(3, a=4),
    "Builder: outputs is 3": lambda: setattr(plait.Builder(), "outputs", 3),
    "Uses: None of type NoneType is no program": lambda: plait.Uses(None),
    "walk: the program is None": lambda: list(plait.walk(None)),
    "rebuild: the program is None": lambda: plait.rebuild(None, None),
    "does not take the parameters": lambda: plait.Builder().add("reduce", 1.0),
}
RULE = plait.Rule(lambda x: jnp.exp(x), lambda x: x)


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_refused_in_words(message):
    with pytest.raises(plait.Error, match=message):
        WRONG[message]()


def test_what_make_jaxpr_gives_is_a_program():
    closed = plait.make_jaxpr(lambda x: jnp.sin(x) * 2)(np.ones(3))
    assert [e.primitive for e in plait.walk(closed)] == ["sin", "mul"]
    assert len(plait.Uses(closed).users_of(closed.jaxpr.inputs[0])) == 1
    assert plait.rebuild(closed, lambda builder, equation, *inputs: None) == closed.jaxpr
    assert plait.Builder(closed).close() == closed.jaxpr
