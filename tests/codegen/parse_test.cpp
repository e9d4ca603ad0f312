// The text of loop programs: parse is the inverse of print, and refuses what print does not write.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <random>

#include "../backends/backend_here.h"
#include "compile/loop_programs.h"
#include "run_program.h"

using namespace plait;
using codegen::LoopProgram;
using codegen::Numbers;

namespace {

// Programs with loops, as equations. What each of them is about:
const std::pair<std::string, const char*> equations[] = {
    {"an element that is written, with checks", R"(
{ lambda ; a:f64[12] b:i32[5] . let
    c:i32[] d:f64[12] = scan[body={ lambda ; a:i32[] b:f64[12] c:i32[] . let
          d:i32[] = add a 1:i32
          e:i32[1] = reshape[shape=(1)] c
          f:f64[] = gather[axes=(0), batch_dims=0, collapse=(0), mode='check', slice_sizes=(1)] b e
          g:f64[] = sin f
          h:f64[12] = scatter[axes=(0), batch_dims=0, collapse=(0), kind='add', mode='check',
            sorted=false, unique=false] b e g
        in (d, h) }, carry=2, length=5, reverse=false, xs=1] 0:i32 a b
  in (c, d) })"},
    {"arrays that change places", R"(
{ lambda ; a:f64[70] b:f64[70] . let
    c:f64[70] d:f64[70] = scan[body={ lambda ; a:f64[70] b:f64[70] . let
          c:f64[70] = mul b 2.0:f64
          d:f64[70] = add a c
        in (d, a) }, carry=2, length=3, reverse=false, xs=0] a b
  in (c, d) })"},
    {"branches, with numbers and arrays as results", R"(
{ lambda ; a:f64[20] b:i32[4] . let
    c:f64[20] d:f64[] e:f64[4] = scan[body={ lambda ; a:f64[20] b:f64[] c:i32[] . let
          d:f64[20] e:f64[] = cond[branches=[{ lambda ; a:f64[20] b:f64[] . let
                  c:f64[20] = neg a
                in (c, b) }, { lambda ; a:f64[20] b:f64[] . let
                  c:f64[] = mul b 3.0:f64
                in (a, c) }]] c a b
        in (d, e, b) }, carry=2, length=4, reverse=false, xs=1] a 1.5:f64 b
  in (c, d, e) })"},
    {"a while loop, with half floats and bools", R"(
{ lambda ; a:f16[20] . let
    b:f16[20] c:i32[] = while[body={ lambda ; a:f16[20] b:i32[] . let
          c:f16[20] = mul a 0.5:f16
          d:i32[] = add b 1:i32
        in (c, d) }, carry=2, cond={ lambda ; a:f16[20] b:i32[] . let
          c:f16[] = reduce[axes=(0), kind='sum'] a
          d:bool[] = cmp[direction='gt'] c 0.25:f16
        in (d,) }, cond_consts=0] a 0:i32
  in (b, c) })"},
    {"calls, of products and of sort", R"(
{ lambda ; a:f64[20,20] b:f64[20] . let
    c:f64[20] = scan[body={ lambda ; a:f64[20] b:f64[20,20] . let
          c:f64[20] = dot_general[dtype=f64, lhs_batch=(), lhs_contract=(1), rhs_batch=(),
            rhs_contract=(0)] b a
          d:f64[20] = sort[axis=0, descending=false, num_keys=1, stable=true] c
          e:f64[20] = tanh d
        in (e,) }, carry=1, consts=1, length=3, reverse=false, xs=0] b a
  in (c,) })"},
    {"complex numbers", R"(
{ lambda ; a:c128[9] . let
    b:c128[9] = scan[body={ lambda ; a:c128[9] . let
          b:c128[9] = mul a (0.5,-1.0):c128
          c:c128[9] = add b a
        in (c,) }, carry=1, length=3, reverse=false, xs=0] a
  in (b,) })"},
};

LoopProgram parsed(std::string_view text) {
  return codegen::parse(text, codegen::reference_kernel);
}

// The bytes of the results, of a program of small numbers.
std::string result_bits(const LoopProgram& program) {
  std::mt19937_64 generator(5);
  const codegen::Interpreter interpreter(program);
  std::string bits;
  for (const Buffer& buffer :
       run_with(program, interpreter, interpreter.frame_bytes(),
                [&](std::size_t, std::size_t) { return double(generator() % 4); }))
    bits.append(static_cast<const char*>(buffer.data()), std::size_t(buffer.bytes()));
  return bits;
}

constexpr const char* sums =
    "memory m0: float64[5] operand 0\n"
    "memory m1: float64[5] result 0\n"
    "for v1 in 0..5 (v2: float64 = 0.0:f64, then v4, at last v5)\n"
    "  v3: float64 = load m0[v1]\n"
    "  v4: float64 = add v2 v3\n"
    "  store m1[v1] = v4\n";

// What parse says about `sums`, with a part replaced.
std::string complaint(const std::string& part, const std::string& now) {
  std::string text = sums;
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  text.replace(at, part.size(), now);
  try {
    parsed(text);
  } catch (const ValueError& error) {
    return error.problem();
  }
  return "none";
}

}  // namespace

