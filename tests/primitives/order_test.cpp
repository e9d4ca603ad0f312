// argreduce, cumreduce, recurrence, sort, top_k against loops.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "properties.h"

using namespace plait;
using namespace plait::test;

namespace {

constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Every axis of a shape as outer * size * inner.
struct Loops {
  std::int64_t outer = 1, size, inner = 1;
  Loops(const Sizes64& shape, int axis) : size(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < int(shape.size()); ++i) inner *= shape[i];
  }
};

// Numbers with ties, infinities and NaN.
template <class T>
std::vector<T> awkward(std::int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<T> values(n);
  for (T& value : values) {
    const int k = int(generator() % 23);
    double x = double(int(generator() % 41)) - 20;
    if (k == 0) x = quiet_nan;
    if (k == 1) x = infinity;
    if (k == 2) x = -infinity;
    if (k == 3) x = -0.0;
    if constexpr (detail::is_half<T>)
      value = T(float(x));
    else if constexpr (std::is_integral_v<T>)
      value = T(generator());
    else
      value = T(x);
  }
  return values;
}

template <class T>
std::int64_t naive_argreduce(const std::vector<T>& row, bool largest) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < row.size(); ++i) {
    const detail::Compute<T> x(row[i]), y(row[best]);
    if (y == y && (x != x || (largest ? x > y : x < y))) best = i;
  }
  return std::int64_t(best);
}

// Less, as NumPy sorts.
template <class T>
bool before(T a, T b) {
  const detail::Compute<T> x(a), y(b);
  return x < y || (y != y && x == x);
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
void check_argreduce(const Sizes64& shape, int axis) {
  const std::vector<T> values = awkward<T>(num_elements(shape), 5);
  const Array x = array(values, shape);
  const Loops loops(shape, axis);
  for (bool largest : {true, false}) {
    const auto actual =
        elements<std::int32_t>(largest ? lax::argmax(x, axis) : lax::argmin(x, axis));
    for (std::int64_t o = 0; o < loops.outer; ++o)
      for (std::int64_t i = 0; i < loops.inner; ++i) {
        std::vector<T> row;
        for (std::int64_t k = 0; k < loops.size; ++k)
          row.push_back(values[(o * loops.size + k) * loops.inner + i]);
        CHECK(actual[o * loops.inner + i] == naive_argreduce(row, largest));
      }
  }
}

template <class T>
void check_sort(std::int64_t n, bool descending) {
  const std::vector<T> values = awkward<T>(3 * n, 9);
  const Array x = array(values, {3, n});
  const std::vector<T> sorted = elements<T>(lax::sort(x, -1, true, descending));
  const Arrays both = lax::sort({x, lax::iota(DType::int32, {3, n}, 1)}, -1, true, 1, descending);
  const std::vector<std::int32_t> order = elements<std::int32_t>(both[1]);
  for (int row = 0; row < 3; ++row) {
    std::vector<std::int32_t> expected(n);
    std::iota(expected.begin(), expected.end(), 0);
    const T* from = values.data() + row * n;
    std::stable_sort(expected.begin(), expected.end(), [&](std::int32_t i, std::int32_t j) {
      return descending ? before(from[j], from[i]) : before(from[i], from[j]);
    });
    for (std::int64_t i = 0; i < n; ++i) {
      CHECK(order[row * n + i] == expected[i]);
      CHECK(same_bits(sorted[row * n + i], from[expected[i]]));  // -0.0 and 0.0 keep their order
    }
  }
}

}  // namespace

TEST_CASE("argmax and argmin find the first extreme along any axis, and NaN wins") {
  for (int axis : {0, 1, 2}) {
    check_argreduce<float>({5, 7, 9}, axis);
    check_argreduce<double>({4, 3, 5}, axis);
    check_argreduce<float16>({4, 3, 5}, axis);
    check_argreduce<bfloat16>({4, 3, 5}, axis);
    check_argreduce<std::int32_t>({4, 3, 5}, axis);
    check_argreduce<std::uint8_t>({4, 3, 5}, axis);
  }
  check_argreduce<float>({2, 3000}, 1);
  check_argreduce<double>({1, 1500}, 1);
  check_argreduce<float>({700, 300}, 0);
  CHECK(lax::argmax(array<double>({1, quiet_nan, 3, quiet_nan}), 0).item<int>() == 1);
  CHECK(lax::argmin(array<double>({1, 5, -infinity, -infinity}), 0).item<int>() == 2);
  std::vector<float> rising(2000);
  std::iota(rising.begin(), rising.end(), 0.0f);
  CHECK(lax::argmax(array(rising), 0).item<int>() == 1999);
  rising[1234] = std::numeric_limits<float>::quiet_NaN();
  CHECK(lax::argmax(array(rising), 0).item<int>() == 1234);
  CHECK(lax::argmin(array(rising), 0).item<int>() == 1234);
}

