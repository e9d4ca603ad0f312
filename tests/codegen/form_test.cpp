// The form of loop programs: its text, its checker, and its interpreter on programs written by
// hand.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/pool.h>
#include <plait/plait.h>
#include <plait/primitives/primitives.h>
#include <pthread.h>

#include <cmath>

#include "codegen/columns.h"
#include "codegen/functions_together.h"
#include "codegen/fuse.h"
#include "codegen/hand_on.h"
#include "codegen/interpreter.h"
#include "codegen/invariants.h"
#include "codegen/inward.h"
#include "codegen/lanes.h"
#include "codegen/once.h"
#include "codegen/outward.h"
#include "codegen/own.h"
#include "codegen/parse.h"
#include "codegen/promote.h"
#include "codegen/prune.h"
#include "codegen/share.h"
#include "codegen/unite.h"
#include "codegen/walk.h"
#include "codegen/work.h"
#include "compile/loop_programs.h"
#include "run_program.h"

using namespace plait;
using codegen::LoopProgram;
using codegen::Memory;
using codegen::Statement;
using Kind = Statement::Kind;
using Space = Memory::Space;

namespace {

// y[i] = x[i] + y[i - 1], as a loop that carries the sum.
LoopProgram running_sums() {
  LoopProgram program;
  program.memories = {{Space::operand, 0, DType::float64, 5},
                      {Space::result, 0, DType::float64, 5}};
  program.dtypes = {DType::float64, DType::int64,   DType::float64,
                    DType::float64, DType::float64, DType::float64};
  program.literals = {{0, Literal{DType::float64, false, 0, 0, 0}}};
  Statement load, add, store, loop;
  load.kind = Kind::load, load.value = 3, load.place = {0, 0, {{1, 1}}};
  add.value = 4, add.primitive = &add_p, add.operands = {2, 3};
  store.kind = Kind::store, store.operands = {4}, store.place = {1, 0, {{1, 1}}};
  loop.kind = Kind::repeat, loop.value = 1, loop.steps = 5;
  loop.carries = {{2, 0, 4, 5}};
  loop.blocks = {{load, add, store}};
  program.body = {loop};
  return program;
}

std::vector<double> run(const LoopProgram& program, std::vector<double> x) {
  std::vector<double> y(x.size(), -1);
  const codegen::Interpreter interpreter(program);
  const Storage frame = Storage::allocate(std::size_t(interpreter.frame_bytes()));
  const View operand{x.data(), DType::float64, {std::int64_t(x.size())}, {1}},
      result{y.data(), DType::float64, {std::int64_t(y.size())}, {1}};
  interpreter.run({&operand, 1}, {&result, 1}, frame.data());
  return y;
}

std::string complaint(const LoopProgram& program) {
  try {
    check(program);
  } catch (const InternalError& error) {
    const std::string what = error.problem();
    return what.substr(0, what.find('\n'));
  }
  return "none";
}

}  // namespace

TEST_CASE("a loop program has a text") {
  CHECK(print(running_sums()) ==
        "memory m0: float64[5] operand 0\n"
        "memory m1: float64[5] result 0\n"
        "for v1 in 0..5 (v2: float64 = 0.0:f64, then v4, at last v5)\n"
        "  v3: float64 = load m0[v1]\n"
        "  v4: float64 = add v2 v3\n"
        "  store m1[v1] = v4\n");
}

TEST_CASE("the interpreter runs what is written") {
  check(running_sums());
  CHECK(run(running_sums(), {1, 2, 3, 4, 5}) == std::vector<double>{1, 3, 6, 10, 15});
}

TEST_CASE("the interpreter refuses to leave memory") {
  LoopProgram program = running_sums();
  program.body[0].steps = 6;
  CHECK_THROWS_AS(run(program, {1, 2, 3, 4, 5}), InternalError);
  program = running_sums();
  program.body[0].blocks[0][0].place.offset = -1;
  CHECK_THROWS_AS(run(program, {1, 2, 3, 4, 5}), InternalError);
}

TEST_CASE("the checker names the invariant that is broken") {
  CHECK(complaint(running_sums()) == "none");
  LoopProgram program = running_sums();
  program.body[0].blocks[0][1].operands = {2, 4};
  CHECK(complaint(program).find("L1 is broken: v4 is used where it is not known") !=
        std::string::npos);
  program = running_sums();
  program.body[0].blocks[0][1].value = 3;
  CHECK(complaint(program).find("L1 is broken: v3 is defined twice") != std::string::npos);
  program = running_sums();
  program.body.push_back(program.body[0].blocks[0][2]);  // behind the loop
  CHECK(complaint(program).find("L1 is broken") != std::string::npos);
  program = running_sums();
  program.dtypes[3] = DType::float32;
  CHECK(complaint(program).find("L2 is broken: a load of another dtype") != std::string::npos);
  program = running_sums();
  program.dtypes[1] = DType::int32;
  CHECK(complaint(program).find("L3 is broken: v1 is no int64") != std::string::npos);
  program = running_sums();
  program.body[0].blocks[0][0].place.memory = 2;
  CHECK(complaint(program).find("L3 is broken: there is no memory m2") != std::string::npos);
  program = running_sums();
  program.body[0].blocks[0][2].place.memory = 0;
  CHECK(complaint(program).find("L4 is broken: m0 is an operand") != std::string::npos);
}

// A step that changes one element: the index counts, so that nothing tests it; the literal product
// is computed once; the array has one home, the result.
TEST_CASE("lowering leaves the work of the step, and copies once") {
  const Jaxpr program = parse(
      "{ lambda ; a:f64[32] w:f64[] . let\n"
      "    b:i32[] c:f64[32] = scan[body={ lambda ; a:i32[] b:f64[32] c:f64[] . let\n"
      "          d:i32[] = add a 1:i32\n"
      "          e:bool[] = cmp[direction='lt'] a 0:i32\n"
      "          f:i32[] = add a 32:i32\n"
      "          g:i32[] = select e f a\n"
      "          h:i32[1] = reshape[shape=(1)] g\n"
      "          i:f64[] = gather[axes=(0), batch_dims=0, collapse=(0), mode='check', "
      "slice_sizes=(1)] b h\n"
      "          j:f64[] = mul c 2.0:f64\n"
      "          k:f64[] = add i j\n"
      "          l:f64[32] = scatter[axes=(0), batch_dims=0, collapse=(0), kind='set', "
      "mode='check', sorted=false, unique=false] b h k\n"
      "        in (d, l) }, carry=2, length=32, reverse=false, xs=0] 0:i32 a w\n"
      "  in (c,) }");
  const compile_passes::SharedLowered lowered = compile_passes::loop_program(program);
  REQUIRE(lowered->program);
  check(*lowered->program);
  CHECK(print(*lowered->program) ==
        "memory m0: float64[32] operand 0\n"
        "memory m1: float64[1] operand 1\n"
        "memory m2: float64[32] result 0\n"
        "v15: float64 = load m1[0]\n"
        "copy m0[0] -> m2[0] of (32) by (1) -> (1)\n"
        "v12: float64 = mul v15 2.0:f64\n"
        "for v1 in 0..32\n"
        "  v9: float64 = load m2[v1]\n"
        "  v13: float64 = add v9 v12\n"
        "  store m2[v1] = v13\n");
  CHECK(print(*lowered->program, ShowSources::yes)
            .find("of (32) by (1) -> (1)  # copied: `scan` overwrites an operand\n") !=
        std::string::npos);
}

