// See rules/separate.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/separate.h>

namespace plait {

bool separate::beside_axis(const Separate::Along& along, const Params& params) {
  return std::none_of(along.from.begin(), along.from.end(), [&](const std::optional<int>& axis) {
    return axis && std::int64_t(*axis) == params.integer("axis");
  });
}

}  // namespace plait
