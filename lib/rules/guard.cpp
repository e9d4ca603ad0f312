// See guard.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/guard.h>

#include <algorithm>

namespace plait {

const Guard::Rule* guard_of(const Primitive& primitive, const Params& params) {
  const Guard::Rule* rule = Guard::table().find(primitive);
  return rule && (!rule->needed || rule->needed(params)) ? rule : nullptr;
}

bool needs_guard(const Jaxpr& jaxpr) {
  struct NeedsGuard : Property<bool> {};
  return *jaxpr->memo.get(NeedsGuard{}, [&] {
    return std::ranges::any_of(jaxpr->equations, [](const Equation& equation) {
      bool found = is_effectful(equation) || guard_of(*equation.primitive, equation.params);
      for_each_body(equation.params,
                    [&](const Jaxpr& body) { found = found || needs_guard(body); });
      return found;
    });
  });
}

}  // namespace plait