namespace {

// y[i] = 2 x[i] in parallel, then y[0] = the sum of x.
LoopProgram doubled_and_summed() {
  LoopProgram program;
  program.memories = {{Space::operand, 0, DType::float64, 20},
                      {Space::result, 0, DType::float64, 20}};
  program.dtypes = {DType::float64, DType::int64,   DType::float64, DType::float64,
                    DType::int64,   DType::float64, DType::float64};
  program.literals = {{0, Literal{DType::float64, false, 0, 0, 0}}};
  Statement load, add, store, loop, term, sum, store_sum;
  load.kind = Kind::load, load.value = 2, load.place = {0, 0, {{1, 1}}};
  add.value = 3, add.primitive = &add_p, add.operands = {2, 2};
  store.kind = Kind::store, store.operands = {3}, store.place = {1, 0, {{1, 1}}};
  loop.kind = Kind::repeat, loop.value = 1, loop.steps = 20, loop.is_parallel = true;
  loop.blocks = {{load, add, store}};
  term.kind = Kind::load, term.value = 5, term.place = {0, 0, {{4, 1}}};
  sum.kind = Kind::combine, sum.value = 6, sum.primitive = &add_p, sum.operands = {0, 5};
  sum.counter = 4, sum.steps = 20;
  sum.blocks = {{term}};
  store_sum.kind = Kind::store, store_sum.operands = {6}, store_sum.place = {1, 0, {}};
  program.body = {loop, sum, store_sum};
  return program;
}

}  // namespace

TEST_CASE("parallel loops and combinations print, check and run") {
  const LoopProgram program = doubled_and_summed();
  check(program);
  CHECK(print(program) ==
        "memory m0: float64[20] operand 0\n"
        "memory m1: float64[20] result 0\n"
        "parallel for v1 in 0..20\n"
        "  v2: float64 = load m0[v1]\n"
        "  v3: float64 = add v2 v2\n"
        "  store m1[v1] = v3\n"
        "v6: float64 = combine add from 0.0:f64 of v4 in 0..20\n"
        "  v5: float64 = load m0[v4]\n"
        "  -> v5\n"
        "store m1[0] = v6\n");
  std::vector<double> x;
  for (int i = 0; i < 20; ++i) x.push_back(1.0 / (i + 3));
  const std::vector<double> y = run(program, x);
  double parts[8] = {};
  for (int i = 0; i < 20; ++i) parts[i % 8] += x[std::size_t(i)];
  CHECK(y[0] == ((parts[0] + parts[4]) + (parts[2] + parts[6])) +
                    ((parts[1] + parts[5]) + (parts[3] + parts[7])));
  for (std::size_t i = 1; i < y.size(); ++i) CHECK(y[i] == 2 * x[i]);
}

TEST_CASE("threads share what is long enough, and leave no trace in the results") {
  LoopProgram program = doubled_and_summed();
  share(program);
  CHECK(codegen::num_shared(program.body) == 0);
  for (Memory& memory : program.memories) memory.size = 50003;
  program.body[0].steps = 50003;
  share(program);
  CHECK(codegen::num_shared(program.body) == 1);
  check(program);
  CHECK(print(program).find("parallel for v1 in 0..50003 in shares of 37500\n") !=
        std::string::npos);
  program.body[0].grain = 500;
  std::vector<double> x;
  for (int i = 0; i < 50003; ++i) x.push_back(1.0 / (i + 3));
  std::vector<std::vector<double>> results;
  const int before = num_threads();
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    results.push_back(run(program, x));
  }
  set_num_threads(before);
  CHECK(results[1] == results[0]);
  CHECK(results[2] == results[0]);
  for (std::size_t i = 1; i < x.size(); ++i) CHECK(results[0][i] == 2 * x[i]);
}

namespace {

// Ten steps v1, in which four steps v2 store at each of these places of m1; v3 is from outside.
Statement storing(const std::vector<loops::Place>& places) {
  Statement store, inner, outer;
  inner.kind = outer.kind = Kind::repeat;
  inner.value = 2, inner.steps = 4, inner.is_parallel = true;
  outer.value = 1, outer.steps = 10, outer.is_apart = true;
  store.kind = Kind::store, store.operands = {0};
  inner.blocks.emplace_back();
  for (const loops::Place& place : places) {
    store.place = place;
    inner.blocks[0].push_back(store);
  }
  outer.blocks = {{inner}};
  return outer;
}

}  // namespace

