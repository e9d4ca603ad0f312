// Which loops become one kernel: those whose body, simplified, consists of what can be emitted on
// small arrays, for one example or for many side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/control/primitives.h>

#include "example_axes.h"

namespace plait::llvm {

// Elements of an example that a value has in registers. Constants that are larger are read where
// they lie, window by window.
inline constexpr std::int64_t largest_value = 256;

struct LoopPlan {
  std::string refusal;        // empty where the loop fits
  std::int64_t examples = 0;  // how many run side by side; 0: the loop runs once
  double weight = 0;          // instructions of all bodies, roughly
  double work = 0;            // instructions of all steps of an example, roughly
  std::int64_t values = 0;    // elements of all carries of an example
  bool is_flat = false;       // examples are elements of arrays of one shape: see flat_loop.h
};

bool is_loop(const Equation& equation);
LoopPlan plan_loop(const Equation& equation);

// A body of a loop or a branch as it is compiled elsewhere: calls inlined, nothing computed twice.
Jaxpr plain_body(const Jaxpr& body);
// The axes of a loop's operands.
ExampleAxes operand_axes(const Equation& equation, std::int64_t examples);
// The axes of its results, where it fits.
ExampleAxes loop_axes(const Equation& equation, const ExampleAxes& operands, std::int64_t examples);

}  // namespace plait::llvm
