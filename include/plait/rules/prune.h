// The rule kind Prune: dead-code elimination inside equations that hold jaxprs, and in whole
// programs.
//
// An output that nothing uses is removed from the body, and with it everything that only it needs,
// down to operands of the equation. This happens before a program is differentiated, so that no
// residuals are kept for unused results, and when a program is compiled, where all uses are known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/bodies.h>

namespace plait {

// An equation with fewer outputs: its new parameters, and which inputs and outputs remain. More
// outputs may remain than were asked for.
struct PrunedEquation {
  Params params;
  Flags inputs, outputs;
};

struct Prune {
  static constexpr auto name = "prune";
  // outputs: those that are used. Nullopt where the equation cannot be pruned.
  using Rule =
      std::function<std::optional<PrunedEquation>(const Params& params, const Flags& outputs)>;
  static RuleTable<Prune>& table();
};

// A program derived from another: with some of its outputs, and the inputs that these need.
struct PrunedJaxpr {
  Jaxpr jaxpr;
  Flags inputs;  // those that remain
};
// outputs and inputs: those that must stay; empty: all of them.
std::shared_ptr<const PrunedJaxpr> prune_jaxpr(const Jaxpr& jaxpr, const Flags& outputs,
                                               const Flags& inputs = {});

// The same program in which loops, branches and calls compute only what is needed. A scan keeps the
// ys that are used, and the carries on which these or the results depend.
Jaxpr prune(const Jaxpr& jaxpr);

}  // namespace plait
