// scatter: every kind and mode against a loop over its definition, all dtypes and layouts, any
// number of threads, JAX's dimension numbers, errors, and every rule on samples and named sizes.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/pool.h>

#include "indexing_reference.h"

using namespace plait;
using namespace reference;
using Mode = lax::GatherScatterMode;
using Kind = lax::ScatterKind;

namespace {

constexpr DType every_dtype[] = {DType::bool_,   DType::int8,      DType::int16,     DType::int32,
                                 DType::int64,   DType::uint8,     DType::uint16,    DType::uint32,
                                 DType::uint64,  DType::float16,   DType::bfloat16,  DType::float32,
                                 DType::float64, DType::complex64, DType::complex128};
constexpr Kind every_kind[] = {Kind::set, Kind::add, Kind::mul, Kind::min, Kind::max};
const char* name_of_kind(Kind kind) {
  constexpr const char* names[] = {"set", "add", "mul", "min", "max"};
  return names[int(kind)];
}

bool in(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

double combined(Kind kind, double x, double update) {
  switch (kind) {
    case Kind::set:
      return update;
    case Kind::add:
      return x + update;
    case Kind::mul:
      return x * update;
    case Kind::min:
      return std::isnan(x) || x < update ? x : update;
    default:
      return std::isnan(x) || x > update ? x : update;
  }
}

// The definition, element by element.
Values scattered(Values x, const Values& indices, const Values& updates,
                 const lax::IndexDimensions& d, Kind kind, Mode mode) {
  const int rank = int(x.shape.size());
  const std::size_t leading = indices.shape.size() - 1;
  Index window(rank, 1);
  std::size_t from = leading;
  for (int axis = d.batch_dims; axis < rank; ++axis)
    if (!in(d.collapse, axis)) window[axis] = updates.shape[from++];
  for_each(updates.shape, [&](const Index& index) {
    Index to(index.begin(), index.begin() + d.batch_dims),
        row(index.begin(), index.begin() + std::int64_t(leading));
    std::size_t next = leading;
    for (int axis = d.batch_dims; axis < rank; ++axis)
      to.push_back(in(d.collapse, axis) ? 0 : index[next++]);
    for (std::size_t m = 0; m < d.axes.size(); ++m) {
      row.push_back(std::int64_t(m));
      const int axis = d.axes[m];
      auto start = std::int64_t(indices.at(row));
      row.pop_back();
      const std::int64_t last = x.shape[axis] - window[axis];
      if (mode == Mode::clip) start = std::max<std::int64_t>(0, std::min(start, last));
      if (start < 0 || start > last) return;
      to[axis] += start;
    }
    x.at(to) = combined(kind, x.at(to), updates.at(index));
  });
  return x;
}

struct Case {
  Index x, indices, updates;
  lax::IndexDimensions dimensions;
};
const std::vector<Case> cases = {{{4, 5}, {3, 1}, {3, 5}, {{0}, {0}, 0}},
                                 {{4, 5}, {2, 3, 1}, {2, 3, 4}, {{1}, {1}, 0}},
                                 {{4, 5}, {6, 2}, {6}, {{0, 1}, {0, 1}, 0}},
                                 {{4, 5}, {6, 2}, {6, 2, 3}, {{1, 0}, {}, 0}},
                                 {{4, 5}, {2}, {2}, {{1, 0}, {1}, 0}},
                                 {{3, 4, 2}, {3, 5, 1}, {3, 5, 2}, {{1}, {1}, 1}},
                                 {{3, 4, 2}, {3, 4, 5, 1}, {3, 4, 5}, {{2}, {2}, 2}},
                                 {{3, 4, 2, 3}, {5, 2}, {5, 3, 2, 2}, {{3, 1}, {1}, 0}},
                                 {{3, 4}, {3, 0}, {3, 3, 4}, {{}, {}, 0}},
                                 {{3, 4}, {0, 1}, {0, 4}, {{0}, {0}, 0}},
                                 {{7}, {300, 1}, {300}, {{0}, {0}, 0}},
                                 {{0, 3}, {2, 1}, {2, 3}, {{0}, {0}, 0}}};

const Dim n = Dim::size("n"), m = Dim::size("m"), q = Dim::size("q");
Sample::Input input(Shape shape) { return {{std::move(shape), DType::float64}}; }
Sample::Input indices(Shape shape, std::int64_t limit) {
  return {{std::move(shape), DType::int32}, Sample::Input::Values::indices, limit};
}
Params params(const lax::IndexDimensions& d, Kind kind, const char* mode, bool unique = false) {
  return {{"axes", to_shape(d.axes)},
          {"collapse", to_shape(d.collapse)},
          {"batch_dims", Dim(d.batch_dims)},
          {"kind", std::string(name_of_kind(kind))},
          {"mode", std::string(mode)},
          {"unique", unique},
          {"sorted", false}};
}

}  // namespace

TEST_CASE("scatter is its definition") {
  for (const Case& c : cases)
    for (Kind kind : every_kind)
      for (Mode mode : {Mode::clip, Mode::fill}) {
        const Values x = random_values(c.x), rows = random_integers(c.indices, -2, 7),
                     updates = random_values(c.updates);
        const Array a = to_array(x), r = to_array(rows, DType::int32), u = to_array(updates);
        const Values expected = scattered(x, rows, updates, c.dimensions, kind, mode);
        check_same(lax::scatter(a, r, u, c.dimensions, kind, {mode}), expected);
        check_same(lax::scatter(strided(a), strided(r), strided(u), c.dimensions, kind, {mode}),
                   expected);
        check_same(a, x);  // the operand itself stays as it was
      }
}

TEST_CASE("scatter combines every dtype") {
  const lax::IndexDimensions d{{0}, {0}, 0};
  for (DType dtype : every_dtype)
    for (Kind kind : every_kind) {
      const Array x = to_array(counting({3, 20}), dtype), u = to_array(Values({2, 20}, 3.0), dtype);
      const Array rows = to_array(Values({2, 1}, {2, 2}), DType::uint8);
      if (is_complex(dtype) && (kind == Kind::min || kind == Kind::max)) {
        CHECK_THROWS_AS(lax::scatter(x, rows, u, d, kind), DtypeError);
        continue;
      }
      const Array out = lax::scatter(x, rows, u, d, kind);
      CHECK(out.dtype() == dtype);
      Array expected = lax::index_in_dim(x, 2, 0, false);
      const Array update = lax::index_in_dim(u, 0, 0, false);
      for (int i = 0; i < 2; ++i) {
        const bool flag = dtype == DType::bool_;
        if (kind == Kind::set)
          expected = update;
        else if (kind == Kind::add)
          expected = flag ? lax::bitwise_or(expected, update) : lax::add(expected, update);
        else if (kind == Kind::mul)
          expected = flag ? lax::bitwise_and(expected, update) : lax::mul(expected, update);
        else
          expected = kind == Kind::min ? lax::min(expected, update) : lax::max(expected, update);
      }
      check_same(lax::index_in_dim(out, 2, 0, false), expected);
      check_same(lax::slice_in_dim(out, 0, 2), lax::slice_in_dim(x, 0, 2));
    }
}

TEST_CASE("NaN wins minimum and maximum") {
  const Array rows = to_array(Values({2, 1}, {0, 1}), DType::int32);
  for (Kind kind : {Kind::min, Kind::max}) {
    const Values out =
        to_values(lax::scatter(to_array(Values({2}, {NAN, 1})), rows,
                               to_array(Values({2}, {1, NAN})), {{0}, {0}, 0}, kind));
    CHECK(std::isnan(out.data[0]));
    CHECK(std::isnan(out.data[1]));
  }
}

TEST_CASE("scatter gives the same bits on any number of threads") {
  struct Large {
    Index x, indices, updates;
    lax::IndexDimensions dimensions;
  };
  const std::vector<Large> shapes = {
      {{50, 512}, {400, 1}, {400, 512}, {{0}, {0}, 0}},  // columns
      {{20000}, {60000, 1}, {60000}, {{0}, {0}, 0}},     // parts of an axis
      {{60, 3}, {30000, 1}, {30000, 3}, {{0}, {0}, 0}},
      {{40, 100}, {40, 2000, 1}, {40, 2000}, {{1}, {1}, 1}},  // batches
      {{200, 100}, {40000, 2}, {40000}, {{0, 1}, {0, 1}, 0}},
      {{30, 30}, {9000, 2}, {9000, 2, 2}, {{0, 1}, {}, 0}}};  // overlapping windows
  const int before = num_threads();
  for (const Large& s : shapes)
    for (Kind kind : {Kind::set, Kind::add})
      for (Mode mode : {Mode::fill, Mode::clip}) {
        const Values x = random_values(s.x), rows = random_integers(s.indices, 0, s.x.back() + 2),
                     updates = random_values(s.updates);
        const Values expected = scattered(x, rows, updates, s.dimensions, kind, mode);
        for (int threads : {1, 2, 5}) {
          set_num_threads(threads);
          check_same(lax::scatter(to_array(x), to_array(rows, DType::int32), to_array(updates),
                                  s.dimensions, kind, {mode}),
                     expected);
        }
      }
  Values rows({20000, 1}), updates = random_values({20000, 4});
  for (std::size_t i = 0; i < 20000; ++i) rows.data[i] = double((i * 7919) % 20000);
  const Values x = random_values({20000, 4}),
               expected = scattered(x, rows, updates, {{0}, {0}, 0}, Kind::add, Mode::fill);
  for (int threads : {1, 4}) {
    set_num_threads(threads);
    check_same(lax::scatter(to_array(x), to_array(rows, DType::int32), to_array(updates),
                            {{0}, {0}, 0}, Kind::add, {Mode::check, true}),
               expected);
  }
  set_num_threads(before);
}

TEST_CASE(
    "many updates of a small array are combined in parts, the same on any number of threads") {
  struct Many {
    Index x, indices, updates;
    std::int64_t num_parts;
  };
  const std::vector<Many> shapes = {{{40}, {40000, 1}, {40000}, 8},
                                    {{4000}, {50, 1000, 1}, {50, 1000}, 3},
                                    {{30, 40}, {40000, 2}, {40000}, 8}};
  const double nothing[] = {0, -0.0, 1, INFINITY, -INFINITY};  // by kind
  const int before = num_threads();
  for (const Many& s : shapes)
    for (Kind kind : {Kind::add, Kind::min, Kind::max}) {
      const bool is_table = s.x.size() == 2;
      const lax::IndexDimensions d =
          is_table ? lax::IndexDimensions{{0, 1}, {0, 1}, 0} : lax::IndexDimensions{{0}, {0}, 0};
      const Values x = random_values(s.x), rows = random_integers(s.indices, -2, s.x.back() + 2);
      const Values updates = random_values(s.updates);
      const auto count = std::int64_t(updates.data.size()), width = std::int64_t(s.x.size());
      Values expected = x;
      for (std::int64_t part = 0; part < s.num_parts; ++part) {
        const std::int64_t begin = count * part / s.num_parts,
                           end = count * (part + 1) / s.num_parts;
        Values mine({end - begin}), places({end - begin, width});
        std::copy_n(updates.data.begin() + begin, end - begin, mine.data.begin());
        std::copy_n(rows.data.begin() + begin * width, (end - begin) * width, places.data.begin());
        const Values made = scattered(part == 0 ? x : Values(s.x, nothing[int(kind)]), places, mine,
                                      d, kind, Mode::fill);
        for (std::size_t i = 0; i < made.data.size(); ++i)
          expected.data[i] =
              part == 0 ? made.data[i] : combined(kind, expected.data[i], made.data[i]);
      }
      for (int threads : {1, 2, 5}) {
        set_num_threads(threads);
        check_same(lax::scatter(to_array(x), to_array(rows, DType::int32), to_array(updates), d,
                                kind, {Mode::fill}),
                   expected);
      }
    }
  set_num_threads(before);
}

TEST_CASE("an index out of bounds is an error before anything is written") {
  const Array x = to_array(counting({4})), u = to_array(Values({2}, 9.0));
  CHECK_THROWS_WITH_AS(
      lax::scatter(x, to_array(Values({2, 1}, {1, 4}), DType::int32), u, {{0}, {0}, 0}, Kind::set,
                   {Mode::check}),
      doctest::Contains("scatter: index 4 is out of bounds for axis 0 with size 4"), IndexError);
  check_same(x, counting({4}));
}

TEST_CASE("errors of scatter") {
  const Array x = to_array(counting({4, 5})), rows = to_array(Values({3, 1}), DType::int32);
  const lax::IndexDimensions d{{0}, {0}, 0};
  CHECK_THROWS_WITH_AS(lax::scatter(x, rows, to_array(Values({3})), d, Kind::set),
                       doctest::Contains("give updates of 2 dimensions"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::scatter(x, rows, to_array(Values({2, 5})), d, Kind::set),
                       doctest::Contains("give updates of shape (3,5)"), ShapeError);
  CHECK_THROWS_WITH_AS(lax::scatter(x, rows, to_array(Values({3, 6})), d, Kind::set),
                       doctest::Contains("windows have the size 6"), ShapeError);
  CHECK_THROWS_WITH_AS(
      lax::scatter(x, rows, to_array(Values({3, 5}), DType::float32), d, Kind::set),
      doctest::Contains("float32"), DtypeError);
  CHECK_THROWS_AS(lax::scatter(x, to_array(Values({3, 1})), to_array(Values({3, 5})), d, Kind::set),
                  DtypeError);
}

TEST_CASE("JAX's dimension numbers put axes in any order") {
  const Values x = counting({4, 5, 3}), rows = random_integers({2, 3, 1}, 0, 4),
               updates = random_values({2, 2, 3});
  lax::ScatterDimensionNumbers numbers;
  numbers.update_window_dims = {1};
  numbers.inserted_window_dims = {0};
  numbers.scatter_dims_to_operand_dims = {0};
  numbers.operand_batching_dims = {2};
  numbers.scatter_indices_batching_dims = {1};
  Values expected = x;
  for_each(updates.shape, [&](const Index& i) {
    expected.at({std::int64_t(rows.at({i[0], i[2], 0})), i[1], i[2]}) += updates.at(i);
  });
  check_same(
      lax::scatter_add(to_array(x), to_array(rows, DType::int32), to_array(updates), numbers),
      expected, 1e-12);
}

TEST_CASE("scatter with named sizes gives the programs of numbers") {
  const std::vector<Aval> avals{
      {{n, 3}, DType::float64}, {{m, 1}, DType::int32}, {{m, 3}, DType::float64}};
  for (Kind kind : every_kind)
    for (Mode mode : {Mode::check, Mode::clip, Mode::fill})
      check_named(
          [=](std::span<const Array> in) -> Arrays {
            return {lax::scatter(in[0], in[1], in[2], {{0}, {0}, 0}, kind, {mode})};
          },
          avals, {{"n", 5}, {"m", 4}});
}

TEST_CASE("scatter: every rule on samples") { check_samples(scatter_p); }

TEST_CASE("the update that stands gets the cotangent") {
  const Array rows = to_array(Values({3, 1}, {1, 2, 1}), DType::int32),
              x = to_array(random_values({4})), u = to_array(random_values({3}));
  const Function f = [&](std::span<const Array> in) -> Arrays {
    return {lax::scatter(in[0], rows, in[1], {{0}, {0}, 0}, Kind::set)};
  };
  const Tangents back = flat::vjp(f, Arrays{x, u}, {true, true})
                            .pull(Tangents{Tangent(to_array(Values({4}, {1, 2, 3, 4})))});
  check_same(back[0].array(), Values({4}, {1, 0, 0, 4}));
  check_same(back[1].array(), Values({3}, {0, 3, 2}));
}

TEST_CASE("products through zero have derivatives, and second derivatives") {
  const Array rows = to_array(Values({4, 1}, {0, 0, 1, 1}), DType::int32);
  const Function f = [&](std::span<const Array> in) -> Arrays {
    return {lax::scatter(in[0], rows, in[1], {{0}, {0}, 0}, Kind::mul)};
  };
  const Arrays primals{to_array(Values({3}, {2, 3, 5})), to_array(Values({4}, {0, 7, 0, 0}))};
  check_derivatives(f, primals);
  const Array v = to_array(Values({4}, {1, 2, 3, 4}));
  const Function along = [&](std::span<const Array> in) -> Arrays {
    return {flat::jvp(f, in, Tangents{Tangent(in[0].aval()), Tangent(v)}).tangents[0].array()};
  };
  check_derivatives(along, {primals[0], to_array(Values({4}, {0, 7, 6, 5}))});
}

TEST_CASE("equal winners share the tangent") {
  const Array rows = to_array(Values({2, 1}, {0, 0}), DType::int32),
              x = to_array(Values({2}, {4, 1})), u = to_array(Values({2}, {4, 4}));
  const Function f = [&](std::span<const Array> in) -> Arrays {
    return {lax::scatter(in[0], rows, in[1], {{0}, {0}, 0}, Kind::max)};
  };
  const Tangents back = flat::vjp(f, Arrays{x, u}, {true, true})
                            .pull(Tangents{Tangent(to_array(Values({2}, {3, 5})))});
  check_same(back[0].array(), Values({2}, {1, 5}), 1e-12);
  check_same(back[1].array(), Values({2}, {1, 1}), 1e-12);
}

TEST_CASE("vmap of a dynamic update is one scatter, and of a dynamic slice one gather") {
  const Function f = [](std::span<const Array> in) -> Arrays {
    return {lax::dynamic_update_slice(in[0], in[1], {in[2], 0}, lax::NegativeIndices::clamp)};
  };
  const std::vector<Aval> avals{
      {{4, 3}, DType::float32}, {{5, 2, 3}, DType::float32}, {{5}, DType::int32}};
  const Jaxpr jaxpr = make_jaxpr(
                          [&](std::span<const Array> in) {
                            flat::VmapOptions options;
                            options.in_dims = {std::nullopt, 0, 0};
                            options.out_dims = [](std::size_t count) {
                              return std::vector<std::optional<int>>(count, 0);
                            };
                            return flat::vmap(f, in, options);
                          },
                          avals)
                          .jaxpr;
  check(jaxpr);
  CHECK(jaxpr->equations.back().primitive->name() == "scatter");
}

TEST_CASE("scatter into ragged arrays drops padding and obeys its mode at the real sizes") {
  for (Kind kind : every_kind)
    for (const char* mode : {"clip", "fill"}) {
      CAPTURE(mode);
      CAPTURE(name_of_kind(kind));
      auto check = [&](Shape x, Shape rows, Shape updates, const lax::IndexDimensions& d,
                       const SizeMap& bounds, auto accepts) {
        check_mask(scatter_p, {input(x), indices(rows, 7), input(updates)}, params(d, kind, mode),
                   bounds, accepts);
      };
      auto any = [](const SizeMap&) { return true; };
      auto m_fits = [](const SizeMap& s) { return s.find("m")->second <= s.find("n")->second; };
      check({n, 3}, {2, 1}, {2, 3}, {{0}, {0}, 0}, {{"n", 4}}, any);
      check({5, 3}, {m, 1}, {m, 3}, {{0}, {0}, 0}, {{"m", 3}}, any);
      check({n, 2}, {m, 1}, {m, 2}, {{0}, {0}, 0}, {{"n", 4}, {"m", 3}}, any);
      check({3, n}, {m, 1}, {m, n}, {{0}, {0}, 0}, {{"n", 3}, {"m", 3}}, any);
      check({n, m}, {3, 2}, {3}, {{0, 1}, {0, 1}, 0}, {{"n", 4}, {"m", 3}}, any);
      check({n + 2, 3}, {m, 1}, {m, 2, 3}, {{0}, {}, 0}, {{"n", 3}, {"m", 2}}, any);
      check({n, 2}, {3, 1}, {3, m, 2}, {{0}, {}, 0}, {{"n", 4}, {"m", 3}}, m_fits);
      check({n, 3}, {2, 1}, {2, m}, {{1}, {1}, 0}, {{"n", 4}, {"m", 3}}, m_fits);
      check({4, 3}, {2, 2}, {2, 2, n}, {{0, 1}, {}, 0}, {{"n", 3}}, any);
      check({q, n}, {q, m, 1}, {q, m}, {{1}, {1}, 1}, {{"n", 3}, {"m", 3}, {"q", 2}}, any);
      check({n, 2}, {m, 0}, {m, n, 2}, {{}, {}, 0}, {{"n", 3}, {"m", 2}}, any);
      check({3, 2}, {m, 0}, {m, n, 2}, {{}, {}, 0}, {{"n", 3}, {"m", 2}}, any);
    }
}

TEST_CASE("a checked scatter into a ragged array raises at the real size, and never for padding") {
  const Params rows = params({{0}, {0}, 0}, Kind::set, "check");
  check_mask(scatter_p, {input({n + 2, 3}), indices({m, 1}, 2), input({m, 3})}, rows,
             {{"n", 3}, {"m", 3}});
  check_mask(scatter_p, {input({3, 3}), indices({m, 1}, 3), input({m, 3})}, rows, {{"m", 3}});
  check_mask(scatter_p, {input({4, 3}), indices({m, 2}, 2), input({m, 2, 2})},
             params({{0, 1}, {}, 0}, Kind::add, "check"), {{"m", 3}});
  check_mask(scatter_p, {input({4, 3}), indices({2, 1}, 1), input({2, n + 1, 3})},
             params({{0}, {}, 0}, Kind::set, "check"), {{"n", 3}});

  auto raises = [&](const std::vector<Aval>& avals, const SizeMap& at, const SizeMap& bounds,
                    std::vector<double> index, const Params& with) {
    const Jaxpr named =
        make_jaxpr([&](std::span<const Array> in) -> Arrays { return bind(scatter_p, in, with); },
                   avals)
            .jaxpr;
    const SizeValues sizes{
        [&](Dim dim) {
          return Array::literal(Literal{DType::int32, false, evaluated(dim, at), 0, 0});
        },
        [&](Dim dim) { return Dim(bound_of(dim, bounds)); }};
    std::vector<Masked> inputs;
    for (std::size_t i = 0; i < 3; ++i) {
      Index shape;
      for (Dim dim : avals[i].shape) shape.push_back(bound_of(dim, bounds));
      inputs.push_back(
          {i == 1 ? to_array(Values(shape, index), DType::int32) : to_array(Values(shape)),
           avals[i]});
    }
    try {
      rule<Mask>(scatter_p)(inputs, named->output_avals(), with, sizes);
    } catch (const IndexError&) {
      return true;
    }
    return false;
  };
  const std::vector<Aval> ragged{
      {{n, 3}, DType::float64}, {{2, 1}, DType::int32}, {{2, 3}, DType::float64}};
  for (double index : {0.0, 2.0, -1.0, 3.0, 5.0, 6.0, 99.0})
    CHECK(raises(ragged, {{"n", 3}}, {{"n", 5}}, {0, index}, rows) == (index < 0 || index > 2));
  const std::vector<Aval> padding{
      {{4, 3}, DType::float64}, {{m, 1}, DType::int32}, {{m, 3}, DType::float64}};
  for (double index : {0.0, 3.0, -1.0, 4.0, 5.0, 99.0}) {
    CHECK(raises(padding, {{"m", 2}}, {{"m", 2}}, {0, index}, rows) == (index < 0 || index > 3));
    CHECK_FALSE(raises(padding, {{"m", 1}}, {{"m", 2}}, {0, index}, rows));
  }
  const std::vector<Aval> windows{
      {{4, 3}, DType::float64}, {{m, 2}, DType::int32}, {{m, 2, 2}, DType::float64}};
  for (double index : {0.0, 2.0, -1.0, 3.0, 4.0, 5.0, 6.0}) {
    const Params with = params({{0, 1}, {}, 0}, Kind::add, "check");
    CHECK(raises(windows, {{"m", 2}}, {{"m", 2}}, {0, 0, index, 1}, with) ==
          (index < 0 || index > 2));
    CHECK(raises(windows, {{"m", 1}}, {{"m", 2}}, {0, index, 9, 9}, with) ==
          (index < 0 || index > 1));
  }
}
