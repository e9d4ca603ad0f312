"""New primitives and transforms from Python, composing with everything.

SPDX-License-Identifier: Apache-2.0
"""

import pathlib
import runpy

import numpy as np
import pytest

import plait
import plait.numpy as pnp

cube = plait.Primitive("test_cube", "The third power.")


@cube.abstract
def _(x):
    return x


@cube.eval
def _(x):
    return x**3


@cube.jvp
def _(primals, tangents, outputs):
    return 3 * primals[0] * primals[0] * tangents[0]


@cube.batch
def _(size, arrays, axes):
    return cube(arrays[0]), axes[0]


@cube.mask
def _(padded, avals, outputs, size_value):
    return cube(padded[0])


half_sine = plait.Primitive("test_half_sine")


@half_sine.decompose
def _(x, times=1):
    return pnp.sin(x) * 0.5 * times


EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
interval = runpy.run_path(EXAMPLES / "new_transform.py")["interval"]


def test_a_primitive_composes_with_every_transform():
    x = np.float64([1, 2])
    assert cube(x).tolist() == [1, 8]
    f = lambda x: cube(x).sum()  # noqa: E731
    assert plait.grad(f)(x).tolist() == [3, 12]
    assert plait.jit(plait.grad(f))(x).tolist() == [3, 12]
    assert plait.vmap(plait.grad(lambda x: cube(x)))(x).tolist() == [3, 12]
    assert float(plait.grad(plait.grad(lambda x: cube(x)))(2.0)) == 12
    assert "test_cube" in str(plait.make_jaxpr(cube)(x))
    masked = plait.mask(lambda x: cube(x).sum(), "n")
    assert float(masked(np.float32([1, 2, np.nan]), n=2)) == 9


def test_a_primitive_by_decomposition():
    x = np.float64([0.1, 0.2])
    np.testing.assert_allclose(np.asarray(half_sine(x, times=2)), np.sin(x))
    np.testing.assert_allclose(
        np.asarray(plait.grad(lambda x: half_sine(x).sum())(x)), np.cos(x) / 2
    )
    np.testing.assert_allclose(np.asarray(plait.jit(plait.vmap(half_sine))(x)), np.sin(x) / 2)


def test_a_transform():
    low, high = interval(lambda x: x * x + 1)((-1.0, 2.0))
    assert (float(low), float(high)) == (-1, 5)
    low, high = interval(plait.jit(lambda x: -x))((1.0, 2.0))
    assert (float(low), float(high)) == (-2, -1)


def test_a_transform_composes():
    width = lambda a: (lambda r: r[1] - r[0])(interval(lambda x: x * 3)((a, a * 2)))  # noqa: E731
    assert float(plait.grad(width)(1.0)) == 3
    assert float(plait.jit(width)(2.0)) == 6
    assert plait.vmap(width)(np.float64([1, 2])).tolist() == [3, 6]


def test_coverage():
    rows = {row[0]: row for row in plait.rules(interval)}
    assert rows["add"][1] == "rule" and rows["add"][2].endswith("new_transform.py")
    assert rows["call"][1] == "decompose" and rows["sin"][1] == "missing"
    assert "jvp" in plait.rules()["test_cube"]
    assert {row[0]: row[1] for row in plait.rules("jvp")}["test_cube"] == "rule"


def test_missing_rules():
    with pytest.raises(plait.MissingRuleError, match="no interval rule"):
        interval(lambda x: pnp.sin(x))((0.0, 1.0))
    with pytest.raises(plait.ValueError, match="is no primitive"):
        interval.rule("nonsense")


def test_errors_of_rules_propagate():
    bad = plait.Primitive("test_bad")

    @bad.abstract
    def _(x):
        return x

    @bad.eval
    def _(x):
        raise RuntimeError("mine")

    bad.mask(lambda padded, avals, outputs, size_value: bad(padded[0]))

    with pytest.raises(RuntimeError, match="mine"):
        bad(np.float32([1]))
    with pytest.raises(RuntimeError, match="mine"):
        plait.jit(bad)(np.float32([1]))


