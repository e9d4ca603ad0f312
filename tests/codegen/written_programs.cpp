// See written_programs.h.
// SPDX-License-Identifier: Apache-2.0
#include "written_programs.h"

#include <plait/inspect/samples.h>
#include <plait/primitives/primitives.h>

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;
using Space = Memory::Space;

// Values and statements of a program.
struct Making {
  LoopProgram program;

  Value value(DType dtype) {
    program.dtypes.push_back(dtype);
    return Value(program.dtypes.size()) - 1;
  }
  Value literal(DType dtype, double number) {
    const Value made = value(dtype);
    Literal literal{dtype, false, 0, 0, 0};
    literal.integer = is_integer(dtype) ? std::int64_t(number) : 0;
    literal.real = is_integer(dtype) ? 0 : number;
    program.literals.emplace_back(made, literal);
    return made;
  }
  Value load(Block& block, Place place) {
    Statement s;
    s.kind = Kind::load;
    s.value = value(program.memories[std::size_t(place.memory)].dtype);
    s.place = std::move(place);
    block.push_back(s);
    return s.value;
  }
  Value compute(Block& block, const Primitive& primitive, Values operands, DType dtype,
                Params params = {}) {
    Statement s;
    s.primitive = &primitive;
    s.params = std::move(params);
    s.operands = std::move(operands);
    s.value = value(dtype);
    block.push_back(s);
    return s.value;
  }
  void store(Block& block, Place place, Value stored) {
    Statement s;
    s.kind = Kind::store;
    s.place = std::move(place);
    s.operands = {stored};
    block.push_back(s);
  }
  // body(block, counter)
  template <class Body>
  Statement repeat(std::int64_t steps, const Body& body) {
    Statement s;
    s.kind = Kind::repeat;
    s.steps = steps;
    s.value = value(DType::int64);
    s.blocks.emplace_back();
    body(s.blocks[0], s.value);
    return s;
  }
  // terms(block, counter)
  template <class Terms>
  Statement combine(const Primitive& by, Value from, std::int64_t steps, const Terms& terms) {
    Statement s;
    s.kind = Kind::combine;
    s.primitive = &by;
    s.steps = steps;
    s.counter = value(DType::int64);
    s.operands = {from};
    s.blocks.emplace_back();
    for (Value term : terms(s.blocks[0], s.counter)) s.operands.push_back(term);
    s.value = value(program.dtypes[std::size_t(from)]);
    return s;
  }
};

Array numbers(const Sizes64& shape, DType dtype = DType::float64) {
  return laws::converted(laws::normal_like({Shape::of(shape), DType::float64}, 3), dtype);
}

}  // namespace

WrittenProgram smoothed() {
  constexpr DType f64 = DType::float64;
  Making make;
  make.program.memories = {
      {Space::operand, 0, f64, 64}, {Space::result, 0, f64, 64}, {Space::frame, 0, f64, 64}};
  const Value half = make.literal(f64, 0.5);
  Statement copy;
  copy.kind = Kind::copy, copy.place = {1}, copy.source_place = {0};
  copy.shape = {64}, copy.strides = {1}, copy.source_strides = {1};
  Statement edges = copy;
  edges.place = {2}, edges.source_place = {1}, edges.shape = {2};
  edges.strides = edges.source_strides = {63};
  Statement steps = make.repeat(5, [&](Block& step, Value) {
    step.push_back(edges);
    Statement inner = make.repeat(62, [&](Block& block, Value i) {
      const Value left = make.load(block, {1, 0, {{i, 1}}});
      const Value right = make.load(block, {1, 2, {{i, 1}}});
      const Value sum = make.compute(block, add_p, {left, right}, f64);
      make.store(block, {2, 1, {{i, 1}}}, make.compute(block, mul_p, {sum, half}, f64));
    });
    inner.is_parallel = true;
    step.push_back(inner);
  });
  steps.exchanged = {{1, 2}};
  make.program.body = {copy, steps};
  return {"smoothed", make.program, {numbers({64})}, {{{Dim(64)}, f64}}};
}

