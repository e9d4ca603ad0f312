// See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/lanes.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

class Finder {
 public:
  explicit Finder(const LoopProgram& program) : lanes_(program.dtypes.size(), false) {
    while (visit(program.body, false)) {
    }
  }
  std::vector<bool> take() { return std::move(lanes_); }

 private:
  bool has(Value value) const { return lanes_[std::size_t(value)]; }
  bool set(Value value, bool lanes) {
    if (!lanes || value < 0 || has(value)) return false;
    return lanes_[std::size_t(value)] = true;
  }

  // Whether it found more. is_inside: of a loop whose steps are lanes.
  bool visit(const Block& block, bool is_inside) {
    bool grows = false;
    for (const Statement& s : block) {
      if (s.kind == Kind::combine) {
        grows |= set(s.counter, !is_inside);
        grows |= visit(s.blocks[0], true);
        grows |= set(s.value, is_inside);
      } else if (s.kind == Kind::compute || s.kind == Kind::load) {
        bool lanes = false;
        for_each_use(s, [&](Value value) { lanes = lanes || has(value); });
        grows |= set(s.value, lanes);
      } else if (s.is_parallel) {
        grows |= set(s.value, true);
        grows |= visit(s.blocks[0], true);
      } else {
        grows |= visit_carries(s);
        for (const Block& inner : s.blocks) grows |= visit(inner, is_inside);
      }
    }
    return grows;
  }

  bool visit_carries(const Statement& s) {
    bool grows = false;
    // Where lanes leave a loop at different steps, what it carries differs.
    const bool diverges = s.kind == Kind::loop && has(s.operands[0]);
    for (const Statement::Carry& carry : s.carries) {
      bool lanes = diverges;
      for (const Value value : {carry.first, carry.next})
        lanes = lanes || (value >= 0 && has(value));
      for (const Value value : carry.nexts) lanes = lanes || has(value);
      grows |= set(carry.value, lanes);
      grows |= set(carry.last, lanes);
    }
    return grows;
  }

  std::vector<bool> lanes_;
};

bool runs_in_lanes(const Block& block, bool may_store, const std::vector<bool>& has_lanes) {
  return std::all_of(block.begin(), block.end(), [&](const Statement& s) {
    const auto run = [&](bool store) {
      return s.exchanged.empty() &&
             std::all_of(s.blocks.begin(), s.blocks.end(), [&](const Block& inner) {
               return runs_in_lanes(inner, store, has_lanes);
             });
    };
    switch (s.kind) {
      case Kind::compute:
      case Kind::load:
        return true;
      case Kind::combine:
        return run(false);
      case Kind::store:
        return may_store;
      case Kind::repeat:
        return !s.is_parallel && run(may_store);
      case Kind::check:
        return !has_lanes[std::size_t(s.operands[0])];
      case Kind::branch:
        return !has_lanes[std::size_t(s.operands[0])] && run(may_store);
      case Kind::loop:
        return run(may_store && !has_lanes[std::size_t(s.operands[0])]);
      default:
        return false;
    }
  });
}

}  // namespace

std::vector<bool> find_lanes(const LoopProgram& program) { return Finder(program).take(); }

bool runs_in_lanes(const Statement& loop, const std::vector<bool>& has_lanes) {
  return loop.carries.empty() && loop.exchanged.empty() &&
         runs_in_lanes(loop.blocks[0], true, has_lanes);
}

}  // namespace plait::codegen
