// The rule kind Speculate: equations that may run speculatively, where the program would not reach
// them and on values that a branch excludes. They cannot fail, have no effect, and cost less than a
// branch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct Speculate {
  static constexpr auto name = "speculate";
  struct Rule {};  // its existence is the statement
  static RuleTable<Speculate>& table();
};

// Whether all equations may; bodies of equations are not inspected.
bool may_speculate(const Jaxpr& jaxpr);

}  // namespace plait
