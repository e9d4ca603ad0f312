// Long rows in loop programs whose threads sort together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/written.h"

namespace plait {

// Whether to sort rows takes less than to merge them for their first `count` elements: see
// emit_order.h.
bool are_long_rows(std::int64_t size, std::int64_t count);
// The rule Emit of sort, for long rows along an axis, by the first num_keys operands.
loops::Tensors emit_long_rows(std::span<const loops::Tensor> operands, std::size_t num_keys,
                              std::size_t axis, bool descending);
// The places along an axis, as int32; no memory holds them.
loops::Tensor places_along(const Shape& shape, std::size_t axis);
// Vectors: integers from 0 to most in order, and values that go with them. Of equal integers the
// first one comes first.
loops::Tensors emit_sorted_integers(const loops::Tensor& integers, std::int64_t most,
                                    const loops::Tensor& values);

}  // namespace plait
