// conv against a loop over every product.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>
#include <random>

#include "properties.h"

using namespace plait;
using namespace plait::test;

namespace {

struct Case {
  Shape lhs, rhs;
  lax::ConvDimensions dimensions;
  Shape strides, low, high, lhs_dilation, rhs_dilation;
  Dim feature_groups = 1, batch_groups = 1;
};

Params params_of(const Case& c, DType dtype) {
  return {{"window_strides", c.strides},
          {"padding_low", c.low},
          {"padding_high", c.high},
          {"lhs_dilation", c.lhs_dilation},
          {"rhs_dilation", c.rhs_dilation},
          {"lhs_spec", to_shape(c.dimensions.lhs_spec)},
          {"rhs_spec", to_shape(c.dimensions.rhs_spec)},
          {"out_spec", to_shape(c.dimensions.out_spec)},
          {"feature_group_count", c.feature_groups},
          {"batch_group_count", c.batch_groups},
          {"dtype", dtype}};
}

Sizes64 place(const std::vector<int>& spec, const Sizes64& logical) {
  Sizes64 at(spec.size(), 0);
  for (std::size_t i = 0; i < spec.size(); ++i) at[spec[i]] = logical[i];
  return at;
}
std::int64_t offset(const Sizes64& at, const Sizes64& shape) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) sum = sum * shape[i] + at[i];
  return sum;
}
bool advance(Sizes64& index, const Sizes64& shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return true;
    index[i] = 0;
  }
  return false;
}

// The definition, in complex numbers, which hold every dtype.
std::vector<complex128> naive(const Case& c, const std::vector<complex128>& lhs,
                              const std::vector<complex128>& rhs, const Sizes64& out_shape) {
  const Sizes64 lhs_shape = c.lhs.to_sizes(), rhs_shape = c.rhs.to_sizes();
  const auto& d = c.dimensions;
  const int axes = int(lhs_shape.size()) - 2;
  auto logical = [](const std::vector<int>& spec, const Sizes64& shape) {
    Sizes64 sizes;
    for (int axis : spec) sizes.push_back(shape[axis]);
    return sizes;
  };
  const Sizes64 L = logical(d.lhs_spec, lhs_shape), R = logical(d.rhs_spec, rhs_shape),
                O = logical(d.out_spec, out_shape);
  const std::int64_t feature_groups = c.feature_groups.constant(),
                     batch_groups = c.batch_groups.constant();
  std::vector<complex128> out(num_elements(out_shape));
  if (out.empty()) return out;
  Sizes64 at(O.size(), 0);
  do {
    complex128 sum = 0;
    const std::int64_t o = at[1];
    Sizes64 window(R.begin() + 1, R.end()), k(window.size(), 0);
    if (num_elements(window) > 0) do {
        Sizes64 from(L.size(), 0), weight(R.size(), 0);
        from[0] = at[0] + o / (R[0] / batch_groups) * (L[0] / batch_groups);
        from[1] = k[0] + o / (R[0] / feature_groups) * (L[1] / feature_groups);
        weight[0] = o;
        weight[1] = k[0];
        bool inside = true;
        for (int i = 0; i < axes; ++i) {
          const std::int64_t dilation = c.lhs_dilation[i].constant();
          const std::int64_t position = at[i + 2] * c.strides[i].constant() +
                                        k[i + 1] * c.rhs_dilation[i].constant() -
                                        c.low[i].constant();
          inside =
              inside && position >= 0 && position % dilation == 0 && position / dilation < L[i + 2];
          from[i + 2] = position / dilation;
          weight[i + 2] = k[i + 1];
        }
        if (inside)
          sum += lhs[offset(place(d.lhs_spec, from), lhs_shape)] *
                 rhs[offset(place(d.rhs_spec, weight), rhs_shape)];
      } while (advance(k, window));
    out[offset(place(d.out_spec, at), out_shape)] = sum;
  } while (advance(at, O));
  return out;
}

template <class T>
std::vector<complex128> integers_for(std::int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<complex128> values(n);
  for (complex128& value : values) {
    const double real = double(generator() % 7) - (std::is_unsigned_v<T> ? 0 : 3);
    value = is_complex_v<T> ? complex128(real, double(generator() % 5) - 2) : complex128(real);
  }
  return values;
}

template <class T>
Array typed(const std::vector<complex128>& values, const Shape& shape) {
  std::vector<T> elements;
  for (const complex128& value : values) {
    if constexpr (is_complex_v<T>)
      elements.push_back(T(value));
    else if constexpr (detail::is_half<T>)
      elements.push_back(T(float(value.real())));
    else
      elements.push_back(T(value.real()));
  }
  return array(elements, shape.to_sizes());
}

