// The rule kinds that the IR itself needs: the avals of results, when an equation does nothing, and
// what it gives on literals.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/aval.h>
#include <plait/ir/jaxpr.h>

#include <span>

namespace plait {

// Output avals from input avals; throws the user's shape and dtype errors.
struct Abstract {
  static constexpr auto name = "abstract";
  using Rule = std::function<std::vector<Aval>(std::span<const Aval> inputs, const Params& params)>;
  static RuleTable<Abstract>& table();
};

// True when the equation returns its first input unchanged and need not be recorded.
struct Identity {
  static constexpr auto name = "identity";
  using Rule = std::function<bool(std::span<const Aval> inputs, const Params& params)>;
  static RuleTable<Identity>& table();
};

// The result of an equation on scalars that are all literals, as literals; nothing when it must
// stay an equation. Folding computes what the kernels would, to the bit.
struct Fold {
  static constexpr auto name = "fold";
  using Rule = std::function<std::optional<std::vector<Literal>>(std::span<const Literal> inputs,
                                                                 const Params& params)>;
  static RuleTable<Fold>& table();
};

}  // namespace plait