def test_a_wrong_result_is_reported():
    wrong = plait.Primitive("test_wrong")
    wrong.abstract(lambda x: x)
    wrong.mask(lambda padded, avals, outputs, size_value: wrong(padded[0]))
    wrong.eval(lambda x: x[:1])
    with pytest.raises(plait.ShapeError, match="abstract rule says"):
        wrong(np.float32([1, 2]))


def test_an_unknown_kind_of_rule_is_refused_with_those_that_there_are():
    plait.Primitive("test_kinds")
    kinds = "abstract, eval, jvp, transpose, batch, mask, decompose"
    with pytest.raises(plait.ValueError, match="no rule kind 'shape'") as refused:
        plait._plait.define_rule("test_kinds", "shape", abs, __file__, 1)
    assert refused.value.fix == f"choose one of {kinds}"


def test_a_rule_may_ask_for_the_equation():
    double = plait.Transform("double", lift=lambda c: c)

    @double.rule("reduce", "sin")
    def _(x, equation):
        return 2 * equation.bind(x)[0]

    x = np.float64([1, 2])
    assert float(double(lambda x: pnp.sum(x))(x)) == 6
    assert float(double(lambda x: pnp.max(pnp.sin(x)))(x)) == 4 * np.sin(2)


def test_equations_apply_their_primitive_to_other_arrays():
    equation = plait.make_jaxpr(lambda x: pnp.sum(x, axis=0))(np.zeros((3, 2))).eqns[0]
    assert equation.bind(pnp.ones((5, 4)))[0].tolist() == [5, 5, 5, 5]
    assert plait.vmap(equation.bind)(np.ones((2, 3, 2)))[0].tolist() == [[3, 3], [3, 3]]
    with pytest.raises(plait.TreeError, match="`reduce` takes 1 arrays, and got 2"):
        equation.bind(1.0, 2.0)


def test_the_rule_of_all_others():
    shapes = plait.Transform("shapes", lift=lambda c: c)
    shapes.rule("neg")(lambda x: x + 1)
    with pytest.raises(plait.MissingRuleError, match="`sin` has no shapes rule"):
        shapes(pnp.sin)(0.0)

    @shapes.otherwise
    def _(*inputs, equation):
        return NotImplemented if equation.primitive == "cos" else equation.bind(*inputs)[0]

    assert float(shapes(lambda x: pnp.sin(-x))(0.0)) == np.float32(np.sin(1))
    assert float(shapes(plait.jit(lambda x: -x))(1.0)) == 2  # decomposed all the same
    with pytest.raises(plait.MissingRuleError, match="`cos` has no shapes rule for these inputs"):
        shapes(pnp.cos)(0.0)
    rows = {row[0]: row[1] for row in plait.rules(shapes)}
    assert (rows["neg"], rows["call"], rows["sin"]) == ("rule", "decompose", "otherwise")


def test_rules_of_several_outputs():
    parts = plait.Transform("parts", lift=lambda c: c)
    split = lambda x: plait.lax.split(x, [1, 2], axis=0)  # noqa: E731
    parts.rule("split")(lambda x: [x[:1], x[1:]])
    assert [v.tolist() for v in parts(split)(np.float64([1, 2, 3]))] == [[1], [2, 3]]
    parts.rule("split")(lambda x: x)
    with pytest.raises(plait.TreeError, match="the parts rule of `split` returned .*2 outputs"):
        parts(split)(np.float64([1, 2, 3]))


def test_interpret_counts_its_values():
    jaxpr = plait.make_jaxpr(lambda x, y: x + y)(1.0, 2.0).jaxpr
    low, high = interval.interpret(jaxpr, [(1.0, 2.0), (3.0, 4.0)])[0]
    assert (float(low), float(high)) == (4, 6)
    captured = pnp.asarray(1.0)
    closed = plait.make_jaxpr(lambda x: x + captured)(1.0)
    assert [float(v) for v in interval.interpret(closed, [(1.0, 2.0)])[0]] == [2, 3]
    with pytest.raises(plait.TreeError, match="2 inputs, and there are 1 values"):
        interval.interpret(jaxpr, [(1.0, 2.0)])
    with pytest.raises(plait.DtypeError, match="interval.interpret: None of type NoneType"):
        interval.interpret(None, [])


