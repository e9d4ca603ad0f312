// Masked programs that cut, join and index ragged arrays: values, gradients, batches of lengths and
// compiled programs, with NaN in all padding.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "../transforms/mask_properties.h"

using namespace plait;
using namespace plait::test;
using Mode = lax::GatherScatterMode;
using Kind = lax::ScatterKind;

namespace {

constexpr auto normal = Sample::Input::Values::normal, indices = Sample::Input::Values::indices;

Array rows(const Array& places) { return lax::reshape(places, {places.shape(0), 1}); }

}  // namespace

TEST_CASE("mask of slices and pads whose bounds are sizes") {
  check_mask_laws(
      {[](auto in) { return Arrays{lax::tanh(lax::slice_in_dim(in[0], 1, std::nullopt))}; },
       {"n 2"},
       {{"n", 4}}},
      1);
  check_mask_laws(
      {[](auto in) { return Arrays{lax::tanh(lax::slice_in_dim(in[0], -2, std::nullopt))}; },
       {"n 2"},
       {{"n", 4}}},
      2);
  check_mask_laws(
      {[](auto in) { return Arrays{lax::exp(lax::slice_in_dim(in[0], 0, std::nullopt, 2))}; },
       {"n 3"},
       {{"n", 5}}});
  check_mask_laws(
      {[](auto in) { return Arrays{lax::exp(lax::pad(in[0], 0.5, {{1, 2, 0}, {0, 1, 1}}))}; },
       {"n m"},
       {{"n", 4}, {"m", 3}}});
  check_mask_laws(
      {[](auto in) { return Arrays{lax::exp(lax::pad(in[0], in[1], {{in[2].shape(0), 1, 1}}))}; },
       {"n", "", "m"},
       {{"n", 4}, {"m", 3}}});
  check_mask_laws({[](auto in) { return Arrays{lax::pad(lax::exp(in[0]), 0.5, {{-1, 2, 0}})}; },
                   {"n"},
                   {{"n", 4}}});
}

TEST_CASE("mask of what joins, splits and reverses ragged axes") {
  check_mask_laws(
      {[](auto in) { return Arrays{lax::sin(lax::concatenate({in[0], in[1], in[0]}, 0))}; },
       {"n 2", "m 2"},
       {{"n", 3}, {"m", 4}}});
  check_mask_laws({[](auto in) { return Arrays{lax::sin(lax::concatenate({in[0], in[1]}, 1))}; },
                   {"n 2", "n m"},
                   {{"n", 3}, {"m", 2}}});
  check_mask_laws({[](auto in) {
                     const Array all = lax::sin(lax::concatenate({in[0], in[1]}, 0));
                     return Arrays(lax::split(all, {in[0].shape(0), in[1].shape(0)}));
                   },
                   {"n 2", "m 2"},
                   {{"n", 3}, {"m", 4}}});
  check_mask_laws(
      {[](auto in) { return Arrays{lax::mul(in[0], lax::rev(in[0], std::vector<int>{0, 1}))}; },
       {"n m"},
       {{"n", 4}, {"m", 3}}});
}

TEST_CASE("mask of dynamic windows") {
  check_mask_laws(
      {[](auto in) { return Arrays{lax::exp(lax::dynamic_slice(in[0], {in[1], 0}, {2, 3}))}; },
       {"n 3", ""},
       {{"n", 5}},
       {normal, indices},
       {DType::float64, DType::int32},
       5},
      2);
  check_mask_laws(
      {[](auto in) { return Arrays{lax::exp(lax::dynamic_index_in_dim(in[0], -1, 0, false))}; },
       {"n 3"},
       {{"n", 4}}},
      1);
  check_mask_laws({[](auto in) {
                     return Arrays{lax::dynamic_update_slice(lax::sin(in[0]), in[1], {in[2], 0})};
                   },
                   {"n 2", "2 2", ""},
                   {{"n", 4}},
                   {normal, normal, indices},
                   {DType::float64, DType::float64, DType::int32},
                   4},
                  2);
  check_mask_laws(
      {[](auto in) { return Arrays{lax::dynamic_update_slice(lax::sin(in[0]), in[1], {in[2]})}; },
       {"n+m", "n", ""},
       {{"n", 3}, {"m", 3}},
       {normal, normal, indices},
       {DType::float64, DType::float64, DType::int32},
       6});
}

