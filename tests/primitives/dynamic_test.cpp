// dynamic_slice and dynamic_update_slice: clamped and wrapped starts, all dtypes and layouts,
// errors, and every rule on samples and named sizes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/rules/interpret.h>
#include "indexing_reference.h"

using namespace plait;
using namespace reference;

namespace {

constexpr DType every_dtype[] = {DType::bool_,   DType::int8,      DType::int16,     DType::int32,
                                 DType::int64,   DType::uint8,     DType::uint16,    DType::uint32,
                                 DType::uint64,  DType::float16,   DType::bfloat16,  DType::float32,
                                 DType::float64, DType::complex64, DType::complex128};

Index clamped(const Index& start, const Index& shape, const Index& window) {
  Index result;
  for (std::size_t i = 0; i < start.size(); ++i)
    result.push_back(std::max<std::int64_t>(0, std::min(start[i], shape[i] - window[i])));
  return result;
}
Values window_at(const Values& x, Index start, const Index& window) {
  start = clamped(start, x.shape, window);
  Values out(window);
  for_each(window, [&](const Index& i) {
    Index from = i;
    for (std::size_t axis = 0; axis < i.size(); ++axis) from[axis] += start[axis];
    out.at(i) = x.at(from);
  });
  return out;
}
Values updated(Values x, const Values& update, Index start) {
  start = clamped(start, x.shape, update.shape);
  for_each(update.shape, [&](const Index& i) {
    Index to = i;
    for (std::size_t axis = 0; axis < i.size(); ++axis) to[axis] += start[axis];
    x.at(to) = update.at(i);
  });
  return x;
}
Array scalar(std::int64_t value, DType dtype = DType::int32) {
  return to_array(Values({}, double(value)), dtype);
}

const Dim n = Dim::size("n"), m = Dim::size("m");
Sample::Input input(Shape shape) { return {{std::move(shape), DType::float64}}; }
Sample::Input start(std::int64_t limit, DType dtype = DType::int32) {
  return {{{}, dtype}, Sample::Input::Values::indices, limit};
}

}  // namespace

TEST_CASE("dynamic windows clamp their starts") {
  for (DType dtype : every_dtype) {
    const Array x = to_array(counting({4, 5}), dtype),
                update = to_array(Values({2, 3}, {9, 8, 7, 6, 5, 4}), dtype);
    for (std::int64_t i : {-7, 0, 1, 2, 3, 100})
      for (std::int64_t j : {-1, 1, 4}) {
        const auto clamp = lax::NegativeIndices::clamp;
        for (const Array& array : {x, strided(x)}) {
          check_same(lax::dynamic_slice(array, {scalar(i), scalar(j, DType::int8)}, {2, 3}, clamp),
                     window_at(to_values(x), {i, j}, {2, 3}));
          check_same(lax::dynamic_update_slice(array, strided(update),
                                               {scalar(i, DType::int64), scalar(j)}, clamp),
                     updated(to_values(x), to_values(update), {i, j}));
        }
      }
  }
  const Array x = to_array(counting({4}));
  Buffer huge = Buffer::scalar(std::uint64_t(1) << 63);
  check_same(lax::dynamic_slice(x, {Array(huge)}, {2}), Values({2}, {2, 3}));
  check_same(lax::dynamic_slice(to_array(Values({}, 3.0)), Arrays{}, {}), Values({}, 3.0));
  check_same(lax::dynamic_update_slice(to_array(Values({}, 3.0)), 4.0, Arrays{}), Values({}, 4.0));
}

TEST_CASE("negative starts count from the end, known or traced") {
  const Values x = counting({5, 3});
  for (std::int64_t i : {-9, -5, -2, 0, 3}) {
    const std::int64_t from = i < 0 ? i + 5 : i;
    const Values expected = window_at(x, {from, 0}, {2, 3});
    check_same(lax::dynamic_slice(to_array(x), {int(i), 0}, {2, 3}), expected);
    check_same(lax::dynamic_slice(to_array(x), {scalar(i, DType::int8), 0}, {2, 3}), expected);
    const Arrays inputs{to_array(x), scalar(i, DType::int8)};
    const std::vector<Aval> avals{inputs[0].aval(), inputs[1].aval()};
    const Jaxpr jaxpr = make_jaxpr(
                            [](std::span<const Array> in) -> Arrays {
                              return {lax::dynamic_slice(in[0], {in[1], 0}, {2, 3})};
                            },
                            avals)
                            .jaxpr;
    check(jaxpr);
    check_same(eval_jaxpr(jaxpr, inputs)[0], expected);
  }
  const std::vector<Aval> named{{{n, 3}, DType::float64}};
  const Jaxpr last = make_jaxpr(
                         [](std::span<const Array> in) -> Arrays {
                           return {lax::dynamic_index_in_dim(in[0], -1, 0, false)};
                         },
                         named)
                         .jaxpr;
  const std::pair<Dim, Dim> four[] = {{n, 4}};
  check_same(eval_jaxpr(instantiate(last, four), Arrays{to_array(counting({4, 3}))})[0],
             Values({3}, {9, 10, 11}));
}

