// Functions over stacks (base/stack.h), element by element.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait {

// Applies a function to the elements of several stacks, step by step.
Array map_stacks(std::span<const Array> stacks,
                 const std::function<Array(std::span<const Array> elements)>& function);
// The sum over axes; of a stack, over the axes of its elements.
Array sum_over(const Array& array, std::span<const int> axes);

// Builds the equation that applies a function to the elements of stacks. Set by lib/control.
using StackMapper =
    Array (*)(std::span<const Array> stacks,
              const std::function<Array(std::span<const Array> elements)>& function);
void set_stack_mapper(StackMapper mapper);

}  // namespace plait
