// Axes as parameters of equations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>
#include <plait/ir/params.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace plait {

// An axis that an equation names, for rules: counted from the front. IndexError for one that the
// operand does not have.
inline int equation_axis(std::int64_t axis, int rank, std::string_view primitive) {
  if (axis < 0 || axis >= rank)
    throw IndexError(std::string(primitive) + ": axis " + std::to_string(axis) +
                         " of an operand of rank " + std::to_string(rank),
                     "name an axis from 0 to " + std::to_string(rank - 1));
  return static_cast<int>(axis);
}

// The axes that a parameter lists, for kernels: the usual few need no allocation.
using AxisList = InlineVector<int, 5>;
inline AxisList axis_list(const Params& params, std::string_view name) {
  AxisList axes;
  for (Dim axis : params.get<Shape>(name)) axes.push_back(int(axis.constant()));
  return axes;
}

}  // namespace plait
