// gather: every mode against a loop over its definition, all dtypes and layouts, JAX's dimension
// numbers, errors, and every rule on samples and named sizes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/pool.h>

#include "indexing_reference.h"

using namespace plait;
using namespace reference;
using Mode = lax::GatherScatterMode;

namespace {

constexpr DType every_dtype[] = {DType::bool_,   DType::int8,      DType::int16,     DType::int32,
                                 DType::int64,   DType::uint8,     DType::uint16,    DType::uint32,
                                 DType::uint64,  DType::float16,   DType::bfloat16,  DType::float32,
                                 DType::float64, DType::complex64, DType::complex128};

bool in(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The definition, element by element.
Values gathered(const Values& x, const Values& indices, const lax::IndexDimensions& d,
                const Index& window, Mode mode, double fill) {
  const int rank = int(x.shape.size()), k = int(d.axes.size());
  Index leading(indices.shape.begin(), indices.shape.end() - 1), shape = leading;
  for (int axis = d.batch_dims; axis < rank; ++axis)
    if (!in(d.collapse, axis)) shape.push_back(window[axis - d.batch_dims]);
  Values out(shape);
  for_each(shape, [&](const Index& index) {
    Index from(index.begin(), index.begin() + d.batch_dims),
        row(index.begin(), index.begin() + std::int64_t(leading.size()));
    std::size_t next = leading.size();
    for (int axis = d.batch_dims; axis < rank; ++axis)
      from.push_back(in(d.collapse, axis) ? 0 : index[next++]);
    bool outside = false;
    for (int m = 0; m < k; ++m) {
      row.push_back(m);
      const int axis = d.axes[m];
      auto start = std::int64_t(indices.at(row));
      const std::int64_t last = x.shape[axis] - window[axis - d.batch_dims];
      if (mode == Mode::clip) start = std::max<std::int64_t>(0, std::min(start, last));
      outside |= start < 0 || start > last;
      from[axis] += start;
      row.pop_back();
    }
    out.at(index) = outside ? fill : x.at(from);
  });
  return out;
}

const Dim n = Dim::size("n"), m = Dim::size("m"), q = Dim::size("q");
Sample::Input input(Shape shape) { return {{std::move(shape), DType::float64}}; }
Sample::Input indices(Shape shape, std::int64_t limit) {
  return {{std::move(shape), DType::int32}, Sample::Input::Values::indices, limit};
}
Params params(const lax::IndexDimensions& d, Shape window, const char* mode) {
  return {{"axes", to_shape(d.axes)},
          {"collapse", to_shape(d.collapse)},
          {"batch_dims", Dim(d.batch_dims)},
          {"slice_sizes", window},
          {"mode", std::string(mode)}};
}

}  // namespace

TEST_CASE("gather is its definition") {
  struct Case {
    Index x, indices;
    lax::IndexDimensions dimensions;
    Shape window;
  };
  const std::vector<Case> cases = {{{4, 5}, {3, 1}, {{0}, {0}, 0}, {1, 5}},
                                   {{4, 5}, {2, 3, 1}, {{1}, {1}, 0}, {4, 1}},
                                   {{4, 5}, {6, 2}, {{0, 1}, {0, 1}, 0}, {1, 1}},
                                   {{4, 5}, {6, 2}, {{1, 0}, {}, 0}, {2, 3}},
                                   {{4, 5}, {2}, {{1, 0}, {1}, 0}, {2, 1}},
                                   {{3, 4, 2}, {3, 5, 1}, {{1}, {1}, 1}, {1, 2}},
                                   {{3, 4, 2}, {3, 4, 5, 1}, {{2}, {2}, 2}, {1}},
                                   {{3, 4, 2, 3}, {5, 2}, {{3, 1}, {1}, 0}, {3, 1, 2, 2}},
                                   {{3, 4}, {3, 0}, {{}, {}, 0}, {3, 4}},
                                   {{3, 4}, {0, 1}, {{0}, {0}, 0}, {1, 4}},
                                   {{7}, {300, 1}, {{0}, {0}, 0}, {1}},
                                   {{3, 4}, {5, 1}, {{0}, {}, 0}, {0, 4}}};
  for (const Case& c : cases) {
    const Array x = to_array(counting(c.x));
    const Array out = to_array(random_integers(c.indices, -2, 7), DType::int32);
    const Array inside = to_array(random_integers(c.indices, 0, 2), DType::int64);
    const Index window = sizes_of(c.window);
    for (const Array& array : {x, strided(x)}) {
      for (const Array& rows : {out, inside, strided(out)}) {
        const Values r = to_values(rows);
        check_same(lax::gather(array, rows, c.dimensions, c.window, Mode::clip),
                   gathered(to_values(x), r, c.dimensions, window, Mode::clip, 0));
        check_same(lax::gather(array, rows, c.dimensions, c.window, Mode::fill),
                   gathered(to_values(x), r, c.dimensions, window, Mode::fill, NAN));
        check_same(lax::gather(array, rows, c.dimensions, c.window, Mode::fill, 0.5),
                   gathered(to_values(x), r, c.dimensions, window, Mode::fill, 0.5));
      }
    }
  }
}

TEST_CASE("gather moves every dtype, and fills it as JAX does") {
  for (DType dtype : every_dtype) {
    const Array x = to_array(counting({4, 3}), dtype),
                rows = to_array(Values({4, 1}, {3, -1, 1, 4}), DType::int16);
    const Values from = to_values(x),
                 out = to_values(lax::gather(x, rows, {{0}, {0}, 0}, {1, 3}, Mode::fill));
    for (std::int64_t j = 0; j < 3; ++j) {
      CHECK(out.at({0, j}) == from.at({3, j}));
      CHECK(out.at({2, j}) == from.at({1, j}));
      for (std::int64_t i : {1, 3}) {
        if (is_inexact(dtype))
          CHECK(std::isnan(out.at({i, j})));
        else if (dtype == DType::bool_)
          CHECK(out.at({i, j}) == 1);
        else if (is_unsigned_integer(dtype))
          CHECK(out.at({i, j}) ==
                std::pow(2.0, 8 * size_of(dtype)) - (dtype == DType::uint64 ? 0 : 1));
        else
          CHECK(out.at({i, j}) == -std::pow(2.0, 8 * size_of(dtype) - 1));
      }
    }
  }
}

TEST_CASE("indices of every integer dtype") {
  const Array x = to_array(counting({300}));
  for (DType dtype : {DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8,
                      DType::uint16, DType::uint32, DType::uint64})
    check_same(
        lax::gather(x, to_array(Values({2, 1}, {5, 120}), dtype), {{0}, {0}, 0}, {1}, Mode::check),
        Values({2}, {5, 20}));
  Buffer huge = Buffer::empty(DType::uint64, {1, 1});
  *static_cast<std::uint64_t*>(huge.mutable_data()) = ~std::uint64_t(0);
  check_same(lax::gather(x, Array(huge), {{0}, {0}, 0}, {1}, Mode::clip), Values({1}, 99.0));
  CHECK(std::isnan(to_values(lax::gather(x, Array(huge), {{0}, {0}, 0}, {1}, Mode::fill)).data[0]));
  CHECK_THROWS_WITH_AS(lax::gather(x, Array(huge), {{0}, {0}, 0}, {1}),
                       doctest::Contains("out of bounds"), IndexError);
}

TEST_CASE("large gathers are the same on any number of threads") {
  const int before = num_threads();
  const Values x = counting({500, 40}), rows = random_integers({3000, 1}, -5, 505),
               wide = counting({3, 70000});
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    check_same(
        lax::gather(to_array(x), to_array(rows, DType::int32), {{0}, {0}, 0}, {1, 40}, Mode::fill),
        gathered(x, rows, {{0}, {0}, 0}, {1, 40}, Mode::fill, NAN));
    const Values two({2, 1}, {2, 7});
    check_same(lax::gather(to_array(wide), to_array(two, DType::int32), {{0}, {0}, 0}, {1, 70000},
                           Mode::fill),
               gathered(wide, two, {{0}, {0}, 0}, {1, 70000}, Mode::fill, NAN));
  }
  set_num_threads(before);
}