TEST_CASE("steps that write different elements may be shared") {
  using codegen::may_share;
  CHECK(may_share({}, storing({{1, 0, {{1, 4}, {2, 1}}}})));                    // rows
  CHECK(may_share({}, storing({{1, 0, {{1, 1}, {2, 10}}}})));                   // columns
  CHECK(may_share({}, storing({{1, 39, {{1, -4}, {2, -1}}}})));                 // backwards
  CHECK(may_share({}, storing({{1, 0, {{1, 4}, {2, 1}, {3, 1}}}})));            // somewhere
  CHECK(may_share({}, storing({{1, 0, {{1, 5}, {2, 1}}}, {1, 4, {{1, 5}}}})));  // and an edge
  CHECK(may_share({}, storing({{1, 0, {{1, 2}, {2, 20}}}, {1, 1, {{1, 2}, {2, 20}}}})));   // pairs
  CHECK(may_share({}, storing({{1, 0, {{1, 1}, {2, 10}}}, {1, 40, {{1, 1}, {2, 10}}}})));  // planes
  CHECK(may_share({}, storing({{1, 0, {{1, 1}, {2, 100}}},  // rows within planes
                               {1, 10, {{1, 1}, {2, 100}}},
                               {1, 20, {{1, 1}, {2, 100}}}})));
  CHECK(may_share({}, storing({{1, 0, {{1, 4}, {2, 1}}}, {2, 0, {{1, 1}, {2, 10}}}})));  // both
  CHECK(!may_share({}, storing({{1, 0, {{2, 1}}}})));          // one row again and again
  CHECK(!may_share({}, storing({{1, 0, {{1, 3}, {2, 1}}}})));  // rows that overlap
  CHECK(!may_share({}, storing({{1, 0, {{1, 4}, {2, 1}}}, {1, 3, {{1, 4}, {2, 1}}}})));
  CHECK(!may_share({}, storing({{1, 0, {{1, 1}, {2, 10}}}, {1, 1, {{1, 1}, {2, 10}}}})));
  CHECK(!may_share({}, storing({{1, 0, {{1, 1}, {2, 10}}}, {1, 35, {{1, 1}, {2, 10}}}})));
  CHECK(!may_share({}, storing({{1, 0, {{1, 4}}}, {1, 0, {{1, 4}, {3, 1}}}})));  // nobody knows
}

TEST_CASE("steps that depend on each other, or may fail, are not shared") {
  const Statement apart = storing({{1, 0, {{1, 4}, {2, 1}}}});
  Statement loop = apart;
  loop.is_apart = false;
  CHECK(!codegen::may_share({}, loop));
  loop = apart;
  loop.carries = {{4, 0, 4, 5}};
  CHECK(!codegen::may_share({}, loop));
  loop = apart;
  loop.exchanged = {{1, 2}};
  CHECK(!codegen::may_share({}, loop));
  for (const Kind kind : {Kind::check, Kind::call}) {
    loop = apart;
    loop.blocks[0].emplace_back().kind = kind;
    if (kind == Kind::call) loop.blocks[0].back().call = std::make_shared<codegen::Call>();
    CHECK(!codegen::may_share({}, loop));
  }
  loop = apart;  // an index that is computed
  Statement load;
  load.kind = Kind::load, load.value = 5, load.place = {2, 0, {{1, 1}}};
  loop.blocks[0].insert(loop.blocks[0].begin(), load);
  loop.blocks[0].back().blocks[0][0].place.terms.push_back({5, 1});
  CHECK(!codegen::may_share({}, loop));
}

TEST_CASE("a shared loop whose steps are not apart breaks L7") {
  LoopProgram program = doubled_and_summed();
  program.body[0].grain = 5;
  CHECK(complaint(program) == "none");
  program.body[0].blocks[0][2].place.terms.clear();
  CHECK(complaint(program) ==
        "internal error: L7 is broken: a shared loop whose steps are not apart");
}

namespace {

// Loops of sixteen steps in each other, each of which writes the element of its step.
LoopProgram nested_loops(int depth) {
  std::string text = "memory m0: float64[16] result 0\n", indent;
  for (int level = 0; level < depth; ++level, indent += "  ") {
    const std::string counter = "v" + std::to_string(level);
    text += indent + "for " + counter + " in 0..16\n";
    text += indent + "  store m0[" + counter + "] = 1.5:f64\n";
  }
  return codegen::parse(text);
}

}  // namespace

TEST_CASE("short loops in each other are written out only where they are few statements") {
  LoopProgram few = nested_loops(2), many = nested_loops(6);
  promote(few);
  check(few);
  CHECK(print(few).find("for ") == std::string::npos);
  const std::size_t before = many.dtypes.size();
  promote(many);
  check(many);
  CHECK(print(many).find("for v0 in 0..16") != std::string::npos);
  CHECK(many.dtypes.size() < before + 2000);  // what is left out was hardly begun
}

TEST_CASE("what lanes do at once stays a loop, but for what is short") {
  const auto text = [](const std::string& steps) {
    return "memory m0: float64[" + steps + "] operand 0\nmemory m1: float64[" + steps +
           "] frame\nmemory m2: float64[512] result 0\n"
           "parallel for v0 in 0.." +
           steps +
           "\n"
           "  v1: float64 = load m0[v0]\n"
           "  v2: float64 = mul v1 v1\n"
           "  store m1[v0] = v2\n"
           "for v3 in 0..32\n"
           "  parallel for v4 in 0.." +
           steps +
           "\n"
           "    v5: float64 = load m1[v4]\n"
           "    store m2[v3 * 16 + v4] = v5\n";
  };
  LoopProgram program = codegen::parse(text("16"));
  promote(program);
  check(program);
  const std::string printed = print(program);
  CHECK(printed.find("for v3 in 0..32\n  parallel for v4 in 0..16\n") != std::string::npos);
}

TEST_CASE("dead code goes from a chain of any length, on a small stack") {
  constexpr int length = 40000;
  LoopProgram program;
  program.memories = {{Space::result, 0, DType::float64, 1}};
  program.dtypes.assign(2 * length + 1, DType::float64);
  program.literals = {{0, Literal{DType::float64, false, 0, 1, 0}}};
  for (int i = 0; i < length; ++i) {  // of each two sums nothing reads the first
    Statement dead, used;
    dead.primitive = used.primitive = &add_p;
    dead.operands = used.operands = {2 * i, 0};
    dead.value = 2 * i + 1, used.value = 2 * i + 2;
    program.body.push_back(std::move(dead));
    program.body.push_back(std::move(used));
  }
  Statement store;
  store.kind = Kind::store, store.operands = {2 * length}, store.place = {0};
  program.body.push_back(std::move(store));
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, std::size_t(1) << 20) == 0);
  const auto run = [](void* given) -> void* {
    prune(*static_cast<LoopProgram*>(given));
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &program) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
  CHECK(program.body.size() == length + 1);
}

