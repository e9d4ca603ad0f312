"""Looking inside: summaries against counts made another way, code that makes the same program, differences.

SPDX-License-Identifier: Apache-2.0
"""

import json
import math
import os
import pathlib
import random
import re
import subprocess

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import _plait, lax

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.linspace(0, 1, 15, dtype=np.float32).reshape(3, 5)


def mlp(x, w):
    with plait.named_scope("layer"):
        with plait.named_scope("product"):
            h = x @ w
        h = pnp.tanh(h)
    return pnp.sum(h * h) + 3.0


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
        elif equation.primitive in ("call", "scan"):
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
        if equation.primitive in ("call", "scan"):
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


# --- Code --------------------------------------------------------------------------------------------------------


def same_program(jaxpr):
    """Whether running the code of a jaxpr makes it again."""
    made = plait.code(jaxpr).function()
    if isinstance(made, plait.Jaxpr):
        return made == jaxpr
    return plait.make_jaxpr(made)(*jaxpr.in_avals).jaxpr == jaxpr


def primitives():
    return [row[0] for row in _plait.coverage("samples")]


@pytest.mark.parametrize("primitive", primitives())
def test_code_of_every_primitive_makes_it_again(primitive):
    for jaxpr in _plait.sample_programs(primitive):
        assert same_program(jaxpr), plait.code(jaxpr)


@plait.custom_vjp
def clipped(x):
    return x * 2


clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (pnp.clip(g, -1, 1) * x,))


@plait.custom_jvp
def odd(x):
    return x**3


odd.defjvp(lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0]))


def branching(x):
    y = lax.cond(x[0] > 0, lambda v: pnp.sin(v), lambda v: v * 2, x)
    y = lax.while_loop(lambda v: pnp.sum(v) < 10, lambda v: v + pnp.abs(x) + 1, y)
    return lax.switch(2, [lambda v: v, lambda v: -v, lambda v: v * v], y)


