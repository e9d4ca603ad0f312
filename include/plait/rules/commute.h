// The rule kind Commute: whether an equation of two operands gives the same when they change
// places.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct Commute {
  static constexpr auto name = "commute";
  using Rule = std::function<bool(const Params& params)>;
  static RuleTable<Commute>& table();
};

namespace commute {
inline bool always(const Params&) { return true; }
inline bool never(const Params&) { return false; }  // of elementwise primitives that say nothing
}  // namespace commute

// Whether it has two operands, which commute; of a primitive without such a rule they do not.
bool commutes(const Equation& equation);

}  // namespace plait