TEST_CASE("parse is the inverse of print for what is lowered") {
  for (const auto& equation : equations) {
    CAPTURE(equation.first);
    const auto lowered = compile_passes::loop_program(parse(equation.second));
    REQUIRE_MESSAGE(lowered->program, lowered->reason);
    for (const ShowSources sources : {ShowSources::no, ShowSources::yes}) {
      const std::string printed = print(*lowered->program, sources);
      CAPTURE(printed);
      const LoopProgram again = parsed(printed);
      CHECK(print(again, sources) == printed);
      CHECK(result_bits(again) == result_bits(*lowered->program));
    }
  }
}

TEST_CASE("lines of users, and reasons, are comments that are read back") {
  std::string text = sums;
  const std::size_t add = text.find("v2 v3\n") + 5, store = text.rfind('\n');
  text.insert(store, "  # copied: line 3 reads it later");
  text.insert(add, "  # train.py:42 in loss:  y = x + w");
  const LoopProgram program = parsed(text);
  CHECK(print(program, ShowSources::yes) == text);
  CHECK(print(program) == sums);
  const codegen::Block& step = program.body[0].blocks[0];
  CHECK(step[1].source->line == 42);
  CHECK(step[2].reason == "line 3 reads it later");
}

TEST_CASE("parse names the line and column of what it does not read") {
  CHECK(complaint("add v2 v3", "add v2 v3") == "none");
  CHECK(complaint("m0[v1]", "m2[v1]") ==
        "parse: line 4, column 22: expected a memory that there is, such as m3, found `m2[v1]`");
  CHECK(complaint("add v2", "plus v2") ==
        "parse: line 5, column 17: expected a primitive that is defined, found `plus v2 v3`");
  CHECK(complaint("  store", "   store") ==
        "parse: line 6, column 4: expected a line that is indented like others of its block, "
        "found `store m1[v1] = v4`");
  CHECK(complaint("in 0..5", "in 1..5") ==
        "parse: line 3, column 11: expected `0..`, found `1..5 (v2: float64 = `");
  CHECK(complaint("0.0:f64", "0.5:i32") ==
        "parse: line 3, column 32: expected `:`, found `.5:i32, then v4, at `");
}

TEST_CASE("parse names the statement that breaks an invariant") {
  CHECK(complaint("add v2 v3", "add v2 v4") ==
        "parse: line 5, column 3: a statement is impossible: L1 is broken: v4 is used where it is "
        "not known");
  CHECK(complaint("store m1", "store m0") ==
        "parse: line 6, column 3: a statement is impossible: L4 is broken: m0 is an operand");
  CHECK(complaint("0.0:f64", "0:i32") ==
        "parse: line 3, column 1: a statement is impossible: L2 is broken: a carry of several "
        "dtypes");
  CHECK(complaint("add v2 v3", "add v2") ==
        "parse: line 5, column 3: a statement is impossible: L2 is broken: `add` has 1 operands "
        "and takes 2");
  CHECK(complaint("add v2 v3", "reshape[shape=()] v2") ==
        "parse: line 5, column 3: a statement is impossible: L2 is broken: reshape is not "
        "elementwise");
  CHECK(complaint("for v1", "parallel for v1") ==
        "parse: line 3, column 1: a statement is impossible: L6 is broken: a parallel step that "
        "lanes cannot run");
}