TEST_CASE("argmax takes strided operands and gives int64 when asked") {
  const Array x = array<double>({1, 6, 2, 5, 3, 4}, {2, 3});
  const int order[] = {1, 0};
  const Array result = lax::argmax(lax::transpose(x, order), 0, DType::int64);
  CHECK(result.dtype() == DType::int64);
  CHECK(elements<std::int64_t>(result) == std::vector<std::int64_t>{1, 0});
  CHECK(lax::argmax(lax::transpose(x, order), 1).shape() == Shape{3});
}

TEST_CASE("argmax says what is wrong") {
  const Array x = array<double>({}, {2, 0});
  CHECK(problem_and_fix([&] { lax::argmax(x, 1); }) ==
        "argmax: axis 1 of an array of shape (2,0) has no elements | reduce an axis with at least "
        "one element");
  CHECK(lax::argmax(x, 0).shape() == Shape{0});
  CHECK(problem_and_fix([&] { lax::argmin(array<double>({1}), 0, DType::int8); }) ==
        "argmin: indices cannot have dtype int8 | ask for index_dtype int32 or int64");
  CHECK(problem_and_fix([&] {
          lax::argmin(array<double>({1}), 1);
        }).find("argmin: axis 1 is out of bounds") == 0);
  CHECK(problem_and_fix([&] { lax::argmin(Array(1.0), 0); }).find("argmin: axis 0") == 0);
}

TEST_CASE("cumulative reductions equal a loop, in order, along any axis and from either end") {
  const Sizes64 shape{3, 6, 5};
  const std::vector<double> values = awkward<double>(90, 3);
  const Array x = array(values, shape);
  for (int axis : {0, 1, 2})
    for (bool reverse : {false, true}) {
      const Loops loops(shape, axis);
      auto check_kind = [&](const Array& actual, auto combine) {
        std::vector<double> expected(values.size());
        for (std::int64_t o = 0; o < loops.outer; ++o)
          for (std::int64_t i = 0; i < loops.inner; ++i)
            for (std::int64_t k = 0; k < loops.size; ++k) {
              const std::int64_t place = reverse ? loops.size - 1 - k : k;
              const std::int64_t at = (o * loops.size + place) * loops.inner + i;
              const std::int64_t previous = at + (reverse ? loops.inner : -loops.inner);
              expected[at] = k == 0 ? values[at] : combine(expected[previous], values[at]);
            }
        const std::vector<double> result = elements<double>(actual);
        for (std::size_t i = 0; i < result.size(); ++i)
          CHECK((result[i] == expected[i] || (std::isnan(result[i]) && std::isnan(expected[i]))));
      };
      check_kind(lax::cumsum(x, axis, reverse), [](double a, double b) { return a + b; });
      check_kind(lax::cumprod(x, axis, reverse), [](double a, double b) { return a * b; });
      check_kind(lax::cummax(x, axis, reverse), [](double a, double b) {
        return a != a ? a : b != b ? b : std::max(a, b);
      });
      check_kind(lax::cummin(x, axis, reverse), [](double a, double b) {
        return a != a ? a : b != b ? b : std::min(a, b);
      });
    }
}

TEST_CASE(
    "cumsum wraps integers, adds 16-bit floats in float32, and takes strides and empty axes") {
  CHECK(elements<std::int8_t>(lax::cumsum(array<std::int8_t>({100, 100, 100}))) ==
        std::vector<std::int8_t>{100, -56, 44});
  CHECK(elements<std::uint16_t>(lax::cumprod(array<std::uint16_t>({60000, 60000}))) ==
        std::vector<std::uint16_t>{60000, std::uint16_t(60000u * 60000u)});
  const std::vector<float16> small(4096, float16(0.5f));
  CHECK(float(elements<float16>(lax::cumsum(array(small))).back()) == 2048);
  CHECK(elements<complex64>(lax::cumprod(array<complex64>({{0, 1}, {0, 1}})))[1] ==
        complex64(-1, 0));
  CHECK(lax::cumsum(array<double>({}, {0, 3}), 0).shape() == Shape{0, 3});
  CHECK(std::signbit(elements<double>(lax::cumsum(array<double>({-0.0})))[0]));
  const Array x = array<double>({1, 2, 3, 4, 5, 6}, {2, 3});
  const int order[] = {1, 0};
  CHECK(elements<double>(lax::cumsum(lax::transpose(x, order), 1)) ==
        std::vector<double>{1, 5, 2, 7, 3, 9});
  std::vector<double> many(7 * 1000, 1.0);  // rows are done four at a time
  const std::vector<double> sums = elements<double>(lax::cumsum(array(many, {7, 1000}), 1));
  for (int row = 0; row < 7; ++row) CHECK(sums[row * 1000 + 999] == 1000);
  CHECK(problem_and_fix([&] {
          lax::cummax(array<complex64>({{1, 1}}));
        }).find("cummax: an operand of dtype complex64 is not") == 0);
}