TEST_CASE("memories change places at the end of every step") {
  LoopProgram program;
  program.memories = {{Space::operand, 0, DType::float64, 5},
                      {Space::result, 0, DType::float64, 5},
                      {Space::frame, 0, DType::float64, 5}};
  program.dtypes = {DType::float64, DType::int64, DType::int64, DType::float64, DType::float64};
  program.literals = {{0, Literal{DType::float64, false, 0, 1, 0}}};
  Statement copy, load, add, store, inner, loop;
  copy.kind = Kind::copy, copy.place = {1}, copy.source_place = {0};
  copy.shape = {5}, copy.strides = {1}, copy.source_strides = {1};
  load.kind = Kind::load, load.value = 3, load.place = {1, 0, {{2, 1}}};
  add.value = 4, add.primitive = &add_p, add.operands = {3, 0};
  store.kind = Kind::store, store.operands = {4}, store.place = {2, 0, {{2, 1}}};
  inner.kind = Kind::repeat, inner.value = 2, inner.steps = 5, inner.is_parallel = true;
  inner.blocks = {{load, add, store}};
  loop.kind = Kind::repeat, loop.value = 1, loop.exchanged = {{1, 2}};
  loop.blocks = {{inner}};
  for (std::int64_t steps : {0, 1, 2, 3}) {
    loop.steps = steps;
    program.body = {copy, loop};
    check(program);
    const double by = double(steps);
    CHECK(run(program, {1, 2, 3, 4, 5}) == std::vector{1 + by, 2 + by, 3 + by, 4 + by, 5 + by});
  }
  CHECK(print(program).find("for v1 in 0..3 (m1 and m2 change places)") != std::string::npos);
  program.body[1].exchanged = {{1, 2}, {2, 1}};
  CHECK(complaint(program) == "internal error: L5 is broken: m2 cannot change places");
  program.body[1].exchanged = {{0, 2}};
  CHECK(complaint(program) == "internal error: L4 is broken: an operand changes places");
}

TEST_CASE("loops whose steps are apart become one where places go on") {
  const auto text = [](int row) {
    const std::string stride = std::to_string(row);
    return "memory m0: float64[480] operand 0\nmemory m1: float64[108] result 0\n"
           "apart for v0 in 0..3\n"
           "  apart for v1 in 0..4\n"
           "    parallel for v2 in 0..8\n"
           "      v3: float64 = load m0[v0 * 160 + v1 * 40 + v2 * 5]\n"
           "      v6: float64 = combine add from v3 of v4 in 0..5\n"
           "        v5: float64 = load m0[v0 * 160 + v1 * 40 + v2 * 5 + v4]\n"
           "        -> v5\n"
           "      store m1[v0 * " +
           std::to_string(4 * row) + " + v1 * " + stride + " + v2] = v6\n";
  };
  codegen::Numbers x(480);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (const int row : {8, 9}) {  // rows beside each other, or with a gap
    const LoopProgram apart = codegen::parse(text(row));
    LoopProgram merged = apart;
    codegen::merge(merged.body);
    check(merged);
    CHECK(codegen::interpret(merged, {x}) == codegen::interpret(apart, {x}));
    CHECK((print(merged).find("parallel for v2 in 0..96") != std::string::npos) == (row == 8));
  }
}

TEST_CASE("columns are combined row by row") {
  // Rows of x[v0]: the sums s and those of (x - s / 70) * x, three at a time at the end, and the
  // largest of the other operand; lanes is how many columns.
  const auto text = [](std::int64_t columns) {
    const std::string lanes = std::to_string(columns);
    return "memory m0: float64[" + std::to_string(3 * 70 * columns) +
           "] operand 0\n"
           "memory m1: float64[" +
           std::to_string(3 * columns) +
           "] result 0\n"
           "memory m2: float64[" +
           std::to_string(3 * columns) +
           "] result 1\n"
           "apart for v0 in 0..3\n"
           "  parallel for v1 in 0.." +
           lanes +
           "\n"
           "    v2: float64 = load m0[v0 * " +
           std::to_string(70 * columns) +
           " + v1]\n"
           "    v3: float64 = mul v2 0.5:f64\n"
           "    v6: float64 = combine add in order from 0.0:f64 of v4 in 0..70\n"
           "      v5: float64 = load m0[v0 * " +
           std::to_string(70 * columns) + " + v4 * " + lanes +
           " + v1]\n"
           "      -> v5\n"
           "    v7: float64 = div v6 70.0:f64\n"
           "    v12: float64 = combine add in order from v3 of v8 in 0..70\n"
           "      v9: float64 = load m0[v0 * " +
           std::to_string(70 * columns) + " + v8 * " + lanes +
           " + v1]\n"
           "      v10: float64 = sub v9 v7\n"
           "      v11: float64 = mul v10 v9\n"
           "      -> v11\n"
           "    v15: float64 = combine max in order from v3 of v13 in 0..70\n"
           "      v14: float64 = load m0[v0 * " +
           std::to_string(70 * columns) + " + v13 * " + lanes +
           " + v1]\n"
           "      -> v14\n"
           "    store m1[v0 * " +
           lanes +
           " + v1] = v12\n"
           "    v16: float64 = add v15 v6\n"
           "    store m2[v0 * " +
           lanes + " + v1] = v16\n";
  };
  for (const std::int64_t columns : {130, 5000}) {
    const LoopProgram jumping = codegen::parse(text(columns));
    LoopProgram by_rows = jumping;
    take_in_rows(by_rows);
    check(by_rows);
    CHECK(print(by_rows).find("combine") == std::string::npos);
    codegen::Numbers x(std::size_t(3 * 70 * columns));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i) * 1.7);
    CHECK(codegen::interpret(by_rows, {x}) == codegen::interpret(jumping, {x}));
    share(by_rows);
    check(by_rows);
    CHECK(codegen::num_shared(by_rows.body) > 0);
  }
  LoopProgram few = codegen::parse(text(64));  // fit registers
  const std::string before = print(few);
  take_in_rows(few);
  CHECK(print(few) == before);
}

TEST_CASE("a parallel step that lanes cannot run breaks L6") {
  LoopProgram program = doubled_and_summed();
  Statement branch;  // by what differs from lane to lane
  branch.kind = Kind::branch, branch.operands = {1};
  branch.blocks = {{}, {}};
  program.body[0].blocks[0].push_back(branch);
  CHECK(complaint(program) ==
        "internal error: L6 is broken: a parallel step that lanes cannot run");
  program.body[0].is_parallel = false;
  CHECK(complaint(program) == "none");
  program = doubled_and_summed();
  program.body[0].blocks[0].push_back(program.body[0]);  // a parallel loop
  CHECK(complaint(program).find("is broken") != std::string::npos);
}

TEST_CASE("a combination that does more than compute breaks L6") {
  LoopProgram program = doubled_and_summed();
  program.body[1].blocks[0].push_back(program.body[0]);  // a loop
  CHECK(complaint(program) ==
        "internal error: L6 is broken: a combination that does more than compute");
  program = doubled_and_summed();
  program.body[1].operands.push_back(5);
  CHECK(complaint(program) ==
        "internal error: L2 is broken: a combination of another number of terms");
}