TEST_CASE("untrusted text of a loop program is bounded") {
  CHECK(complaint("float64[5] result", "float64[99999999999999] result") ==
        "parse: line 2, column 20: expected an integer from 0 to 1099511627776, found "
        "`99999999999999] resu`");
  CHECK(complaint("v3: float64", "v99999999999: float64") ==
        "parse: line 4, column 3: expected a value such as v3, found `v99999999999: float6`");
  std::string deep = "memory m0: float64[5] result 0\n";
  for (int depth = 0; depth < 300; ++depth)
    deep +=
        std::string(std::size_t(2 * depth), ' ') + "for v" + std::to_string(depth) + " in 0..1\n";
  CHECK_THROWS_WITH_AS(parsed(deep), doctest::Contains("at most 100 nested blocks"), ValueError);
}

TEST_CASE("a branch without the alternative that it takes does not run, in lanes as elsewhere") {
  const std::string in_lanes =
      "memory m0: float64[5] result 0\n"
      "parallel for v0 in 0..5\n"
      "  v1: float64 (2.0:f64, 3.0:f64) = branch 1:i64\n"
      "   0\n"
      "   1\n"
      "  store m0[v0] = v1\n";
  const auto with = [](std::string text, const std::string& before, const std::string& after) {
    return text.replace(text.find(before), before.size(), after);
  };
  for (const std::string& text : {in_lanes, with(in_lanes, "parallel ", "")}) {
    CHECK(print(parsed(text)) == text);
    CHECK(codegen::interpret(parsed(text), {})[0] == Numbers{3, 3, 3, 3, 3});
    for (const char* chosen : {"branch 2:i64", "branch -1:i64"})
      CHECK_THROWS_WITH_AS(codegen::interpret(parsed(with(text, "branch 1:i64", chosen)), {}),
                           doctest::Contains("has no alternative"), InternalError);
  }
}

TEST_CASE("a call may say where the elements of its first operand lie") {
  const std::string text =
      "memory m0: int32[5] operand 0\n"
      "memory m1: int32[5] result 0\n"
      "m1[0] = call sort[axis=0, descending=false, num_keys=1, stable=true] x0 within 0..7 "
      "where x0: i32[5] at m0[0] by (1)\n";
  const LoopProgram program = parsed(text);
  CHECK(print(program) == text);
  CHECK(program.body[0].low == 0);
  CHECK(program.body[0].high == 7);
  CHECK(codegen::interpret(program, {{3, 1, 2, 5, 4}})[0] == Numbers{1, 2, 3, 4, 5});
}

TEST_CASE("a call needs a kernel") {
  const std::string text =
      "memory m0: float64[5] operand 0\n"
      "memory m1: float64[5] result 0\n"
      "m1[0] = call sort[axis=0, descending=false, num_keys=1, stable=true] x0 "
      "where x0: f64[5] at m0[0] by (1)\n";
  CHECK(print(parsed(text)) == text);
  CHECK(codegen::interpret(parsed(text), {{3, 1, 2, 5, 4}})[0] == Numbers{1, 2, 3, 4, 5});
  CHECK_THROWS_WITH_AS(codegen::parse(text),
                       doctest::Contains("line 3, column 1: expected a call for which there is a "
                                         "kernel, of `sort`"),
                       ValueError);
  std::string outside = text;
  outside.replace(outside.find("at m0[0]"), 8, "at m0[1]");
  CHECK_THROWS_AS(codegen::interpret(parsed(outside), {{3, 1, 2, 5, 4}}), InternalError);
}
