// Moves sums that a scan accumulates to after the scan. See loop_sums.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The scan as a program of its operands, with reductions after a scan that has larger carries.
// Empty if there are none.
Jaxpr sum_behind_loop(const Params& params, std::span<const Aval> operands,
                      const std::function<Jaxpr(const Jaxpr&)>& simplified);

}  // namespace plait::compile_passes
