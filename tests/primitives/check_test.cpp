// Checks of values, and the first NaN.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/inspect/first_nan.h>
#include <plait/plait.h>
#include <plait/primitives/check.h>

using namespace plait;

namespace {

Array scalar(double value) { return Array::literal(value, DType::float64); }

Array root(const Array& x) {
  check(lax::ge(x, scalar(0)), "x is {}, which has no root", {x});
  return lax::sqrt(x);
}

}  // namespace

TEST_CASE("a check passes or is an error that shows the value, under every transform") {
  CHECK(root(scalar(4)).item<double>() == 2);
  CHECK(jit(grad(root))(scalar(4)).item<double>() == 0.25);
  CHECK_THROWS_WITH_AS(jit(root)(scalar(-1)), doctest::Contains("check: x is -1.0, which has no"),
                       ValueError);
  CHECK_THROWS_WITH_AS(jit(grad(root))(scalar(-1)), doctest::Contains("x is -1.0"), ValueError);
  const Array rows =
      lax::concatenate({lax::full({2}, 1, DType::float64), lax::full({1}, -3, DType::float64)}, 0);
  CHECK_THROWS_WITH_AS(vmap(root)(rows),
                       doctest::Contains("x is -3.0, which has no root; in "
                                         "example 2"),
                       ValueError);
  CHECK_THROWS_AS(check(scalar(1), "no bool"), DtypeError);
}

TEST_CASE("first_nan finds the equation that makes a NaN, inside calls") {
  const auto inner = jit([](const Array& x) -> Array { return lax::sqrt(x); }, "inner");
  const auto f = [&](std::span<const Array> x) -> Arrays {
    const Array less = lax::sub(x[0], scalar(2));
    return {lax::mul(inner(less), scalar(3))};
  };
  const Array x = lax::convert_element_type(lax::iota(DType::int32, {5}, 0), DType::float64);
  const std::vector<Aval> avals{x.aval()};
  const Jaxpr program = make_jaxpr(f, avals).jaxpr;
  const auto found = first_nan(program, std::vector<Array>{x});
  REQUIRE(found);
  CHECK(found->equation == "sqrt f64[5] -> f64[5]");
  CHECK(found->element == Sizes64{0});
  REQUIRE(found->path.size() == 1);
  CHECK(found->path[0].name == "inner");
  CHECK_FALSE(first_nan(program, std::vector<Array>{lax::full({5}, 7, DType::float64)}));
}
