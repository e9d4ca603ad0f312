// Arguments of the catalogue of plait.lax that several of its files read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/functions.h"

namespace plait::functions {

inline Shape shape_or_empty(const std::optional<Shape>& shape) { return shape.value_or(Shape()); }
// JAX's dimension_numbers of convolutions: None, three strings or three sequences of integers.
lax::ConvDimensions conv_dimensions_of(const Argument& numbers, std::string_view function);
// The five lists of a scatter's dimension numbers; the last two may be absent.
lax::ScatterDimensionNumbers scatter_dimensions_of(const Argument& numbers);
// JAX's words for what a window outside does.
lax::GatherScatterMode mode_of(const std::optional<std::string>& mode, std::string_view function);

}  // namespace plait::functions