TEST_CASE("the derivative of cumprod is exact at zeros, twice") {
  const Function f = [](std::span<const Array> x) -> Arrays { return {lax::cumprod(x[0], 0)}; };
  check_derivatives(f, {array<double>({2, 0, 3, 0, 5})});
  check_second_derivatives(f, {array<double>({2, 0, 3, 0.5, 0, 5})});
  const Function g = [](std::span<const Array> x) -> Arrays {
    return {lax::cummax(x[0] * x[0], 0, true)};
  };
  check_second_derivatives(g, {array<double>({2, 0.3, -3, 1.5, 0.1, 1})});
}

TEST_CASE("a linear recurrence equals its loop") {
  const std::vector<double> a{2, 3, 0.5, -1}, b{1, 4, 2, 8};
  CHECK(elements<double>(lax::linear_recurrence(array(a), array(b))) ==
        std::vector<double>{1, 7, 5.5, 2.5});
  CHECK(elements<double>(lax::linear_recurrence(array(a), array(b), 0, true)) ==
        std::vector<double>{45, 22, 6, 8});
}

TEST_CASE("sort orders numbers, infinities, zeros and NaN as NumPy does, stably") {
  for (bool descending : {false, true})
    for (std::int64_t n : {1, 5, 48, 49, 300}) {
      check_sort<float>(n, descending);
      check_sort<double>(n, descending);
      check_sort<float16>(n, descending);
      check_sort<bfloat16>(n, descending);
      check_sort<std::int32_t>(n, descending);
      check_sort<std::int8_t>(n, descending);
      check_sort<std::uint64_t>(n, descending);
    }
}

TEST_CASE("sort works along any axis, on strided operands, and on no elements") {
  const Array x = array<double>({3, 1, 2, 9, 8, 7}, {2, 3});
  CHECK(elements<double>(lax::sort(x, 1)) == std::vector<double>{1, 2, 3, 7, 8, 9});
  CHECK(elements<double>(lax::sort(x, 0, true, true)) == std::vector<double>{9, 8, 7, 3, 1, 2});
  const int order[] = {1, 0};
  CHECK(elements<double>(lax::sort(lax::transpose(x, order), 0)) ==
        std::vector<double>{1, 7, 2, 8, 3, 9});
  CHECK(lax::sort(array<double>({}, {3, 0})).shape() == Shape{3, 0});
  CHECK(elements<bool>(
            lax::sort(array<std::uint8_t>({1, 0, 1}).dtype() == DType::uint8
                          ? lax::convert_element_type(array<std::uint8_t>({1, 0, 1}), DType::bool_)
                          : Array())) == std::vector<bool>{false, true, true});
}

TEST_CASE("sort uses several keys, and carries other operands along") {
  const Array a = array<std::int32_t>({2, 1, 2, 1, 2}),
              b = array<double>({5, quiet_nan, 3, 7, -0.0}), c = array<float>({0, 1, 2, 3, 4});
  const Arrays sorted = lax::sort({a, b, c}, 0, true, 2);
  CHECK(elements<std::int32_t>(sorted[0]) == std::vector<std::int32_t>{1, 1, 2, 2, 2});
  CHECK(elements<float>(sorted[2]) == std::vector<float>{3, 1, 4, 2, 0});
  CHECK(elements<float>(lax::sort({a, b, c}, 0, true, 1)[2]) == std::vector<float>{1, 3, 0, 2, 4});
  const Array z = array<complex128>(
      {{2, 1}, {1, quiet_nan}, {1, 5}, {quiet_nan, 0}, {1, -5}, {quiet_nan, quiet_nan}});
  const std::vector<double> numbers = numbers_of(lax::sort(z));
  CHECK(numbers[0] == 1);
  CHECK(numbers[1] == -5);
  CHECK(numbers[3] == 5);
  CHECK(numbers[4] == 2);  // (2, 1) before (1, NaN), as in NumPy
  CHECK(std::isnan(numbers[7]));
  CHECK((std::isnan(numbers[8]) && numbers[9] == 0));
  CHECK((std::isnan(numbers[10]) && std::isnan(numbers[11])));
}

