// See rules/commute.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/commute.h>

namespace plait {

bool commutes(const Equation& equation) {
  const Commute::Rule* rule = Commute::table().find(*equation.primitive);
  return rule && equation.inputs.size() == 2 && (*rule)(equation.params);
}

}  // namespace plait
