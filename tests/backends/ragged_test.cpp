// Batches of examples of unequal sizes: how they are cut into groups, against what must hold of any
// cut; results are checked in tests/python/test_mask_by_size.py.
// SPDX-License-Identifier: Apache-2.0
#include "backends/control/ragged.h"
#include "backends/control/stages.h"

#include <doctest/doctest.h>

#include <random>

using namespace plait;

namespace {

std::int64_t padded_elements(std::span<const SizeGroup> groups, std::size_t name) {
  std::int64_t elements = 0;
  for (const SizeGroup& group : groups)
    elements += std::int64_t(group.rows.size()) * group.bounds[name];
  return elements;
}

}  // namespace

TEST_CASE("each example is in one group, of 1, 4, 16, ... examples or all, whose bounds hold it") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const Sizes64 bounds{std::int64_t(random() % 600), std::int64_t(1 + random() % 40)};
    const std::size_t count = random() % 50;
    std::vector<Sizes64> sizes(2);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t name = 0; name < 2; ++name)
        sizes[name].push_back(std::int64_t(random()) % (bounds[name] + 1));
    std::vector<int> seen(count, 0);
    for (const SizeGroup& group : group_by_size(sizes, bounds)) {
      const std::size_t n = group.rows.size();
      CHECK(n > 0);
      CHECK((n == count || n == 1 || n == 4 || n == 16));
      for (std::size_t name = 0; name < 2; ++name) {
        CHECK(group.bounds[name] <= bounds[name]);
        for (std::int32_t row : group.rows)
          CHECK(sizes[name][std::size_t(row)] <= group.bounds[name]);
      }
      for (std::int32_t row : group.rows) ++seen[std::size_t(row)];
    }
    CHECK(seen == std::vector<int>(count, 1));
  }
}

TEST_CASE("the padded work of a batch of mostly short examples is near the real one") {
  const Sizes64 bounds{256};
  const std::vector<Sizes64> sizes{{256, 26, 53, 32, 18, 41, 96, 70, 15, 9, 17, 31, 4, 24, 9, 15}};
  const std::int64_t real = 716;
  CHECK(padded_elements(group_by_size(sizes, bounds), 0) <= real * 13 / 10);
}

TEST_CASE("equal sizes are one group, and the cut does not depend on the order") {
  const Sizes64 bounds{64};
  const std::vector<Sizes64> equal{Sizes64(8, 64)};
  CHECK(group_by_size(equal, bounds).size() == 1);
  const std::vector<Sizes64> sizes{{3, 60, 30, 5}}, turned{{5, 30, 60, 3}};
  const auto a = group_by_size(sizes, bounds), b = group_by_size(turned, bounds);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].bounds == b[i].bounds);
}

namespace {

// The stages of a function of one batched operand and shared weights.
std::vector<std::string> stages_text(const char* body) {
  MaskedParams masked;
  masked.body = parse(body);
  masked.ragged = masked.body->sizes;
  masked.bounds = Shape{32};
  Lane lane{4, {true, true}};
  lane.batched.resize(1 + std::size_t(masked.body->num_binders), false);
  masked.lanes = {lane};
  std::vector<std::string> text;
  for (const Stage& stage : stages_of(masked, 64).stages) {
    text.push_back(stage.is_packed ? "packed:" : "grouped:");
    for (const Equation& equation : stage.body->equations)
      text.back() += " " + std::string(equation.primitive->name());
  }
  return text;
}

}  // namespace

TEST_CASE("products with weights are packed, and what mixes places is grouped") {
  const auto stages = stages_text(R"({ lambda t ; a:f32[t,8] b:f32[8,8] . let
    c:f32[t,8] = dot_general[dtype=f32, lhs_batch=(), lhs_contract=(1), rhs_batch=(), rhs_contract=(0)] a b
    d:f32[t,t] = dot_general[dtype=f32, lhs_batch=(), lhs_contract=(1), rhs_batch=(), rhs_contract=(1)] c c
    e:f32[t,t] = tanh d
    f:f32[t,8] = dot_general[dtype=f32, lhs_batch=(), lhs_contract=(1), rhs_batch=(), rhs_contract=(0)] e c
    g:f32[t,8] = dot_general[dtype=f32, lhs_batch=(), lhs_contract=(1), rhs_batch=(), rhs_contract=(0)] f b
    h:f32[t,8] = add g c
  in (h,) })");
  CHECK(stages == std::vector<std::string>{"packed: dot_general",
                                           "grouped: dot_general tanh dot_general",
                                           "packed: dot_general add"});
}

TEST_CASE("a function without products with weights is one grouped stage") {
  const auto stages = stages_text(R"({ lambda t ; a:f32[t,8] . let
    b:f32[t,8] = tanh a
    c:f32[t] = reduce[axes=(1), kind='sum'] b
  in (c,) })");
  CHECK(stages == std::vector<std::string>{"grouped: tanh reduce"});
}

TEST_CASE("views go where they are read, and sums of one example are grouped") {
  const auto stages = stages_text(R"({ lambda t ; a:f32[t,8] b:f32[8,8] . let
    c:f32[t,8] = dot_general[dtype=f32, lhs_batch=(), lhs_contract=(1), rhs_batch=(), rhs_contract=(0)] a b
    d:f32[8,t] = transpose[permutation=(1,0)] c
    e:f32[8] = reduce[axes=(1), kind='sum'] d
  in (e,) })");
  CHECK(stages == std::vector<std::string>{"packed: dot_general", "grouped: transpose reduce"});
}