WrittenProgram chosen_rows() {
  constexpr DType f32 = DType::float32;
  Making make;
  make.program.memories = {{Space::operand, 0, f32, 60},
                           {Space::operand, 1, DType::int32, 4},
                           {Space::result, 0, f32, 8}};
  const Value zero = make.literal(f32, 0), highest = make.literal(f32, -1e30);
  make.program.body.push_back(make.repeat(4, [&](Block& step, Value i) {
    const Value chosen = make.load(step, {1, 0, {{i, 1}}});
    const Value row = make.compute(step, cast_p, {chosen}, DType::int64,
                                   {{"dtype", DType::int64}, {"weak", false}});
    Statement check;
    check.kind = Kind::check, check.operands = {row}, check.low = 0, check.high = 4;
    check.raise = [](std::int64_t index) {
      throw IndexError("row " + std::to_string(index) + " of 5", "choose another");
    };
    step.push_back(check);
    Statement length = make.combine(dot_general_p, zero, 12, [&](Block& block, Value j) {
      const Value x = make.load(block, {0, 0, {{row, 12}, {j, 1}}});
      return Values{x, x};
    });
    length.is_in_order = true;
    step.push_back(length);
    step.push_back(make.combine(max_p, highest, 12, [&](Block& block, Value j) {
      return Values{make.load(block, {0, 0, {{row, 12}, {j, 1}}})};
    }));
    make.store(step, {2, 0, {{i, 2}}}, make.compute(step, sqrt_p, {length.value}, f32));
    make.store(step, {2, 1, {{i, 2}}}, step[step.size() - 3].value);
  }));
  Buffer rows = Buffer::empty(DType::int32, {4});
  for (int i = 0; i < 4; ++i) static_cast<std::int32_t*>(rows.mutable_data())[i] = i * 3 % 5;
  return {"chosen_rows", make.program, {numbers({60}, f32), Array(rows)}, {{{Dim(8)}, f32}}};
}

WrittenProgram halved() {
  constexpr DType f64 = DType::float64;
  Making make;
  make.program.memories = {{Space::operand, 0, f64, 1}, {Space::result, 0, f64, 2}};
  const Value small = make.literal(f64, 0.25), half = make.literal(f64, 0.5),
              zero = make.literal(DType::int64, 0), one = make.literal(DType::int64, 1),
              two = make.literal(DType::int64, 2);
  const Value start = make.load(make.program.body, {0, 0, {}});
  const Value x = make.value(f64), turn = make.value(DType::int64), y = make.value(f64);
  Block test, step, shorter, longer;
  const Value goes_on =
      make.compute(test, cmp_p, {small, x}, DType::bool_, {{"direction", std::string("lt")}});
  Statement branch;
  branch.kind = Kind::branch,
  branch.operands = {make.compute(step, rem_p, {turn, two}, DType::int64)};
  const Value less = make.compute(shorter, mul_p, {x, half}, f64),
              more = make.compute(longer, sub_p, {x, make.literal(f64, -0.125)}, f64);
  branch.blocks = {shorter, longer};
  branch.carries = {{y, -1, -1, -1, {less, more}}};
  step.push_back(branch);
  const Value next_turn = make.compute(step, add_p, {turn, one}, DType::int64);
  Statement loop;
  loop.kind = Kind::loop, loop.operands = {goes_on}, loop.blocks = {test, step};
  const Value last = make.value(f64), turns = make.value(DType::int64);
  loop.carries = {{x, start, y, last}, {turn, zero, next_turn, turns}};
  make.program.body.push_back(loop);
  make.store(make.program.body, {1, 0, {}}, last);
  make.store(
      make.program.body, {1, 1, {}},
      make.compute(make.program.body, cast_p, {turns}, f64, {{"dtype", f64}, {"weak", false}}));
  return {"halved", make.program, {Array::literal(40.0, f64)}, {{{Dim(2)}, f64}}};
}

}  // namespace plait::codegen
