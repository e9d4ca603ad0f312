"""C++ programs that are wrong: the compiler says one error of each, in a sentence written for it."""

# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
BEGIN = """
#include <plait/plait.h>
#include <functional>
using plait::Array;
namespace jnp = plait::numpy;
"""
NO_TREE = "is no tree: use plait::Array, a container of such, or a struct of such"
# A program, and what the compiler says of it. The line of the source that a note shows counts too:
# comments behind deleted functions say what to write instead.
WRONG = {
    "a double argument": (
        "auto f = plait::grad([](const Array& x, double lr) { return x * lr; }); f(1.0, 2.0);",
        "an argument of a transformed function is a number: take it as `const plait::Array&`",
    ),
    "a double result": (
        "plait::jit([](const Array& x) { return x.item<double>(); })(1.0);",
        "a transformed function returns no array: return a plait::Array",
    ),
    "no result": (
        "plait::vmap([](const Array& x) { (void)x; })(1.0);",
        "a transformed function returns no array: return a plait::Array",
    ),
    "a generic lambda": (
        "auto f = plait::grad([](auto x) { return x * x; }); Array y = f(1.0);",
        "the types of this function's arguments are not known, as those of a generic lambda",
    ),
    "bind_front": (
        "auto g = [](const Array& x, const Array& y) { return x * y; };"
        "plait::jit(std::bind_front(g, Array(1.0)))(2.0);",
        "the types of this function's arguments are not known, as those of a generic lambda",
    ),
    "a struct with a pointer": (
        "struct Bad { Array w; double* p; }; // main:\n"
        "Bad bad; plait::jit(plait::grad([](const Bad& b) { return b.w; }))(bad);",
        "an argument of a transformed function " + NO_TREE,
    ),
    "a struct with members in a base class": (
        "struct B { Array w; }; struct D : B { Array x; }; // main:\n"
        "plait::vmap([](const D& d) { return d.w; })(D());",
        "a class with private members or a base class declares plait_fields",
    ),
    "a map whose keys are numbers": (
        "std::map<int, Array> m; plait::jit([](const std::map<int, Array>& p) { return p.at(0); })(m);",
        "an argument of a transformed function " + NO_TREE,
    ),
    "a result behind a pointer": (
        "plait::jit([](const Array& x) { return std::make_shared<Array>(x); })(1.0);",
        "the result of a transformed function " + NO_TREE,
    ),
    "writing to a row": (
        "Array x = jnp::zeros({3}); x[0] = 1.0;",
        "x[i] is a copy: x = x.at(i).set(value)",
    ),
    "adding to a row": (
        "Array x = jnp::zeros({3}); x[0] += 1.0;",
        "x[i] is a copy: x = x.at(i).add(y)",
    ),
    "== of arrays": (
        "Array x = jnp::zeros({3}); if (x == x) return 1;",
        "use numpy::equal, array_equal or is_same",
    ),
    "a comparison as a condition": (
        "Array x = jnp::zeros({3}); if (x < x) return 1;",
        "use item<bool>(), cond or where",
    ),
    "writing through an array's buffer": (
        "const Array x = jnp::zeros({3}); static_cast<float*>(x.buffer().data())[0] = 1;",
        "casts away qualifiers",
    ),
    "the elements of a temporary": (
        "auto seen = jnp::zeros({3}).span<float>(); return int(seen.size());",
        "the array would be destroyed: name it first",
    ),
}


def complaint(body, tmp_path):
    source = tmp_path / "wrong.cpp"
    declarations, _, body = body.rpartition("// main:\n")
    source.write_text(BEGIN + declarations + f"\nint main() {{ {body} }}\n")
    command = ["g++", "-std=c++20", "-I", str(ROOT / "include"), "-fsyntax-only", str(source)]
    return subprocess.run(command, capture_output=True, text=True).stderr


@pytest.mark.parametrize("case", WRONG)
def test_the_compiler_says_what_is_wrong_in_one_error(case, tmp_path):
    body, sentence = WRONG[case]
    said = complaint(body, tmp_path)
    assert sentence in said
    errors = re.findall(r"^.*\berror: .*$", said, re.MULTILINE)
    assert len(errors) == 1, "\n".join(errors)
    assert "static assertion failed: plait: " in errors[0] or "wrong.cpp" in errors[0]


def test_the_same_programs_compile_when_they_are_right(tmp_path):
    body = """
      struct Good { Array w; double lr; }; // main:
      plait::jit(plait::grad([](const Good& g) -> Array { return g.w * g.lr; }))({1.0, 0.5});
      Array x = jnp::zeros({3});
      x = x.at(0).set(1.0);
      x += 1.0;
      const auto seen = x.span<float>();
      return int(seen.size());"""
    assert complaint(body, tmp_path) == ""
