// Equality of arrays to the bit, for CHECK.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/inspect/samples.h>

namespace plait {

// Of the same shape, dtype and bytes.
inline bool same_bits(const Array& a, const Array& b) { return !laws::difference_in_bits(a, b); }

}  // namespace plait
