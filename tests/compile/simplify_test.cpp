// simplify: laws keep every bit, what is equal is merged, what is dead is dropped.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "../same_bits.h"
#include "compile/passes/simplify.h"

using namespace plait;

namespace {

Jaxpr simplified(const Jaxpr& program) {
  return compile_passes::simplify_program(program, [](auto&&...) { return false; });
}

std::string names(const Jaxpr& program) {
  std::string text;
  for (const Equation& equation : program->equations)
    text += (text.empty() ? "" : " ") + std::string(equation.primitive->name());
  return text;
}

// Numbers at which a law that is not exact shows: signed zeros, infinities, NaN, ties.
Array awkward(DType dtype) {
  const double values[] = {0.0, -0.0,  1.0,    -1.5,       INFINITY, -INFINITY,
                           NAN, 1e-45, 3.4e38, 16777217.0, 0.1,      -7.0};
  Buffer buffer = Buffer::empty(DType::float64, {3, 4});
  std::memcpy(buffer.mutable_data(), values, sizeof values);
  return lax::convert_element_type(Array(buffer), dtype);
}

struct Law {
  const char* law;
  std::function<Array(const Array&)> program;
  std::size_t equations;  // left after simplify
};

const Array f32(double value) { return Array::literal(value, DType::float32); }

// A program for each law.
std::vector<Law> all_laws() {
  const std::vector<int> swap{1, 0}, last{1};
  return {
      {"stop_gradient(x) = x, tag(x) = x",
       [](const Array& x) -> Array { return lax::neg(lax::stop_gradient(x)); }, 1},
      {"transpose(transpose(x, p), q) = transpose(x, p o q)",
       [=](const Array& x) -> Array { return lax::transpose(lax::transpose(x, swap), swap); }, 0},
      {"reshape(reshape(x, s), t) = reshape(x, t)",
       [](const Array& x) -> Array { return lax::reshape(lax::reshape(x, {2, 6}), {12}); }, 1},
      {"broadcast(broadcast(x, d), e) = broadcast(x, e o d)",
       [=](const Array& x) -> Array {
         return lax::broadcast_in_dim(lax::broadcast_in_dim(x, {2, 3, 4}, std::vector<int>{1, 2}),
                                      {5, 2, 3, 4}, std::vector<int>{1, 2, 3});
       },
       1},
      {"move(splat(x)) = splat(x)",
       [=](const Array& x) -> Array {
         return lax::sort(lax::reshape(lax::full({2, 3}, 3, DType::float32), {6})) +
                lax::reduce_max(x, std::vector<int>{0, 1});
       },
       4},
      {"pointwise(x, splat(y)) = pointwise(x, y)",
       [](const Array& x) -> Array { return lax::mul(x, lax::full({3, 4}, 0.3, DType::float32)); },
       1},
      {"cast(x, dtype of x) = x",
       [](const Array& x) -> Array {
         return lax::neg(lax::convert_element_type(x, DType::float32, true));
       },
       1},
      {"cast(cast(x, a), b) = cast(x, b) where a holds every x",
       [](const Array& x) -> Array {
         return lax::convert_element_type(lax::convert_element_type(x, DType::float64),
                                          DType::float16);
       },
       1},
      {"select(true, x, y) = x",
       [](const Array& x) -> Array { return lax::neg(lax::select(Array(true), x, lax::neg(x))); },
       1},
      {"neg(neg(x)) = x, not(not(x)) = x",
       [](const Array& x) -> Array { return lax::sin(lax::neg(lax::neg(x))); }, 1},
      {"x * 1 = x / 1 = x",
       [](const Array& x) -> Array { return lax::neg(lax::div(lax::mul(x, f32(1)), f32(1))); }, 1},
      {"1 * x = x", [](const Array& x) -> Array { return lax::neg(lax::mul(f32(1), x)); }, 1},
      {"x - 0 = x", [](const Array& x) -> Array { return lax::neg(lax::sub(x, f32(0))); }, 1},
      {"x + -0 = x", [](const Array& x) -> Array { return lax::neg(lax::add(x, f32(-0.0))); }, 1},
      {"-0 + x = x", [](const Array& x) -> Array { return lax::neg(lax::add(f32(-0.0), x)); }, 1},
      {"x with 0 in a window, + that window of x = x + 0",
       [](const Array& x) -> Array {
         const Array one = Array::literal(1, DType::int32);
         const Array window = lax::dynamic_slice(x, {one, one}, {2, 3});
         const Array zeros = lax::broadcast_in_dim(f32(0), {2, 3}, {});
         return lax::add(lax::dynamic_update_slice(x, zeros, {one, one}),
                         lax::pad(window, f32(0), {{1, 0, 0}, {1, 0, 0}}));
       },
       1},
      {"f(x) = 0 where neither has elements",
       [=](const Array& x) -> Array {
         const Array none = lax::slice(x, {1, 0}, {1, 4}, {1, 1});
         return lax::reshape(lax::sin(none) + 1.0, {4, 0});
       },
       1},
      {"reduce(x) = its identity where x has no elements",
       [=](const Array& x) -> Array {
         return x + lax::reduce_prod(lax::slice(x, {1, 0}, {1, 4}, {1, 1}), std::vector<int>{0});
       },
       1},
      {"dot(x, y) = 0 where an operand has no elements",
       [=](const Array& x) -> Array {
         const Array none = lax::slice(x, {0, 2}, {3, 2}, {1, 1});
         return lax::sub(x, lax::dot(none, lax::full({0, 4}, 1, DType::float32)));
       },
       0},
      {"pad(x, y) = y where x has no elements",
       [](const Array& x) -> Array {
         const Array none = lax::slice(x, {0, 2}, {3, 2}, {1, 1});
         return lax::mul(x, lax::pad(none, f32(3), {{0, 0, 0}, {1, 3, 0}}));
       },
       1},
      {"concatenate(x, y) = x where y has no elements",
       [](const Array& x) -> Array {
         const Array none = lax::slice(x, {0, 2}, {3, 2}, {1, 1});
         return lax::neg(lax::concatenate({none, x, none}, 1));
       },
       1},
      {"update(x, y) = x where y has no elements",
       [](const Array& x) -> Array {
         const Array start = Array::literal(1, DType::int32);
         const Array none = lax::slice(x, {0, 2}, {3, 2}, {1, 1});
         return lax::neg(lax::dynamic_update_slice(x, none, {start, start}));
       },
       1},
  };
}

}  // namespace

