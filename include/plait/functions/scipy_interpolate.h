// plait::scipy::interpolate: functions between the points of a grid, under SciPy's names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

#include <cmath>

namespace plait::scipy::interpolate {

// The function whose values at the points of a grid are given, at xi, whose last axis holds a place
// along each axis of the grid. points: the rising places of the grid along each axis; values: an
// array over the grid, with more axes behind for vectors. method: "linear" or "nearest". Outside of
// the grid lies fill_value; without one the outermost cells go on. bounds_error: a ValueError there
// instead, where values are known, and a TracerError where they are not.
Array interpn(Operands points, Operand values, Operand xi, const std::string& method = "linear",
              bool bounds_error = false, const std::optional<Array>& fill_value = NAN);

}  // namespace plait::scipy::interpolate