TEST_CASE("an index out of bounds is an error that names it") {
  const Array x = to_array(counting({4, 5}));
  Values rows = random_integers({70000, 1}, 0, 4);
  rows.data[69998] = 9;
  rows.data[40000] = -1;
  CHECK_THROWS_WITH_AS(
      lax::gather(x, to_array(rows, DType::int32), {{0}, {0}, 0}, {1, 5}, Mode::check),
      doctest::Contains("gather: index -1 is out of bounds for axis 0 with size 4"), IndexError);
  CHECK_THROWS_WITH_AS(
      lax::gather(x, to_array(Values({1, 2}, {0, 4}), DType::int32), {{0, 1}, {0}, 0}, {1, 3},
                  Mode::check),
      doctest::Contains(
          "index 4 of a window of 3 elements is out of bounds for axis 1 with size 5"),
      IndexError);
  CHECK_NOTHROW(lax::gather(x, to_array(Values({1, 2}, {3, 2}), DType::int32), {{0, 1}, {0}, 0},
                            {1, 3}, Mode::check));
}

TEST_CASE("an empty axis may be indexed by nothing") {
  const Array x = to_array(Values({0, 3}));
  CHECK(to_values(lax::gather(x, to_array(Values({0, 1}), DType::int32), {{0}, {0}, 0}, {1, 3},
                              Mode::check))
            .data.empty());
  const Array row = to_array(Values({1, 1}), DType::int32);
  CHECK_THROWS_WITH_AS(lax::gather(x, row, {{0}, {0}, 0}, {1, 3}, Mode::check),
                       doctest::Contains("the axis is empty"), IndexError);
  for (Mode mode : {Mode::clip, Mode::fill, Mode::promise})
    CHECK(std::isnan(to_values(lax::gather(x, row, {{0}, {0}, 0}, {1, 3}, mode)).data[2]));
}

