// Moves equations out of a scan. See loop_invariant_code_motion.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The scan as a program of its operands, with equations before and after a smaller scan. That scan
// has one more parameter, "settled": nothing more moves. Empty if nothing moves.
Jaxpr move_code_out_of_loop(const Params& params, std::span<const Aval> operands,
                            const std::function<Jaxpr(const Jaxpr&)>& simplified);

}  // namespace plait::compile_passes