def test_transforms_are_made_of_a_name_and_a_function():
    for wrong in (lambda: plait.Transform(3, abs), lambda: plait.Transform("", abs)):
        with pytest.raises(plait.ValueError, match="Transform: the name is"):
            wrong()
    with pytest.raises(plait.DtypeError, match="None of type NoneType is no function"):
        plait.Transform("t", lift=None)
    with pytest.raises(plait.ValueError, match="interval.rule: no primitive is named"):
        interval.rule()


def test_lines_of_rewritten_equations_are_the_users():
    scaled = plait.Transform("scaled", lift=lambda c: c)
    scaled.rule("sin")(lambda x: 2 * x)

    def f(x):
        with plait.named_scope("waves"):
            return pnp.sin(x)  # here

    source = plait.make_jaxpr(scaled(f))(1.0).eqns[0].source
    assert (source.scope, source.transforms, source.function) == ("waves", "scaled", "f")
    assert source.file == __file__ and source.text == "return pnp.sin(x)  # here"
    assert str(source).startswith(f"test_extend.py:{source.line} in f:")
    scaled.rule("sin")(lambda x: pnp.ones(2) + pnp.ones(3))
    with pytest.raises(plait.ShapeError, match=f"test_extend.py:{source.line} in f"):
        scaled(f)(1.0)


def test_errors_have_parts():
    with pytest.raises(plait.ShapeError) as caught:
        pnp.ones(2) + pnp.ones(3)
    error = caught.value
    assert "shapes (2) and (3)" in error.problem and error.fix.startswith("make the sizes equal")
    assert error.problem in str(error) and error.source.function == "test_errors_have_parts"


def test_the_text_of_an_equation_is_its_line_of_the_program():
    jaxpr = plait.make_jaxpr(lambda x: plait.nn.softmax(pnp.sin(x) * 2))(np.ones(3, np.float32))
    first, *_, last = jaxpr.eqns
    assert str(first) == "b:f32[3] = sin a" == repr(first)
    lines = [line.strip() for line in str(jaxpr).splitlines()]
    for equation in jaxpr.eqns:
        assert str(equation).splitlines()[0] in lines
    assert "body={ lambda ; a:f32[3]" in str(last)


def test_parameters_are_any_objects_that_hash():
    scaled = plait.Primitive("scaled_by_options")

    @scaled.decompose
    def _(x, options, key):
        assert isinstance(options, frozenset) and isinstance(key, tuple)
        return x * len(options)

    @plait.jit
    def f(x, y):
        key = ("a", 1.5)
        return scaled(x, options=frozenset("abc"), key=key) + scaled(
            y, options=frozenset("cab"), key=("a", 1.5)
        )

    assert float(f(1.0, 2.0)) == 9 and float(plait.grad(f)(1.0, 2.0)) == 3
    same = plait.make_jaxpr(
        lambda x: scaled(x, options=frozenset("ab"), key=("a",))
        + scaled(x, options=frozenset("ba"), key=("a",))
    )
    assert same(1.0).jaxpr == same(1.0).jaxpr  # equal objects are one parameter
    with pytest.raises(plait.DtypeError, match="objects that can be hashed"):
        scaled(1.0, options={"a": []}, key=())


def test_rules_that_read_zeros():
    seen = []
    product = plait.Primitive("product_that_reads_zeros")
    product.decompose(lambda x, y: x * y)

    @product.jvp(symbolic_zeros=True)
    def _(primals, tangents, outputs):
        seen.append([t is not None for t in tangents])
        parts = [t * p for t, p in zip(tangents, primals[::-1]) if t is not None]
        return [sum(parts)]

    for transform in (lambda f: f, plait.jit):
        f = transform(product)
        assert float(plait.grad(f)(2.0, 3.0)) == 3 and float(plait.grad(f, 1)(2.0, 3.0)) == 2
        assert seen == [[True, False], [False, True]]
        seen.clear()
