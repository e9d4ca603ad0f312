// reduce_window against a loop over windows.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>
#include <limits>

#include "properties.h"

using namespace plait;
using namespace plait::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Geometry {
  Sizes64 window, strides, low, high, base, dilation;
};

Array reduced(const char* kind, const Array& x, const Geometry& g) {
  auto shape = [](const Sizes64& list) { return Shape::of(list); };
  return bind(reduce_window_p, {x},
              {{"kind", std::string(kind)},
               {"window_dimensions", shape(g.window)},
               {"window_strides", shape(g.strides)},
               {"padding_low", shape(g.low)},
               {"padding_high", shape(g.high)},
               {"base_dilation", shape(g.base)},
               {"window_dilation", shape(g.dilation)}});
}

// Counts through all indices of a shape.
bool advance(Sizes64& index, const Sizes64& shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return true;
    index[i] = 0;
  }
  return false;
}

// Values of every window, row-major; NaN-free places that are padding or holes are left out.
std::vector<double> naive(const char* kind, const std::vector<double>& x, const Sizes64& shape,
                          const Geometry& g) {
  const std::string name = kind;
  const std::size_t rank = shape.size();
  Sizes64 counts(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t length =
        (shape[i] == 0 ? 0 : (shape[i] - 1) * g.base[i] + 1) + g.low[i] + g.high[i];
    const std::int64_t reach = (g.window[i] - 1) * g.dilation[i] + 1;
    counts[i] = length < reach ? 0 : (length - reach) / g.strides[i] + 1;
  }
  std::vector<double> results;
  if (num_elements(counts) == 0) return results;
  Sizes64 at(rank, 0);
  do {
    double value = name == "sum" ? 0 : name == "prod" ? 1 : name == "max" ? -infinity : infinity;
    double best = -1, extreme = 0, place = 0;
    Sizes64 k(rank, 0);
    do {
      std::int64_t element = 0;
      bool inside = true;
      for (std::size_t i = 0; i < rank; ++i) {
        const std::int64_t position = at[i] * g.strides[i] + k[i] * g.dilation[i] - g.low[i];
        inside =
            inside && position >= 0 && position % g.base[i] == 0 && position / g.base[i] < shape[i];
        element = element * shape[i] + position / g.base[i];
      }
      if (inside) {
        const double v = x[element];
        if (name == "sum") value += v;
        if (name == "prod") value *= v;
        if (name == "max") value = std::isnan(value) || value > v ? value : v;
        if (name == "min") value = std::isnan(value) || value < v ? value : v;
        if (best < 0 || (!std::isnan(extreme) &&
                         (std::isnan(v) || (name == "argmin" ? v < extreme : v > extreme)))) {
          best = place;
          extreme = v;
        }
      }
      ++place;
    } while (advance(k, g.window));
    results.push_back(name.starts_with("arg") ? best : value);
  } while (advance(at, counts));
  return results;
}

template <class T>
void check_windows_of(const Sizes64& shape, const Geometry& g) {
  // Sums and products of small whole numbers are exact in float64.
  constexpr double tolerance = std::is_same_v<T, double> ? 0 : detail::is_half<T> ? 1e-2 : 1e-6;
  for (const char* kind : {"sum", "prod", "max", "min", "argmax", "argmin"}) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < num_elements(shape); ++i)
      values.push_back(double((i * 7919 + 13) % 17) - (std::is_unsigned_v<T> ? 0 : 8));
    if constexpr (std::is_same_v<T, double>) {
      values[values.size() / 2] = std::nan("");
      values[values.size() / 3] = -infinity;
    }
    std::vector<T> typed;
    for (double value : values) {
      if constexpr (detail::is_half<T>)
        typed.push_back(T(float(value)));
      else
        typed.push_back(T(value));
    }
    CAPTURE(std::string(kind));
    const Array actual = reduced(kind, array(typed, shape), g);
    const std::vector<double> expected = naive(kind, values, shape, g), result = numbers_of(actual);
    REQUIRE(result.size() == expected.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      CAPTURE(i);
      if (std::isnan(expected[i]))
        CHECK(std::isnan(result[i]));
      else if (std::isinf(expected[i]) && std::is_integral_v<T>)
        CHECK(std::abs(result[i]) >= 100);  // no element
      else if constexpr (std::is_integral_v<T>)
        CHECK(T(std::int64_t(result[i])) == T(std::int64_t(expected[i])));
      else
        CHECK((result[i] == expected[i] ||
               std::abs(result[i] - expected[i]) <= tolerance * std::abs(expected[i])));
    }
  }
}

}  // namespace

