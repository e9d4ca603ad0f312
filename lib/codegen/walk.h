// Walks over the statements of loop programs, for passes that rename and copy them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "codegen/program.h"

namespace plait::codegen {

// f(statement) for a statement and those in it, or for those of a block.
template <class F>
void for_each_statement(const Statement& statement, const F& f);
template <class F>
void for_each_statement(const Block& block, const F& f) {
  for (const Statement& statement : block) for_each_statement(statement, f);
}
template <class F>
void for_each_statement(const Statement& statement, const F& f) {
  f(statement);
  for (const Block& inner : statement.blocks) for_each_statement(inner, f);
}

inline std::size_t num_statements(const Block& block) {
  std::size_t count = 0;
  for_each_statement(block, [&](const Statement&) { ++count; });
  return count;
}

// Whether it only computes, loads or stores a number.
inline bool is_straight(const Statement& s) {
  return s.kind == Statement::Kind::compute || s.kind == Statement::Kind::load ||
         s.kind == Statement::Kind::store;
}

// Whether it is a loop of which the steps may run in any order.
inline bool runs_in_any_order(const Statement& s) {
  return s.kind == Statement::Kind::repeat && (s.is_parallel || s.is_apart) && s.carries.empty() &&
         s.exchanged.empty();
}

// Whether its steps only compute, load and store, combine, and run loops of the kind in any order.
bool goes_through_rows(const Statement& loop);

inline bool has_checks(const Statement& statement) {
  bool has = false;
  for_each_statement(statement,
                     [&](const Statement& s) { has = has || s.kind == Statement::Kind::check; });
  return has;
}

// Whether a loop only tests indices: its steps are apart but for which one fails first.
bool only_checks(const Statement& loop);

// Whether it reads or writes at indices that it computes, which may have been checked before.
bool has_places_to_check(const Statement& statement);

// How far a step of an index moves a place in its memory.
inline std::int64_t stride_of(const Place& place, Value index) {
  for (const Place::Term& term : place.terms)
    if (term.index == index) return term.stride;
  return 0;
}

// f(place, is_write) for the elements that a statement reads and writes itself.
template <class S, class F>
void for_each_place(S& s, const F& f) {
  if (s.source_place.memory >= 0) f(s.source_place, false);
  if (s.place.memory >= 0) f(s.place, s.kind != Statement::Kind::load);
  for (std::size_t i = 0; i < s.places.size(); ++i) f(s.places[i], i >= s.call->strides.size());
}

// f(value) for the values that a statement uses itself, by reference.
template <class S, class F>
void for_each_use(S& s, const F& f) {
  for (auto& operand : s.operands) f(operand);
  for_each_place(s, [&](auto& place, bool) {
    for (auto& term : place.terms) f(term.index);
  });
  for (auto& region : s.regions)
    for (auto& term : region.place.terms) f(term.index);
  for (auto& carry : s.carries) {
    if (carry.first >= 0) f(carry.first);
    if (carry.next >= 0) f(carry.next);
    for (auto& next : carry.nexts) f(next);
  }
}

// f(value) for the values that it defines, in itself and for its blocks, by reference.
template <class S, class F>
void for_each_definition(S& s, const F& f) {
  if (s.value >= 0) f(s.value);
  if (s.counter >= 0) f(s.counter);
  for (auto& carry : s.carries) {
    if (carry.value >= 0) f(carry.value);
    if (carry.last >= 0) f(carry.last);
  }
}

// The number that a block of plain statements has already of what one that is added to it computes
// or loads.
std::optional<Value> known_number(const Block& block, const Statement& s);

using Names = std::unordered_map<Value, Value>;

inline Value named(const Names& names, Value value) {
  const auto found = names.find(value);
  return found == names.end() ? value : found->second;
}
// Uses other values, here and in its blocks.
inline void rename(Statement& s, const Names& names) {
  for_each_use(s, [&](Value& value) { value = named(names, value); });
  for (Block& block : s.blocks)
    for (Statement& inner : block) rename(inner, names);
}

inline Value define(LoopProgram& program, DType dtype) {
  program.dtypes.push_back(dtype);
  return Value(program.dtypes.size()) - 1;
}
// A number that counts so many steps, and a loop over them, with a block that is empty.
Value counter_of(LoopProgram& program, std::int64_t steps);
Statement counting(LoopProgram& program, std::int64_t steps, Source source);
// Whether statements use a counter for more than places.
bool is_number(const std::vector<Block>& blocks, Value counter);
// The literal of an int64.
Value integer(LoopProgram& program, std::int64_t value);
// An index as an int64, computed at the end of a block.
Value number(LoopProgram& program, const loops::Index& index, Block& block);
// A statement goes by another index instead of a counter. Where it needs that as a number, this is
// computed at the end of the block `before` it.
void count_by(LoopProgram& program, Statement& s, Value counter, const loops::Index& index,
              Block& before);
// The number so far, which is the first of the terms, with those of one step of a combination.
Value take_in(LoopProgram& program, const Statement& combine, Values terms, Block& block);
// A copy of statements that defines values of its own; names learns them.
Block copy_of(LoopProgram& program, const Block& block, Names& names);

}  // namespace plait::codegen