TEST_CASE("errors of gather") {
  const Array x = to_array(counting({4, 5})), rows = to_array(Values({3, 1}), DType::int32);
  const lax::IndexDimensions d{{0}, {0}, 0};
  CHECK_THROWS_WITH_AS(lax::gather(x, to_array(Values({3, 1})), d, {1, 5}),
                       doctest::Contains("must be integers"), DtypeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, to_array(Values({3, 1}), DType::bool_), d, {1, 5}),
                       doctest::Contains("bool"), DtypeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, rows, {{0, 1}, {0}, 0}, {1, 5}),
                       doctest::Contains("one index for each of the 2 indexed axes"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, rows, d, {1}), doctest::Contains("has windows of 2 sizes"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, rows, d, {1, 6}),
                       doctest::Contains("windows have the size 6"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, rows, d, {2, 5}), doctest::Contains("cannot be collapsed"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, rows, {{2}, {}, 0}, {1, 5}),
                       doctest::Contains("not distinct axes"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::gather(x, rows, {{1}, {}, 1}, {5}),
                       doctest::Contains("differ along the batch axis 0"), ShapeError);
  CHECK_THROWS_AS(lax::gather(x, to_array(Values({}), DType::int32), d, {1, 5}), ShapeError);
}

TEST_CASE("JAX's dimension numbers put axes in any order") {
  // One batching axis each, last in the operand and second in the indices; windows around the rows.
  const Values x = counting({4, 5, 3}), rows = random_integers({2, 3, 1}, 0, 4);
  lax::GatherDimensionNumbers numbers;
  numbers.offset_dims = {1};
  numbers.collapsed_slice_dims = {0};
  numbers.start_index_map = {0};
  numbers.operand_batching_dims = {2};
  numbers.start_indices_batching_dims = {1};
  const Array out = lax::gather(to_array(x), to_array(rows, DType::int32), numbers, {1, 2, 1});
  Values expected({2, 2, 3});
  for_each(expected.shape, [&](const Index& i) {
    expected.at(i) = x.at({std::int64_t(rows.at({i[0], i[2], 0})), i[1], i[2]});
  });
  check_same(out, expected);

  lax::GatherDimensionNumbers bad = numbers;
  bad.offset_dims = {};
  CHECK_THROWS_AS(lax::gather(to_array(x), to_array(rows, DType::int32), bad, {1, 2, 1}),
                  ShapeError);
  bad = numbers;
  bad.operand_batching_dims = {0};
  CHECK_THROWS_WITH_AS(lax::gather(to_array(x), to_array(rows, DType::int32), bad, {1, 2, 1}),
                       doctest::Contains("also collapsed or indexed"), ShapeError);
}

TEST_CASE("gather with named sizes gives the programs of numbers") {
  const std::vector<Aval> avals{{{n, 3}, DType::float64}, {{m, 1}, DType::int32}};
  for (Mode mode : {Mode::check, Mode::clip, Mode::fill}) {
    check_named(
        [=](std::span<const Array> in) -> Arrays {
          return {lax::gather(in[0], in[1], {{0}, {0}, 0}, {1, 3}, mode)};
        },
        avals, {{"n", 5}, {"m", 4}});
    check_named(
        [=](std::span<const Array> in) -> Arrays {
          return {lax::gather(in[0], in[1], {{1}, {}, 0}, {in[0].shape(0) - 1, 2}, mode)};
        },
        avals, {{"n", 5}, {"m", 4}});
  }
}

