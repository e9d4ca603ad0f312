// A subscript, taken apart: what happens along each axis of the operand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/subscript.h>

namespace plait::subscripting {

// What happens along one axis of the operand.
struct AxisCut {
  enum class Kind { whole, range, integer, array } kind = Kind::whole;
  Dim start = 0, size = 0, step = 1;  // of a range, within bounds
  Array index;                        // of an array
  std::optional<Dim> stop = {};       // of a range that is known to go from start to stop
};

// The subscript in order of the result: axes of the operand and new axes.
struct Plan {
  std::vector<AxisCut> cuts;  // one for each axis of the operand
  std::vector<int> order;     // axis numbers, or -1 for a new axis
  bool has_arrays = false;
};

// What an integer outside of its axis is: an IndexError, or an index array like any other, whose
// mode says what it does.
enum class Outside { error, index };
// IndexError for a subscript that does not fit the operand, TracerError for a boolean array whose
// values are not known.
Plan make_plan(const Array& operand, const Subscripts& subscripts, Outside outside);

// True or False.
bool is_scalar_mask(const Subscript& entry);
// Whether it took the first of these out: a new axis of the operand, of which everything or nothing
// is taken.
bool lift_scalar_mask(Array& operand, Subscripts& subscripts);

}  // namespace plait::subscripting
