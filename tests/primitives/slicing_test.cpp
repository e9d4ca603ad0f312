// slice, pad, concatenate, split and rev: values against loops, all dtypes and layouts, errors, and
// every rule on samples and named sizes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/pool.h>

#include "indexing_reference.h"

using namespace plait;
using namespace reference;

namespace {

constexpr DType every_dtype[] = {DType::bool_,   DType::int8,      DType::int16,     DType::int32,
                                 DType::int64,   DType::uint8,     DType::uint16,    DType::uint32,
                                 DType::uint64,  DType::float16,   DType::bfloat16,  DType::float32,
                                 DType::float64, DType::complex64, DType::complex128};

Values padded(const Values& x, double value, const std::vector<lax::Padding>& config) {
  Index shape;
  for (std::size_t i = 0; i < config.size(); ++i) {
    const std::int64_t n = x.shape[i], step = config[i].interior.constant() + 1;
    shape.push_back(config[i].low.constant() + config[i].high.constant() +
                    (n == 0 ? 0 : (n - 1) * step + 1));
  }
  Values out(shape, value);
  for_each(x.shape, [&](const Index& index) {
    Index to = index;
    for (std::size_t i = 0; i < config.size(); ++i) {
      to[i] = config[i].low.constant() + index[i] * (config[i].interior.constant() + 1);
      if (to[i] < 0 || to[i] >= shape[i]) return;
    }
    out.at(to) = x.at(index);
  });
  return out;
}

const Dim n = Dim::size("n"), m = Dim::size("m");
Sample::Input input(Shape shape) { return {{std::move(shape), DType::float64}}; }

}  // namespace

TEST_CASE("slice takes every stride-th element between start and limit") {
  for (DType dtype : every_dtype) {
    const Array x = to_array(counting({5, 6, 2}), dtype);
    for (const Array& array : {x, strided(x)}) {
      const Array out = lax::slice(array, {1, 0, 0}, {4, 6, 2}, {2, 3, 1});
      const Values from = to_values(array);
      Values expected({2, 2, 2});
      for_each(expected.shape,
               [&](const Index& i) { expected.at(i) = from.at({1 + 2 * i[0], 3 * i[1], i[2]}); });
      check_same(out, expected);
    }
  }
  CHECK(to_values(lax::slice(to_array(counting({4})), {2}, {2})).data.empty());
  check_same(lax::slice_in_dim(to_array(counting({4, 3})), -3, std::nullopt, 2, -2),
             Values({2, 3}, {3, 4, 5, 9, 10, 11}));
  check_same(lax::index_in_dim(to_array(counting({4, 3})), -1, 0, false), Values({3}, {9, 10, 11}));
}

TEST_CASE("slice is a view of the same memory") {
  const Array x = to_array(counting({4, 5}));
  CHECK(lax::slice(x, {1, 2}, {3, 5}).buffer().data() ==
        static_cast<const double*>(x.buffer().data()) + 7);
}

TEST_CASE("pad puts the padding value around and between elements, and takes elements away") {
  const std::vector<std::vector<lax::Padding>> configs = {
      {{1, 2, 0}, {0, 0, 0}},    {{0, 0, 2}, {1, 0, 1}},  {{-1, -1, 0}, {2, -2, 0}},
      {{-1, 3, 2}, {-3, -2, 1}}, {{-9, 8, 1}, {0, 1, 0}}, {{-4, 0, 0}, {0, 0, 3}},
      {{0, -4, 0}, {0, 0, 0}},   {{-7, 9, 1}, {-5, 6, 0}}};
  for (DType dtype : every_dtype)
    for (const auto& config : configs) {
      const Array x = to_array(counting({4, 5}), dtype), value = to_array(Values({}, 1.0), dtype);
      const Values expected = padded(to_values(x), to_values(value).data[0], config);
      check_same(lax::pad(x, value, config), expected);
      check_same(lax::pad(strided(x), value, config), expected);
    }
  const Values empty({0, 2});
  check_same(lax::pad(to_array(empty), 7.0, {{1, 1, 3}, {0, 0, 0}}),
             padded(empty, 7, {{1, 1, 3}, {0, 0, 0}}));
  check_same(lax::pad(to_array(Values({}, 3.0)), 7.0, {}), Values({}, 3.0));
  const Values large = random_values({300, 400});
  check_same(lax::pad(to_array(large), 7.0, {{5, 6, 0}, {7, 8, 1}}),
             padded(large, 7, {{5, 6, 0}, {7, 8, 1}}));
}

