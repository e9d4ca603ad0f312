// Which axis of a value counts the examples of a loop that runs them side by side in lanes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

#include <optional>
#include <span>
#include <vector>

namespace plait::llvm {

// An axis, or -1 for what is the same for all examples.
using ExampleAxes = std::vector<int>;

// The first axis of this size; -1 where there is none, and where size is 0.
int example_axis(const Aval& aval, std::int64_t size);
// The axes of an equation's results, whose examples depend on the same example of its operands
// alone; nothing where that is not so, or not known.
std::optional<ExampleAxes> example_axes(const Equation& equation, std::span<const Aval> inputs,
                                        std::span<const Aval> outputs, const ExampleAxes& axes,
                                        std::int64_t size);

}  // namespace plait::llvm
