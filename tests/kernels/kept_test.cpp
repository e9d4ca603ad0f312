// What blocks keep of examples while the steps of a loop follow each other.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/kept.h"

#include <doctest/doctest.h>

#include "programs.h"

using namespace plait;

namespace {

namespace np = numpy;
using In = std::span<const Array>;
constexpr std::int64_t room = 200 << 10;

// A loop in order over examples.
std::shared_ptr<const cuda::Staged> loop_of(const Function& step, const std::vector<Aval>& inputs,
                                            int turns) {
  const Function each = [=](In in) {
    const Function body = [&](In carry) {
      Arrays now{carry.begin() + 1, carry.end()};
      now.insert(now.end(), in.begin() + 1, in.end());
      now.push_back(carry[0]);
      return step(now);
    };
    return flat::fori_loop(Array::literal(0, DType::int32), Array::literal(turns, DType::int32),
                           body, Arrays{in[0]});
  };
  const Function all = [=](In in) {
    flat::VmapOptions options;
    options.in_dims.assign(in.size(), 0);
    return flat::vmap(each, in, options);
  };
  const auto programs = kernels::staged({"loop", all, inputs});
  REQUIRE(programs.size() == 1);
  return programs[0];
}
std::vector<cuda::Kept> kept_of(const cuda::Staged& staged, std::int64_t most_bytes) {
  std::vector<cuda::Kept> all;
  for (const cuda::Stage& stage : staged.stages)
    for (const cuda::Kept& kept : cuda::kept_of(staged, stage, most_bytes)) all.push_back(kept);
  return all;
}

Arrays shortest(In in) {
  const Array d = in[0], k = in[1];
  const Array row = np::take(d, k, 0), column = np::take(d, k, 1);
  return {np::minimum(d, np::expand_dims(column, {1}) + np::expand_dims(row, {0}))};
}

}  // namespace

TEST_CASE("a block keeps both arrays that change places, and one of them goes back") {
  const auto staged = loop_of(shortest, {{{64, 40, 40}, DType::float32}}, 40);
  const std::vector<cuda::Kept> kept = kept_of(*staged, room);
  REQUIRE(kept.size() == 2);
  for (const cuda::Kept& each : kept) {
    CHECK(each.row.size == 1600);
    CHECK(each.is_written);
  }
  CHECK(kept[0].row.is_own != kept[1].row.is_own);
}

TEST_CASE("a block keeps nothing that finds no room, and not one of two that change places") {
  const auto staged = loop_of(shortest, {{{64, 40, 40}, DType::float32}}, 40);
  CHECK(kept_of(*staged, 6400).empty());
  CHECK(kept_of(*staged, 12800).size() == 2);
}

TEST_CASE("a block keeps nothing that is used once or twice") {
  const Function step = [](In in) { return Arrays{np::tanh(in[0]) * 0.5}; };
  CHECK(kept_of(*loop_of(step, {{{64, 40, 40}, DType::float32}}, 1), room).empty());
}
