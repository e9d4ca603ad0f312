// gather from small arrays in registers, where each example may have indices of its own, or where
// axes are shared with the indices: every element is chosen among all that it may be. Other windows
// are read from memory: see small_windows.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "small.h"

namespace plait::llvm {

// Whether a gather is one of these, or could be, and if so why it is not taken.
bool is_register_gather(const Equation& equation, std::span<const int> axes);
std::string register_gather_refusal(const Equation& equation, std::span<const Aval> inputs,
                                    std::span<const int> axes);
// Roughly the instructions for one example.
double register_gather_weight(const Equation& equation, std::span<const Aval> inputs,
                              double result_size);
// failed: the address of an int64 that is set where an index lies outside and is checked.
Small lower_register_gather(const Equation& equation, const Small& operand, const Small& indices,
                            const Aval& output, int output_axis, Value failed);

}  // namespace plait::llvm
