// The order of long rows in loop programs, by the digits of their elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/written.h"

namespace plait {

// Refuses more elements than places are for.
void require_int32_places(std::int64_t count);
// Whether so many passes, of a byte each, are few enough for a program.
bool has_few_digits(std::span<const loops::Tensor> keys);
// What emit_order gives.
loops::Tensor emit_order_by_digits(std::span<const loops::Tensor> keys, std::size_t axis,
                                   std::int64_t count, bool descending);
// The order of a vector in memory of integers from 0 to end - 1, at most 2^32: what places they
// have, as int32. Of equal ones the first one comes first.
loops::Tensor emit_order_of_integers(const loops::Tensor& numbers, std::int64_t end);

}  // namespace plait
