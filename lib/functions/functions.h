// Shared by NumPy-level functions: promotion, literals of an operand's dtype, axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/catalogue.h>
#include <plait/functions/numpy.h>
#include <plait/primitives/families.h>
#include <plait/primitives/narrow.h>
#include <plait/transforms/composites.h>

namespace plait::functions {

// Operands in one dtype and, except for scalars, one shape.
Arrays promoted(std::string_view function, std::initializer_list<Operand> operands);
// The same in a float or complex dtype: bools and integers become the default float.
Arrays promoted_inexact(std::string_view function, std::initializer_list<Operand> operands);
// Bools and integers as the default float (weak ones stay weak), others unchanged.
Array to_inexact(const Array& x);
// Real floating; DtypeError for complex.
Array floating_only(std::string_view function, const Array& x);

// A scalar literal of like's dtype.
Array constant(double value, const Array& like);
// The same, with like's shape.
Array filled(double value, const Array& like);
Array astype(const Array& x, DType dtype);
// x != 0.
Array truth(const Array& x);

// The flattened array.
Array raveled(const Array& x);
// An array with one axis moved.
Array moved(const Array& x, int from, int to);
// Restores the axes that a reduction has removed, with size 1.
Array with_axes(const Array& reduced, const Shape& shape, std::span<const int> axes);
// The product of the sizes of axes.
Dim size_of_axes(const Shape& shape, std::span<const int> axes);
// Axes counted from the end.
Shape from_back(std::span<const int> axes, int rank);
// A size as a number of a dtype: a literal unless it is named.
Array number_of(Dim size, DType dtype);
// The same for use with x: of x's dtype, and weak if x is.
Array number_for(const Array& x, Dim size);
// A slice of one axis.
Array part(const Array& x, int axis, Dim start, Dim limit, Dim stride = 1);
// 0, 1, 2, ... as a vector.
Array counting(Dim size, DType dtype = default_int());

// lax::WindowPadding as an argument of the catalogue: a word, or pairs of sizes.
struct WindowPadding : lax::WindowPadding {
  using lax::WindowPadding::WindowPadding;
  static constexpr const char* argument_type = "str, or a pair for each dimension";
  static std::optional<WindowPadding> from_argument(const Argument& argument);
};

}  // namespace plait::functions
