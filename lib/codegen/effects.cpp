// See effects.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/effects.h"

namespace plait::codegen {

using Kind = Statement::Kind;

void Effects::add(const Statement& s) {
  const auto use = [&](const Place& place) {
    for (const Place::Term& term : place.terms) used.push_back(term.index);
  };
  used.insert(used.end(), s.operands.begin(), s.operands.end());
  use(s.place);
  use(s.source_place);
  if (s.kind == Kind::load) reads.push_back(s.place.memory);
  if (s.kind == Kind::store || s.kind == Kind::copy) writes.push_back(s.place.memory);
  if (s.kind == Kind::copy) reads.push_back(s.source_place.memory);
  for (std::size_t i = 0; i < s.places.size(); ++i) {
    use(s.places[i]);
    (i < s.call->strides.size() ? reads : writes).push_back(s.places[i].memory);
  }
  for (const auto& pair : s.exchanged) {
    reads.insert(reads.end(), pair.begin(), pair.end());
    writes.insert(writes.end(), pair.begin(), pair.end());
  }
  for (const Statement::Region& region : s.regions) use(region.place);
  const auto define = [&](Value value) {
    if (value >= 0) defined.push_back(value);
  };
  define(s.value);
  define(s.counter);
  for (const Statement::Carry& carry : s.carries) {
    if (carry.first >= 0) used.insert(used.end(), {carry.first, carry.next});
    used.insert(used.end(), carry.nexts.begin(), carry.nexts.end());
    define(carry.value);
    define(carry.last);
  }
  for (const Block& block : s.blocks)
    for (const Statement& inner : block) add(inner);
}

}  // namespace plait::codegen
