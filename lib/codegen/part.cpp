// See part.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/part.h"

#include <algorithm>

#include "codegen/overlap.h"
#include "codegen/walk.h"

namespace plait::codegen {

bool Part::is_all_that_steps_use() const {
  bool own = true;
  for_each_statement(loop_, [&](const Statement& s) {
    own = own && s.regions.size() == s.exchanged.size();
    for (std::size_t i = 0; own && i < s.exchanged.size(); ++i)
      if (const auto& [a, b] = s.exchanged[i]; a == memory_ || b == memory_)
        own = holds(s.regions[i].place, s.regions[i].shape, s.regions[i].strides);
    if (s.place.memory == memory_) own = own && holds(s.place, s.shape, s.strides);
    if (s.source_place.memory == memory_)
      own = own && holds(s.source_place, s.shape, s.source_strides);
    for (const Place& place : s.places) own = own && place.memory != memory_;
  });
  return own;
}

bool Part::holds_along(const Place& place, Sizes64 shape, Sizes64 strides, std::size_t axis) const {
  Place one = place;
  loops::add_index(one, {0, {{loop_.value, 1}}}, strides[axis]);
  shape.erase(axis);
  strides.erase(axis);
  return holds(one, shape, strides);
}

bool Part::holds(const Place& place, const Sizes64& shape, const Sizes64& strides) const {
  return belongs_to_step(program_, place, loop_.value, stride_, loop_.steps, shape, strides);
}

std::optional<std::int64_t> stride_of_parts(const Statement& loop, int memory) {
  std::optional<std::int64_t> stride;
  for_each_statement(loop, [&](const Statement& s) {
    for_each_place(s, [&](const Place& place, bool) {
      if (stride || place.memory != memory) return;
      stride = 0;
      for (const Place::Term& term : place.terms)
        if (term.index == loop.value) *stride += term.stride;
    });
  });
  return stride && *stride > 0 ? stride : std::nullopt;
}

}  // namespace plait::codegen