TEST_CASE("sort says what is wrong") {
  const Array x = array<double>({1, 2}), y = array<double>({1, 2, 3});
  CHECK(problem_and_fix([&] { lax::sort({x, y}); }) ==
        "sort: operands have shapes (2) and (3) | give operands of one shape");
  CHECK(problem_and_fix([&] { lax::sort({x, x}, 0, true, 3); }) ==
        "sort: 3 keys among 2 operands | use at least one key, and no more keys than operands");
  CHECK(problem_and_fix([&] { lax::sort(Array(1.0)); }).find("sort: axis -1 is out of bounds") ==
        0);
}

TEST_CASE("top_k gives the largest with their first indices") {
  for (std::int64_t n : {5, 300, 4000})
    for (std::int64_t k : {std::int64_t(1), std::int64_t(3), n / 3, n}) {
      const std::vector<float> values = awkward<float>(2 * n, 4);
      const std::vector<double> wide = awkward<double>(2 * n, 4);
      const auto [top, indices] = lax::top_k(array(values, {2, n}), k);
      const auto [top64, indices64] = lax::top_k(array(wide, {2, n}), k);
      CHECK(top.shape() == Shape{2, k});
      for (int row = 0; row < 2; ++row) {
        std::vector<std::int32_t> expected(n);
        std::iota(expected.begin(), expected.end(), 0);
        const float* from = values.data() + row * n;
        std::stable_sort(expected.begin(), expected.end(),
                         [&](std::int32_t i, std::int32_t j) { return before(from[j], from[i]); });
        for (std::int64_t i = 0; i < k; ++i) {
          CHECK(elements<std::int32_t>(indices)[row * k + i] == expected[i]);
          CHECK(elements<std::int32_t>(indices64)[row * k + i] == expected[i]);
          CHECK(same_bits(elements<float>(top)[row * k + i], from[expected[i]]));
        }
      }
    }
  const auto [values, indices] = lax::top_k(array<std::int8_t>({1, 9, 5, 9, 2, 8}, {2, 3}), 2, 0);
  CHECK(elements<std::int8_t>(values) == std::vector<std::int8_t>{9, 9, 8, 1, 2, 5});
  CHECK(elements<std::int32_t>(indices) == std::vector<std::int32_t>{1, 0, 1, 0, 1, 0});
  CHECK(problem_and_fix([&] { lax::top_k(array<float>({1, 2}), 3); }) ==
        "top_k: k is 3, and axis 0 of an array of shape (2) has 2 elements | give a k from 0 to "
        "the size of the axis");
}

TEST_CASE("derivatives and batches of the primitives of order hold for their samples") {
  for (const Primitive* primitive :
       {&argreduce_p, &cumreduce_p, &recurrence_p, &sort_p, &top_k_p}) {
    CAPTURE(std::string(primitive->name()));
    check_samples(*primitive);
  }
}

TEST_CASE("padding does not reach the primitives of order") {
  const Dim n = Dim::size("n"), m = Dim::size("m");
  using Values = Sample::Input::Values;
  for (std::int64_t size : {1, 2, 5, 6}) {
    const Extents extents{{"n", {size, 6}}, {"m", {3, 4}}};
    for (int axis : {0, 1}) {
      for (const char* kind : {"max", "min"})
        for (DType dtype : {DType::float64, DType::int32, DType::uint8})
          check_mask(argreduce_p, {{{n, m}, dtype}},
                     {{"kind", std::string(kind)}, {"axis", Dim(axis)}, {"dtype", DType::int32}},
                     extents);
      for (bool reverse : {false, true}) {
        for (const char* kind : {"sum", "prod", "max", "min"})
          for (DType dtype : {DType::float64, DType::int16})
            check_mask(cumreduce_p, {{{n, m}, dtype}},
                       {{"kind", std::string(kind)}, {"axis", Dim(axis)}, {"reverse", reverse}},
                       extents);
        check_mask(recurrence_p, {{{n, m}, DType::float64}, {{n, m}, DType::float64}},
                   {{"axis", Dim(axis)}, {"reverse", reverse}}, extents);
        const Params one{
            {"axis", Dim(axis)}, {"num_keys", Dim(1)}, {"stable", true}, {"descending", reverse}};
        check_mask(sort_p, {{{n, m}, DType::float64}}, one, extents);
        check_mask(sort_p, {{{n, m}, DType::int32}}, one, extents);
        check_mask(sort_p, {{{n, m}, DType::int32}, {{n, m}, DType::float64}},
                   one.with("num_keys", Dim(2)), extents, 1e-9, Values::indices);
      }
      check_mask(top_k_p, {{{n, m}, DType::float64}}, {{"axis", Dim(axis)}, {"k", Dim(1)}},
                 extents);
    }
    check_mask(top_k_p, {{{n, 4}, DType::int32}}, {{"axis", Dim(0)}, {"k", n}}, extents, 0,
               Values::indices);
  }
}