TEST_CASE("mask of gathers, whatever the indices in the padding") {
  for (Mode mode : {Mode::clip, Mode::fill}) {
    check_mask_laws(
        {[&](auto in) {
           return Arrays{lax::sin(lax::gather(in[0], rows(in[1]), lax::IndexDimensions{{0}, {0}, 0},
                                              {1, in[0].shape(1)}, mode, 0.5))};
         },
         {"n d", "m"},
         {{"n", 4}, {"d", 2}, {"m", 3}},
         {normal, indices},
         {DType::float64, DType::int32},
         5},
        1);
    check_mask_laws(
        {[&](auto in) {
           const Array places = lax::reshape(in[1], {in[1].shape(0), in[1].shape(1), 1});
           return Arrays{lax::gather(lax::sin(in[0]), places, lax::IndexDimensions{{1}, {1}, 1},
                                     {1}, mode, 0.5)};
         },
         {"b n", "b m"},
         {{"b", 2}, {"n", 4}, {"m", 3}},
         {normal, indices},
         {DType::float64, DType::int64},
         5},
        1);
  }
  check_mask_laws(
      {[&](auto in) {
         return Arrays{lax::gather(lax::sin(in[0]), rows(in[1]), lax::IndexDimensions{{0}, {0}, 0},
                                   {1, 2}, Mode::check)};
       },
       {"n 2", "m"},
       {{"n", 4}, {"m", 3}},
       {normal, indices},
       {DType::float64, DType::int32},
       1},
      1);
}

TEST_CASE("mask of scatters of every kind") {
  for (Kind kind : {Kind::set, Kind::add, Kind::mul, Kind::min, Kind::max})
    for (Mode mode : {Mode::clip, Mode::fill}) {
      check_mask_laws(
          {[&](auto in) {
             return Arrays{lax::scatter(lax::sin(in[0]), rows(in[1]), in[2],
                                        lax::IndexDimensions{{0}, {0}, 0}, kind, {mode})};
           },
           {"n 2", "m", "m 2"},
           {{"n", 4}, {"m", 3}},
           {normal, indices, normal},
           {DType::float64, DType::int32, DType::float64},
           5},
          1);
    }
  check_mask_laws(
      {[&](auto in) {
         return Arrays{lax::scatter(lax::sin(in[0]), rows(in[1]), in[2],
                                    lax::IndexDimensions{{0}, {0}, 0}, Kind::add, {Mode::check})};
       },
       {"n 2", "m", "m 2"},
       {{"n", 4}, {"m", 3}},
       {normal, indices, normal},
       {DType::float64, DType::int32, DType::float64},
       1},
      1);
}

