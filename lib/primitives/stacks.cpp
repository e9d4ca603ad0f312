// See primitives/stacks.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/primitives/stacks.h>

namespace plait {
namespace {

constinit StackMapper installed = nullptr;

}  // namespace

void set_stack_mapper(StackMapper mapper) { installed = mapper; }

Array map_stacks(std::span<const Array> stacks,
                 const std::function<Array(std::span<const Array> elements)>& function) {
  if (!installed) throw InternalError("there are stacks, and control flow is not linked");
  return installed(stacks, function);
}

Array sum_over(const Array& array, std::span<const int> axes) {
  if (array.aval().stack == 0) return lax::reduce_sum(array, axes);
  return map_stacks(std::span(&array, 1),
                    [&](std::span<const Array> element) { return sum_over(element[0], axes); });
}

}  // namespace plait
