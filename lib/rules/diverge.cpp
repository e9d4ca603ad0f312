// See rules/diverge.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/diverge.h>

namespace plait {

bool diverges(const Equation& equation, const Flags& batched) {
  const Diverge::Rule* rule = Diverge::table().find(*equation.primitive);
  return rule && rule->diverges && rule->diverges(equation.params, batched);
}

bool is_cheap_together(const Equation& equation) {
  const Diverge::Rule* rule = Diverge::table().find(*equation.primitive);
  return rule && rule->is_cheap_together && rule->is_cheap_together(equation.params);
}

}  // namespace plait
