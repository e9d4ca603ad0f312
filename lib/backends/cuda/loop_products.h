// Loops in whose steps a library computes products of matrices so much sooner than generated loops
// do that the host may start each step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait::cuda {

// Whether an equation is such a loop, where the library is there.
bool has_library_products(const Equation& equation);

}  // namespace plait::cuda
