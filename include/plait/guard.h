// Guard: what an equation that may raise, or that has an effect, becomes where only some examples
// take it: in a branch of others, in a loop that has ended for some, in a padded lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules.h>

namespace plait {

struct Guard {
  static constexpr auto name = "guard";
  struct Rule {
    // Whether an equation with these parameters asks for it; none: each does.
    std::function<bool(const Params& params)> needed;
    // The equation where live, a bool scalar, is true. Elsewhere it does not raise and has no
    // effect, and nobody reads its results.
    std::function<Arrays(const Array& live, std::span<const Array> inputs, const Params& params)>
        apply;
    // Whether raising is all: it needs none where other examples have the values of a live one.
    bool only_raises = false;
  };
  static RuleTable<Guard>& table();
};

// The rule for an equation; nullptr where it needs none.
const Guard::Rule* guard_of(const Primitive& primitive, const Params& params);
// Whether a program holds an equation that has an effect or needs a guard.
bool needs_guard(const Jaxpr& jaxpr);

}  // namespace plait