TEST_CASE("what no statement says is a call") {
  const Jaxpr program = parse(
      "{ lambda ; a:f64[32] . let\n"
      "    b:f64[32] = scan[body={ lambda ; a:f64[32] . let\n"
      "          b:f64[32] = sort[axis=0, num_keys=1, stable=true] a\n"
      "        in (b,) }, carry=1, length=32, reverse=false, xs=0] a\n"
      "  in (b,) }");
  const auto lowered = compile_passes::loop_program(program);
  REQUIRE(lowered->program);
  check(*lowered->program);
  CHECK(print(*lowered->program)
            .find("m2[0] = call sort[axis=0, num_keys=1, stable=true] x0 "
                  "where x0: f64[32] at m1[0] by (1)\n") != std::string::npos);
}

TEST_CASE("each step copies what it alone uses") {
  // place: where a step reads; between: what stands between the copy and the loop.
  const auto moved = [](const std::string& place, const std::string& between = "") {
    LoopProgram program = codegen::parse(
        "memory m0: float64[320] operand 0\n"
        "memory m1: float64[320] result 0\n"
        "memory m2: float64[320] frame\n"
        "copy m0[0] -> m1[0] of (4,80) by (80,1) -> (80,1)\n" +
        between +
        "apart for v0 in 0..4\n"
        "  for v1 in 0..79\n"
        "    v2: float64 = load m1[" +
        place +
        "]\n"
        "    store m1[v0 * 80 + v1 + 1] = v2\n");
    move_copies_inward(program);
    check(program);
    return print(program).find("  copy m0[v0 * 80] -> m1[v0 * 80] of (80) by (1) -> (1)\n") !=
           std::string::npos;
  };
  CHECK(moved("v0 * 80 + v1"));
  CHECK_FALSE(moved("v0 * 80 + v1 + 2"));  // of the next step
  CHECK_FALSE(moved("v1"));
  CHECK_FALSE(moved("v0 * 80 + v1", "copy m1[0] -> m2[0] of (320) by (1) -> (1)\n"));
  CHECK(moved("v0 * 80 + v1", "copy m0[0] -> m2[0] of (320) by (1) -> (1)\n"));
}

TEST_CASE("what no step changes goes before the loop") {
  // The loop combines m0, fills m2 and writes m1 by both.
  const auto text = [](const std::string& read, const std::string& filled,
                       const std::string& behind = "") {
    return "memory m0: float64[40] operand 0\n"
           "memory m1: float64[40] result 0\n"
           "memory m2: float64[40] frame\n"
           "for v0 in 0..4\n"
           "  v1: float64 = combine add from 0.0:f64 of v2 in 0..40\n"
           "    v3: float64 = load " +
           read +
           "[v2]\n"
           "    -> v3\n"
           "  parallel for v4 in 0..40\n"
           "    v5: float64 = load " +
           filled +
           "\n"
           "    v6: float64 = mul v5 v5\n"
           "    store m2[v4] = v6\n"
           "  for v7 in 0..40\n"
           "    v8: float64 = load m2[v7]\n"
           "    v9: float64 = add v1 v8\n"
           "    store m1[v7] = v9\n" +
           behind;
  };
  const auto moved = [](const std::string& text) {
    LoopProgram program = codegen::parse(text);
    move_invariants(program);
    check(program);
    const auto kind_of = [&](const codegen::Block& block, Statement::Kind kind) {
      return std::any_of(block.begin(), block.end(),
                         [&](const Statement& s) { return s.kind == kind; });
    };
    std::string all;
    if (kind_of(program.body, Statement::Kind::combine)) all += "combination ";
    if (std::any_of(program.body.begin(), program.body.end(),
                    [](const Statement& s) { return s.is_parallel; }))
      all += "memory";
    return all;
  };
  CHECK(moved(text("m0", "m0[v4]")) == "combination memory");
  CHECK(moved(text("m1", "m0[v4]")) == "memory");  // what the loop writes
  CHECK(moved(text("m0", "m1[v4]")) == "combination ");
  CHECK(moved(text("m0", "m0[v0]")) == "combination ");  // of the step
  CHECK(moved(text("m0", "m0[v4]", "v10: float64 = load m2[0]\nstore m1[0] = v10\n")) ==
        "combination ");  // used elsewhere
}

namespace {

// m2 sums m0 along its rows, of which there are as many as examples; and a second loop reads m2 at
// `place`, and sums it from the last row on.
LoopProgram two_loops(const std::string& first, const std::string& second, const std::string& place,
                      const std::string& between = "", std::int64_t rows = 50) {
  const auto n = [&](std::int64_t factor) { return std::to_string(factor * rows); };
  return codegen::parse("memory m0: float64[" + n(10) +
                        "] operand 0\n"
                        "memory m1: float64[" +
                        n(10) +
                        "] result 0\n"
                        "memory m2: float64[" +
                        n(10) +
                        "] frame\n"
                        "memory m3: float64[" +
                        n(10) + "] result 1\n" + first + "for v0 in 0.." + n(1) +
                        "\n"
                        "  for v1 in 0..10 (v2: float64 = 0.0:f64, then v4, at last v5)\n"
                        "    v3: float64 = load m0[v1 * " +
                        n(1) +
                        " + v0]\n"
                        "    v4: float64 = add v2 v3\n"
                        "    store m2[v1 * " +
                        n(1) + " + v0] = v4\n" + between + second + "for v6 in 0.." + n(1) +
                        "\n"
                        "  for v7 in 0..10 (v8: float64 = 1.0:f64, then v10, at last v11)\n"
                        "    v9: float64 = load m2[" +
                        place +
                        "]\n"
                        "    v10: float64 = sub v9 v8\n"
                        "    store m1[v7 * " +
                        n(1) + " + v6] = v10\n");
}
std::string backwards(std::int64_t rows = 50) {
  return "v7 * -" + std::to_string(rows) + " + v6 + " + std::to_string(9 * rows);
}
// Sums, and differences from the last one on.
std::vector<codegen::Numbers> summed(const codegen::Numbers& x, std::int64_t rows = 50) {
  codegen::Numbers sums(x.size()), y(x.size());
  for (std::size_t i = 0, n = std::size_t(rows); i < n; ++i) {
    double sum = 0, difference = 1;
    for (std::size_t t = 0; t < 10; ++t) sums[t * n + i] = sum += x[t * n + i];
    for (std::size_t t = 0; t < 10; ++t)
      y[t * n + i] = difference = sums[(9 - t) * n + i] - difference;
  }
  return {y, codegen::Numbers(x.size(), 77)};
}
codegen::Numbers thirds(std::int64_t rows = 50) {
  codegen::Numbers x;
  for (std::int64_t i = 0; i < 10 * rows; ++i) x.push_back(1.0 / double(i % 37 + 3));
  return x;
}

}  // namespace

