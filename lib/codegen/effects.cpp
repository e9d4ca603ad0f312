// See effects.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/effects.h"

#include "codegen/walk.h"

namespace plait::codegen {

void Effects::add(const Statement& statement) {
  for_each_statement(statement, [&](const Statement& s) {
    for_each_use(s, [&](Value value) { used.push_back(value); });
    for_each_definition(s, [&](Value value) { defined.push_back(value); });
    for_each_place(s, [&](const Place& place, bool is_write) {
      (is_write ? writes : reads).push_back(place.memory);
    });
    for (const auto& pair : s.exchanged) {
      reads.insert(reads.end(), pair.begin(), pair.end());
      writes.insert(writes.end(), pair.begin(), pair.end());
    }
  });
}

}  // namespace plait::codegen