TEST_CASE("concatenate and split are inverse") {
  for (DType dtype : every_dtype) {
    const Array x = to_array(counting({3, 6, 2}), dtype);
    for (int axis : {0, 1, 2, -1}) {
      const std::int64_t size = x.shape(axis < 0 ? 2 : axis).constant();
      const Arrays pieces = lax::split(strided(x), {1, 0, size - 1}, axis);
      REQUIRE(pieces.size() == 3);
      check_same(pieces[2], lax::slice_in_dim(x, 1, std::nullopt, 1, axis));
      check_same(lax::concatenate({pieces[0], pieces[1], strided(pieces[2])}, axis), x);
    }
  }
  check_same(lax::concatenate({to_array(counting({2, 1})), to_array(counting({2, 2}))}, 1),
             Values({2, 3}, {0, 0, 1, 1, 2, 3}));
}

TEST_CASE("rev reverses axes without copying") {
  for (DType dtype : every_dtype) {
    const Array x = to_array(counting({3, 4, 2}), dtype);
    const int axes[] = {0, 2};
    const Array out = lax::rev(x, axes);
    const Values from = to_values(x);
    Values expected({3, 4, 2});
    for_each(expected.shape,
             [&](const Index& i) { expected.at(i) = from.at({2 - i[0], i[1], 1 - i[2]}); });
    check_same(out, expected);
    check_same(lax::rev(strided(x), axes), expected);
  }
  const int first[] = {0};
  CHECK(to_values(lax::rev(to_array(Values({0, 3})), first)).data.empty());
}

