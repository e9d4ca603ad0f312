// The rule kind Motion: which equations give the same wherever they run and cannot fail there, so
// that they may leave a loop (loop-invariant code motion) or be computed again in another one
// (rematerialisation).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

struct Motion {
  static constexpr auto name = "motion";
  enum class Rule {
    layout,  // it moves elements at most: where it is it costs nothing, elsewhere it may grow
    moves,   // it is worth computing once
    cheap,   // it is worth computing once, and again rather than reading its result from memory
  };
  using enum Rule;
  static RuleTable<Motion>& table();
};

// Whether a primitive has this rule, or has any.
bool moves_as(const Primitive& primitive, Motion::Rule rule);
bool may_move(const Primitive& primitive);

}  // namespace plait
