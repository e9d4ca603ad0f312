// See accesses.h.
// SPDX-License-Identifier: Apache-2.0
#include "accesses.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "codegen/walk.h"

namespace plait::cuda {
namespace {

using codegen::Place;
using codegen::Statement;
using codegen::Value;

class Collecting {
 public:
  explicit Collecting(Accesses& accesses) : accesses_(accesses) {}

  void add(const Statement& s) {
    for (const auto& pair : s.exchanged)
      for (const int memory : pair) {
        accesses_.reads.push_back(all_of(memory));
        accesses_.writes.push_back(all_of(memory));
      }
    codegen::for_each_place(s, [&](const Place& place, bool is_write) {
      (is_write ? accesses_.writes : accesses_.reads)
          .push_back(s.kind == Statement::Kind::call
                         ? all_of(place.memory)
                         : region_of(place, s.shape, is_write ? s.strides : s.source_strides));
    });
    // Numbers that are defined within are not the same wherever they are used.
    codegen::for_each_definition(s, [&](Value value) {
      const bool is_counter =
          s.kind == Statement::Kind::combine ? value == s.counter : value == s.value;
      inside_[value] = is_counter && s.steps > 0 ? s.steps : 0;
    });
    for (const codegen::Block& block : s.blocks)
      for (const Statement& each : block) add(each);
  }

 private:
  static Region all_of(int memory) {
    return {memory, {}, 0, std::numeric_limits<std::int64_t>::max()};
  }
  Region region_of(const Place& place, const Sizes64& shape, const Sizes64& strides) const {
    Region region{place.memory, {}, place.offset, place.offset};
    const auto stretch = [&](std::int64_t stride, std::int64_t steps) {
      (stride < 0 ? region.low : region.high) += stride * (steps - 1);
    };
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 0) return region;
      stretch(strides[axis], shape[axis]);
    }
    for (const Place::Term& term : place.terms) {
      const auto found = inside_.find(term.index);
      if (found == inside_.end())
        region.terms.push_back(term);
      else if (found->second > 0)
        stretch(term.stride, found->second);
      else
        return all_of(place.memory);
    }
    return region;
  }

  Accesses& accesses_;
  std::unordered_map<Value, std::int64_t> inside_;  // steps of counters; 0 of other numbers
};

}  // namespace

bool may_share(const Region& a, const Region& b) {
  if (a.memory != b.memory) return false;
  return a.terms != b.terms || (a.low <= b.high && b.low <= a.high);
}

bool may_share(const std::vector<Region>& a, const std::vector<Region>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Region& one) {
    return std::any_of(b.begin(), b.end(),
                       [&](const Region& other) { return may_share(one, other); });
  });
}

Accesses::Accesses(const Statement& statement) { Collecting(*this).add(statement); }

}  // namespace plait::cuda
