// numpy::where with functions: the element-wise form of cond.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>

#include <doctest/doctest.h>

#include <cmath>

namespace {

using namespace plait;  // NOLINT

Array safe_log(const Array& x) {
  return numpy::where(
      numpy::greater(x, 0.0), [](const Array& x) { return numpy::log(x); },
      [](const Array& x) { return 0.0 * x; }, x);
}

TEST_CASE("where with functions gives each element its own, and the other one no derivative") {
  const double values[] = {-1, 0, 0.5, 4};
  const auto slope = grad(safe_log);
  const auto curve = grad([](const Array& x) -> Array { return grad(safe_log)(x); });
  for (const double x : values) {
    CHECK(safe_log(x).item<double>() == doctest::Approx(x > 0 ? std::log(x) : 0));
    CHECK(slope(x).item<double>() == doctest::Approx(x > 0 ? 1 / x : 0));
    CHECK(curve(x).item<double>() == doctest::Approx(x > 0 ? -1 / (x * x) : 0));
  }
  const Array all = jit(vmap(slope))(numpy::linspace(-1.0, 2.0, 4));  // -1, 0, 1, 2
  CHECK(numpy::sum(all).item<double>() == doctest::Approx(1.5));
}

TEST_CASE("where with functions broadcasts its arguments") {
  const Array column = lax::reshape(numpy::linspace(0.0, 2.0, 3), {3, 1});
  const Array row = numpy::linspace(0.0, 3.0, 4);
  const Array larger = numpy::where(
      numpy::greater(column, row), [](const Array& x, const Array&) { return x; },
      [](const Array&, const Array& y) { return y; }, column, row);
  CHECK(larger.shape() == Shape{3, 4});
  CHECK(numpy::array_equal(larger, numpy::maximum(column, row)).item<bool>());
  CHECK_THROWS_AS(
      numpy::where(
          true, [&](const Array& x) { return x * row; }, [](const Array& x) { return x; }, 1.0),
      ShapeError);
}

}  // namespace
