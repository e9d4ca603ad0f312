// Guard: the guarded form of an equation that may raise, or that has an effect, for where only some
// examples execute it: in a branch that others do not take, in a loop that has ended for some, in a
// padded lane.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait {

struct Guard {
  static constexpr auto name = "guard";
  struct Rule {
    // Whether an equation with these parameters needs a guard; absent: each does.
    std::function<bool(const Params& params)> needed;
    // The equation where live, a bool scalar, is true. Elsewhere it does not raise and has no
    // effect, and its results are not read.
    std::function<Arrays(const Array& live, std::span<const Array> inputs, const Params& params)>
        apply;
    // Whether errors are the only reason: no guard is needed where dead examples hold the values of
    // a live one.
    bool only_raises = false;
  };
  static RuleTable<Guard>& table();
};

// The rule for an equation; nullptr where it needs no guard.
const Guard::Rule* guard_of(const Primitive& primitive, const Params& params);
// Whether a program holds an equation that has an effect or needs a guard.
bool needs_guard(const Jaxpr& jaxpr);

}  // namespace plait
