// draw_blocks: slices of random numbers are made of the slices' numbers, with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>

#include "../same_bits.h"
#include "compile/passes/draw_blocks.h"

using namespace plait;

namespace {

const Aval words{{2}, DType::uint32};

Array key_words() { return lax::iota(DType::uint32, {2}, 0) + 7; }

bool has(const Jaxpr& program, const Primitive& primitive) {
  for (const Equation& equation : program->equations)
    if (*equation.primitive == primitive) return true;
  return false;
}

}  // namespace

TEST_CASE("a slice of random bits is made of their numbers alone") {
  struct Case {
    Shape shape, start, limit;
  };
  for (const int width : {8, 16, 32, 64})
    for (const auto& [shape, start, limit] :
         {Case{{10}, {3}, {7}}, Case{{6, 4}, {2, 0}, {4, 4}}, Case{{6, 4}, {1, 1}, {5, 3}},
          Case{{3, 4, 5}, {0, 2, 1}, {3, 3, 5}}, Case{{3, 4, 5}, {1, 0, 0}, {2, 4, 5}},
          Case{{4}, {2}, {2}}}) {
      CAPTURE(width);
      const Shape whole = shape, from = start, to = limit;
      CAPTURE(whole.to_string());
      const Function f = [&](std::span<const Array> in) {
        const Array bits = lax::random_bits(in[0], whole, width);
        return Arrays{lax::slice(lax::bitwise_xor(bits, lax::bitwise_not(bits)), from, to),
                      lax::slice(lax::random_bits(in[0] + 1, whole, width), from, to)};
      };
      const Jaxpr program = make_jaxpr(f, std::vector<Aval>{words}).jaxpr,
                  blocks = compile_passes::draw_blocks(program);
      REQUIRE(blocks);
      check(blocks);
      CHECK(!has(blocks, random_bits_p));
      const Arrays key{key_words()}, found = eval_jaxpr(blocks, key),
                                     want = eval_jaxpr(program, key);
      for (std::size_t i = 0; i < want.size(); ++i) CHECK(same_bits(found[i], want[i]));
    }
}

TEST_CASE("draws through elementwise operations, scalars, rows and counters") {
  const Function f = [](std::span<const Array> in) {
    const Array u = random::uniform(in[0], {1000, 6});
    const Array rows = lax::broadcast_in_dim(in[1], {1000, 6}, std::vector<int>{1});
    const Array numbers =
        lax::convert_element_type(lax::iota(DType::int32, {1000, 6}, 0), DType::float32);
    const Array all = lax::sin(u) * in[2] + rows * numbers;
    const Array some = lax::slice(lax::select(lax::gt(all, u), all, u), {500, 1}, {750, 4});
    return Arrays{lax::slice(some, {10, 0}, {20, 3})};
  };
  const Arrays inputs{random::key(3),
                      lax::convert_element_type(lax::iota(DType::int32, {6}, 0), DType::float32),
                      Array::literal(1.5, DType::float32)};
  CHECK(same_bits(flat::Jit(f, "f")(inputs)[0], f(inputs)[0]));
}

TEST_CASE("numbers that something else reads are drawn once") {
  const Function f = [](std::span<const Array> in) {
    const Array bits = lax::random_bits(in[0], {8}, 32);
    return Arrays{lax::slice(bits, {0}, {4}), lax::slice(bits, {4}, {8})};
  };
  CHECK(!compile_passes::draw_blocks(make_jaxpr(f, std::vector<Aval>{words}).jaxpr));
}
