// The rule kind Inline: equations that do what the program in their parameter `body` does, once, on
// operands and with results that are the equation's. Walks that are after what is computed go into
// the body (open_body) as if its equations stood there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

struct Inline {
  static constexpr auto name = "inline";
  // When the body says all that the equation does.
  enum class When {
    always,
    unclaimed,      // where no backend claims the equation as a whole
    differentiated  // once derivatives are taken: it has derivatives of its own
  };
  struct Rule {
    When when = When::always;
    // The parameter that says what the function is called.
    std::string_view title = "name";
  };
  static RuleTable<Inline>& table();
};

// What the function that such an equation applies is called; nullptr where it says no name, or has
// no such rule.
const std::string* title_of(const Primitive& primitive, const Params& params);

}  // namespace plait
