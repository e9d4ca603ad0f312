// narrow: a weak integer in the dtype that it yields to, with an error where that holds no such
// number. Numbers that are known are told while tracing, others when the program runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ops.h>

namespace plait {

extern const Primitive narrow_p;

// A weak operand as another dtype, weak or not. Where an integer does not fit an integer dtype it
// is a ValueError that names the function; other conversions are convert_element_type's.
Array narrowed(Operand weak_operand, DType dtype, bool weak, std::string_view function);
inline Array narrowed(Operand weak_operand, DType dtype, std::string_view function) {
  return narrowed(std::move(weak_operand), dtype, false, function);
}
// The same for what may be strong, which is converted as it is.
Array yielded(Operand operand, DType dtype, bool weak, std::string_view function);

// What an operation makes itself for an operand of the same dtype, as weak as that is.
Array as_weak_as(const Array& like, const Array& made);

// What a weak number is in an array of its own: the default dtype of its kind. A strong one has its
// own dtype.
DType default_dtype(const Array& x);
// The dtype of indices: their own, or where they are weak one that holds them.
DType index_dtype(const Array& indices);

// Whether an integer dtype holds every number of another.
bool holds_all(DType dtype, DType numbers);
[[noreturn]] void throw_unfit(std::string_view function, const std::string& integer, DType dtype);

}  // namespace plait