TEST_CASE("errors of slicing say what was wrong and what would be right") {
  const Array x = to_array(counting({4, 5}));
  CHECK_THROWS_WITH_AS(lax::slice(x, {0, 0}, {4, 6}),
                       doctest::Contains("the limit 6 is beyond the size 5"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::slice(x, {0, 3}, {4, 2}),
                       doctest::Contains("the start 3 is beyond the limit 2"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::slice(x, {-1, 0}, {4, 2}),
                       doctest::Contains("the start -1 is negative"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::slice(x, {0, 0}, {4, 2}, {1, 0}), doctest::Contains("the stride is 0"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(lax::slice(x, {0}, {4}),
                       doctest::Contains("has 2 axes, and there are 1 starts"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::index_in_dim(x, 5, 1),
                       doctest::Contains("index 5 is out of bounds for axis 1 with size 5"),
                       IndexError);
  CHECK_THROWS_WITH_AS(lax::index_in_dim(x, -5, 0), doctest::Contains("index -5 is out of bounds"),
                       IndexError);
  CHECK_THROWS_WITH_AS(lax::pad(x, 0.0, {{-3, -2, 0}, {}}), doctest::Contains("gives the size -1"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(lax::pad(x, 0.0, {{0, 0, -1}, {}}),
                       doctest::Contains("the interior padding is -1"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::pad(x, to_array(Values({}), DType::int32), {{}, {}}),
                       doctest::Contains("float64"), DtypeError);
  CHECK_THROWS_WITH_AS(lax::pad(x, to_array(Values({1})), {{}, {}}),
                       doctest::Contains("give a scalar"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::concatenate({x, to_array(counting({3, 4}))}, 0),
                       doctest::Contains("shape (4,5) and array 1 shape (3,4)"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::concatenate({x, to_array(counting({4, 5}), DType::int32)}, 0),
                       doctest::Contains("int32"), DtypeError);
  CHECK_THROWS_AS(lax::concatenate(Arrays{}, 0), ShapeError);
  CHECK_THROWS_AS(lax::concatenate({x, x}, 2), IndexError);
  CHECK_THROWS_WITH_AS(lax::split(x, {1, 2}, 0), doctest::Contains("add up to 3"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::split(x, {-1, 5}, 0), doctest::Contains("a piece has the size -1"),
                       ShapeError);
  const int twice[] = {0, 0};
  CHECK_THROWS_AS(lax::rev(x, twice), ShapeError);
}

TEST_CASE("numbers as padding values take the operand's dtype") {
  const Array x = to_array(counting({2}), DType::float16);
  CHECK(lax::pad(x, 1.5, {{1, 1, 0}}).dtype() == DType::float16);
  CHECK_FALSE(lax::pad(x, 1.5, {{1, 1, 0}}).aval().weak);
}

TEST_CASE("slicing with named sizes gives the programs of numbers") {
  const Aval vector{{2 * n + 1}, DType::float64}, pair{{n, m}, DType::float64};
  auto check_one = [](Aval aval, std::function<Array(const Array&)> f) {
    check_named([=](std::span<const Array> in) -> Arrays { return {f(in[0])}; }, {aval},
                {{"n", 5}, {"m", 3}});
  };
  check_one(vector, [](const Array& x) { return lax::slice_in_dim(x, 1, std::nullopt); });
  check_one(vector, [](const Array& x) { return lax::slice_in_dim(x, 1, std::nullopt, 2); });
  check_one(vector, [](const Array& x) { return lax::slice_in_dim(x, x.shape(0) - 2, -1, 3); });
  check_one(vector, [](const Array& x) { return lax::pad(x, 0.5, {{1, x.shape(0), 0}}); });
  check_one(vector, [](const Array& x) { return lax::pad(x, 0.5, {{-1, 2, 2}}); });
  check_one(pair, [](const Array& x) { return lax::pad(x, 0.5, {{-1, 2, 3}, {1, -2, 0}}); });
  check_one(pair,
            [](const Array& x) { return lax::concatenate({x, x, lax::slice_in_dim(x, 0, 2)}, 0); });
  check_one(pair, [](const Array& x) { return lax::split(x, {x.shape(0) - 2, 2}, 0)[1]; });
  check_one(pair, [](const Array& x) { return lax::rev(x, std::vector<int>{0, 1}); });
}

TEST_CASE("slice: every rule on samples") { check_samples(slice_p); }
TEST_CASE("pad: every rule on samples") { check_samples(pad_p); }
TEST_CASE("concatenate: every rule on samples") { check_samples(concatenate_p); }
TEST_CASE("split: every rule on samples") { check_samples(split_p); }
TEST_CASE("rev: every rule on samples") { check_samples(rev_p); }

TEST_CASE("a slice of ragged axes reads no padding") {
  auto check = [](Shape shape, Shape start, Shape limit, Shape strides, const SizeMap& bounds,
                  auto accepts) {
    check_mask(slice_p, {input(shape)}, {{"start", start}, {"limit", limit}, {"strides", strides}},
               bounds, accepts);
  };
  auto any = [](const SizeMap&) { return true; };
  check({n, 3}, {0, 1}, {n, 3}, {1, 1}, {{"n", 4}}, any);
  check({n + 2, m}, {1, 0}, {n + 1, m}, {1, 2}, {{"n", 4}, {"m", 3}}, any);
  check({n + m}, {n}, {n + m}, {1}, {{"n", 4}, {"m", 3}}, any);
  check({n + m}, {n}, {n + m}, {2}, {{"n", 4}, {"m", 5}}, any);
  check({n}, {0}, {n - 1}, {1}, {{"n", 5}},
        [](const SizeMap& s) { return s.find("n")->second >= 1; });
  check({n}, {floor_divide(n, 2)}, {n}, {1}, {{"n", 5}}, any);
  check({n}, {n - 2}, {n}, {1}, {{"n", 5}},
        [](const SizeMap& s) { return s.find("n")->second >= 2; });
  check({n, m}, {1, 0}, {n, m}, {m + 1, 1}, {{"n", 5}, {"m", 2}},
        [](const SizeMap& s) { return s.find("n")->second >= 1; });
  check({6}, {n}, {n + m}, {1}, {{"n", 3}, {"m", 3}}, any);
}

TEST_CASE("padding a ragged axis puts the value behind the real elements") {
  auto check = [](Shape shape, Shape low, Shape high, Shape interior, const SizeMap& bounds,
                  auto accepts) {
    check_mask(pad_p, {input(shape), input({})},
               {{"low", low}, {"high", high}, {"interior", interior}}, bounds, accepts);
  };
  auto any = [](const SizeMap&) { return true; };
  check({n, 2}, {1, 0}, {2, 1}, {0, 0}, {{"n", 4}}, any);
  check({n, m}, {1, 0}, {0, 2}, {2, 1}, {{"n", 3}, {"m", 3}}, any);
  check({n}, {-1}, {2}, {0}, {{"n", 4}}, any);
  check({n}, {2}, {-1}, {0}, {{"n", 4}}, any);
  check({n}, {0}, {m - n}, {0}, {{"n", 4}, {"m", 5}},
        [](const SizeMap& s) { return s.find("n")->second <= s.find("m")->second; });
  check({n}, {m}, {1}, {0}, {{"n", 4}, {"m", 3}}, any);
  check({n}, {m}, {n}, {1}, {{"n", 4}, {"m", 3}}, any);
  check({n, 2}, {-m, 0}, {m, 1}, {0, 0}, {{"n", 3}, {"m", 5}}, any);
  check({3}, {n}, {m}, {0}, {{"n", 3}, {"m", 2}}, any);
  check({n, 2}, {1, 0}, {2, 0}, {m, 0}, {{"n", 3}, {"m", 2}}, any);
  check({n}, {m}, {2}, {m + 1}, {{"n", 3}, {"m", 2}}, any);
}

TEST_CASE("concatenation along a ragged axis joins the real elements") {
  auto check = [](std::vector<Shape> shapes, int axis, const SizeMap& bounds) {
    std::vector<Sample::Input> inputs;
    for (const Shape& shape : shapes) inputs.push_back(input(shape));
    check_mask(concatenate_p, inputs, {{"axis", Dim(axis)}}, bounds);
  };
  check({{n, 2}, {n, 2}}, 0, {{"n", 4}});
  check({{n, 2}, {n, 3}}, 1, {{"n", 4}});
  check({{2, 1}, {n, 1}, {1, 1}, {m, 1}}, 0, {{"n", 3}, {"m", 2}});
  check({{m, 2 * n}, {m, 3}, {m, n}}, 1, {{"n", 3}, {"m", 2}});
  check({{n}, {4 - n}}, 0, {{"n", 4}});
}

TEST_CASE("split and rev of ragged axes") {
  check_mask(split_p, {input({n, 5})}, {{"pieces", Shape{2, 3}}, {"axis", Dim(1)}}, {{"n", 3}});
  check_mask(split_p, {input({n + m + 1, 2})}, {{"pieces", Shape{n, 1, m}}, {"axis", Dim(0)}},
             {{"n", 3}, {"m", 4}});
  check_mask(split_p, {input({n + 2})}, {{"pieces", Shape{2, n}}, {"axis", Dim(0)}}, {{"n", 3}});
  check_mask(rev_p, {input({n, 3})}, {{"axes", Shape{0}}}, {{"n", 4}});
  check_mask(rev_p, {input({n, m})}, {{"axes", Shape{1, 0}}}, {{"n", 3}, {"m", 4}});
  check_mask(rev_p, {input({n, 3})}, {{"axes", Shape{1}}}, {{"n", 4}});
}
