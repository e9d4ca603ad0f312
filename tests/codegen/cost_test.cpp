// The cost model, on programs written by hand and a machine of round numbers.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/cost.h"

#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/primitives/primitives.h>

using namespace plait;
using codegen::Bound;
using codegen::LoopProgram;
using codegen::Machine;
using codegen::Place;
using codegen::Prediction;
using codegen::Statement;
using codegen::Value;
using Kind = Statement::Kind;
using Space = codegen::Memory::Space;
using doctest::Approx;

namespace {

Machine machine() {
  Machine machine;
  machine.operation = machine.vector = 0.1;
  machine.vector_division = 16, machine.divided = 20;
  machine.integer = 1, machine.addition = machine.multiply_add = 4;
  machine.forwarding = 10, machine.misprediction = 8;
  machine.vector_bytes = 64;
  machine.levels = {
      {{1'000, 100, 50, 5}, {10'000, 10, 5, 10}, {100'000, 4, 2, 20}, {1e18, 1, 0.5, 100}}};
  return machine;
}

// Adds statements to a program of float64, and the values that they define.
struct Writer {
  LoopProgram program;

  int memory(Space space, std::int64_t size) {
    program.memories.push_back({space, int(program.memories.size()), DType::float64, size});
    return int(program.memories.size()) - 1;
  }
  Value value(DType dtype) {
    program.dtypes.push_back(dtype);
    return Value(program.dtypes.size()) - 1;
  }
  Value zero() {
    program.literals.emplace_back(value(DType::float64), Literal{DType::float64, false, 0, 0, 0});
    return program.literals.back().first;
  }
  Statement load(Place place) {
    Statement s;
    s.kind = Kind::load, s.value = value(DType::float64), s.place = std::move(place);
    return s;
  }
  Statement compute(const Primitive& primitive, codegen::Values operands,
                    DType result = DType::float64) {
    Statement s;
    s.value = value(result), s.primitive = &primitive, s.operands = std::move(operands);
    return s;
  }
  static Statement store(Place place, Value stored) {
    Statement s;
    s.kind = Kind::store, s.operands = {stored}, s.place = std::move(place);
    return s;
  }
  static Statement repeat(Value counter, std::int64_t steps, codegen::Block block) {
    Statement s;
    s.kind = Kind::repeat, s.value = counter, s.steps = steps;
    s.blocks = {std::move(block)};
    return s;
  }
};

// y[i] = x[i] by `primitive` x[i], in parallel.
LoopProgram elementwise(const Primitive& primitive, std::int64_t size) {
  Writer w;
  const int x = w.memory(Space::operand, size), y = w.memory(Space::result, size);
  const Value i = w.value(DType::int64);
  const Statement load = w.load({x, 0, {{i, 1}}});
  const Statement made = w.compute(primitive, {load.value, load.value});
  Statement loop =
      Writer::repeat(i, size, {load, made, Writer::store({y, 0, {{i, 1}}}, made.value)});
  loop.is_parallel = true;
  w.program.body = {loop};
  check(w.program);
  return w.program;
}

}  // namespace

TEST_CASE("a carried sum is bound by the latency of its additions") {
  Writer w;
  const int x = w.memory(Space::operand, 100);
  const Value zero = w.zero(), i = w.value(DType::int64), sum = w.value(DType::float64);
  const Statement load = w.load({x, 0, {{i, 1}}}), add = w.compute(add_p, {sum, load.value});
  Statement loop = Writer::repeat(i, 100, {load, add});
  loop.carries = {{sum, zero, add.value, w.value(DType::float64)}};
  w.program.body = {loop};
  check(w.program);
  const Prediction predicted = predict(w.program, machine());
  CHECK(predicted.bound() == Bound::latency);
  CHECK(predicted.ns == Approx(5 + 100 * 4));  // the first load, and then one addition a step
  CHECK(predicted.to_string() == "405 ns (bound by latency: 100 steps x 4.0 ns)");
}

TEST_CASE("a chain goes through memory where a step loads what the step before stored") {
  for (const std::int64_t distance : {1, 2}) {
    Writer w;
    const int y = w.memory(Space::result, 102);
    const Value zero = w.zero(), i = w.value(DType::int64);
    const Statement load = w.load({y, 0, {{i, 1}}}), add = w.compute(add_p, {load.value, zero});
    w.program.body = {
        Writer::repeat(i, 100, {load, add, Writer::store({y, distance, {{i, 1}}}, add.value)})};
    check(w.program);
    const Prediction predicted = predict(w.program, machine());
    CHECK(predicted.bound() == Bound::latency);
    CHECK(predicted.ns == Approx(100 * (10 + 4) / double(distance)).epsilon(0.02));
  }
}

TEST_CASE("what fits the first cache is bound by its operations, a register of vectors at a time") {
  const Prediction predicted = predict(elementwise(div_p, 48), machine());
  CHECK(predicted.bound() == Bound::throughput);
  CHECK(predicted.ns == Approx(6 * (16 + 0.2)));  // six registers, and two operations of the loop
  CHECK(predicted.shares[int(Bound::throughput)] == Approx(predicted.ns));
}

TEST_CASE("what exceeds the first cache comes from the next one that holds it") {
  const Prediction second = predict(elementwise(add_p, 400), machine());
  CHECK(second.bound() == Bound::memory);
  CHECK(second.ns == Approx(3200.0 / 10 + 3200.0 / 5));
  CHECK(second.to_string() == "960 ns (bound by memory)");
  const Prediction third = predict(elementwise(add_p, 4000), machine());
  CHECK(third.ns == Approx(32000.0 / 4 + 32000.0 / 2));
}

TEST_CASE("what every step of a loop reads stays in the cache if a step fits there") {
  constexpr std::int64_t rows = 20, columns = 50;
  Writer w;
  const int a = w.memory(Space::operand, rows * columns), x = w.memory(Space::operand, columns),
            y = w.memory(Space::result, rows);
  const Value zero = w.zero(), i = w.value(DType::int64);
  Statement product;
  product.kind = Kind::combine, product.primitive = &dot_general_p, product.steps = columns;
  product.counter = w.value(DType::int64);
  const Statement of_a = w.load({a, 0, {{i, columns}, {product.counter, 1}}}),
                  of_x = w.load({x, 0, {{product.counter, 1}}});
  product.operands = {zero, of_a.value, of_x.value};
  product.blocks = {{of_a, of_x}};
  product.value = w.value(DType::float64);
  w.program.body = {
      Writer::repeat(i, rows, {product, Writer::store({y, 0, {{i, 1}}}, product.value)})};
  check(w.program);
  const Prediction predicted = predict(w.program, machine());
  CHECK(predicted.bound() == Bound::memory);
  // The matrix goes by once, eight columns at a time, and so does the vector; results are written.
  const double padded = 56.0 / columns;
  CHECK(predicted.ns == Approx(padded * (rows * columns + columns) * 8 / 10 + rows * 8 / 5.0));
}

TEST_CASE("lanes go along the outer loop: a column of a matrix is read with its neighbours") {
  constexpr std::int64_t rows = 30, columns = 40;
  Writer w;
  const int a = w.memory(Space::operand, rows * columns), y = w.memory(Space::result, columns);
  const Value zero = w.zero(), i = w.value(DType::int64);
  Statement sum;
  sum.kind = Kind::combine, sum.primitive = &add_p, sum.steps = rows;
  sum.counter = w.value(DType::int64);
  const Statement load = w.load({a, 0, {{i, 1}, {sum.counter, columns}}});
  sum.operands = {zero, load.value};
  sum.blocks = {{load}};
  sum.value = w.value(DType::float64);
  Statement loop = Writer::repeat(i, columns, {sum, Writer::store({y, 0, {{i, 1}}}, sum.value)});
  loop.is_parallel = true;
  w.program.body = {loop};
  check(w.program);
  const Prediction predicted = predict(w.program, machine());
  CHECK(predicted.ns == Approx(rows * columns * 8 / 10.0 + columns * 8 / 5.0).epsilon(0.05));
}

TEST_CASE("a loop of unknown length counts as if it were usual, and the prediction says so") {
  Writer w;
  const Value zero = w.zero(), sum = w.value(DType::float64);
  Statement loop;
  loop.kind = Kind::loop;
  const Statement holds = w.compute(not_p, {w.value(DType::bool_)}, DType::bool_);
  w.program.literals.emplace_back(holds.operands[0], Literal{DType::bool_, false, 0, 0, 0});
  const Statement add = w.compute(add_p, {sum, sum});
  loop.operands = {holds.value};
  loop.blocks = {{holds}, {add}};
  loop.carries = {{sum, zero, add.value, w.value(DType::float64)}};
  w.program.body = {loop};
  check(w.program);
  const Prediction predicted = predict(w.program, machine());
  CHECK(!predicted.is_known);
  CHECK(predicted.ns == Approx(16 * 4 + 8));
  CHECK(predicted.to_string() ==
        "72 ns (bound by latency; with 16 steps of each loop of unknown length)");
}

TEST_CASE("a part of a program is predicted as if it were all") {
  LoopProgram program = elementwise(div_p, 48);
  const double alone = predict(program, machine()).ns;
  program.body.push_back(program.body[0]);
  CHECK(predicted_ns(program, {program.body[1]}, machine()) == Approx(alone));
}
