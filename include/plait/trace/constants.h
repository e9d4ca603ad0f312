// Known arrays in programs that may not take them as operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// An array of at most this many elements may become an equation, whose parameters they are.
inline constexpr std::int64_t max_constant = 4096;

// Makes one in the current trace. The primitive `constant` provides it.
using ConstantMaker = Array (*)(const Aval& aval, const Buffer& elements);
extern ConstantMaker make_constant;

}  // namespace plait
