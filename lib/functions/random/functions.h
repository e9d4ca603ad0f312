// Shared by plait.random's functions: checks of keys and dtypes, parameters that broadcast, and
// uniform numbers in an interval.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/random.h>

#include "functions/functions.h"

namespace plait::functions {

// ShapeError unless it is a single key.
void require_key(std::string_view function, const Array& key);
// The requested dtype, or the default; DtypeError unless it is a float.
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
// The requested shape, or the one to which the parameters broadcast.
Shape shape_or(std::string_view function, const std::optional<Shape>& shape,
               std::initializer_list<Array> parameters);

// Uniform numbers in [low, high).
Array uniform_between(const Array& key, const Shape& shape, DType dtype, double low, double high);

}  // namespace plait::functions
