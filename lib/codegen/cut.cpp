// See cut.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/cut.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

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
  if (is_number(lanes.blocks, lanes.value)) return {};
  Statement piece = lanes, pieces;
  Names names;
  piece.blocks = {copy_of(program, lanes.blocks[0], names)};
  piece.steps = inner;
  piece.value = counter_of(program, inner);
  pieces.kind = Statement::Kind::repeat;
  pieces.source = lanes.source;
  pieces.steps = outer;
  pieces.is_apart = true;
  pieces.value = counter_of(program, outer);
  replace(piece.blocks[0], lanes.value, {first, {{pieces.value, inner}, {piece.value, 1}}});
  pieces.blocks = {{std::move(piece)}};
  return pieces;
}

}  // namespace plait::codegen