TEST_CASE("loops one after the other become one where each step goes on with what is its own") {
  const auto united = [](LoopProgram program) {
    const std::vector<codegen::Numbers> before = codegen::interpret(program, {thirds()});
    unite(program);
    check(program);
    CHECK(codegen::interpret(program, {thirds()}) == before);
    return std::count_if(program.body.begin(), program.body.end(),
                         [](const Statement& s) { return s.kind == Kind::repeat; }) == 1;
  };
  CHECK(codegen::interpret(two_loops("apart ", "apart ", backwards()), {thirds()}) ==
        summed(thirds()));
  for (const std::string kind : {"apart ", "parallel "}) {
    CHECK(united(two_loops(kind, kind, backwards())));
    CHECK_FALSE(united(two_loops(kind, kind, "v7 * 50 + v6 * -1 + 49")));  // of another step
    CHECK_FALSE(united(two_loops(kind, kind, "v7 * 50")));
    const std::string copied = "copy m2[0] -> m3[0] of (500) by (1) -> (1)\n",
                      filled = "copy m0[0] -> m3[0] of (500) by (1) -> (1)\n",
                      changed = "copy m0[0] -> m2[0] of (50) by (1) -> (1)\n";
    CHECK(united(two_loops(kind, kind, backwards(), copied)));  // behind both
    CHECK(united(two_loops(kind, kind, backwards(), filled)));
    CHECK_FALSE(united(two_loops(kind, kind, backwards(), changed)));
  }
  CHECK_FALSE(united(two_loops("apart ", "parallel ", backwards())));  // lanes stay lanes
  CHECK_FALSE(united(two_loops("", "apart ", backwards())));
  // What fails first is what fails first.
  LoopProgram failing = two_loops("apart ", "apart ", backwards());
  Statement check_of_index;
  check_of_index.kind = Kind::check, check_of_index.operands = {0}, check_of_index.high = 49;
  failing.body[0].blocks[0].push_back(check_of_index);
  CHECK(united(failing));
  check_of_index.operands = {6};
  failing.body[1].blocks[0].push_back(check_of_index);
  CHECK_FALSE(united(failing));
}

TEST_CASE("lanes are cut where the other loop has fewer steps") {
  const auto text = [](const std::string& place) {
    return "memory m0: float64[240] operand 0\n"
           "memory m1: float64[240] result 0\n"
           "memory m2: float64[240] frame\n"
           "parallel for v0 in 0..80\n"
           "  for v1 in 0..3 (v2: float64 = 0.0:f64, then v4, at last v5)\n"
           "    v3: float64 = load m0[v1 * 80 + v0]\n"
           "    v4: float64 = add v2 v3\n"
           "    store m2[v1 * 80 + v0] = v4\n"
           "apart for v6 in 0..4\n"
           "  for v7 in 0..59\n"
           "    v8: float64 = load m2[" +
           place +
           "]\n"
           "    store m1[v7 + v6 * 60] = v8\n";
  };
  const auto united = [&](const std::string& place) {
    LoopProgram program = codegen::parse(text(place));
    codegen::Numbers x;
    for (int i = 0; i < 240; ++i) x.push_back(i * i % 101);
    const std::vector<codegen::Numbers> before = codegen::interpret(program, {x});
    unite(program);
    check(program);
    CHECK(codegen::interpret(program, {x}) == before);
    return program.body.size() == 1;
  };
  CHECK(united("v6 * 20 + 19"));
  CHECK(united("v6 * 20 + 165"));
  CHECK_FALSE(united("v6 * 20 + v7"));
}

TEST_CASE("what a step alone uses of a large array is memory of its own") {
  for (const std::int64_t rows : {5000, 6007}) {
    const codegen::Numbers x = thirds(rows);
    for (const std::string kind : {"apart ", "parallel "}) {
      CAPTURE(rows);
      CAPTURE(kind);
      LoopProgram program = two_loops(kind, kind, backwards(rows), "", rows);
      unite(program);
      give_steps_their_own(program);
      check(program);
      CHECK(program.memories[2].size == (kind == "apart " ? 10 : 640));
      CHECK(codegen::interpret(program, {x}) == summed(x, rows));
      share(program);
      check(program);
      CHECK(codegen::num_shared(program.body) == 1);
      CHECK(codegen::interpret(codegen::parse(print(program)), {x}) == summed(x, rows));
    }
  }
  LoopProgram apart = two_loops("apart ", "apart ", backwards(5000), "", 5000);
  give_steps_their_own(apart);  // two loops use it
  CHECK(apart.memories[2].size == 50000);
  apart = two_loops("apart ", "apart ", backwards());
  unite(apart);
  give_steps_their_own(apart);  // it is small
  CHECK(apart.memories[2].size == 500);
}

TEST_CASE("memory of steps that is used elsewhere breaks L8") {
  LoopProgram program = two_loops("apart ", "apart ", backwards(5000), "", 5000);
  unite(program);
  give_steps_their_own(program);
  REQUIRE(print(program).find("apart for v0 in 0..5000 with its own m2\n") != std::string::npos);
  LoopProgram wrong = program;
  wrong.body.push_back(wrong.body[0].blocks[0][0].blocks[0][2]);
  wrong.body.back().place.terms.clear();
  wrong.body.back().operands = {wrong.literals[0].first};
  CHECK(complaint(wrong) == "internal error: L8 is broken: m2 is used where no step has its own");
  wrong = program;
  wrong.body[0].is_parallel = true;
  CHECK(complaint(wrong) == "internal error: L8 is broken: m2 cannot be a step's own");
  wrong = program;
  wrong.body[0].own = {1};
  CHECK(complaint(wrong) == "internal error: L8 is broken: m1 cannot be a step's own");
  wrong = program;
  wrong.body[0].blocks[0][0].grain = 8;
  CHECK(
      complaint(wrong) ==
      "internal error: L8 is broken: threads share a loop in steps that have memory of their own");
}

