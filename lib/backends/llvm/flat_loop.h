// Loops that do the same for every element of arrays of one shape, as loops over lists of elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <optional>

namespace plait::llvm {

// The parameters of a scan or a while with arrays of that shape as vectors; nothing where its
// bodies do other things, or have no such shape of two axes or more.
std::optional<Params> flat_loop(const Params& params);
// The same of a group that is a loop. Its inputs must be dense.
Jaxpr flat_group(const Jaxpr& group);

}  // namespace plait::llvm
