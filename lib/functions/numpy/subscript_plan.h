// A parsed subscript: its effect along each axis of the operand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/subscript.h>

namespace plait::subscripting {

// The effect along one axis of the operand.
struct AxisCut {
  enum class Kind { whole, range, integer, array } kind = Kind::whole;
  Dim start = 0, size = 0, step = 1;  // for a range, within bounds
  Array index;                        // for an array
  std::optional<Dim> stop = {};       // for a range whose end is known
};

// The subscript in order of the result: axes of the operand and new axes.
struct Plan {
  std::vector<AxisCut> cuts;  // one for each axis of the operand
  std::vector<int> order;     // axis numbers, or -1 for a new axis
  bool has_arrays = false;
  bool are_inside = true;  // whether the indices are known to be within bounds
};

// The effect of a slice along an axis of this size.
AxisCut cut_range(const Range& range, Dim size);

// How an integer out of range is handled: as an IndexError, or as an index array, according to its
// mode.
enum class Outside { error, index };
// IndexError for a subscript that does not fit the operand. Where the values of a boolean array are
// not known, the number of its true elements is a size from data.
Plan make_plan(const Array& operand, const Subscripts& subscripts, Outside outside);

// Whether it is True or False.
bool is_scalar_mask(const Subscript& entry);
// Moves the first True or False of a subscript to a new axis of the operand, of which everything or
// nothing is taken. Returns whether there was one.
bool lift_scalar_mask(Array& operand, Subscripts& subscripts);

}  // namespace plait::subscripting
