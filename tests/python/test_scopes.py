"""Named scopes: which equations are in them, under transforms and on every path out of them.

SPDX-License-Identifier: Apache-2.0
"""

import pytest

import plait
import plait.numpy as jnp


def test_results_do_not_depend_on_scopes():
    def plain(x):
        return jnp.sin(x) * x

    @plait.named_scope("outer")
    def scoped(x):
        with plait.named_scope("inner"):
            y = jnp.sin(x)
        return y * x

    assert str(plait.make_jaxpr(plait.grad(plain))(1.0)) == str(
        plait.make_jaxpr(plait.grad(scoped))(1.0)
    )
    assert float(plait.grad(scoped)(1.0)) == float(plait.grad(plain)(1.0))


def test_an_error_leaves_the_scope():
    with pytest.raises(ZeroDivisionError):
        with plait.named_scope("a"):
            raise ZeroDivisionError
    with plait.named_scope("b"), plait.named_scope("b"):
        assert float(jnp.sin(0.0)) == 0


@pytest.mark.parametrize("name", ["", None, 3])
def test_names_are_texts(name):
    with pytest.raises(plait.ValueError, match="named_scope: the name is"):
        plait.named_scope(name)


def scopes(jaxpr, outer=""):
    """(primitive, scopes) of every equation, those of called functions within those of the call."""
    for equation in jaxpr.eqns:
        scope = "/".join(filter(None, (outer, equation.source.scope)))
        body = equation.params.get("body")
        if isinstance(body, plait.Jaxpr):
            yield from scopes(body, scope)
        else:
            yield equation.primitive, scope


def model(x):
    with plait.named_scope("first"):
        x = plait.nn.sigmoid(x)
    with plait.named_scope("second"):
        x = plait.nn.sigmoid(x)
    with plait.named_scope("loop"):

        def step(carry, _):
            with plait.named_scope("step"):
                return jnp.sin(carry), None

        return plait.lax.scan(step, x, None, length=3)[0]


TRANSFORMS = [
    lambda f: f,
    plait.jit,
    plait.vmap,
    plait.checkpoint,
    lambda f: plait.vmap(plait.jit(f)),
    lambda f: plait.vmap(plait.grad(f)),
    lambda f: plait.vmap(plait.grad(plait.jit(f))),
]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_bodies_are_in_the_scopes_of_their_call_alone(transform):
    found = list(scopes(plait.make_jaxpr(transform(model))(jnp.ones(3))))
    names = {scope for _, scope in found}
    assert names <= {"first", "second", "loop", "loop/step"}, names
    assert {scope for name, scope in found if name == "exp"} == {"first", "second"}
    assert {scope for name, scope in found if name == "sin"} == {"loop/step"}


def test_scopes_of_what_is_put_in_place_of_a_call():
    twice = plait.Transform("twice", lift=lambda c: c)
    twice.rule("exp")(lambda x: 2 * jnp.exp(x))
    for name in ("neg", "cmp", "select", "add", "div"):
        twice.rule(name)(lambda *inputs, equation: equation.bind(*inputs)[0])

    def f(x):
        with plait.named_scope("outer"):
            return plait.nn.sigmoid(x)

    found = list(scopes(plait.make_jaxpr(twice(f))(1.0)))
    assert ("mul", "outer") in found and {scope for _, scope in found} == {"outer"}


def test_a_program_traced_within_a_scope_has_its_own():
    def f(x):
        with plait.named_scope("inner"):
            return jnp.sin(x)

    with plait.named_scope("around"):
        jaxpr = plait.make_jaxpr(f)(1.0)
        after = plait.make_jaxpr(lambda x: plait.jit(f)(x) + 1)(1.0)
    assert list(scopes(jaxpr)) == [("sin", "inner")]
    assert list(scopes(after)) == [("sin", "inner"), ("add", "")]
