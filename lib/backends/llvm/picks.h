// gather and scatter equations in kernels: what is checked before the loops, and the simple form
// that rows of elements take, one element for each row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives.h"

namespace plait::llvm {

// Whether rows of indices are checked: they must be there before the loops.
bool checks_indices(const Equation& equation);

// The checks of a group's gather and scatter equations, whose rows are inputs of the group.
class IndexChecks {
 public:
  explicit IndexChecks(const JaxprData& group);
  void run(std::span<const View> inputs) const;  // IndexError

 private:
  struct Check {
    const Equation* equation;
    View operand;  // without memory
    Sizes64 window;
  };
  std::vector<Check> checks_;
};

// Whether a gather takes, or a scatter sets or adds to, one element for each row along the last
// axis of the operand, all other axes being shared with the indices.
bool picks_one(const JaxprData& program, const Equation& equation);
// Where it is: int64, clamped where the mode says so. It may be outside where the mode is fill.
Value picked_place(const JaxprData& program, const Equation& equation, const Register& row);
// The operand with the update in the lane that is there.
Register scatter_one(const Equation& equation, const Register& operand, Mask is_here,
                     const Register& update);

}  // namespace plait::llvm
