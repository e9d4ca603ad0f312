// outer_products: products that add nothing up become multiplications with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>

#include <cmath>
#include <cstring>

#include "../same_bits.h"
#include "compile/passes/outer_products.h"

using namespace plait;

namespace {

Array column(const std::vector<double>& values, DType dtype) {
  Buffer buffer = Buffer::empty(DType::float64, {std::int64_t(values.size()), 1});
  std::memcpy(buffer.mutable_data(), values.data(), values.size() * sizeof(double));
  return lax::convert_element_type(Array(buffer), dtype);
}

}  // namespace

TEST_CASE("a product that adds nothing up is a multiplication of the same bits") {
  const std::vector<double> numbers{0.0, -0.0, 1.0, -1.5, INFINITY, 1e-30, 3e38, 0.1, -7.0},
      integers{0, -3, 7, 100, 5};
  for (DType dtype : {DType::float32, DType::float64, DType::bfloat16, DType::int32, DType::int8}) {
    CAPTURE(name_of(dtype));
    const Array x = column(is_inexact(dtype) ? numbers : integers, dtype);
    const Function outer = [](std::span<const Array> in) {
      return Arrays{lax::dot_general(in[0], in[1], {{1}, {1}, {}, {}})};
    };
    const std::vector<Aval> avals{x.aval(), x.aval()};
    const Jaxpr program = make_jaxpr(outer, avals).jaxpr,
                multiplied = compile_passes::multiply_outer_products(program);
    REQUIRE(multiplied);
    for (const Equation& equation : multiplied->equations)
      CHECK(!(*equation.primitive == dot_general_p));
    const Arrays inputs{x, x};
    CHECK(same_bits(eval_jaxpr(multiplied, inputs)[0], eval_jaxpr(program, inputs)[0]));
    CHECK(same_bits(flat::Jit(outer, "outer")(inputs)[0], outer(inputs)[0]));
  }
}

TEST_CASE("outer products of any axes, also batched ones, keep their places") {
  const Array key = random::key(1);
  const Array x = random::normal(key, {4, 1, 3, 2}), y = random::normal(key, {1, 5, 2, 4});
  const Function outer = [](std::span<const Array> in) {  // batch 2 and 4, free 3 and 5
    return Arrays{lax::dot_general(in[0], in[1], {{1}, {0}, {3, 0}, {2, 3}})};
  };
  const Array product = outer(Arrays{x, y})[0];
  REQUIRE(product.shape() == Shape{2, 4, 3, 5});
  CHECK(same_bits(flat::Jit(outer, "outer")(Arrays{x, y})[0], product));
  const Buffer a = x.buffer().dense(), b = y.buffer().dense(), c = product.buffer().dense();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < 5; ++l)
          CHECK(c.view().as<float>()[((i * 4 + j) * 3 + k) * 5 + l] ==
                a.view().as<float>()[(j * 3 + k) * 2 + i] *
                    b.view().as<float>()[(l * 2 + i) * 4 + j]);
}

TEST_CASE("products that add something up stay products") {
  const Aval aval{{4, 4}, DType::float32};
  const Jaxpr program = make_jaxpr(
                            [](std::span<const Array> in) {
                              return Arrays{lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}})};
                            },
                            std::vector<Aval>{aval, aval})
                            .jaxpr;
  CHECK(!compile_passes::multiply_outer_products(program));
}
