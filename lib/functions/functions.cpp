// Shared by NumPy-level functions. See functions.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/functions.h"

#include <plait/primitives/narrow.h>

#include "primitives/indexing/indexing.h"

namespace plait::functions {

Array to_inexact(const Array& x) {
  if (is_inexact(x.dtype())) return x;
  // A weak number keeps 64 bits until it meets a strong dtype.
  const bool weak = x.aval().weak;
  return lax::convert_element_type(x, weak ? DType::float64 : default_float(), weak);
}

Array floating_only(std::string_view function, const Array& x) {
  if (is_complex(x.dtype()))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(x.dtype())) + " is complex",
        "give a real array; real and imag take a complex one apart");
  return to_inexact(x);
}

Arrays promoted(std::string_view function, std::initializer_list<Operand> operands) {
  Arrays arrays(operands.begin(), operands.end());
  promote_dtypes(arrays, function);
  broadcast_shapes(std::span<Array>(arrays), function);
  return arrays;
}

Arrays promoted_inexact(std::string_view function, std::initializer_list<Operand> operands) {
  Arrays arrays(operands.begin(), operands.end());
  promote_dtypes(arrays, function);
  if (!is_inexact(arrays[0].dtype())) {
    for (Array& array : arrays) array = to_inexact(array);
    promote_dtypes(arrays, function);
  }
  broadcast_shapes(std::span<Array>(arrays), function);
  return arrays;
}

Array constant(double value, const Array& like) {
  return Array::literal(
      cast(Literal{DType::float64, false, 0, value, 0}, like.dtype(), like.aval().weak));
}
Array filled(double value, const Array& like) {
  return broadcast_to(constant(value, like), like.shape());
}
// What follows from a weak operand is weak while it has 64 bits: see NOTE: [weakness].
Array astype(const Array& x, DType dtype) {
  const bool is_wide =
      dtype == DType::float64 || dtype == DType::int64 || dtype == DType::complex128;
  return lax::convert_element_type(x, dtype, x.aval().weak && is_wide);
}

Array truth(const Array& x) { return is_bool(x.dtype()) ? x : lax::ne(x, constant(0, x)); }

Array raveled(const Array& x) {
  return x.ndim() == 1 ? x : lax::reshape(x, Shape{x.shape().num_elements()});
}

Array moved(const Array& x, int from, int to) {
  return indexing::move_batch({x, from}, x.shape(from), to);
}

Array with_axes(const Array& reduced, const Shape& shape, std::span<const int> axes) {
  Shape kept = shape;
  for (int axis : axes) kept[axis] = 1;
  return lax::reshape(reduced, kept);
}

Dim size_of_axes(const Shape& shape, std::span<const int> axes) {
  Dim size = 1;
  for (int axis : axes) size = size * shape[axis];
  return size;
}

Shape from_back(std::span<const int> axes, int rank) {
  Shape result;
  for (int axis : axes) result.push_back(axis - rank);
  return result;
}

Array number_of(Dim size, DType dtype) {
  if (size.is_constant()) return Array::literal(double(size.constant()), dtype);
  return lax::convert_element_type(lax::dim_as_value(size), dtype);
}

Array number_for(const Array& x, Dim size) { return as_weak_as(x, number_of(size, x.dtype())); }

Array part(const Array& x, int axis, Dim start, Dim limit, Dim stride) {
  Shape starts(x.ndim(), 0), limits = x.shape(), strides(x.ndim(), 1);
  starts[axis] = start;
  limits[axis] = limit;
  strides[axis] = stride;
  return lax::slice(x, starts, limits, strides);
}

Array counting(Dim size, DType dtype) { return lax::iota(dtype, Shape{size}, 0); }

std::optional<WindowPadding> WindowPadding::from_argument(const Argument& argument) {
  if (const auto* word = std::get_if<std::string>(&argument.value)) return WindowPadding(*word);
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list) return std::nullopt;
  std::vector<std::pair<Dim, Dim>> pairs;
  for (const Argument& entry : *list) {
    const std::optional<Shape> pair = detail::as_shape(entry);
    if (!pair || pair->size() != 2) return std::nullopt;
    pairs.emplace_back((*pair)[0], (*pair)[1]);
  }
  return WindowPadding(std::move(pairs));
}

}  // namespace plait::functions
