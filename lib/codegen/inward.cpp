// What is copied before a loop whose steps are independent, and of which each step uses its own
// part alone, is copied by the steps: each part is still in the cache when the step uses it, and
// threads that share the loop copy what they use.
//
//   copy m0[0] -> m1[0] of (64,500) by ...    apart for e in 0..64
//   apart for e in 0..64                        copy m0[e * 500] -> m1[e * 500] of (500) by ...
//     for t in 0..100                           for t in 0..100
//       m1[e * 500 + t] = ...                     m1[e * 500 + t] = ...
//
// It runs behind outward.cpp, which makes such loops.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/inward.h"

#include <algorithm>

#include "codegen/effects.h"
#include "codegen/part.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t fewest_elements = 64;  // of a part

class Inward {
 public:
  explicit Inward(const LoopProgram& program) : program_(program) {}

  void run(Block& block) const {
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i].kind != Kind::repeat || !block[i].is_apart || block[i].is_parallel) continue;
      for (std::size_t before = i; before-- > 0;)
        if (move(block, before, block[i])) {
          block.erase(block.begin() + std::ptrdiff_t(before));
          --i;
        }
    }
  }

 private:
  bool move(const Block& block, std::size_t at, Statement& loop) const {
    const Statement& copy = block[at];
    if (copy.kind != Kind::copy || num_elements(copy.shape) < fewest_elements * loop.steps ||
        !may_pass(block, at, loop))
      return false;
    for (std::size_t axis = 0; axis < copy.shape.size(); ++axis) {
      if (copy.shape[axis] != loop.steps || copy.strides[axis] <= 0) continue;
      const Part part(program_, loop, copy.place.memory, copy.strides[axis]);
      if (!part.holds_along(copy.place, copy.shape, copy.strides, axis) ||
          !part.is_all_that_steps_use())
        continue;
      Statement own = copy;
      loops::add_index(own.place, {0, {{loop.value, 1}}}, own.strides[axis]);
      loops::add_index(own.source_place, {0, {{loop.value, 1}}}, own.source_strides[axis]);
      own.shape.erase(axis);
      own.strides.erase(axis);
      own.source_strides.erase(axis);
      loop.blocks[0].insert(loop.blocks[0].begin(), std::move(own));
      return true;
    }
    return false;
  }

  // Whether nothing from the copy on to the loop needs it or changes what it copies, and the loop
  // does not change that either.
  static bool may_pass(const Block& block, std::size_t at, const Statement& loop) {
    const auto has = [](const std::vector<int>& memories, int memory) {
      return std::find(memories.begin(), memories.end(), memory) != memories.end();
    };
    const int from = block[at].source_place.memory, to = block[at].place.memory;
    if (from == to) return false;
    for (std::size_t i = at + 1; &block[i] != &loop; ++i) {
      Effects effects;
      effects.add(block[i]);
      if (has(effects.reads, to) || has(effects.writes, to) || has(effects.writes, from))
        return false;
    }
    Effects effects;
    effects.add(loop);
    return !has(effects.writes, from);
  }

  const LoopProgram& program_;
};

}  // namespace

void move_copies_inward(LoopProgram& program) { Inward(program).run(program.body); }

}  // namespace plait::codegen
