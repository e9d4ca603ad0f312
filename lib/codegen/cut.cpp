// See cut.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/cut.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

bool is_used_for_more_than_places(const Statement& loop) {
  bool is_used = false;
  for_each_statement(loop.blocks[0], [&](const Statement& s) {
    const auto use = [&](Value value) { is_used = is_used || value == loop.value; };
    std::for_each(s.operands.begin(), s.operands.end(), use);
    for (const Statement::Carry& carry : s.carries) {
      use(carry.first), use(carry.next);
      std::for_each(carry.nexts.begin(), carry.nexts.end(), use);
    }
  });
  return is_used;
}

Value counter(LoopProgram& program, std::int64_t steps) {
  const Value counter = define(program, DType::int64);
  program.know(counter, {0, steps - 1});
  return counter;
}

// Goes by another index in all places.
void replace(Block& block, Value counter, const loops::Index& by) {
  for (Statement& s : block) {
    for_each_place(s, [&](Place& place, bool) {
      std::int64_t stride = 0;
      std::erase_if(place.terms, [&](const Place::Term& term) {
        if (term.index != counter) return false;
        stride += term.stride;
        return true;
      });
      loops::add_index(place, by, stride);
    });
    for (Block& inner : s.blocks) replace(inner, counter, by);
  }
}

}  // namespace

std::optional<Statement> cut(LoopProgram& program, const Statement& lanes, std::int64_t first,
                             std::int64_t outer, std::int64_t inner) {
  if (is_used_for_more_than_places(lanes)) return {};
  Statement piece = lanes, pieces;
  Names names;
  piece.blocks = {copy_of(program, lanes.blocks[0], names)};
  piece.steps = inner;
  piece.value = counter(program, inner);
  pieces.kind = Statement::Kind::repeat;
  pieces.source = lanes.source;
  pieces.steps = outer;
  pieces.is_apart = true;
  pieces.value = counter(program, outer);
  replace(piece.blocks[0], lanes.value, {first, {{pieces.value, inner}, {piece.value, 1}}});
  pieces.blocks = {{std::move(piece)}};
  return pieces;
}

}  // namespace plait::codegen
