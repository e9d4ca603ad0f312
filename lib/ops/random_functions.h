// What plait.random's functions share: checks of keys and dtypes, parameters that broadcast, and
// numbers between two ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/random.h>

#include "ops/functions.h"

namespace plait::functions {

// ShapeError unless it is one key.
void require_key(std::string_view function, const Array& key);
// The dtype asked for, or the default; DtypeError unless it is a float.
DType float_dtype(std::string_view function, std::optional<DType> dtype);

struct FloatFormat {
  int bits, mantissa;  // stored bits of the mantissa
  double one, tiny,
      epsilon;  // 1.0 as an integer; smallest normal number; distance from 1 to the next
};
FloatFormat format_of(DType dtype);
// A scalar literal of an integer dtype.
Array integer_literal(std::int64_t value, DType dtype);

// A parameter broadcast to a shape, unless it is a scalar.
Array to_shape_of(std::string_view function, const Array& x, const Shape& shape);
// The shape asked for, or the one that parameters broadcast to.
Shape shape_or(std::string_view function, const std::optional<Shape>& shape,
               std::initializer_list<Array> parameters);

// Uniform numbers in [low, high).
Array uniform_between(const Array& key, const Shape& shape, DType dtype, double low, double high);

}  // namespace plait::functions
