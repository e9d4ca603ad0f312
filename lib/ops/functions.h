// What NumPy-level functions share: promotion, literals of an operand's dtype, axes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/catalogue.h>
#include <plait/composites.h>
#include <plait/families.h>
#include <plait/numpy.h>

namespace plait::functions {

// Operands in one dtype, and one shape unless they are scalars.
Arrays promoted(std::string_view function, std::initializer_list<Operand> operands);
// The same in a float or complex dtype: bools and integers become the default float.
Arrays promoted_inexact(std::string_view function, std::initializer_list<Operand> operands);
// Bools and integers as the default float (weak ones stay weak), others unchanged.
Array to_inexact(const Array& x);
DType inexact_dtype(DType dtype);
// Real floating; DtypeError for complex.
Array floating_only(std::string_view function, const Array& x);

// Whether an integer of Python or C++ is one that an integer dtype holds; other numbers fit.
bool fits(const Array& number, DType dtype);
// ValueError unless it does.
void require_fits(const Array& number, DType dtype, std::string_view function);

// A scalar literal of like's dtype.
Array constant(double value, const Array& like);
// The same in like's shape.
Array filled(double value, const Array& like);
Array nan_of(const Array& like);
Array astype(const Array& x, DType dtype);
// x != 0.
Array truth(const Array& x);
bool is_weak_literal(const Array& x);
// The smallest and largest finite value of a dtype as a scalar literal.
Array lowest_of(DType dtype);
Array largest_of(DType dtype);

// The elements in one row.
Array raveled(const Array& x);
// axis moved to another place.
Array moved(const Array& x, int from, int to);
// axes put back, with size 1, that a reduction has taken.
Array with_axes(const Array& reduced, const Shape& shape, std::span<const int> axes);
// The product of the sizes of axes.
Dim size_of_axes(const Shape& shape, std::span<const int> axes);
// Axes counted from the back.
Shape from_back(std::span<const int> axes, int rank);
// A size as a number of a dtype: a literal unless it is named.
Array number_of(Dim size, DType dtype);
// The same beside x: of its dtype, and weak where that is.
Array number_for(const Array& x, Dim size);
// A part of one axis.
Array part(const Array& x, int axis, Dim start, Dim limit, Dim stride = 1);
// 0, 1, 2, ... as a row.
Array counting(Dim size, DType dtype = default_int);

// lax::WindowPadding as an argument of the catalogue: a word, or pairs of sizes.
struct WindowPadding : lax::WindowPadding {
  using lax::WindowPadding::WindowPadding;
  static constexpr const char* argument_type = "str, or a pair for each dimension";
  static std::optional<WindowPadding> from_argument(const Argument& argument);
};

}  // namespace plait::functions
