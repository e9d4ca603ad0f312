"""Looking inside: summaries against counts made another way, code that makes the same program, differences.

SPDX-License-Identifier: Apache-2.0
"""

import json
import math
import random
import re

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import lax

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.linspace(0, 1, 15, dtype=np.float32).reshape(3, 5)


def mlp(x, w):
    with plait.named_scope("layer"):
        with plait.named_scope("product"):
            h = x @ w
        h = pnp.tanh(h)
    return pnp.sum(h * h) + 3.0


APPLIES_BODY = ("call", "checkpoint", "composite", "custom_derivative", "scan")


# --- Summary -----------------------------------------------------------------------------------------------------


def bytes_of(aval):
    return math.prod(aval.shape) * np.dtype(aval.dtype).itemsize


def bodies_of(equation):
    for value in equation.params.values():
        if isinstance(value, plait.Jaxpr):
            yield value
        elif isinstance(value, tuple):
            yield from (body for body in value if isinstance(body, plait.Jaxpr))


def count_equations(jaxpr):
    return sum(1 + sum(map(count_equations, bodies_of(equation))) for equation in jaxpr.eqns)


def flops_of(jaxpr):
    """Of products, elementwise equations, reductions, calls and scans: counted from the text's own names."""
    total = 0
    for equation in jaxpr.eqns:
        out = equation.out_avals[0]
        if equation.primitive == "dot_general":
            contracted = [equation.in_avals[0].shape[i] for i in equation.params["lhs_contract"]]
            total += 2 * math.prod(out.shape) * math.prod(contracted)
        elif equation.primitive == "reduce":
            total += math.prod(equation.in_avals[0].shape)
        elif equation.primitive in APPLIES_BODY:
            total += flops_of(equation.params["body"]) * equation.params.get("length", 1)
        elif equation.primitive not in (
            "broadcast_in_dim",
            "cast",
            "reshape",
            "transpose",
            "slice",
        ):
            total += math.prod(out.shape)
    return total


