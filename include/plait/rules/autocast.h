// The rule kind Autocast: the precision in which autocast computes a float32 primitive.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

struct Autocast {
  static constexpr auto name = "autocast";
  enum class Rule {
    full,     // in float32: reductions, exponentials, factorizations; the default without a rule
    low,      // always in the policy's dtype: products
    follows,  // in the policy's dtype where every operand is: it loses at most the last bit
  };
  using enum Rule;
  static RuleTable<Autocast>& table();
};

}  // namespace plait
