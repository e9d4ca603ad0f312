// narrow: converts a weak integer to the dtype that it yields to, with an error where the number
// does not fit. Known numbers are checked while tracing, others when the program runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive narrow_p;

// A weak operand as another dtype, weak or not. An integer that does not fit an integer dtype is a
// ValueError that names the function; other conversions are those of convert_element_type.
Array narrowed(Operand weak_operand, DType dtype, bool weak, std::string_view function);
inline Array narrowed(Operand weak_operand, DType dtype, std::string_view function) {
  return narrowed(std::move(weak_operand), dtype, false, function);
}
// The same for an operand that may be strong, which is converted as usual.
Array yielded(Operand operand, DType dtype, bool weak, std::string_view function);

// A value that an operation makes for an operand of the same dtype, with the weakness of like.
Array as_weak_as(const Array& like, const Array& made);

// The dtype of a weak number in an array of its own: the default dtype of its kind. A strong array
// keeps its dtype.
DType default_dtype(const Array& x);
// The dtype of indices: their own, or, where they are weak, one that holds them.
DType index_dtype(const Array& indices);

// Whether a Python or C++ integer is a value of an integer dtype; true for other numbers.
bool is_representable(const Array& number, DType dtype);
// ValueError unless it does.
void require_fits(const Array& number, DType dtype, std::string_view function);
// Whether an integer dtype holds every value of another.
bool holds_all(DType dtype, DType numbers);
[[noreturn]] void throw_unfit(std::string_view function, const std::string& integer, DType dtype);

}  // namespace plait
