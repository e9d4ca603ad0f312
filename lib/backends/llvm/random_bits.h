// The generator of lib/base/threefry.h, emitted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emit.h"

namespace plait::llvm {

using RandomWords = std::array<Lane<std::uint32_t>, 2>;

// threefry2x32 of a key and a counter, both two words.
RandomWords threefry(Lane<std::uint32_t> first_key, Lane<std::uint32_t> second_key,
                     Lane<std::uint32_t> high, Lane<std::uint32_t> low);
// How both words become an element of random_bits, an unsigned integer of this dtype.
Value random_word(DType dtype, Lane<std::uint32_t> x, Lane<std::uint32_t> y);

}  // namespace plait::llvm