TEST_CASE("masked indices of mode check are held to real sizes") {
  const Array x = lax::iota(DType::float64, {5, 2}, 0),
              starts = array<std::int32_t>({0, 2, 3}, {3, 1}),
              updates = lax::iota(DType::float64, {3, 2}, 0);
  auto gathered = [](std::span<const Array> in) {
    return Arrays{
        lax::gather(in[0], in[1], lax::IndexDimensions{{0}, {0}, 0}, {1, 2}, Mode::check)};
  };
  auto scattered = [](std::span<const Array> in) {
    return Arrays{lax::scatter(in[0], in[1], in[2], lax::IndexDimensions{{0}, {0}, 0}, Kind::add,
                               {Mode::check})};
  };
  auto two = [](std::span<const Array> in) {
    return Arrays{lax::gather(in[0], in[1], lax::IndexDimensions{{0}, {}, 0}, {2, 2}, Mode::check)};
  };
  auto at = [&](const Function& f, std::int64_t n, std::int64_t m) {
    return [&f, n, m](std::span<const Array> in) {
      flat::MaskOptions options{{"n 2", "m 1"}, {}, {{"n", n}, {"m", m}}};
      if (in.size() == 3) options.in_shapes.push_back("m 2");
      return flat::mask(f, in, options);
    };
  };
  const std::string fix = ", or choose what happens outside with mode \"clip\" or \"fill\"";
  auto message = [&](const Function& f, const Arrays& inputs, std::int64_t n, std::int64_t m) {
    const Function masked = at(f, n, m);
    const std::string eager = problem_and_fix([&] { masked(inputs); });
    CHECK(problem_and_fix([&] { flat::Jit(masked, "masked")(inputs); }) == eager);
    return eager;
  };
  CHECK(message(gathered, {x, starts}, 4, 3).empty());
  CHECK(message(gathered, {x, starts}, 3, 2).empty());  // the index beyond is padding
  CHECK(message(gathered, {x, starts}, 3, 3) ==
        "gather: index 3 is out of bounds for axis 0 with size 3 | use an index from 0 to 2" + fix);
  CHECK(message(gathered, {x, starts}, 0, 1) ==
        "gather: index 0 is out of bounds for axis 0 with size 0 | the axis is empty" + fix);
  CHECK(message(gathered, {x, starts}, 0, 0).empty());
  CHECK(message(two, {x, starts}, 4, 3) ==
        "gather: index 3 of a window of 2 elements is out of bounds for axis 0 with size 4 | use "
        "an index from 0 to 2" +
            fix);
  CHECK(message(scattered, {x, starts, updates}, 4, 3).empty());
  CHECK(message(scattered, {x, starts, updates}, 2, 2) ==
        "scatter: index 2 is out of bounds for axis 0 with size 2 | use an index from 0 to 1" +
            fix);
  // One bad example of a batch.
  flat::VmapOptions options;
  options.in_dims = {0, std::nullopt, 0};
  options.out_dims = [](std::size_t) { return std::vector<std::optional<int>>{0}; };
  auto row = [&](std::span<const Array> in) {
    return flat::mask(gathered, in.first(2), {{"n 2", "m 1"}, {}, {{"n", in[2]}, {"m", 3}}});
  };
  const Arrays batch{stacked({x, x}), starts, array<std::int32_t>({4, 3})};
  CHECK(problem_and_fix([&] { flat::vmap(row, batch, options); }) ==
        "gather: index 3 is out of bounds for axis 0 with size 3 | use an index from 0 to 2" + fix);
}

TEST_CASE("argmax of nothing is an error that names the example") {
  auto best = [](std::span<const Array> in) { return Arrays{lax::argmax(in[0], 0, DType::int32)}; };
  check_mask_laws({best, {"n 2"}, {{"n", 4}}}, 1);
  const Array x = lax::iota(DType::float64, {3, 4}, 1);
  auto row = [&](std::span<const Array> in) {
    return flat::mask(best, in.first(1), {{"n"}, {}, {{"n", in[1]}}});
  };
  flat::VmapOptions options;
  options.in_dims = {0, 0};
  options.out_dims = [](std::size_t) { return std::vector<std::optional<int>>{0}; };
  auto batch = [&](std::span<const Array> in) { return flat::vmap(row, in, options); };
  CHECK(elements<std::int32_t>(batch(Arrays{x, array<std::int32_t>({4, 1, 2})})[0]) ==
        std::vector<std::int32_t>{3, 0, 1});
  const std::string expected =
      "mask: the function needs 1 <= n, and here that is 1 <= 0 in example 1 | call it with sizes "
      "that satisfy this";
  CHECK(problem_and_fix([&] { batch(Arrays{x, array<std::int32_t>({4, 0, 2})}); }) == expected);
  CHECK(problem_and_fix([&] {
          flat::Jit(batch, "batch")(Arrays{x, array<std::int32_t>({4, 0, 2})});
        }) == expected);
}