TEST_CASE("how memory is read is known by loops") {
  const LoopProgram program = codegen::parse(
      "memory m0: float64[200] operand 0\n"
      "memory m1: float64[200] result 0\n"
      "memory m2: float64[20] result 1\n"
      "parallel for v0 in 0..20\n"
      "  for v1 in 0..10 (v2: float64 = 0.0:f64, then v4, at last v5)\n"
      "    v3: float64 = load m0[v0 * 10 + v1]\n"  // along its rows
      "    v4: float64 = add v2 v3\n"
      "  store m2[v0] = v5\n"
      "for v6 in 0..10\n"
      "  parallel for v7 in 0..20\n"
      "    v8: float64 = load m2[v7]\n"
      "    store m1[v6 * 20 + v7] = v8\n"
      "copy m1[0] -> m1[0] of (20,10) by (1,20) -> (1,20)\n");  // against them
  const std::vector<codegen::Reads> reads = reads_of(program);
  CHECK(reads[0].elements == 200);
  CHECK(reads[0].between == 1);
  CHECK(reads[1].elements == 200);
  CHECK(reads[1].between == 10);
  CHECK(reads[2].elements == 200);
  CHECK(reads[2].between == 1);
}

TEST_CASE("what was computed, loaded or checked before is not again") {
  LoopProgram program = codegen::parse(
      "memory m0: int64[9] operand 0\n"
      "memory m1: int64[9] result 0\n"
      "memory m2: int64[9] result 1\n"
      "v0: int64 = load m0[0]\n"
      "v1: int64 = add v0 1:i64\n"
      "check 0 <= v1 <= 8\n"
      "for v2 in 0..3 (v3: int64 = 0:i64, then v11, at last v12)\n"
      "  v4: int64 = load m0[0]\n"
      "  v5: int64 = add v4 1:i64\n"
      "  check -1 <= v5 <= 8\n"
      "  check 1 <= v5 <= 8\n"
      "  store m1[v2] = v5\n"
      "  v6: int64 = load m1[v2]\n"
      "  v7: int64 = load m2[0]\n"
      "  v8: int64 = add v6 v7\n"
      "  store m2[v2 + 1] = v8\n"
      "  v9: int64 = load m2[0]\n"
      "  v10: int64 = add v6 v9\n"
      "  v11: int64 = add v5 v10\n"
      "store m2[0] = v12\n"
      "v13: int64 = load m2[0]\n"
      "store m1[8] = v13\n");
  compute_once(program);
  check(program);
  CHECK(print(program) ==
        "memory m0: int64[9] operand 0\n"
        "memory m1: int64[9] result 0\n"
        "memory m2: int64[9] result 1\n"
        "v0: int64 = load m0[0]\n"
        "v1: int64 = add v0 1:i64\n"
        "check 0 <= v1 <= 8\n"
        "for v2 in 0..3 (v3: int64 = 0:i64, then v11, at last v12)\n"
        "  check 1 <= v1 <= 8\n"
        "  store m1[v2] = v1\n"
        "  v7: int64 = load m2[0]\n"
        "  v8: int64 = add v1 v7\n"
        "  store m2[v2 + 1] = v8\n"
        "  v9: int64 = load m2[0]\n"
        "  v10: int64 = add v1 v9\n"
        "  v11: int64 = add v1 v10\n"
        "store m2[0] = v12\n"
        "store m1[8] = v12\n");
}

TEST_CASE("functions of numbers that do not depend on each other are computed together") {
  const auto order = [](const std::string& between, int vector_bytes) {
    const LoopProgram program = codegen::parse(
        "memory m0: float64[4] operand 0\n"
        "memory m1: float64[4] result 0\n"
        "v0: int64 = cast[dtype=i64, weak=false] 3:i32\n"
        "v1: float64 = load m0[0]\n"
        "v2: float64 = sin v1\n"
        "store m1[0] = v2\n" +
        between +
        "v3: float64 = load m0[1]\n"
        "v4: float64 = mul v3 2.0:f64\n"
        "v5: float64 = sin v4\n"
        "v6: float64 = load m1[0]\n"
        "v7: float64 = sin v6\n"
        "v8: float64 = sin v5\n"
        "v9: float64 = cos v3\n");
    return codegen::functions_together(program, program.body, vector_bytes);
  };
  using Order = std::vector<std::vector<std::size_t>>;
  CHECK(order("", 64) == Order{{0}, {1}, {4}, {5}, {2, 6}, {3}, {7}, {8, 9}, {10}});
  CHECK(order("", 8) == Order{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}});
  CHECK(order("check 0 <= v0 <= 3\n", 64) ==
        Order{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {8}, {7, 9}, {10}, {11}});
}

TEST_CASE("lanes that run a serial loop are several registers, unless each has lines of its own") {
  const auto lanes = [](const std::string& step, const std::string& stride, int num_carried) {
    std::string carries, text;
    for (int i = 0; i < num_carried; ++i) {
      const auto value = [&](int which) { return "v" + std::to_string(10 + 3 * i + which); };
      carries +=
          " (" + value(0) + ": float64 = 0.0:f64, then " + value(1) + ", at last " + value(2) + ")";
      text += "    " + value(1) + ": float64 = mul " + value(0) + " 0.5:f64\n";
    }
    const LoopProgram program = codegen::parse(
        "memory m0: float64[40000] operand 0\n"
        "memory m1: float64[40000] result 0\n"
        "parallel for v0 in 0..200\n"
        "  for v1 in 0..100" +
        carries + "\n" + text + "    v2: float64 = load m0[v0" + stride + " + v1" + step +
        "]\n"
        "  store m1[v0" +
        stride + "] = v12\n");
    return codegen::num_lanes(program, program.body[0], 64);
  };
  CHECK(lanes(" * 200", "", 1) == 32);
  CHECK(lanes(" * 200", "", 4) == 32);
  CHECK(lanes(" * 200", "", 5) == 16);
  CHECK(lanes("", " * 100", 1) == 16);
}

