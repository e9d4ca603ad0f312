// Windows of small arrays at places known at run time: through the function's frame, or where an
// array lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loop_memory.h"

namespace plait::llvm {

bool has_window(const Equation& equation);
// Why such an equation has no form; empty where it has.
std::string window_refusal(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const int> axes);
// Emits it. failed: where 1 is stored when an index is one that the reference refuses; what comes
// after that does not count.
Small lower_window(const Equation& equation, std::span<const Small* const> inputs,
                   const Aval& output, int output_axis, Value failed);

// Emits narrow, of numbers that are the same for all examples; failed: where one does not fit.
Small lower_narrow(const Small& input, const Aval& output, Value failed);

}  // namespace plait::llvm
