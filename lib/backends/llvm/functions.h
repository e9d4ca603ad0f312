// What kernels call: functions of plait, under names that hold in every process, and in the objects
// that plait compile makes, which have these functions too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait::llvm {

// Reduces again, in memory, the lanes of angles that lie beyond the limit of Cody and Waite's
// method: void(const T* x, T* r, T* r_low, BitsOf<T>* n, std::int64_t lanes).
std::string far_reduction(DType dtype);
// The loop of an elementwise equation (Chunk::Loop) for operands of these dtypes.
std::string loop_of(const Equation& equation, std::span<const DType> inputs, DType output);

// The function of a name that these gave; nullptr for other texts.
const void* function_named(const std::string& name);

}  // namespace plait::llvm
