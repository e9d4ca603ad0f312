// Elementwise primitives that rules Emit compute with, and that no function of users binds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/primitive.h>

namespace plait {

// x * y + z with one rounding; and threefry2x32 of a key and a counter, both two words.
extern const Primitive fma_p, threefry_p;

}  // namespace plait