TEST_CASE("reductions over windows equal a loop, with any strides, padding and holes") {
  const std::pair<Sizes64, Geometry> cases[] = {
      {{11}, {{3}, {1}, {0}, {0}, {1}, {1}}},
      {{11}, {{3}, {2}, {2}, {3}, {1}, {2}}},
      {{11}, {{4}, {3}, {-2}, {-1}, {1}, {1}}},
      {{7}, {{3}, {2}, {1}, {2}, {3}, {1}}},
      {{7}, {{3}, {3}, {4}, {2}, {2}, {2}}},
      {{4}, {{3}, {1}, {6}, {5}, {1}, {1}}},  // windows of padding alone
      {{2, 8, 9}, {{1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}}},
      {{2, 8, 9}, {{1, 3, 3}, {1, 2, 1}, {0, 1, 1}, {0, 1, 2}, {1, 1, 1}, {1, 2, 1}}},
      {{2, 6, 5, 3},
       {{1, 3, 2, 1}, {1, 2, 1, 1}, {0, 1, 0, 0}, {0, 1, 1, 0}, {1, 1, 2, 1}, {1, 1, 1, 1}}},
      {{5, 4}, {{2, 3}, {1, 1}, {1, 1}, {0, 2}, {2, 1}, {1, 1}}},
      {{3, 4}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}}},
      {{3, 4}, {{1, 1}, {2, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}}},
  };
  for (const auto& [shape, geometry] : cases) {
    check_windows_of<double>(shape, geometry);
    check_windows_of<float>(shape, geometry);
    check_windows_of<std::int16_t>(shape, geometry);
  }
  check_windows_of<bfloat16>(cases[7].first, cases[7].second);
  check_windows_of<std::uint8_t>(cases[7].first, cases[7].second);
  check_windows_of<std::int64_t>(cases[7].first, cases[7].second);
}

TEST_CASE("pooling with padding by name, as JAX resolves it") {
  const Array x = array<float>({1, 2, 3, 4, 5}, {5});
  CHECK(elements<float>(lax::reduce_window_max(x, {2}, {2}, "SAME")) ==
        std::vector<float>{2, 4, 5});
  CHECK(elements<float>(lax::reduce_window_max(x, {2}, {2}, "SAME_LOWER")) ==
        std::vector<float>{1, 3, 5});
  CHECK(elements<float>(lax::reduce_window_sum(x, {3}, {}, {{1, 1}})) ==
        std::vector<float>{3, 6, 9, 12, 9});
  CHECK(elements<float>(lax::reduce_window_min(x, {4})) == std::vector<float>{1, 2});
  CHECK(elements<float>(lax::reduce_window_prod(x, {5})) == std::vector<float>{120});
  CHECK(lax::reduce_window_sum(x, {6}).shape() == Shape{0});
  CHECK(lax::reduce_window_sum(Array(2.0), {}).item<double>() == 2);
  CHECK(elements<bool>(lax::reduce_window_max(lax::gt(x, Array::literal(3, DType::float32)),
                                              {2})) == std::vector<bool>{false, false, true, true});
  CHECK(elements<complex64>(lax::reduce_window_sum(array<complex64>({{1, 2}, {3, 4}}), {2}))[0] ==
        complex64(4, 6));
  CHECK(lax::reduce_window_max(array<float>({}, {0}), {2}, {}, {{1, 2}}).shape() == Shape{2});
}

TEST_CASE("windows of named sizes have sizes by formula") {
  const Dim n = Dim::size("n");
  auto shape_of = [&](const Function& f, const Shape& shape) {
    return make_jaxpr(f, std::vector<Aval>{{shape, DType::float32}})
        .jaxpr->output_avals()[0]
        .shape.to_string();
  };
  CHECK(shape_of([](auto x) { return Arrays{lax::reduce_window_max(x[0], {3}, {}, "SAME")}; },
                 {n}) == "n");
  CHECK(shape_of([](auto x) { return Arrays{lax::reduce_window_max(x[0], {3}, {2}, "SAME")}; },
                 {n}) == ceil_divide(n, 2).to_string());
  CHECK(shape_of([](auto x) { return Arrays{lax::reduce_window_sum(x[0], {3})}; }, {n}) ==
        "max(n-2, 0)");
}

