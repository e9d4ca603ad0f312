// Passes that bring the passes over a row together. What each makes of a program gives the bits
// that the program gave.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>

#include "codegen/ahead.h"
#include "codegen/column_sums.h"
#include "codegen/combine_turns.h"
#include "codegen/feed.h"
#include "codegen/interpreter.h"
#include "codegen/lanes.h"
#include "codegen/own.h"
#include "codegen/parse.h"
#include "codegen/prune.h"
#include "codegen/share.h"
#include "codegen/together.h"
#include "codegen/uniform.h"
#include "codegen/unite.h"
#include "run_program.h"

using namespace plait;
using codegen::LoopProgram;
using codegen::Numbers;

namespace {

Numbers waves(std::size_t count, double by) {
  Numbers numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sin(double(i) * by);
  return numbers;
}

std::size_t count_of(const LoopProgram& program, const std::string& word) {
  const std::string text = print(program);
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// What a pass makes of a text, after it was checked that both give the same.
template <class Pass>
LoopProgram changed(const std::string& text, const Pass& pass,
                    const std::vector<Numbers>& operands) {
  const LoopProgram before = codegen::parse(text);
  LoopProgram after = before;
  pass(after);
  check(after);
  CAPTURE(print(after));
  CHECK(codegen::interpret(after, operands) == codegen::interpret(before, operands));
  CHECK(print(codegen::parse(print(after))) == print(after));
  return after;
}

}  // namespace

TEST_CASE("combinations compute what lanes before them have stored for them") {
  const LoopProgram fed = changed(
      "memory m0: float64[2000] operand 0\n"
      "memory m1: float64[2000] frame\n"
      "memory m2: float64[2000] result 0\n"
      "parallel for v0 in 0..2000\n"
      "  v1: float64 = load m0[v0]\n"
      "  v2: float64 = exp v1\n"
      "  store m1[v0] = v2\n"
      "v5: float64 = combine add from 0.0:f64 of v3 in 0..1024\n"
      "  v4: float64 = load m1[v3]\n"
      "  -> v4\n"
      "v8: float64 = combine add from 0.0:f64 of v6 in 0..976\n"
      "  v7: float64 = load m1[v6 + 1024]\n"
      "  -> v7\n"
      "v9: float64 = add v5 v8\n"
      "parallel for v10 in 0..2000\n"
      "  v11: float64 = load m1[v10]\n"
      "  v12: float64 = div v11 v9\n"
      "  store m2[v10] = v12\n",
      [](LoopProgram& program) { CHECK(feed_combinations(program)); }, {waves(2000, 1.7)});
  CHECK(count_of(fed, "parallel") == 1);
  CHECK(count_of(fed, "load m1") == 1);

  // Elements that are not all taken in stay where they are.
  const std::string partly =
      "memory m0: float64[2000] operand 0\n"
      "memory m1: float64[2000] frame\n"
      "memory m2: float64[1] result 0\n"
      "parallel for v0 in 0..2000\n"
      "  v1: float64 = load m0[v0]\n"
      "  v2: float64 = exp v1\n"
      "  store m1[v0] = v2\n"
      "v5: float64 = combine add from 0.0:f64 of v3 in 0..1024\n"
      "  v4: float64 = load m1[v3]\n"
      "  -> v4\n"
      "store m2[0] = v5\n";
  LoopProgram program = codegen::parse(partly);
  CHECK(!feed_combinations(program));
}

TEST_CASE("a combination that stores what nothing takes in is kept for what it stores") {
  changed(
      "memory m0: float64[100] operand 0\n"
      "memory m1: float64[100] result 0\n"
      "v3: float64 = combine add from 0.0:f64 of v0 in 0..100\n"
      "  v1: float64 = load m0[v0]\n"
      "  v2: float64 = neg v1\n"
      "  store m1[v0] = v2\n"
      "  -> v2\n",
      [](LoopProgram& program) {
        prune(program);
        CHECK(count_of(program, "store") == 1);
      },
      {waves(100, 1.7)});
}

TEST_CASE("columns are summed by the loop that goes through their rows") {
  for (const std::int64_t rows : {256, 300}) {
    CAPTURE(rows);
    const std::string count = std::to_string(rows), size = std::to_string(40 * rows);
    std::string text = "memory m0: float64[" + size + "] operand 0\n" + "memory m1: float64[" +
                       count + "] frame\n" + "memory m2: float64[200] result 0\n" +
                       "apart for v0 in 0.." + count +
                       "\n"
                       "  v3: float64 = combine add from 0.0:f64 of v1 in 0..40\n"
                       "    v2: float64 = load m0[v0 * 40 + v1]\n"
                       "    -> v2\n"
                       "  store m1[v0] = v3\n"
                       "apart for v10 in 0..4\n"
                       "  parallel for v11 in 0..40\n"
                       "    v16: float64 = combine add in order from 0.0:f64 of v12 in 0..64\n"
                       "      v13: float64 = load m0[v10 * 2560 + v12 * 40 + v11]\n"
                       "      v14: float64 = load m1[v10 * 64 + v12]\n"
                       "      v15: float64 = mul v13 v14\n"
                       "      -> v15\n"
                       "    store m2[v10 * 40 + v11] = v16\n";
    if (rows > 256)
      text +=
          "parallel for v21 in 0..40\n"
          "  v26: float64 = combine add in order from 0.0:f64 of v22 in 0..44\n"
          "    v23: float64 = load m0[v22 * 40 + v21 + 10240]\n"
          "    v24: float64 = load m1[v22 + 256]\n"
          "    v25: float64 = mul v23 v24\n"
          "    -> v25\n"
          "  store m2[v21 + 160] = v26\n";
    LoopProgram summed =
        changed(text, [](LoopProgram& program) { CHECK(sum_columns_with_rows(program)); },
                {waves(std::size_t(40 * rows), 0.3)});
    CHECK(count_of(summed, "in order") == 0);
    share(summed);
    check(summed);
  }
  // Rows that are gone through in another order than they are summed are not theirs.
  LoopProgram reversed = codegen::parse(
      "memory m0: float64[10240] operand 0\n"
      "memory m1: float64[256] frame\n"
      "memory m2: float64[160] result 0\n"
      "apart for v0 in 0..256\n"
      "  v3: float64 = combine add from 0.0:f64 of v1 in 0..40\n"
      "    v2: float64 = load m0[v0 * 40 + v1]\n"
      "    -> v2\n"
      "  store m1[v0 * -1 + 255] = v3\n"
      "apart for v10 in 0..4\n"
      "  parallel for v11 in 0..40\n"
      "    v16: float64 = combine add in order from 0.0:f64 of v12 in 0..64\n"
      "      v13: float64 = load m0[v10 * 2560 + v12 * 40 + v11]\n"
      "      v14: float64 = load m1[v10 * 64 + v12]\n"
      "      v15: float64 = mul v13 v14\n"
      "      -> v15\n"
      "    store m2[v10 * 40 + v11] = v16\n");
  CHECK(!sum_columns_with_rows(reversed));
}

TEST_CASE("combinations of one row that wait for the same follow each other") {
  const std::string text =
      "memory m0: float64[3000] operand 0\n"
      "memory m1: float64[3] result 0\n"
      "v2: float64 = combine add from 0.0:f64 of v0 in 0..1000\n"
      "  v1: float64 = load m0[v0]\n"
      "  -> v1\n"
      "v3: float64 = div v2 1000.0:f64\n"
      "v7: float64 = combine max from 0.0:f64 of v4 in 0..1000\n"
      "  v5: float64 = load m0[v4 + 1000]\n"
      "  v6: float64 = sub v5 v3\n"
      "  -> v6\n"
      "v10: float64 = combine max from 0.0:f64 of v8 in 0..1000\n"
      "  v9: float64 = load m0[v8]\n"
      "  -> v9\n"
      "store m1[0] = v3\n"
      "store m1[1] = v7\n"
      "store m1[2] = v10\n";
  const LoopProgram together = changed(
      text, [](LoopProgram& program) { bring_combinations_together(program); }, {waves(3000, 0.7)});
  CHECK(codegen::combines_together(codegen::parse(text).body, 0) == 1);
  CHECK(codegen::combines_together(together.body, 0) == 2);
}

TEST_CASE("numbers that all lanes share are computed before their loop") {
  const LoopProgram moved = changed(
      "memory m0: float64[100] operand 0\n"
      "memory m1: float64[2] operand 1\n"
      "memory m2: float64[100] result 0\n"
      "parallel for v0 in 0..100\n"
      "  v1: float64 = load m1[1]\n"
      "  v2: float64 = sqrt v1\n"
      "  v3: float64 = load m0[v0]\n"
      "  v4: float64 = mul v3 v2\n"
      "  store m2[v0] = v4\n",
      [](LoopProgram& program) { move_uniform_numbers(program); }, {waves(100, 0.7), {1, 2}});
  CHECK(moved.body.size() == 3);
}

TEST_CASE("passes over a row of large memory ask for the next row") {
  const LoopProgram asking = changed(
      "memory m0: float64[200000] operand 0\n"
      "memory m1: float64[200000] result 0\n"
      "apart for v0 in 0..200\n"
      "  v3: float64 = combine max from 0.0:f64 of v1 in 0..1000\n"
      "    v2: float64 = load m0[v0 * 1000 + v1]\n"
      "    -> v2\n"
      "  parallel for v4 in 0..1000\n"
      "    v5: float64 = load m0[v0 * 1000 + v4]\n"
      "    v6: float64 = sub v5 v3\n"
      "    store m1[v0 * 1000 + v4] = v6\n",
      [](LoopProgram& program) { ask_ahead(program); }, {waves(200000, 0.7)});
  CHECK(count_of(asking, "and soon m0[v0 * 1000 + 1000]") == 1);
}

TEST_CASE("lanes that compute a number for each row join the loop over the rows") {
  const LoopProgram united = changed(
      "memory m0: float64[20000] operand 0\n"
      "memory m1: float64[200] frame\n"
      "memory m2: float64[200] frame\n"
      "memory m3: float64[20000] result 0\n"
      "apart for v0 in 0..200\n"
      "  v3: float64 = combine add from 0.0:f64 of v1 in 0..100\n"
      "    v2: float64 = load m0[v0 * 100 + v1]\n"
      "    -> v2\n"
      "  store m1[v0] = v3\n"
      "parallel for v4 in 0..200\n"
      "  v5: float64 = load m1[v4]\n"
      "  v6: float64 = div v5 100.0:f64\n"
      "  store m2[v4] = v6\n"
      "apart for v7 in 0..200\n"
      "  parallel for v8 in 0..100\n"
      "    v9: float64 = load m0[v7 * 100 + v8]\n"
      "    v10: float64 = load m2[v7]\n"
      "    v11: float64 = sub v9 v10\n"
      "    store m3[v7 * 100 + v8] = v11\n",
      [](LoopProgram& program) {
        unite(program);
        prune(program);
      },
      {waves(20000, 0.7)});
  CHECK(united.body.size() == 1);
  CHECK(united.memories.size() == 2);  // what a row has for itself are numbers
}

TEST_CASE("threads share no loop within steps that have memory of their own") {
  LoopProgram program = codegen::parse(
      "memory m0: float64[1000000] operand 0\n"
      "memory m1: float64[100000] frame\n"
      "memory m2: float64[1000000] result 0\n"
      "apart for v0 in 0..10 with its own m1\n"
      "  v4: float64 = combine add from 0.0:f64 of v1 in 0..100000\n"
      "    v2: float64 = load m0[v0 * 100000 + v1]\n"
      "    v3: float64 = exp v2\n"
      "    store m1[v1] = v3\n"
      "    -> v3\n"
      "  parallel for v5 in 0..100000\n"
      "    v6: float64 = load m1[v5]\n"
      "    v7: float64 = div v6 v4\n"
      "    store m2[v0 * 100000 + v5] = v7\n");
  share(program);
  check(program);
  CHECK(program.body[0].grain > 0);
  CHECK(codegen::num_shared(program.body[0].blocks[0]) == 0);
}

// Kernels run them: see combinations_of_few_turns in device_kernels.py.
TEST_CASE("turns of a short loop that take in the same elements are one combination") {
  LoopProgram program = codegen::parse(
      "memory m0: float64[1000] operand 0\n"
      "memory m1: float64[4096] operand 1\n"
      "memory m2: float64[2048000] frame\n"
      "memory m3: float64[4096] result 0\n"
      "apart for v0 in 0..2048\n"
      "  parallel for v1 in 0..1000\n"
      "    v2: float64 = load m0[v1]\n"
      "    v3: float64 = exp v2\n"
      "    store m2[v0 * 1000 + v1] = v3\n"
      "  apart for v4 in 0..2\n"
      "    v5: float64 = load m1[v0 * 2 + v4]\n"
      "    v9: float64 = combine add from 0.0:f64 of v6 in 0..1000\n"
      "      v7: float64 = load m2[v0 * 1000 + v6]\n"
      "      v8: float64 = mul v7 v5\n"
      "      -> v8\n"
      "    store m3[v0 * 2 + v4] = v9\n");
  CHECK(combine_turns(program));
  check(program);
  CHECK(feed_combinations(program));
  prune(program);
  check(program);
  CHECK(print(program) ==
        "memory m0: float64[1000] operand 0\n"
        "memory m1: float64[4096] operand 1\n"
        "memory m2: float64[4096] result 0\n"
        "apart for v0 in 0..2048\n"
        "  v11: float64 = load m1[v0 * 2]\n"
        "  v16: float64 = load m1[v0 * 2 + 1]\n"
        "  v12: float64 and v17: float64 = combine add from 0.0:f64 of v13 in 0..1000\n"
        "    v21: float64 = load m0[v13]\n"
        "    v22: float64 = exp v21\n"
        "    v15: float64 = mul v22 v11\n"
        "    v20: float64 = mul v22 v16\n"
        "    -> v15 v20\n"
        "  store m2[v0 * 2] = v12\n"
        "  store m2[v0 * 2 + 1] = v17\n");
}
