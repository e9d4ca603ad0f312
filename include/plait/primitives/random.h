// Random bits in plait::lax. Included by primitives.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/indexing.h>

namespace plait {
namespace lax {

// Random bits of a key (key<fry>, or its words, uint32[2]; any array of them): unsigned integers of
// bit_width 8, 16, 32 or 64 and the given shape, behind the shape of the keys.
Array random_bits(Operand key, const Shape& shape, int bit_width = 32);
// A key from a key and uint32 data; leading shapes are equal, or there is one key or one datum.
Array random_fold(Operand key, Operand data);
// New keys of the given shape from one key, as jax.random.split gives.
Array random_split(Operand key, const Shape& shape = {2});

}  // namespace lax
}  // namespace plait
