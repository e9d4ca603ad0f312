// Combinations, and loops that fill memory of their own, go before a loop of which no step changes
// what they use: the tests of a graph's edges, which are the same at every step, for one.
//
// Only what cannot fail is moved, since a loop may have no step, and what fails first must stay
// first: an index that is checked within the loop has a name there (see Writer::checked), so that
// what reads by it stays.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/invariants.h"

#include <algorithm>
#include <unordered_set>

#include "codegen/effects.h"
#include "codegen/walk.h"
#include "codegen/work.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

class Mover {
 public:
  explicit Mover(LoopProgram& program) : program_(program), num_users_(program.memories.size()) {
    for_each_statement(program.body, [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool) { ++num_users_[std::size_t(place.memory)]; });
      for (const auto& pair : s.exchanged)
        for (const int memory : pair) ++num_users_[std::size_t(memory)];
    });
  }

  void run() { run(program_.body); }

 private:
  // What is moved may be moved again, out of the next loop.
  void run(Block& block) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      for (Block& inner : block[i].blocks) run(inner);
      if (block[i].kind != Kind::repeat && block[i].kind != Kind::loop) continue;
      Block before = take_invariants(block[i]);
      const std::size_t count = before.size();
      block.insert(block.begin() + std::ptrdiff_t(i), std::make_move_iterator(before.begin()),
                   std::make_move_iterator(before.end()));
      i += count;
    }
  }

  Block take_invariants(Statement& loop) {
    Effects all;
    all.add(loop);
    defined_ = {all.defined.begin(), all.defined.end()};
    writes_.assign(program_.memories.size(), 0);
    for_each_statement(loop, [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (is_write) ++writes_[std::size_t(place.memory)];
      });
      for (const auto& pair : s.exchanged)
        for (const int memory : pair) writes_[std::size_t(memory)] += 2;
    });
    Block moved;
    for (Block& block : loop.blocks) {
      Block stays;
      for (Statement& s : block)
        if (is_invariant(s, loop)) {
          for_each_statement(s, [&](const Statement& inner) {
            for_each_definition(inner, [&](Value value) { defined_.erase(value); });
            if (inner.kind == Kind::store) writes_[std::size_t(inner.place.memory)] = 0;
          });
          moved.push_back(std::move(s));
        } else {
          stays.push_back(std::move(s));
        }
      block = std::move(stays);
    }
    return moved;
  }

  bool is_invariant(const Statement& s, const Statement& loop) const {
    if (s.kind != Kind::combine && !fills_memory(s, loop)) return false;
    std::unordered_set<Value> mine;
    for_each_statement(s, [&](const Statement& inner) {
      for_each_definition(inner, [&](Value value) { mine.insert(value); });
    });
    bool is_same = true;
    for_each_statement(s, [&](const Statement& inner) {
      is_same = is_same && is_pure(inner);
      for_each_use(inner, [&](Value value) {
        is_same = is_same && (mine.count(value) || !defined_.count(value));
      });
      if (inner.kind == Kind::load)
        is_same = is_same && writes_[std::size_t(inner.place.memory)] == 0;
    });
    return is_same;
  }

  static bool is_pure(const Statement& s) {
    return s.kind == Kind::compute || s.kind == Kind::load || s.kind == Kind::store ||
           s.kind == Kind::combine || (s.kind == Kind::repeat && s.exchanged.empty());
  }

  // Whether independent steps fill memory that nothing else writes, and that is of this loop alone.
  // What is computed from nothing, or nearly, is computed again where it is used.
  bool fills_memory(const Statement& s, const Statement& loop) const {
    if (s.kind != Kind::repeat || !(s.is_parallel || s.is_apart)) return false;
    bool is_own = true, is_worth_it = false;
    std::size_t stores = 0;
    int memory = -1;
    for_each_statement(s, [&](const Statement& inner) {
      is_worth_it |= inner.kind == Kind::load || inner.kind == Kind::combine ||
                     (inner.kind == Kind::compute && is_function(*inner.primitive));
      if (inner.kind != Kind::store) return;
      ++stores;
      memory = inner.place.memory;
      is_own = is_own && program_.memories[std::size_t(memory)].space == Memory::Space::frame;
    });
    if (!is_own || !is_worth_it || stores != 1 || writes_[std::size_t(memory)] != 1) return false;
    int users = 0;
    for_each_statement(loop, [&](const Statement& inner) {
      for_each_place(inner, [&](const Place& place, bool) { users += place.memory == memory; });
    });
    return users == num_users_[std::size_t(memory)];
  }

  LoopProgram& program_;
  std::vector<int> num_users_;  // by memory: places of the program
  // Of the loop in hand.
  std::unordered_set<Value> defined_;
  std::vector<int> writes_;  // by memory
};

}  // namespace

void move_invariants(LoopProgram& program) { Mover(program).run(); }

}  // namespace plait::codegen
