// What a loop keeps for a later one, and the later one computes as well. See loop_residuals.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules.h>

namespace plait::compile_passes {

// The same program whose scans compute cheap slices again instead of reading what another scan
// stacked for them; empty when there is none.
Jaxpr recompute_residuals(const Jaxpr& program);

}  // namespace plait::compile_passes