COMPOSED = {
    "literals": (lambda x: x * 2 + 1.5 - pnp.float32(3) * x / 7, (X,)),
    "integers": (lambda x: (x * 3 + 1) // 2 % 5 & 7 | 1 << x, (np.arange(5, dtype=np.int32),)),
    "complex": (lambda x: pnp.abs(x * 1j + 2), (X + 0j,)),
    "halves": (lambda x: x.astype(plait.bfloat16) * 2 + 1, (X,)),
    "infinities": (lambda x: pnp.where(x > 0, pnp.inf, -pnp.inf) + pnp.nan, (X,)),
    "weak": (lambda x: x * 2 + 1, (1.5,)),
    "constant": (lambda: lax.broadcasted_iota(np.int32, (3,), 0), ()),
    "several": (lambda x: (x, 2.0, {"a": x + 1}), (X,)),
    "indexing": (lambda x: x[1:, ::-1].at[0].add(x[::2][0])[pnp.array([0, 2])], (X,)),
    "order": (lambda x: (pnp.sort(x), pnp.argmax(x, 1), lax.top_k(x, 2), pnp.cumsum(x, 0)), (X,)),
    "windows": (
        lambda x: lax.conv_general_dilated(x, x[:1], (1, 2), "SAME"),
        (np.ones((2, 3, 8, 8), np.float32),),
    ),
    "matrices": (lambda x: pnp.linalg.solve(x @ x.T + pnp.eye(4, dtype="float32"), x), (X,)),
    "random": (lambda key: plait.random.normal(key, (3,)), (plait.random.key(0),)),
    "branches": (branching, (X[0],)),
    "branches, gradient": (lambda x: plait.jvp(branching, (x,), (x,)), (X[0],)),
    "scan": (scanned, (X, W[:, :3].T)),
    "scan, gradient": (plait.grad(scanned), (X, W[:, :3].T)),
    "while, gradient": (
        plait.grad(lambda x: lax.while_loop(lambda v: v < 9, lambda v: v * pnp.sin(v) + 2, x)),
        (1.5,),
    ),
    "custom_vjp": (lambda x: clipped(x), (X,)),
    "custom_jvp": (lambda x: odd(x), (X,)),
    "custom, mapped": (plait.vmap(plait.grad(lambda x: pnp.sum(clipped(odd(x))))), (X,)),
    "checkpoint": (plait.grad(lambda x: pnp.sum(plait.checkpoint(pnp.tanh)(x))), (X,)),
    "composites": (lambda x: plait.nn.softmax(plait.nn.gelu(x)), (X,)),
    "nested calls": (plait.vmap(plait.jit(lambda x: plait.jit(pnp.sin)(x) + 1)), (X,)),
    "mask": (lambda x, n: plait.mask(lambda v: pnp.sum(pnp.exp(v)), "n")(x, n=n), (X[0], 2)),
    "ragged": (
        lambda x, n: plait.vmap(plait.grad(plait.mask(lambda v: pnp.sum(v * v), "n")))(x, n=n),
        (X, np.array([1, 2, 3, 0], np.int32)),
    ),
    "lanes": (plait.vmap(branching), (X,)),
    "check": (lambda x: plait.check(x > -9, "too small") or x, (X,)),
    "sizes": (lambda x, w: pnp.sum(x @ w) / x.shape[0], ("n d", "d 5")),
    "sizes that are computed": (lambda x: pnp.concatenate([x, x])[: 2 * x.shape[0] - 1], ("n",)),
    "sizes in bodies": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), ("n 3",)),
    "constraints": (lambda x: lax.dynamic_slice(x, (0,), (4,)), ("n",)),
    "solver": (
        lambda a, b: lax.custom_linear_solve(
            lambda v: a @ v, b, lambda mv, v: pnp.linalg.solve(a, v)
        ),
        (np.eye(3, dtype=np.float32), X[0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_code_makes_the_same_program(name):
    fun, args = COMPOSED[name]
    jaxpr = plait.make_jaxpr(fun)(*args).jaxpr
    assert same_program(jaxpr), plait.code(jaxpr)


UNARY = "sin cos tanh exp neg abs floor sqrt log1p erf".split()
BINARY = "add sub mul div max min atan2".split()
LAYERS = {
    "grad": lambda f: plait.grad(lambda x, y: pnp.sum(f(x, y))),
    "jit": plait.jit,
    "vmap": lambda f: plait.vmap(f),
    "jvp": lambda f: lambda x, y: plait.jvp(f, (x, y), (y, x))[1],
    "scan": lambda f: lambda x, y: lax.scan(lambda c, r: (f(c, r), r), y[0], x)[0] + x,
    "checkpoint": plait.checkpoint,
}


def random_function(generator):
    steps = [
        (generator.choice(UNARY + BINARY), generator.randrange(9), generator.random())
        for _ in range(6)
    ]

    def fun(x, y):
        values = [x, y]
        for name, place, number in steps:
            a = values[place % len(values)]
            if name in UNARY:
                values.append(getattr(lax, name)(a))
            else:
                b = values[-1] if place % 2 else number
                values.append(getattr(lax, name)(a, b))
        return values[-1] + values[-2]

    for layer in generator.sample(sorted(LAYERS), generator.randrange(4)):
        fun = LAYERS[layer](fun)
    return fun


@pytest.mark.parametrize("seed", range(40))
def test_code_of_random_compositions_makes_them_again(seed):
    fun = random_function(random.Random(seed))
    square = np.ones((3, 3), np.float32)
    jaxpr = plait.make_jaxpr(fun)(square, square).jaxpr
    assert same_program(jaxpr), plait.code(jaxpr)


def test_code_computes_what_the_function_does():
    made = plait.code(mlp, X, W).function()
    np.testing.assert_array_equal(made(X, W), mlp(plait.numpy.asarray(X), W))


def test_code_names_functions_of_the_host():
    def double(x):
        return np.asarray(x) * 2

    fun = lambda x: plait.host_call(double, plait.ShapeDtypeStruct((4, 3), "float32"), x) + 1  # noqa: E731
    jaxpr = plait.make_jaxpr(fun)(X).jaxpr
    code = plait.code(jaxpr)
    assert [name.partition("_")[0] for name in code.namespace] == ["double"]
    assert plait.make_jaxpr(code.function())(X).jaxpr == jaxpr


def test_traced_functions_have_code():
    jitted = plait.jit(mlp)
    with pytest.raises(plait.ValueError, match="was not called yet"):
        jitted.code  # noqa: B018
    jitted(X, W)
    assert jitted.code == plait.code(jitted.jaxpr).replace("def f(", "def mlp(")
    assert jitted.jaxpr_for(X, W) == jitted.jaxpr == plait.make_jaxpr(mlp)(X, W).jaxpr


def test_entries_of_programs_have_code(tmp_path):
    plait.save(tmp_path / "m.plait", mlp, X, W)
    entry = plait.load(tmp_path / "m.plait").mlp
    assert entry.code.function()(X, W) == mlp(pnp.asarray(X), W)
    assert plait.summary(entry).total.flops == plait.summary(mlp, X, W).total.flops
    assert not plait.diff(entry.jaxpr, plait.make_jaxpr(mlp)(X, W))


def test_code_in_another_language_is_refused():
    with pytest.raises(plait.ValueError, match='choose "python" or "c\\+\\+"'):
        plait.code(mlp, X, W, language="rust")


def test_code_in_cpp_makes_the_same_program(tmp_path):
    """One program holds them all: the compiler takes seconds."""
    text, expected, main = "", [], ""
    avals = []
    for number, name in enumerate(
        "literals several indexing windows scan custom_vjp ragged sizes order check".split()
    ):
        fun, args = COMPOSED[name]
        jaxpr = plait.make_jaxpr(fun)(*args).jaxpr
        code = plait.code(jaxpr, language="c++")
        text += f"namespace p{number} {{\n{re.sub('#include.*', '', code)}\n}}\n"
        if jaxpr.sizes:
            main += f"  std::cout << p{number}::f.to_string() << '\\n';\n"
        else:
            header = str(jaxpr).split(";")[1].split(" . let")[0]
            inputs = ", ".join(f"in[{i}]" for i in range(len(jaxpr.in_avals)))
            result = f"p{number}::f({inputs})"
            many = len(jaxpr.out_avals) != 1
            main += (
                f'  std::cout << plait::staged(";{header}", [](auto, auto in) -> plait::Arrays '
                f"{{ return {result if many else '{' + result + '}'}; }}).to_string() << '\\n';\n"
            )
        expected.append(str(jaxpr))
        avals.append(jaxpr.in_avals)
    root = pathlib.Path(__file__).resolve().parents[2]
    build = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", root / "build"))
    source = tmp_path / "code.cpp"
    source.write_text(
        "#include <plait/plait.h>\n#include <iostream>\n#include <vector>\n"
        f"{text}\nint main() {{\n{main}}}\n"
    )
    subprocess.run(
        ["g++", "-std=c++20", "-O0", "-march=x86-64-v3", "-Wall", "-Werror", f"-I{root}/include",
         str(source), "-o", str(tmp_path / "code"), f"-L{build}", "-lplait", f"-Wl,-rpath,{build}"],
        check=True,
    )  # fmt: skip
    printed = subprocess.run(
        [str(tmp_path / "code")], check=True, capture_output=True, text=True
    ).stdout
    assert printed == "".join(text + "\n" for text in expected)


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


def test_alignment_is_a_longest_common_subsequence():
    """Against the textbook's table, over random chains of functions."""
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

        table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                table[i + 1][j + 1] = (
                    table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
                )
        difference = plait.diff(chain(a), chain(b), X)
        paired = [c for c in difference.changes if None not in c[1:]]
        assert all(a[i] == b[j] for _, i, j in paired)
        assert len(paired) <= table[-1][-1]
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