TEST_CASE("gather: every rule on samples") { check_samples(gather_p); }

TEST_CASE("what lies outside has no tangent") {
  const Array x = to_array(random_values({3})),
              rows = to_array(Values({2, 1}, {1, 5}), DType::int32);
  const Function f = [&](std::span<const Array> in) -> Arrays {
    return {lax::gather(in[0], rows, {{0}, {0}, 0}, {1}, Mode::fill)};
  };
  const auto [outputs, tangents] = flat::jvp(f, Arrays{x}, Tangents{Tangent(x)});
  CHECK(std::isnan(to_values(outputs[0]).data[1]));
  CHECK(to_values(tangents[0].array()).data[1] == 0);
}

TEST_CASE("gather of ragged arrays obeys its mode at the real sizes") {
  for (const char* mode : {"clip", "fill"}) {
    CAPTURE(mode);
    auto check = [&](Shape x, Shape rows, const lax::IndexDimensions& d, Shape window,
                     const SizeMap& bounds, auto accepts) {
      check_mask(gather_p, {input(x), indices(rows, 7)}, params(d, window, mode), bounds, accepts);
    };
    auto any = [](const SizeMap&) { return true; };
    auto m_fits = [](const SizeMap& s) { return s.find("m")->second <= s.find("n")->second; };
    check({n, 3}, {2, 1}, {{0}, {0}, 0}, {1, 3}, {{"n", 4}}, any);
    check({n, 3}, {m, 1}, {{0}, {0}, 0}, {1, 3}, {{"n", 4}, {"m", 3}}, any);
    check({4, n}, {m, 2, 1}, {{0}, {0}, 0}, {1, n}, {{"n", 4}, {"m", 3}}, any);
    check({n, m}, {3, 2}, {{0, 1}, {0, 1}, 0}, {1, 1}, {{"n", 4}, {"m", 3}}, any);
    check({n, 5}, {3, 2}, {{0, 1}, {0}, 0}, {1, 2}, {{"n", 4}}, any);
    check({n, 3}, {2, 1}, {{0}, {}, 0}, {m, 3}, {{"n", 4}, {"m", 3}}, m_fits);
    check({n, 3}, {2, 1}, {{1}, {1}, 0}, {m, 1}, {{"n", 4}, {"m", 3}}, m_fits);
    check({n, 3}, {2, 2}, {{0, 1}, {}, 0}, {n, 1}, {{"n", 4}}, any);
    check({q, n, 2}, {q, m, 1}, {{1}, {1}, 1}, {1, 2}, {{"n", 3}, {"m", 3}, {"q", 2}}, any);
  }
}

TEST_CASE("a checked gather of a ragged array raises at the real size, and never for padding") {
  const Params rows = params({{0}, {0}, 0}, {1, 3}, "check");
  check_mask(gather_p, {input({n + 1, 3}), indices({m, 1}, 1)}, rows, {{"n", 4}, {"m", 3}});
  const std::vector<Aval> avals{{{n, 3}, DType::float64}, {{2, 1}, DType::int32}};
  const Jaxpr named =
      make_jaxpr([&](std::span<const Array> in) -> Arrays { return bind(gather_p, in, rows); },
                 avals)
          .jaxpr;
  CHECK(named->constraints.empty());
  const SizeValues sizes{
      [](Dim dim) {
        return Array::literal(Literal{DType::int32, false, evaluated(dim, {{"n", 2}}), 0, 0});
      },
      [](Dim dim) { return Dim(bound_of(dim, {{"n", 5}})); }};
  auto run = [&](double index) {
    const Masked inputs[] = {{to_array(Values({5, 3}, NAN)), avals[0]},
                             {to_array(Values({2, 1}, {0, index}), DType::int32), avals[1]}};
    return rule<Mask>(gather_p)(inputs, named->output_avals(), rows, sizes);
  };
  CHECK_NOTHROW(run(1));
  for (double index : {-1.0, 2.0, 4.0, 5.0, 9.0}) CHECK_THROWS_AS(run(index), IndexError);
}
