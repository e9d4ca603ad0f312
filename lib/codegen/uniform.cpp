// Numbers of a loop of lanes, or of a combination, that are the same in all of its steps: what is
// computed from numbers outside, and elements that no step writes. They go before the loop, since
// those who write it down move nothing.
//
// It runs when loops have their places: before, a loop is easier to bring together with others
// where it holds all that it needs.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/uniform.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/effects.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

bool is_of_lanes(const Statement& s) {
  return s.kind == Kind::combine || (s.kind == Kind::repeat && s.is_parallel);
}

// The uniform statements of a loop, which it loses.
Block take_uniform(Statement& loop) {
  Effects effects;
  effects.add(loop);
  std::unordered_set<Value> inside(effects.defined.begin(), effects.defined.end());
  Block moved, stays;
  for (Statement& s : loop.blocks[0]) {
    bool is_uniform =
        s.kind == Kind::compute ||
        (s.kind == Kind::load && std::find(effects.writes.begin(), effects.writes.end(),
                                           s.place.memory) == effects.writes.end());
    for_each_use(s, [&](Value value) { is_uniform = is_uniform && !inside.count(value); });
    if (is_uniform) inside.erase(s.value);
    (is_uniform ? moved : stays).push_back(std::move(s));
  }
  loop.blocks[0] = std::move(stays);
  return moved;
}

void move_uniform_numbers(Block& block) {
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (!is_of_lanes(block[i])) {
      for (Block& inner : block[i].blocks) move_uniform_numbers(inner);
      continue;
    }
    Block moved = take_uniform(block[i]);
    const std::size_t count = moved.size();
    block.insert(block.begin() + std::ptrdiff_t(i), std::make_move_iterator(moved.begin()),
                 std::make_move_iterator(moved.end()));
    i += count;
  }
}

}  // namespace

void move_uniform_numbers(LoopProgram& program) { move_uniform_numbers(program.body); }

}  // namespace plait::codegen
