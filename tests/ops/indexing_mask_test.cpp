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
  check_mask_laws({[](auto in) { return Arrays{lax::tanh(lax::slice_in_dim(in[0], 1, std::nullopt))}; }, {"n 2"}, {{"n", 4}}}, 1);
  check_mask_laws({[](auto in) { return Arrays{lax::tanh(lax::slice_in_dim(in[0], -2, std::nullopt))}; }, {"n 2"}, {{"n", 4}}}, 2);
  check_mask_laws({[](auto in) { return Arrays{lax::exp(lax::slice_in_dim(in[0], 0, std::nullopt, 2))}; }, {"n 3"}, {{"n", 5}}});
  check_mask_laws({[](auto in) { return Arrays{lax::exp(lax::pad(in[0], 0.5, {{1, 2, 0}, {0, 1, 1}}))}; }, {"n m"}, {{"n", 4}, {"m", 3}}});
  check_mask_laws({[](auto in) { return Arrays{lax::exp(lax::pad(in[0], in[1], {{in[2].shape(0), 1, 1}}))}; }, {"n", "", "m"}, {{"n", 4}, {"m", 3}}});
  check_mask_laws({[](auto in) { return Arrays{lax::pad(lax::exp(in[0]), 0.5, {{-1, 2, 0}})}; }, {"n"}, {{"n", 4}}});
}

TEST_CASE("mask of what joins, splits and reverses ragged axes") {
  check_mask_laws({[](auto in) { return Arrays{lax::sin(lax::concatenate({in[0], in[1], in[0]}, 0))}; }, {"n 2", "m 2"}, {{"n", 3}, {"m", 4}}});
  check_mask_laws({[](auto in) { return Arrays{lax::sin(lax::concatenate({in[0], in[1]}, 1))}; }, {"n 2", "n m"}, {{"n", 3}, {"m", 2}}});
  check_mask_laws({[](auto in) {
                     const Array all = lax::sin(lax::concatenate({in[0], in[1]}, 0));
                     return Arrays(lax::split(all, {in[0].shape(0), in[1].shape(0)}));
                   },
                   {"n 2", "m 2"},
                   {{"n", 3}, {"m", 4}}});
  check_mask_laws({[](auto in) { return Arrays{lax::mul(in[0], lax::rev(in[0], std::vector<int>{0, 1}))}; }, {"n m"}, {{"n", 4}, {"m", 3}}});
}

TEST_CASE("mask of dynamic windows") {
  check_mask_laws({[](auto in) { return Arrays{lax::exp(lax::dynamic_slice(in[0], {in[1], 0}, {2, 3}))}; }, {"n 3", ""}, {{"n", 5}}, {normal, indices},
                   {DType::float64, DType::int32}, 5},
                  2);
  check_mask_laws({[](auto in) { return Arrays{lax::exp(lax::dynamic_index_in_dim(in[0], -1, 0, false))}; }, {"n 3"}, {{"n", 4}}}, 1);
  check_mask_laws({[](auto in) { return Arrays{lax::dynamic_update_slice(lax::sin(in[0]), in[1], {in[2], 0})}; }, {"n 2", "2 2", ""}, {{"n", 4}},
                   {normal, normal, indices}, {DType::float64, DType::float64, DType::int32}, 4},
                  2);
  check_mask_laws({[](auto in) { return Arrays{lax::dynamic_update_slice(lax::sin(in[0]), in[1], {in[2]})}; }, {"n+m", "n", ""}, {{"n", 3}, {"m", 3}},
                   {normal, normal, indices}, {DType::float64, DType::float64, DType::int32}, 6});
}

TEST_CASE("mask of gathers, whatever the indices in the padding") {
  for (Mode mode : {Mode::clip, Mode::fill}) {
    check_mask_laws({[&](auto in) {
                       return Arrays{lax::sin(lax::gather(in[0], rows(in[1]), lax::IndexDimensions{{0}, {0}, 0}, {1, in[0].shape(1)}, mode, 0.5))};
                     },
                     {"n d", "m"},
                     {{"n", 4}, {"d", 2}, {"m", 3}},
                     {normal, indices},
                     {DType::float64, DType::int32},
                     5},
                    1);
    check_mask_laws({[&](auto in) {
                       const Array places = lax::reshape(in[1], {in[1].shape(0), in[1].shape(1), 1});
                       return Arrays{lax::gather(lax::sin(in[0]), places, lax::IndexDimensions{{1}, {1}, 1}, {1}, mode, 0.5)};
                     },
                     {"b n", "b m"},
                     {{"b", 2}, {"n", 4}, {"m", 3}},
                     {normal, indices},
                     {DType::float64, DType::int64},
                     5},
                    1);
  }
  check_mask_laws({[&](auto in) { return Arrays{lax::gather(lax::sin(in[0]), rows(in[1]), lax::IndexDimensions{{0}, {0}, 0}, {1, 2}, Mode::check)}; },
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
      check_mask_laws({[&](auto in) {
                         return Arrays{lax::scatter(lax::sin(in[0]), rows(in[1]), in[2], lax::IndexDimensions{{0}, {0}, 0}, kind, {mode})};
                       },
                       {"n 2", "m", "m 2"},
                       {{"n", 4}, {"m", 3}},
                       {normal, indices, normal},
                       {DType::float64, DType::int32, DType::float64},
                       5},
                      1);
    }
  check_mask_laws({[&](auto in) {
                     return Arrays{lax::scatter(lax::sin(in[0]), rows(in[1]), in[2], lax::IndexDimensions{{0}, {0}, 0}, Kind::add, {Mode::check})};
                   },
                   {"n 2", "m", "m 2"},
                   {{"n", 4}, {"m", 3}},
                   {normal, indices, normal},
                   {DType::float64, DType::int32, DType::float64},
                   1},
                  1);
}
