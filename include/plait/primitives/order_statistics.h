// Elements by their rank along an axis, without sorting the rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive order_statistics_p;

namespace lax {

// The elements that sorting along an axis puts at these places, which rise: the axis has one for
// each.
Array order_statistics(Operand operand, const std::vector<std::int64_t>& places, int axis = -1);

}  // namespace lax
}  // namespace plait
