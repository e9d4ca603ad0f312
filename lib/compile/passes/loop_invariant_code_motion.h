// What a scan need not compute step by step. See loop_invariant_code_motion.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>

namespace plait::compile_passes {

// The scan as a program of its operands in which equations stand before and behind a smaller scan,
// which has one parameter more, "settled": nothing more moves. Empty when nothing moves.
Jaxpr move_code_out_of_loop(const Params& params, std::span<const Aval> operands,
                            const std::function<Jaxpr(const Jaxpr&)>& simplified);

}  // namespace plait::compile_passes
