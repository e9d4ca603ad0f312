// The rule kinds that the IR itself needs: the avals of results, whether an equation is an
// identity, and its value on literals.
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

// The result of an equation whose inputs are all scalar literals, as literals; nullopt when it must
// stay an equation. Folding gives the kernels' results, to the bit.
struct Fold {
  static constexpr auto name = "fold";
  using Rule = std::function<std::optional<std::vector<Literal>>(std::span<const Literal> inputs,
                                                                 const Params& params)>;
  static RuleTable<Fold>& table();
};

}  // namespace plait
