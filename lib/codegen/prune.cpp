// Dead code: numbers that nothing reads, those that loops carry too, memory that is written
// only, and memory that nothing uses. Checks stay.
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
      if (!is_pure(s)) return;
      definition_[std::size_t(s.value)] = &s;
      for (const Statement::Carry& carry : s.carries) definition_[std::size_t(carry.last)] = &s;
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
    if (is_pure(s))
      return !is_used_[std::size_t(s.value)] &&
             std::all_of(s.carries.begin(), s.carries.end(),
                         [&](const Statement::Carry& carry) { return is_dead(carry); }) &&
             (s.kind != Kind::combine ||
              std::all_of(s.blocks[0].begin(), s.blocks[0].end(), [&](const Statement& each) {
                return each.kind != Kind::store || is_dead(each);
              }));
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

  // With what it is computed from: a chain of any length.
  bool use(Value value) {
    bool grows = false;
    std::vector<Value> waiting{value};
    while (!waiting.empty()) {
      const Value each = waiting.back();
      waiting.pop_back();
      if (each < 0 || is_used_[std::size_t(each)]) continue;
      is_used_[std::size_t(each)] = grows = true;
      const Statement* const s = definition_[std::size_t(each)];
      if (!s) continue;
      waiting.insert(waiting.end(), s->operands.begin(), s->operands.end());
      for (const Statement::Carry& carry : s->carries)
        waiting.insert(waiting.end(), {carry.first, carry.next});
      if (s->kind != Kind::load) continue;
      is_read_[std::size_t(s->place.memory)] = true;
      for (const loops::Place::Term& term : s->place.terms) waiting.push_back(term.index);
    }
    return grows;
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

// f(memory) for all that a statement names itself, by reference.
template <class S, class F>
void for_each_memory(S& s, const F& f) {
  for_each_place(s, [&](auto& place, bool) { f(place.memory); });
  for (auto& [a, b] : s.exchanged) f(a), f(b);
  for (auto& region : s.regions) f(region.place.memory);
}

// Memory of the frame that nothing uses.
void drop_memories(LoopProgram& program) {
  std::vector<bool> is_used(program.memories.size(), false);
  for_each_statement(program.body, [&](const Statement& s) {
    for_each_memory(s, [&](int memory) { is_used[std::size_t(memory)] = true; });
  });
  std::vector<int> number(program.memories.size(), -1);
  std::vector<Memory> kept;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (!is_used[i] && program.memories[i].space == Memory::Space::frame) continue;
    number[i] = int(kept.size());
    kept.push_back(program.memories[i]);
  }
  program.memories = std::move(kept);
  const auto renumber = [&](const auto& self, Block& block) -> void {
    for (Statement& s : block) {
      for_each_memory(s, [&](int& memory) { memory = number[std::size_t(memory)]; });
      for (int& memory : s.own) memory = number[std::size_t(memory)];
      for (Block& inner : s.blocks) self(self, inner);
    }
  };
  renumber(renumber, program.body);
}

}  // namespace

void prune(LoopProgram& program) {
  while (Pruner(program).run()) {
  }
  drop_memories(program);
}

}  // namespace plait::codegen