TEST_CASE("every law of algebra has a program here, which it shortens without changing a bit") {
  const std::vector<Law> all = all_laws();
  const auto rules = compile_passes::algebra().all();
  REQUIRE(rules.size() == all.size());
  const Array x = awkward(DType::float32);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(std::string(all[i].law));
    CHECK(std::string(rules[i].law) == all[i].law);
    const Jaxpr program =
        make_jaxpr([&](std::span<const Array> in) { return Arrays{all[i].program(in[0])}; },
                   std::vector<Aval>{x.aval()})
            .jaxpr;
    const Jaxpr shorter = simplified(program);
    CAPTURE(names(shorter));
    CHECK(shorter->equations.size() == all[i].equations);
    CHECK(same_bits(eval_jaxpr(shorter, std::vector<Array>{x})[0],
                    eval_jaxpr(program, std::vector<Array>{x})[0]));
  }
}

TEST_CASE("a scatter of whole arrays stays, whose rows have no elements") {
  const Jaxpr program = make_jaxpr(
                            [](const Array& x) {
                              const Array rows = lax::full({2, 0}, 0, DType::int32);
                              return lax::scatter(x, rows, lax::full({2, 3, 4}, 1, DType::float32),
                                                  lax::IndexDimensions{}, lax::ScatterKind::add);
                            },
                            awkward(DType::float32))
                            .jaxpr;
  CHECK(names(simplified(program)).find("scatter") != std::string::npos);
}

