// How many operands a primitive takes: at least as many as its definition states, and no more where
// that is said.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

// Says it, after the definition; true, for a static beside that.
bool takes_no_more_operands(const Primitive& primitive);

// Throws ValueError for a number of operands that the primitive does not take.
void require_operands(const Primitive& primitive, std::size_t count);

}  // namespace plait
