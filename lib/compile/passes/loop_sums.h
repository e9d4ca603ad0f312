// Sums over what a scan adds up step by step, once behind it. See loop_sums.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The scan as a program of its operands in which reductions stand behind a scan with larger
// carries; empty when there are none.
Jaxpr sum_behind_loop(const Params& params, std::span<const Aval> operands,
                      const std::function<Jaxpr(const Jaxpr&)>& simplified);

}  // namespace plait::compile_passes
