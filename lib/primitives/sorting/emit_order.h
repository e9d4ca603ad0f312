// The order of rows in loop programs whose steps many threads share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/written.h"

namespace plait {

// The places along an axis of the first `count` elements, by the keys, as int32. NaN is greater
// than every number; complex numbers are ordered as pairs; of equal elements the first one comes
// first. The keys lie in memory. For rows that are not long: see emit_long_rows.h.
loops::Tensor emit_order(std::span<const loops::Tensor> keys, std::size_t axis, std::int64_t count,
                         bool descending);
// The elements at these places.
loops::Tensor emit_taken(const loops::Tensor& operand, std::size_t axis,
                         const loops::Tensor& places);

}  // namespace plait
