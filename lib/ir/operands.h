// The number of operands of a primitive, as its definition states it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

// Throws ValueError for a number of operands that the primitive does not take.
void require_operands(const Primitive& primitive, std::size_t count);

}  // namespace plait
