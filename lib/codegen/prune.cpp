// Dead code: numbers that nothing reads, those that loops carry too, and memory that is written
// only. Checks stay.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/prune.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// Whether it only defines a value.
bool is_pure(const Statement& s) {
  return s.kind == Kind::compute || s.kind == Kind::load || s.kind == Kind::combine;
}

class Pruner {
 public:
  explicit Pruner(LoopProgram& program) : program_(program) {}

  // Whether anything went.
  bool run() {
    is_used_.assign(program_.dtypes.size(), false);
    is_read_.assign(program_.memories.size(), false);
    definition_.assign(program_.dtypes.size(), nullptr);
    for (std::size_t i = 0; i < is_read_.size(); ++i)
      is_read_[i] = program_.memories[i].space == Memory::Space::result ||
                    program_.memories[i].space == Memory::Space::counts;
    for_each_statement(program_.body, [&](const Statement& s) {
      if (is_pure(s)) definition_[std::size_t(s.value)] = &s;
    });
    // What is stored counts where its memory is read, which more uses may show.
    for (bool grows = true; std::exchange(grows, false);)
      for_each_statement(program_.body, [&](const Statement& s) {
        if (is_pure(s) || is_dead(s)) return;
        grows |= use(s);
      });
    return drop(program_.body);
  }

 private:
  bool is_dead(const Statement& s) const {
    if (is_pure(s)) return !is_used_[std::size_t(s.value)];
    if (s.kind == Kind::repeat || s.kind == Kind::branch)
      return s.carries.empty() && s.exchanged.empty() &&
             std::all_of(s.blocks.begin(), s.blocks.end(),
                         [](const Block& inner) { return inner.empty(); });
    if (s.kind == Kind::call)
      return std::none_of(s.places.begin() + std::ptrdiff_t(s.call->strides.size()), s.places.end(),
                          [&](const Place& place) { return is_read_[std::size_t(place.memory)]; });
    return (s.kind == Kind::store || s.kind == Kind::copy) &&
           !is_read_[std::size_t(s.place.memory)];
  }

  // Whether nothing reads it, in a step or behind the loop.
  bool is_dead(const Statement::Carry& carry) const {
    const auto is_read = [&](Value value) { return value >= 0 && is_used_[std::size_t(value)]; };
    return !is_read(carry.value) && !is_read(carry.last);
  }

  bool use(Value value) {
    if (value < 0 || is_used_[std::size_t(value)]) return false;
    is_used_[std::size_t(value)] = true;
    if (const Statement* s = definition_[std::size_t(value)]) {
      for (Value operand : s->operands) use(operand);
      if (s->kind == Kind::load) {
        use(s->place);
        is_read_[std::size_t(s->place.memory)] = true;
      }
    }
    return true;
  }
  bool use(const Place& place) {
    bool grows = false;
    for (const loops::Place::Term& term : place.terms) grows |= use(term.index);
    return grows;
  }
  bool use(const Statement& s) {
    bool grows = use(s.place);
    grows |= use(s.source_place);
    for (Value operand : s.operands) grows |= use(operand);
    for (const Statement::Carry& carry : s.carries) {
      if (is_dead(carry)) continue;
      grows |= use(carry.first);
      grows |= use(carry.next);
      for (Value next : carry.nexts) grows |= use(next);
    }
    for (std::size_t i = 0; i < s.places.size(); ++i) {
      grows |= use(s.places[i]);
      if (i < s.call->strides.size() && !is_read_[std::size_t(s.places[i].memory)])
        grows = is_read_[std::size_t(s.places[i].memory)] = true;
    }
    for (const auto& [a, b] : s.exchanged)
      if (is_read_[std::size_t(a)] != is_read_[std::size_t(b)])
        grows = is_read_[std::size_t(a)] = is_read_[std::size_t(b)] = true;
    if (s.kind == Kind::copy && !is_read_[std::size_t(s.source_place.memory)])
      grows = is_read_[std::size_t(s.source_place.memory)] = true;
    return grows;
  }

  bool drop(Block& block) {
    const std::size_t before = block.size();
    std::erase_if(block, [&](const Statement& s) { return is_dead(s); });
    bool dropped = block.size() != before;
    for (Statement& s : block) {
      dropped |= std::erase_if(s.carries, [&](const auto& carry) { return is_dead(carry); }) > 0;
      for (Block& inner : s.blocks) dropped |= drop(inner);
    }
    return dropped;
  }

  LoopProgram& program_;
  std::vector<bool> is_used_, is_read_;
  std::vector<const Statement*> definition_;
};

}  // namespace

void prune(LoopProgram& program) {
  while (Pruner(program).run()) {
  }
}

}  // namespace plait::codegen