template <class T>
void check_case(const Case& c, std::optional<DType> result = {}) {
  const std::vector<complex128> lhs = integers_for<T>(c.lhs.num_elements().constant(), 1),
                                rhs = integers_for<T>(c.rhs.num_elements().constant(), 2);
  const Array out = bind(conv_p, {typed<T>(lhs, c.lhs), typed<T>(rhs, c.rhs)},
                         params_of(c, result.value_or(dtype_of<T>())));
  const std::vector<complex128> expected = naive(c, lhs, rhs, out.shape().to_sizes());
  const std::vector<double> actual = numbers_of(out);
  int wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if constexpr (is_complex_v<T>)
      wrong += complex128(actual[2 * i], actual[2 * i + 1]) != expected[i];
    else if constexpr (std::is_integral_v<T>)
      wrong += !result ? T(std::int64_t(actual[i])) != T(std::int64_t(expected[i].real()))
                       : actual[i] != expected[i].real();
    else
      wrong +=
          actual[i] != (detail::is_half<T> && !result
                            ? double(float(detail::is_half<T> ? T(float(expected[i].real())) : T()))
                            : expected[i].real());
  }
  CHECK(wrong == 0);  // small integers, so that every order of adding gives the same
}

const lax::ConvDimensions first{{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}};    // NCHW, OIHW
const lax::ConvDimensions last{{0, 3, 1, 2}, {3, 2, 0, 1}, {0, 3, 1, 2}};     // NHWC, HWIO
const lax::ConvDimensions swapped{{1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3}};  // CNHW, IOHW
const lax::ConvDimensions batch_last{
    {3, 0, 1, 2}, {3, 0, 1, 2}, {2, 3, 0, 1}};  // CHWN, IHWO -> HWNC

std::vector<Case> cases() {
  return {
      {{2, 3, 6, 7}, {5, 3, 3, 2}, first, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      {{2, 3, 6, 7}, {5, 3, 3, 3}, first, {2, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 3, 6, 7}, {5, 3, 2, 2}, first, {2, 3}, {3, -1}, {-2, 4}, {1, 1}, {2, 3}},
      {{2, 3, 5, 4}, {2, 3, 3, 2}, first, {1, 2}, {2, 1}, {2, 3}, {2, 3}, {1, 2}},
      {{2, 3, 5, 4}, {2, 3, 3, 2}, first, {3, 2}, {2, 1}, {2, 3}, {2, 3}, {1, 2}},
      {{2, 6, 7, 9}, {3, 3, 9, 5}, last, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 6, 7, 3}, {3, 3, 3, 5}, last, {2, 2}, {1, 0}, {1, 2}, {1, 2}, {1, 1}},
      {{3, 9, 6, 7},
       {3, 4, 6, 7},
       swapped,
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1}},  // a window as large as the image
      {{3, 6, 7, 10}, {3, 5, 2, 4}, batch_last, {1, 1}, {0, 1}, {0, 1}, {1, 1}, {1, 1}},
      {{2, 6, 5, 5}, {8, 3, 3, 3}, first, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2},
      {{2, 6, 5, 5}, {6, 1, 3, 3}, first, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 6},
      {{2, 5, 5, 8}, {3, 3, 1, 8}, last, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 8},
      {{6, 2, 5, 4}, {6, 2, 2, 2}, first, {1, 1}, {0, 0}, {1, 1}, {1, 1}, {1, 1}, 1, 3},
      {{4, 5, 4, 3}, {2, 2, 3, 8}, last, {1, 1}, {0, 0}, {1, 1}, {1, 1}, {1, 1}, 1, 4},
      {{2, 3, 9}, {4, 3, 4}, {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, {2}, {1}, {2}, {1}, {2}},
      {{2, 3, 4, 5, 4},
       {2, 3, 2, 3, 2},
       {{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}},
       {1, 2, 1},
       {1, 0, 0},
       {0, 1, 1},
       {1, 1, 2},
       {1, 1, 1}},
      {{4, 3}, {5, 3}, {{0, 1}, {0, 1}, {0, 1}}, {}, {}, {}, {}, {}},
      {{2, 0, 4, 4}, {3, 0, 2, 2}, first, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      {{2, 3, 0, 4}, {3, 3, 2, 2}, first, {1, 1}, {2, 0}, {1, 0}, {1, 1}, {1, 1}},
      {{2, 3, 2, 2}, {3, 3, 3, 3}, first, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}},
      {{1, 700, 5, 5},
       {70, 700, 3, 3},
       first,
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1}},  // several blocks of K
      {{3, 2, 40, 41},
       {4, 2, 3, 3},
       first,
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1},
       {1, 1}},  // several tiles of pixels
  };
}

}  // namespace