TEST_CASE("x + 0 stays, because it turns -0 into 0") {
  const Aval aval{{3}, DType::float32};
  const Jaxpr program =
      make_jaxpr([](std::span<const Array> in) { return Arrays{lax::add(in[0], f32(0))}; },
                 std::vector<Aval>{aval})
          .jaxpr;
  CHECK(names(simplified(program)) == "add");
}

TEST_CASE("a window that is put back elsewhere, or over other numbers than 0, stays") {
  const auto remaining = [](std::int64_t low, double hole, double padding) {
    return simplified(make_jaxpr(
                          [&](std::span<const Array> in) {
                            const Array at = Array::literal(1, DType::int32);
                            const Array window = lax::dynamic_slice(in[0], {at}, {3});
                            const Array holes = lax::broadcast_in_dim(f32(hole), {3}, {});
                            return Arrays{
                                lax::add(lax::dynamic_update_slice(in[0], holes, {at}),
                                         lax::pad(window, f32(padding), {{low, 5 - low, 0}}))};
                          },
                          std::vector<Aval>{{{8}, DType::float32}})
                          .jaxpr)
        ->equations.size();
  };
  CHECK(remaining(1, 0, 0) == 1);
  CHECK(remaining(2, 0, 0) > 1);
  CHECK(remaining(1, 1, 0) > 1);
  CHECK(remaining(1, 0, 1) > 1);
  CHECK(remaining(1, -0.0, 0) > 1);
}

TEST_CASE("casts merge only where the middle dtype holds every value") {
  auto through = [](DType from, DType middle, DType to) {
    const Jaxpr program = make_jaxpr(
                              [=](std::span<const Array> in) {
                                return Arrays{lax::convert_element_type(
                                    lax::convert_element_type(in[0], middle), to)};
                              },
                              std::vector<Aval>{{{3}, from}})
                              .jaxpr;
    return simplified(program)->equations.size();
  };
  CHECK(through(DType::float32, DType::float64, DType::float32) == 0);
  CHECK(through(DType::float32, DType::bfloat16, DType::float32) == 2);
  CHECK(through(DType::bfloat16, DType::float16, DType::float32) == 2);
  CHECK(through(DType::int64, DType::float64, DType::float32) == 2);
  CHECK(through(DType::int8, DType::uint32, DType::int64) == 2);
  CHECK(through(DType::uint8, DType::int16, DType::float32) == 1);
}

TEST_CASE("equal equations merge, but not across a barrier; dead ones go") {
  const Aval aval{{3}, DType::float32};
  auto program = [&](const Function& f) { return make_jaxpr(f, std::vector<Aval>{aval}).jaxpr; };
  CHECK(names(simplified(program([](std::span<const Array> in) {
          return Arrays{lax::mul(lax::sin(in[0]), lax::sin(in[0]))};
        }))) == "sin mul");
  const Jaxpr kept = simplified(program([](std::span<const Array> in) {
    const Array passed = bind(barrier_p, {in[0]});
    return Arrays{lax::mul(lax::sin(in[0]), lax::sin(passed))};
  }));
  CHECK(names(kept) == "sin barrier sin mul");
}

TEST_CASE("calls are inlined") {
  const Aval aval{{3}, DType::float32};
  const Jaxpr body = make_jaxpr([](std::span<const Array> in) { return Arrays{lax::sin(in[0])}; },
                                std::vector<Aval>{aval})
                         .jaxpr;
  const Jaxpr program =
      make_jaxpr(
          [&](std::span<const Array> in) { return Arrays{lax::cos(flat::call(body, in)[0])}; },
          std::vector<Aval>{aval})
          .jaxpr;
  CHECK(names(simplified(program)) == "sin cos");
}
