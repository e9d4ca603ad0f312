// What a GPU sorts in loop programs, and how: rows long enough are one step that threads share.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/sorts.h"

#include <doctest/doctest.h>

#include "codegen/walk.h"
#include "programs.h"

using namespace plait;
using codegen::Statement;
using cuda::Sorting;

namespace {

namespace np = numpy;
using In = std::span<const Array>;

std::vector<std::shared_ptr<const cuda::Staged>> staged(const Function& f,
                                                        const std::vector<Aval>& inputs) {
  return kernels::staged({"sorts", f, inputs});
}
// The sorts of a program, each with the stage that it is in.
struct Found {
  Sorting sorting;
  const cuda::Stage* stage;
  const Statement* call;
};
std::vector<Found> sorts_of(const std::vector<std::shared_ptr<const cuda::Staged>>& programs) {
  std::vector<Found> found;
  for (const auto& program : programs)
    for (const cuda::Stage& stage : program->stages)
      codegen::for_each_statement(stage.body, [&](const Statement& s) {
        if (s.kind == Statement::Kind::call) found.push_back({Sorting(s), &stage, &s});
      });
  return found;
}

}  // namespace

TEST_CASE("a long row is sorted by all blocks, in one kernel") {
  const auto programs =
      staged([](In in) { return Arrays{np::sort(in[0])}; }, {{{1 << 20}, DType::float32}});
  REQUIRE(programs.size() == 1);
  CHECK(programs[0]->stages.size() == 1);
  const std::vector<Found> sorts = sorts_of(programs);
  REQUIRE(sorts.size() == 1);
  CHECK(sorts[0].stage->is_cooperative);
  CHECK_FALSE(sorts[0].sorting.is_short);
  CHECK(sorts[0].sorting.passes == 4);
  // Keys to take turns with, and counts.
  CHECK(sorts[0].sorting.room_bytes() > 4 << 20);
  CHECK(sorts[0].call->place.memory >= 0);
}

TEST_CASE("rows that are no longer than a tile need no memory beside") {
  const auto sorts = sorts_of(
      staged([](In in) { return Arrays{np::argsort(in[0], 1)}; }, {{{64, 1000}, DType::int16}}));
  REQUIRE(sorts.size() == 1);
  CHECK(sorts[0].sorting.is_short);
  CHECK(sorts[0].sorting.rows == 64);
  CHECK(sorts[0].sorting.passes == 2);
  CHECK(sorts[0].sorting.values == DType::int32);
  CHECK(sorts[0].call->place.memory < 0);
}

TEST_CASE("short rows are put in order without a sort") {
  CHECK(sorts_of(
            staged([](In in) { return Arrays{np::sort(in[0])}; }, {{{9000, 100}, DType::float32}}))
            .empty());
}

TEST_CASE("updates of a scatter are sorted by as many bits as their positions have") {
  const Function add = [](In in) { return Arrays{in[0].at(in[1]).add(in[2])}; };
  const auto sorts = sorts_of(staged(
      add, {{{1 << 16}, DType::float32}, {{1 << 18}, DType::int32}, {{1 << 18}, DType::float32}}));
  REQUIRE(sorts.size() == 1);
  CHECK(sorts[0].sorting.values == DType::float32);
  CHECK_FALSE(sorts[0].sorting.has_sign_bit);
  CHECK(sorts[0].sorting.passes * sorts[0].sorting.bits < 24);
}

TEST_CASE("sorts of examples that run beside each other take turns with memory of their own") {
  const Function turn = [](In x) {
    const Function step = [](In carry) { return Arrays{np::sort(carry[1] * 0.5)}; };
    return flat::fori_loop(Array::literal(0, DType::int32), Array::literal(3, DType::int32), step,
                           Arrays{x[0]});
  };
  const Function all = [&](In in) {
    flat::VmapOptions options;
    options.in_dims = {0};
    return flat::vmap(turn, in, options);
  };
  for (const Found& found : sorts_of(staged(all, {{{6, 5000}, DType::float32}}))) {
    std::int64_t at_once = found.stage->steps();
    CHECK(found.call->place.memory >= 0);
    CHECK(found.call->place.terms.size() == (at_once > 1 ? 1u : 0u));
  }
}
