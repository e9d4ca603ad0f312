// Few known elements as an equation, for programs that may not take them as an operand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// An array with these elements: an equation whose parameters they are. InternalError beyond
// max_constant elements.
inline constexpr std::int64_t max_constant = 4096;
Array constant_array(const Aval& aval, const Buffer& elements);

}  // namespace plait
