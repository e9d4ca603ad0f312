// Loops whose steps have many elements, as simulations and solvers do: blocks that meet run them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../codegen/loop_cases.h"

namespace plait::kernels {

// size: about how many elements a step has.
codegen::LoopCases wide_loops(std::int64_t size);

}  // namespace plait::kernels