TEST_CASE("what a step stores is carried to the steps behind it") {
  const LoopProgram loaded = codegen::parse(
      "memory m0: float64[10] operand 0\n"
      "memory m1: float64[10] result 0\n"
      "copy m0[0] -> m1[0] of (10) by (1) -> (1)\n"
      "for v0 in 0..8\n"
      "  v1: float64 = load m1[v0]\n"
      "  v2: float64 = load m1[v0 + 1]\n"
      "  v3: float64 = load m1[v0 + 2]\n"
      "  v4: float64 = add v1 v3\n"
      "  v5: float64 = mul v2 v4\n"
      "  store m1[v0 + 2] = v5\n");
  LoopProgram carried = loaded;
  hand_on(carried);
  check(carried);
  CHECK(print(carried) ==
        "memory m0: float64[10] operand 0\n"
        "memory m1: float64[10] result 0\n"
        "copy m0[0] -> m1[0] of (10) by (1) -> (1)\n"
        "v6: float64 = load m1[1]\n"
        "v9: float64 = load m1[0]\n"
        "for v0 in 0..8 (v7: float64 = v6, then v5, at last v8) (v10: float64 = v9, then v7, at "
        "last v11)\n"
        "  v3: float64 = load m1[v0 + 2]\n"
        "  v4: float64 = add v10 v3\n"
        "  v5: float64 = mul v7 v4\n"
        "  store m1[v0 + 2] = v5\n");
  codegen::Numbers x(10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  CHECK(codegen::interpret(carried, {x}) == codegen::interpret(loaded, {x}));
}

TEST_CASE("what others may store, or a check may keep from being loaded, is not carried") {
  const auto is_kept = [](const std::string& step) {
    const LoopProgram loaded = codegen::parse(
        "memory m0: int64[10] operand 0\n"
        "memory m1: int64[10] result 0\n"
        "v9: int64 = load m0[3]\n"
        "copy m0[0] -> m1[0] of (10) by (1) -> (1)\n"
        "for v0 in 0..4\n" +
        step);
    LoopProgram carried = loaded;
    hand_on(carried);
    return print(carried) == print(loaded);
  };
  const std::string load = "  v1: int64 = load m1[v0]\n", store = "  store m1[v0 + 1] = v1\n";
  CHECK(!is_kept(load + store));
  CHECK(!is_kept("  check 0 <= v9 <= 5\n" + load + store));
  CHECK(is_kept(load + store + "  store m1[9] = v1\n"));
  CHECK(is_kept("  v2: int64 = load m0[v0]\n  v1: int64 = load m1[v2]\n  store m1[v2 + 1] = v1\n"));
  CHECK(!is_kept("  v1: int64 = load m1[v9 + v0]\n  store m1[v9 + v0 + 1] = v1\n"));
  CHECK(
      is_kept("  check 0 <= v9 <= 5\n  v1: int64 = load m1[v9 + v0]\n"
              "  store m1[v9 + v0 + 1] = v1\n"));
  CHECK(is_kept("  v1: int64 = load m1[0]\n  store m1[0] = v1\n"));
}

TEST_CASE("examples with indices of their own go outside of the steps, with their checks") {
  // Twelve examples pick an element of theirs in each of five steps. bound: of the test; tested:
  // what is compared with it.
  const auto text = [](const std::string& bound, const std::string& tested) {
    return "memory m0: int64[60] operand 0\n"
           "memory m1: int64[84] operand 1\n"
           "memory m2: int64[84] result 0\n"
           "memory m3: int64[12] frame\n"
           "copy m1[0] -> m2[0] of (84) by (1) -> (1)\n"
           "for v0 in 0..5\n"
           "  parallel for v14 in 0..12\n"
           "    v15: int64 = load m0[v0 * 12 + v14]\n"
           "    store m3[v14] = v15\n"
           "  v1: bool = combine or from false:bool of v2 in 0..12\n"
           "    v3: int64 = load m3[" +
           tested +
           "]\n"
           "    v4: bool = cmp[direction='lt'] v3 0:i64\n"
           "    v5: bool = cmp[direction='gt'] v3 " +
           bound +
           ":i64\n"
           "    v6: bool = or v4 v5\n"
           "    -> v6\n"
           "  v7: int64 = cast[dtype=i64, weak=false] v1\n"
           "  branch v7\n"
           "   0\n"
           "   1\n"
           "    for v8 in 0..12\n"
           "      v9: int64 = load m3[v8]\n"
           "      check 0 <= v9 <= 6\n"
           "  parallel for v10 in 0..12\n"
           "    v11: int64 = load m3[v10]\n"
           "    v12: int64 = load m2[v10 * 7 + v11]\n"
           "    v13: int64 = add v12 1:i64\n"
           "    store m2[v10 * 7 + v11] = v13\n";
  };
  const auto moves = [&](const std::string& bound, const std::string& tested) {
    LoopProgram program = codegen::parse(text(bound, tested));
    program.know(11, {0, 6});
    const LoopProgram before = program;
    const bool moved = move_outward(program);
    check(program);
    CHECK(program.fails_by_example == moved);
    codegen::Numbers picks(60), x(84, 0);
    for (std::size_t i = 0; i < 60; ++i) picks[i] = double(i * i % 7);
    CHECK(codegen::interpret(program, {picks, x}) == codegen::interpret(before, {picks, x}));
    picks[37] = 7;
    CHECK_THROWS_AS(codegen::interpret(program, {picks, x}), IndexError);
    return moved;
  };
  CHECK(moves("6", "v2"));
  CHECK_FALSE(moves("5", "v2"));            // another test
  CHECK_FALSE(moves("6", "v2 * -1 + 11"));  // in another order
}

TEST_CASE("what cannot be a loop program says why") {
  const Jaxpr program = parse(
      "{ lambda ; a:f64[0] . let\n"
      "    b:f64[0] = scan[body={ lambda ; a:f64[0] . let\n"
      "          b:f64[0] = sort[axis=0, num_keys=1, stable=true] a\n"
      "        in (b,) }, carry=1, length=32, reverse=false, xs=0] a\n"
      "  in (b,) }");
  CHECK(compile_passes::loop_program(program)->reason == "an array without elements");
}

TEST_CASE("equal groups of other lines are lowered with lines of their own") {
  const auto line_of_check = [](int line) {
    const SourceScope scope(Source("train.cpp", line, "step"));
    const auto pick = [](const Array& x, const Array& i) { return numpy::take(x, i, 0, "raise"); };
    const Jaxpr group = make_jaxpr(pick, lax::iota(DType::float32, {4}, 0), Array(2)).jaxpr;
    int found = 0;
    codegen::for_each_statement(compile_passes::loop_program(group)->program->body,
                                [&](const Statement& s) {
                                  if (s.kind == Kind::check && s.source) found = s.source->line;
                                });
    return found;
  };
  CHECK(line_of_check(7) == 7);
  CHECK(line_of_check(8) == 8);
  CHECK(line_of_check(7) == 7);
}
