// See guard.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/guard.h>

#include <algorithm>

namespace plait {

RuleTable<Guard>& Guard::table() {
  static auto* table = new RuleTable<Guard>;
  return *table;
}

const Guard::Rule* guard_of(const Primitive& primitive, const Params& params) {
  const Guard::Rule* rule = Guard::table().find(primitive);
  return rule && (!rule->needed || rule->needed(params)) ? rule : nullptr;
}

bool needs_guard(const Jaxpr& jaxpr) {
  return std::any_of(
      jaxpr->equations.begin(), jaxpr->equations.end(), [](const Equation& equation) {
        if (is_effectful(equation) || guard_of(*equation.primitive, equation.params)) return true;
        for (const auto& [name, value] : equation.params.entries()) {
          if (const Jaxpr* nested = std::get_if<Jaxpr>(&value); nested && needs_guard(*nested))
            return true;
          const auto* list = std::get_if<std::vector<Jaxpr>>(&value);
          if (list && std::any_of(list->begin(), list->end(), needs_guard)) return true;
        }
        return false;
      });
}

}  // namespace plait
