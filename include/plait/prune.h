// Programs without what nobody needs, inside of loops, branches and calls too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/bodies.h>

namespace plait {

// A program made from another: with some of its outputs, and the inputs that these need.
struct PrunedJaxpr {
  Jaxpr jaxpr;
  Flags inputs;  // which are left
};
// outputs and inputs say which must stay; empty: all of them.
std::shared_ptr<const PrunedJaxpr> prune_jaxpr(const Jaxpr& jaxpr, const Flags& outputs,
                                               const Flags& inputs = {});

// The same program in which loops, branches and calls compute only what is needed: of a scan, the
// ys that are used and the carries that these, or the result, depend on.
Jaxpr prune(const Jaxpr& jaxpr);

}  // namespace plait