TEST_CASE("reduce_window says what is wrong") {
  const Array x = array<float>({1, 2, 3, 4}, {2, 2});
  CHECK(problem_and_fix([&] { lax::reduce_window_max(x, {2}); }) ==
        "reduce_window_max: the window (2) has 1 entry for the 2 windowed axes of an array of "
        "shape (2,2) | give one entry for each axis");
  CHECK(
      problem_and_fix([&] { lax::reduce_window_sum(x, {2, 2}, {0, 1}); }) ==
      "reduce_window_sum: window_strides (0,1) has an entry below 1 | give entries of at least 1");
  CHECK(problem_and_fix([&] { lax::reduce_window_sum(x, {2, 2}, {1, 1}, "same"); }) ==
        "reduce_window_sum: there is no padding 'same' | choose VALID, SAME, SAME_LOWER, or give "
        "pairs of sizes");
  CHECK(problem_and_fix([&] {
          lax::reduce_window_max(array<complex64>({{1, 2}}), {1});
        }).find("reduce_window_max: an operand of dtype complex64") == 0);
}

TEST_CASE("derivatives and batches of reduce_window hold for its samples, twice") {
  check_samples(reduce_window_p);
  for (const char* kind : {"prod", "max"})
    check_second_derivatives(
        [&](std::span<const Array> x) -> Arrays {
          return {reduced(kind, x[0] * x[0], {{2, 3}, {1, 2}, {1, 0}, {0, 1}, {1, 2}, {1, 1}})};
        },
        {values_for({{{4, 5}, DType::float64}, Sample::Input::Values::distinct}, 3)});
}

TEST_CASE("padding does not reach windows") {
  const Dim n = Dim::size("n"), m = Dim::size("m");
  auto params = [](const char* kind, Shape window, Shape strides, Shape low, Shape high, Shape base,
                   Shape dilation) {
    return Params{{"kind", std::string(kind)},  {"window_dimensions", window},
                  {"window_strides", strides},  {"padding_low", low},
                  {"padding_high", high},       {"base_dilation", base},
                  {"window_dilation", dilation}};
  };
  for (std::int64_t size : {1, 4, 5, 7})
    for (const char* kind : {"sum", "prod", "max", "min", "argmax"}) {
      const Extents extents{{"n", {size, 8}}, {"m", {2, 5}}};
      CAPTURE(size);
      CAPTURE(std::string(kind));
      check_mask(reduce_window_p, {{{n, m}, DType::float64}},
                 params(kind, {3, 1}, {1, 1}, {1, 0}, {1, 0}, {1, 1}, {1, 1}), extents);
      check_mask(reduce_window_p, {{{n, m}, DType::float64}},
                 params(kind, {2, 2}, {2, 1}, {0, 1}, {1, 0}, {1, 2}, {1, 1}), extents);
      // "SAME" with strides: how much is padded in front depends on the size.
      const Dim total = maximum((ceil_divide(n, 2) - 1) * 2 + 3 - n, 0),
                low = floor_divide(total, 2);
      check_mask(reduce_window_p, {{{n}, DType::float64}},
                 params(kind, {3}, {2}, {low}, {total - low}, {1}, {1}), extents);
      check_mask(reduce_window_p, {{{n}, DType::int32}},
                 params(kind, {3}, {2}, {low}, {total - low}, {1}, {1}), extents);
      // Elements equal to what padding is filled with.
      check_mask(reduce_window_p, {{{n}, DType::uint8}},
                 params(kind, {3}, {2}, {low}, {total - low}, {1}, {1}), extents, 0,
                 Sample::Input::Values::indices);
      check_mask(reduce_window_p, {{{n}, DType::float64}},
                 params(kind, {3}, {1}, {3 - n}, {n}, {2}, {1}), extents);
    }
}