TEST_CASE("windows in one dimension") {
  const Values x = counting({4, 3});
  check_same(lax::dynamic_slice_in_dim(to_array(x), 2, 2, 1), window_at(x, {0, 2}, {4, 2}));
  check_same(lax::dynamic_index_in_dim(to_array(x), 1, 1), window_at(x, {0, 1}, {4, 1}));
  check_same(lax::dynamic_update_slice_in_dim(to_array(x), to_array(Values({1, 3}, 7.0)), -1, 0),
             updated(x, Values({1, 3}, 7.0), {3, 0}));
  check_same(lax::dynamic_update_index_in_dim(to_array(x), to_array(Values({4}, 7.0)), 1, 1),
             updated(x, Values({4, 1}, 7.0), {0, 1}));
}

TEST_CASE("errors of dynamic windows") {
  const Array x = to_array(counting({4, 5}));
  CHECK_THROWS_WITH_AS(lax::dynamic_slice(x, {0}, {1, 1}),
                       doctest::Contains("has 2 axes, and there are 1 starts"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::dynamic_slice(x, {0, 0}, {5, 1}),
                       doctest::Contains("the window has the size 5"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::dynamic_slice(x, {0, to_array(Values({1}), DType::int32)}, {1, 1}),
                       doctest::Contains("a start has shape (1)"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::dynamic_slice(x, {0, 1.5}, {4, 5}),
                       doctest::Contains("must be integers"), DtypeError);
  CHECK_THROWS_WITH_AS(lax::dynamic_update_slice(x, to_array(counting({5, 1})), {0, 0}),
                       doctest::Contains("is too large"), ShapeError);
  CHECK_THROWS_AS(lax::dynamic_update_slice(x, to_array(counting({5})), {0, 0}), ShapeError);
  CHECK_THROWS_WITH_AS(
      lax::dynamic_update_slice(x, to_array(counting({1, 1}), DType::float32), {0, 0}),
      doctest::Contains("float32"), DtypeError);
}

TEST_CASE("dynamic windows with named sizes give the programs of numbers") {
  const std::vector<Aval> avals{
      {{n, m}, DType::float64}, {{2, m}, DType::float64}, {{}, DType::int32}};
  for (auto negative : {lax::NegativeIndices::wrap, lax::NegativeIndices::clamp}) {
    check_named(
        [=](std::span<const Array> in) -> Arrays {
          return {lax::dynamic_slice(in[0], {in[1], 0}, {2, in[0].shape(1) - 1}, negative)};
        },
        {avals[0], avals[2]}, {{"n", 5}, {"m", 3}});
    check_named(
        [=](std::span<const Array> in) -> Arrays {
          return {lax::dynamic_update_slice(in[0], in[1], {in[2], 0}, negative)};
        },
        avals, {{"n", 5}, {"m", 3}});
  }
}

TEST_CASE("dynamic_slice: every rule on samples") { check_samples(dynamic_slice_p); }
TEST_CASE("dynamic_update_slice: every rule on samples") { check_samples(dynamic_update_slice_p); }

TEST_CASE("windows of ragged axes are clamped by real sizes") {
  auto check = [](Shape shape, Shape window, const SizeMap& bounds, auto accepts) {
    std::vector<Sample::Input> inputs{input(shape)};
    for (int i = 0; i < shape.rank(); ++i)
      inputs.push_back(start(6, i == 0 ? DType::int32 : DType::uint8));
    check_mask(dynamic_slice_p, inputs, {{"slice_sizes", window}}, bounds, accepts);
    inputs.insert(inputs.begin() + 1, input(window));
    check_mask(dynamic_update_slice_p, inputs, {}, bounds, accepts);
  };
  auto any = [](const SizeMap&) { return true; };
  check({n, 3}, {n, 2}, {{"n", 4}}, any);
  check({n + 2, 3}, {2, 3}, {{"n", 4}}, any);
  check({n, m}, {n, m}, {{"n", 4}, {"m", 2}}, any);
  check({n, 3}, {m, 2}, {{"n", 5}, {"m", 4}},
        [](const SizeMap& s) { return s.find("m")->second <= s.find("n")->second; });
  check({5, n + 1}, {m, 1}, {{"n", 3}, {"m", 5}}, any);
  check({n + m, n}, {m, n}, {{"n", 3}, {"m", 3}}, any);
}
