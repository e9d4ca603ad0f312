// See in_place.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/in_place.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;
using Loops = std::vector<const Statement*>;

Value counter_of(const Statement& loop) {
  return loop.kind == Kind::combine ? loop.counter : loop.value;
}

// The accesses of two memories, in the order in which they are written down.
class Accesses {
 public:
  Accesses(const LoopProgram& program, int operand, int result)
      : operand_(operand), result_(result) {
    visit(program.body);
  }

  bool may_overwrite() const {
    return are_known_ && std::all_of(writes_.begin(), writes_.end(), [&](const Access& write) {
             return std::all_of(reads_.begin(), reads_.end(),
                                [&](const Access& read) { return is_before(read, write); });
           });
  }

 private:
  struct Access {
    const Place* place;
    Loops loops;
    int number;
  };

  void visit(const Block& block) {
    for (const Statement& s : block) {
      ++number_;
      const bool is_access = s.kind == Kind::load || s.kind == Kind::store;
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (place.memory != operand_ && place.memory != result_) return;
        are_known_ = are_known_ && is_access && is_write == (place.memory == result_);
        (is_write ? writes_ : reads_).push_back({&place, loops_, number_});
      });
      for (const auto& pair : s.exchanged)
        for (const int memory : pair) are_known_ = are_known_ && memory != result_;
      if (s.blocks.empty()) continue;
      loops_.push_back(&s);
      for (const Block& inner : s.blocks) visit(inner);
      loops_.pop_back();
    }
  }

  // Whether a step that reads an element has done so before it, or another one, writes there.
  static bool is_before(const Access& read, const Access& write) {
    if (read.number > write.number) return false;
    if (read.loops.empty() || write.loops.empty() || read.loops[0] != write.loops[0]) return true;
    const auto counts = [](const Statement* s) {
      return s->kind == Kind::repeat || s->kind == Kind::combine;
    };
    if (read.loops.size() != write.loops.size() ||
        !std::all_of(write.loops.begin(), write.loops.end(), counts) ||
        !std::all_of(read.loops.begin(), read.loops.end(), counts) ||
        !is_injective(*write.place, write.loops))
      return false;
    Place place{write.place->memory, read.place->offset};
    for (const Place::Term& term : read.place->terms) {
      const auto loop = std::find_if(read.loops.begin(), read.loops.end(), [&](const Statement* s) {
        return counter_of(*s) == term.index;
      });
      if (loop == read.loops.end()) return false;
      const Statement& other = *write.loops[std::size_t(loop - read.loops.begin())];
      if (other.steps != (*loop)->steps) return false;
      loops::add_index(place, {0, {{counter_of(other), 1}}}, term.stride);
    }
    return have_equal_terms(place, *write.place);
  }
  static bool have_equal_terms(const Place& a, const Place& b) {
    return a.offset == b.offset && a.terms.size() == b.terms.size() &&
           std::all_of(a.terms.begin(), a.terms.end(), [&](const Place::Term& term) {
             return stride_of(b, term.index) == term.stride;
           });
  }

  const int operand_, result_;
  std::vector<Access> reads_, writes_;
  Loops loops_;  // around what is visited
  int number_ = 0;
  bool are_known_ = true;
};

}  // namespace

bool may_overwrite(const LoopProgram& program, int operand, int result) {
  const Memory &from = program.memories[std::size_t(operand)],
               &to = program.memories[std::size_t(result)];
  // What fails is run again for its error, from the same operands.
  if (from.size != to.size || size_of(from.dtype) != size_of(to.dtype) || program.fails_by_example)
    return false;
  return Accesses(program, operand, result).may_overwrite();
}

bool is_injective(const Place& place, std::span<const Statement* const> loops) {
  std::vector<std::pair<std::int64_t, std::int64_t>> strides;  // and steps
  for (const Statement* loop : loops) {
    const std::int64_t stride = stride_of(place, counter_of(*loop));
    if (stride != 0)
      strides.emplace_back(std::abs(stride), loop->steps);
    else if (loop->steps > 1)
      return false;
  }
  std::sort(strides.begin(), strides.end());
  std::int64_t reached = 0;
  for (const auto& [stride, steps] : strides) {
    if (stride <= reached) return false;
    reached += stride * (steps - 1);
  }
  return true;
}

}  // namespace plait::codegen
