// See side_by_side.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/side_by_side.h"

#include <algorithm>

#include "codegen/cost.h"
#include "codegen/lanes.h"
#include "codegen/share.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

bool has_open_end(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& s) {
    return s.kind == Kind::loop || std::any_of(s.blocks.begin(), s.blocks.end(), has_open_end);
  });
}

class Turner {
 public:
  explicit Turner(LoopProgram& program) : program_(program) {}

  void run(Block& block) {
    for (Statement& s : block) {
      if (s.kind == Kind::combine || s.is_parallel || turn(s)) continue;
      for (Block& inner : s.blocks) run(inner);
    }
  }

 private:
  // Whether it is parallel now. Memory that all steps write is none of lanes.
  bool turn(Statement& s) {
    if (s.kind != Kind::repeat || !s.is_apart || s.steps < 2 || !s.own.empty() ||
        !has_open_end(s.blocks[0]) || !may_share(program_, s))
      return false;
    const double apart = predicted_ns(program_, {s});
    s.is_parallel = true;
    s.is_parallel = runs_in_lanes(s, find_lanes(program_), program_.fails_by_example) &&
                    predicted_ns(program_, {s}) < apart;
    return s.is_parallel;
  }

  LoopProgram& program_;
};

}  // namespace

void run_side_by_side(LoopProgram& program) { Turner(program).run(program.body); }

}  // namespace plait::codegen
