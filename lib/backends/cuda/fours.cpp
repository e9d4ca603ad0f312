// See fours.h.
// SPDX-License-Identifier: Apache-2.0
#include "fours.h"

#include <algorithm>

#include "codegen/walk.h"

namespace plait::cuda {

using codegen::Place;
using codegen::Statement;
using codegen::Value;
using Kind = Statement::Kind;

namespace {

class Finding {
 public:
  explicit Finding(const Stage& stage) : stage_(stage), inner_(stage.grid.back().counter) {
    differs_.insert(inner_);
  }

  std::optional<Fours> take() {
    for (const Statement& s : stage_.body)
      if (!take_in(s)) return {};
    for (const int memory : written_)
      if (read_.contains(memory)) return {};
    if (found_.whole.empty()) return {};
    return std::move(found_);
  }

 private:
  bool is_common(Value value) const { return !differs_.contains(value); }
  // But for the stride of the innermost counter.
  bool is_common_but_for_inner(const Place& place) const {
    return std::all_of(place.terms.begin(), place.terms.end(), [&](const Place::Term& term) {
      return term.index == inner_ || is_common(term.index);
    });
  }
  static bool is_divisible(std::int64_t number) { return number % 4 == 0; }
  bool begins_at_fours(const Place& place) const {
    return is_divisible(place.offset) &&
           std::all_of(place.terms.begin(), place.terms.end(), [&](const Place::Term& term) {
             return term.index == inner_ || is_divisible(term.stride);
           });
  }

  // Whether four steps of the statement may be one.
  bool take_in(const Statement& s) {
    if (s.kind == Kind::compute) {
      if (std::all_of(s.operands.begin(), s.operands.end(),
                      [&](Value operand) { return is_common(operand); }))
        found_.common.insert(s.value);
      else
        differs_.insert(s.value);
      return true;
    }
    const bool is_store = s.kind == Kind::store;
    (is_store ? written_ : read_).insert(s.place.memory);
    const std::int64_t stride = codegen::stride_of(s.place, inner_);
    const bool is_near = is_common_but_for_inner(s.place);
    if (is_near && stride == 0 && !is_store) {
      found_.common.insert(s.value);
      return true;
    }
    if (!is_store) differs_.insert(s.value);
    if (!is_near) return !is_store;  // found by an index: each for itself
    if (stride != 1 || !begins_at_fours(s.place)) return false;
    found_.whole.insert(&s);
    found_.memories.insert(s.place.memory);
    return true;
  }

  const Stage& stage_;
  const Value inner_;
  std::set<Value> differs_;
  std::set<int> read_, written_;
  Fours found_;
};

}  // namespace

std::optional<Fours> fours_of(const Stage& stage) {
  constexpr std::size_t most_statements = 64;  // whose numbers find room four times
  if (stage.grid.empty() || stage.is_cooperative || stage.grid.back().steps % 4 != 0 ||
      stage.body.size() > most_statements ||
      !std::all_of(stage.body.begin(), stage.body.end(), codegen::is_straight))
    return {};
  return Finding(stage).take();
}

}  // namespace plait::cuda
