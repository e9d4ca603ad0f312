"""Code of programs: text that makes the same program, in Python and in C++.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib
import random
import re
import subprocess

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import _plait, lax
from test_inspect import W, X, mlp, scanned

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
        ["g++", "-std=c++20", "-O0", "-Wall", "-Werror", f"-I{root}/include",
         str(source), "-o", str(tmp_path / "code"), f"-L{build}", "-lplait", f"-Wl,-rpath,{build}"],
        check=True,
    )  # fmt: skip
    printed = subprocess.run(
        [str(tmp_path / "code")], check=True, capture_output=True, text=True
    ).stdout
    assert printed == "".join(text + "\n" for text in expected)
