// Loops in whose steps a library computes products of matrices so much sooner than generated loops
// do that the host may start each step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/device.h>
#include <plait/ir/jaxpr.h>

namespace plait::cuda {

// Whether an equation is such a loop, with a product that the library takes on a device.
bool has_library_products(const Equation& equation, Device device);

}  // namespace plait::cuda