TEST_CASE(
    "convolution equals its definition in every layout, with strides, padding, holes and groups") {
  int number = 0;
  for (const Case& c : cases()) {
    CAPTURE(number);
    check_case<double>(c);
    check_case<float>(c);
    if (number % 3 == 0) check_case<complex64>(c);
    if (number++ % 3 != 1) continue;
    check_case<std::int32_t>(c);
    check_case<std::uint8_t>(c);
  }
}

TEST_CASE("16-bit convolutions add up in float32, and results take the dtype that is asked for") {
  const Case c{{1, 64, 4, 4}, {3, 64, 3, 3}, first, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  check_case<float16>(c);
  check_case<bfloat16>(c);
  check_case<bfloat16>(c, DType::float32);
  check_case<std::int8_t>(c, DType::int32);
  check_case<float>(c, DType::float64);
}

TEST_CASE("convolution takes strided operands") {
  const Array x = values_for({{{2, 7, 6, 3}, DType::float64}}, 1),
              w = values_for({{{3, 3, 3, 4}, DType::float64}}, 2);
  const int to_first[] = {0, 3, 1, 2}, kernel[] = {3, 2, 0, 1}, to_last[] = {0, 2, 3, 1};
  const auto numbers = lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC");
  const Array direct = lax::conv_general_dilated(x, w, {2, 1}, "SAME", {}, {}, numbers);
  const Array moved = lax::conv_general_dilated(lax::transpose(x, to_first),
                                                lax::transpose(w, kernel), {2, 1}, "SAME");
  check_close(lax::transpose(moved, to_last), direct, 1e-12);
}

TEST_CASE("dimension numbers are read from strings") {
  const auto numbers = lax::conv_dimension_numbers("NHWC", "HWIO", "NCHW");
  CHECK(numbers.lhs_spec == std::vector<int>{0, 3, 1, 2});
  CHECK(numbers.rhs_spec == std::vector<int>{3, 2, 0, 1});
  CHECK(numbers.out_spec == std::vector<int>{0, 1, 2, 3});
  CHECK(problem_and_fix([] { lax::conv_dimension_numbers("NHWC", "HWIO", "NCH"); }) ==
        "conv: dimension_numbers ('NHWC', 'HWIO', 'NCH'): out has another length than rhs | write "
        "for instance ('NCHW', 'OIHW', 'NCHW') or "
        "('NHWC', 'HWIO', 'NHWC')");
  CHECK(problem_and_fix([] {
          lax::conv_dimension_numbers("NHHC", "HWIO", "NCHW");
        }).find("lhs does not have the dimension 'H' once") != std::string::npos);
}

TEST_CASE("convolution says what is wrong") {
  const Array x = lax::full({2, 3, 5, 5}, 1, DType::float32),
              w = lax::full({4, 2, 3, 3}, 1, DType::float32);
  CHECK(problem_and_fix([&] { lax::conv_general_dilated(x, w); }) ==
        "conv: lhs of shape (2,3,5,5) has 3 features, and rhs of shape (4,2,3,3) reads 2 in each "
        "of 1 group | make the features of lhs those "
        "of rhs times feature_group_count, or check dimension_numbers");
  CHECK(problem_and_fix([&] {
          lax::conv_general_dilated(x, lax::full({4, 1, 3, 3}, 1, DType::float32), {}, "VALID", {},
                                    {}, {}, 3);
        }) ==
        "conv: 3 groups do not divide the 4 out features of rhs | make the number of out features "
        "a multiple of the number of groups");
  CHECK(problem_and_fix([&] {
          lax::conv_general_dilated(x, lax::full({4, 3, 3}, 1, DType::float32));
        }).find("conv: operands have shapes (2,3,5,5) and (4,3,3)") == 0);
  CHECK(problem_and_fix([&] {
          lax::conv_general_dilated(x, lax::full({4, 3, 3, 3}, 1, DType::float64));
        }) == "conv: operands have dtypes float32 and float64 | convert one with astype");
  CHECK(problem_and_fix([&] {
          lax::conv_general_dilated(x, lax::full({4, 3, 3, 3}, 1, DType::float32), {1, 0});
        }) == "conv: window_strides (1,0) has an entry below 1 | give entries of at least 1");
}

TEST_CASE("convolution over named sizes has sizes by formula, and so have its transposes") {
  const Dim n = Dim::size("n"), h = Dim::size("h");
  const Aval x{{n, 3, h, 8}, DType::float64}, w{{4, 3, 3, 3}, DType::float64};
  for (Dim stride : {1, 2})
    for (const char* padding : {"VALID", "SAME"})
      for (Dim dilation : {1, 2}) {
        const Function f = [&](std::span<const Array> in) -> Arrays {
          return {lax::conv_general_dilated(in[0], in[1], {stride, stride}, padding,
                                            {dilation, dilation})};
        };
        const Function gradient = [&](std::span<const Array> in) -> Arrays {
          const flat::Pullback pullback = flat::vjp(f, in, {true, true});
          Arrays results;
          for (const Tangent& t : pullback.pull(Tangents{Tangent(lax::cos(pullback.outputs[0]))}))
            results.push_back(t.instantiate());
          return results;
        };
        const Jaxpr traced = make_jaxpr(gradient, std::vector<Aval>{x, w}).jaxpr;
        check(traced);
        CHECK(traced->output_avals()[0].shape.to_string() == "n,3,h,8");
        CHECK(traced->output_avals()[1].shape.to_string() == "4,3,3,3");
        // And the transposes of those, which have holes where these have strides.
        const Function twice = [&](std::span<const Array> in) -> Arrays {
          const flat::Pullback pullback = flat::vjp(gradient, in, {true, true});
          Tangents cotangents;
          for (const Array& output : pullback.outputs) cotangents.push_back(Tangent(output));
          Arrays results;
          for (const Tangent& t : pullback.pull(cotangents)) results.push_back(t.instantiate());
          return results;
        };
        const Jaxpr second = make_jaxpr(twice, std::vector<Aval>{x, w}).jaxpr;
        check(second);
        CHECK(second->output_avals()[0].shape.to_string() == "n,3,h,8");
      }
}

TEST_CASE("derivatives and batches of conv hold for its samples, twice") {
  check_samples(conv_p);
  for (const Sample& sample : rule<Samples>(conv_p)())
    check_second_derivatives(
        [&](std::span<const Array> in) -> Arrays {
          return {lax::sin(Array(bind(conv_p, in, sample.params)))};
        },
        {values_for(sample.inputs[0], 1), values_for(sample.inputs[1], 2)});
}

TEST_CASE("padding does not reach convolutions") {
  const Dim n = Dim::size("n"), h = Dim::size("h"), c = Dim::size("c");
  auto aval = [](const Shape& shape) { return Aval{shape, DType::float64}; };
  for (std::int64_t size : {1, 3, 6}) {
    CAPTURE(size);
    const Extents extents{{"n", {2, 3}}, {"h", {size, 7}}, {"c", {2, 4}}};
    auto check_conv = [&](const Case& k) {
      check_mask(conv_p, {aval(k.lhs), aval(k.rhs)}, params_of(k, DType::float64), extents);
    };
    check_conv({{n, c, h, 5}, {4, c, 3, 2}, first, {1, 1}, {1, 1}, {1, 0}, {1, 1}, {1, 1}});
    check_conv({{n, h, 5, c}, {3, 2, c, 4}, last, {2, 1}, {1, 1}, {1, 0}, {1, 1}, {1, 2}});
    check_conv({{2, 3, h}, {c, 3, 3}, {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, {2}, {0}, {1}, {3}, {1}});
    // "SAME" with strides: how much is padded in front depends on the size.
    const Dim total = maximum((ceil_divide(h, 2) - 1) * 2 + 3 - h, 0), low = floor_divide(total, 2);
    const lax::ConvDimensions line{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}};
    check_conv({{n, 2, h}, {3, 2, 3}, line, {2}, {low}, {total - low}, {1}, {1}});
    // The gradient by the kernel: a window of named size.
    check_conv({{2, n, h}, {3, n, h}, line, {1}, {1}, {1}, {1}, {1}});
    check_conv({{2, n, h},
                {3, n, floor_divide(h + 1, 2)},
                line,
                {1},
                {low},
                {2 - h + 2 * floor_divide(h + 1, 2) - 1 - low + 1},
                {1},
                {2}});
    // Groups whose size, or whose number, is named.
    check_conv({{n, c * 2, h}, {c * 4, c, 2}, line, {1}, {1}, {1}, {1}, {1}, 2});
    check_conv({{n, c * 3, h}, {c * 2, 3, 2}, line, {1}, {1}, {1}, {1}, {1}, c});
    check_conv({{n * 2, 3, h}, {c * 2, 3, 2}, line, {1}, {1}, {1}, {1}, {1}, 1, 2});
    // A size that the groups divide, as its value shows and its name does not.
    const Extents even{{"n", {4, 7}}, {"h", {size, 7}}, {"c", {2, 5}}};
    const Case features{{2, 4, h}, {n, 2, 2}, line, {1}, {1}, {1}, {1}, {1}, 2};
    const Case batch{{n, 3, h}, {c, 3, 2}, line, {1}, {1}, {1}, {1}, {1}, 1, 2};
    for (const Case& k : {features, batch})
      check_mask(conv_p, {aval(k.lhs), aval(k.rhs)}, params_of(k, DType::float64), even);
  }
}
