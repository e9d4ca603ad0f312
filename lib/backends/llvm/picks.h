// The gather and scatter equations of groups: their simple form, which rows of elements take, one
// element for each row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait::llvm {

// Whether rows of indices are checked: they must be there before the loops.
bool checks_indices(const Equation& equation);
// Whether a gather takes, or a scatter sets or adds to, one element for each row along the last
// axis of the operand, all other axes being shared with the indices.
bool picks_one(const JaxprData& program, const Equation& equation);

}  // namespace plait::llvm