def traffic_of(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive in APPLIES_BODY:
            total += traffic_of(equation.params["body"]) * equation.params.get("length", 1)
            continue
        names = {a: t for a, t in zip(equation.inputs, equation.in_avals) if isinstance(a, str)}
        if equation.primitive == "slice":  # reads what it gives
            names = {equation.inputs[0]: equation.out_avals[0]}
        total += sum(map(bytes_of, [*names.values(), *equation.out_avals]))
    return total


def live_bytes_of(jaxpr):
    """The most that values made by the program take: at each equation, those made and used there or later."""
    most = 0
    for index in range(len(jaxpr.eqns)):
        later = {a for e in jaxpr.eqns[index:] for a in e.inputs if isinstance(a, str)}
        later |= {a for a in jaxpr.outputs if isinstance(a, str)}
        live = 0
        for number, equation in enumerate(jaxpr.eqns[: index + 1]):
            for name, aval in zip(equation.outputs, equation.out_avals):
                live += bytes_of(aval) if name in later or number == index else 0
        most = max(most, live)
    return most


def scanned(x, w):
    def step(carry, row):
        with plait.named_scope("step"):
            carry = pnp.tanh(carry @ w.T @ w + row)
        return carry, pnp.sum(carry)

    with plait.named_scope("loop"):
        carry, sums = lax.scan(step, x[0], x)
    return pnp.sum(carry) + pnp.sum(sums)


PROGRAMS = {
    "mlp": (mlp, (X, W)),
    "gradient": (plait.grad(mlp, argnums=(0, 1)), (X, W)),
    "loop": (scanned, (X, W.T)),
    "call": (lambda x, w: mlp(plait.jit(pnp.sin)(x), w), (X, W)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_totals_of_a_summary_are_counts_over_the_jaxpr(name):
    fun, args = PROGRAMS[name]
    if name == "loop":
        args = (X, W.T[:, :3])
    jaxpr = plait.make_jaxpr(fun)(*args).jaxpr
    total = plait.summary(fun, *args).total
    assert total.equations == count_equations(jaxpr)
    assert total.flops == flops_of(jaxpr)
    assert total.bytes_read + total.bytes_written == traffic_of(jaxpr)
    assert total.known
    assert [(a.shape, a.dtype) for a in total.outputs] == [
        (a.shape, a.dtype) for a in jaxpr.out_avals
    ]
    if name in ("mlp", "gradient"):
        assert total.live_bytes == live_bytes_of(jaxpr)
        assert total.parameters == X.size + W.size


def test_scopes_nest_and_say_what_leaves_them():
    rows = {row.path: row for row in plait.summary(mlp, X, W).rows}
    assert list(rows) == ["", "layer", "layer/product"]
    assert [row.depth for row in rows.values()] == [0, 1, 2]
    assert rows["layer/product"].flops == 2 * 4 * 3 * 5
    assert rows["layer"].flops == 2 * 4 * 3 * 5 + 4 * 5
    assert [o.shape for o in rows["layer"].outputs] == [(4, 5)]
    assert rows["layer/product"].parameters == X.size + W.size
    assert rows["layer"].name == "layer"


def test_bodies_are_in_the_scope_of_their_equation():
    rows = {row.path: row for row in plait.summary(scanned, X, W[:, :3].T).rows}
    assert "loop/step" in rows
    assert rows["loop/step"].flops % len(X) == 0
    assert rows["loop/step"].parameters >= 9  # the weights, through the constants of the loop
    assert rows["loop"].flops >= rows["loop/step"].flops


def test_what_data_decide_is_marked():
    text = str(plait.summary(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * 2, x), 1.5))
    assert "~" in text
    assert not plait.summary(lambda x: lax.cond(x > 0, pnp.sin, lambda y: y, x), 1.0).total.known


def test_a_summary_is_json_too():
    summary = plait.summary(mlp, X, W)
    rows = json.loads(summary.to_json())
    assert [row["scope"] for row in rows] == [row.path for row in summary.rows]
    assert rows[0]["flops"] == summary.total.flops
    assert rows[0]["outputs"] == ["f32[]"]


def test_a_summary_needs_numbers_for_sizes():
    with pytest.raises(plait.ValueError, match="sizes that are no numbers: n"):
        plait.summary(pnp.sin, "n")


def test_a_summary_is_of_jaxprs_and_jitted_functions_too():
    jitted = plait.jit(mlp)
    jitted(X, W)
    rows = [plait.summary(jitted), plait.summary(jitted.jaxpr), plait.summary(jitted, X, W)]
    assert len({row.total.flops for row in rows}) == 1


# --- Differences -------------------------------------------------------------------------------------------------


def kinds(difference):
    return [kind for kind, _, _ in difference.changes]


def test_equal_programs_do_not_differ():
    difference = plait.diff(mlp, mlp, X, W)
    assert not difference
    assert str(difference) == ""
    assert set(kinds(difference)) == {"same"}


def test_a_difference_names_equations_parameters_and_lines():
    def first(x):
        return pnp.sum(pnp.sin(x) * 2, axis=0) + 1

    def second(x):
        return pnp.sum(pnp.tanh(pnp.sin(x)) * 2, axis=1)[:3] + 1

    difference = plait.diff(first, second, X)
    assert difference
    text = str(difference)
    assert "+ " in text and "tanh" in text
    assert "axes: (0) -> (1)" in text
    assert "in second:  return pnp.sum" in text
    added = [(kind, b) for kind, _, b in difference.changes if kind == "added"]
    program = plait.make_jaxpr(second)(X).jaxpr
    assert {program.eqns[b].primitive for _, b in added} == {"tanh", "slice"}
    assert kinds(difference).count("removed") == 0
    assert kinds(difference).count("same") >= 1  # the last addition, of what corresponds


def test_a_change_does_not_make_what_follows_differ():
    def chain(number):
        def fun(x):
            x = x * number
            for _ in range(20):
                x = pnp.sin(x) + pnp.cos(x)
            return x

        return fun

    difference = plait.diff(chain(2.0), chain(3.0), X)
    assert kinds(difference) == ["changed"] + ["same"] * 60
    assert "2.0:f32 -> " in str(difference)
    assert "(60 equations the same)" in str(difference)


def test_differences_of_bodies_are_shown():
    def loop(step):
        return lambda x: lax.scan(lambda c, r: (step(c + r), c), x[0], x)[0]

    text = str(plait.diff(loop(pnp.sin), loop(pnp.cos), X))
    assert "~ " in text and "body:" in text
    assert re.search(r"- .* = sin ", text) and re.search(r"\+ .* = cos ", text)


def test_other_inputs_and_outputs_are_named():
    text = str(plait.diff(plait.make_jaxpr(pnp.sin)(X), plait.make_jaxpr(pnp.sin)(X[0])))
    assert "~ inputs: f32[4,3] -> f32[3]" in text
    swapped = plait.diff(lambda x, y: (x, y), lambda x, y: (y, x), X, X)
    assert "~ outputs: a b -> b a" in str(swapped)


def longest_common(a, b):
    """The length of a longest common subsequence, by the textbook's table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
            )
    return table[-1][-1]


def test_alignment_is_a_longest_common_subsequence():
    """Of equations that say the same of what the same primitive made; in each gap, of the same primitive."""
    generator = random.Random(1)
    names = ["sin", "cos", "tanh", "exp"]
    for _ in range(30):
        a, b = ([generator.choice(names) for _ in range(generator.randrange(1, 12))] for _ in "ab")

        def chain(functions):
            def fun(x):
                for name in functions:
                    x = getattr(lax, name)(x)
                return x

            return fun

        difference = plait.diff(chain(a), chain(b), X)
        paired = [(i, j) for _, i, j in difference.changes if None not in (i, j)]
        assert all(a[i] == b[j] for i, j in paired)
        assert paired == sorted(paired)
        with_origin = [list(zip(names, ["", *names])) for names in (a, b)]
        exact = [(i, j) for i, j in paired if with_origin[0][i] == with_origin[1][j]]
        assert len(exact) == longest_common(*with_origin)
        ends = [(-1, -1), *exact, (len(a), len(b))]
        gaps = sum(
            longest_common(a[i + 1 : next_i], b[j + 1 : next_j])
            for (i, j), (next_i, next_j) in zip(ends, ends[1:])
        )
        assert len(paired) == len(exact) + gaps
        assert sorted(i for _, i, _ in difference.changes if i is not None) == list(range(len(a)))
        assert sorted(j for _, _, j in difference.changes if j is not None) == list(range(len(b)))
        assert bool(difference) == (a != b)


# --- Programs written down ----------------------------------------------------------------------------------------


def test_bind_applies_primitives_by_name():
    np.testing.assert_array_equal(plait.bind("reduce", X, kind="max", axes=(0,)), X.max(0))
    np.testing.assert_array_equal(plait.bind(lax.bitwise_not, X > 0), X <= 0)
    with pytest.raises(plait.ValueError, match="there is no primitive `nothing`"):
        plait.bind("nothing", X)
    with pytest.raises(plait.ValueError, match="`add` was given 0 operands"):
        plait.bind("add")


def test_literals_are_those_of_jaxprs():
    jaxpr = plait.make_jaxpr(lambda x: lax.mul(x, plait.literal("2.0:f32")))(X).jaxpr
    assert "2.0:f32" in str(jaxpr)
    assert plait.literal("(0.0,1.0):c64") == 1j
    for text in ("2.0", "x", "2.5:i32", "1:i32, 2:i32", "1:i32) let"):
        with pytest.raises(plait.ValueError, match="is no literal"):
            plait.literal(text)


def test_staged_functions_are_jaxprs():
    @plait.staged("n ; a:f32[n,3] b:f32[]* where 2<=n")
    def fun(n, a, b):
        return lax.slice(a, (0, 0), (2, 3)), lax.broadcasted_iota(plait.int32, (n,), 0), b

    assert str(fun).startswith("{ lambda n ; a:f32[n,3] b:f32[]* where 2<=n . let")
    np.testing.assert_array_equal(fun(X, 1.0)[0], X[:2])
    with pytest.raises(plait.ValueError, match="that it was not given"):
        plait.staged("; a:f32[4,3]")(lambda a: a + pnp.asarray(X))
    with pytest.raises(plait.ValueError, match="parse: line 1"):
        plait.staged("; a:f33[]")(lambda a: a)
