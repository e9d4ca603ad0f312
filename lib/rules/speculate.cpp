// See rules/speculate.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/speculate.h>

#include <algorithm>

namespace plait {

bool may_speculate(const Jaxpr& jaxpr) {
  return std::ranges::all_of(jaxpr->equations, [](const Equation& equation) {
    return Speculate::table().find(*equation.primitive) != nullptr;
  });
}

}  // namespace plait
