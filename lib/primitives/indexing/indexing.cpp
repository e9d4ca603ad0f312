// Shared by the primitives that slice, join and index arrays. See indexing.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/indexing/indexing.h"

#include <plait/primitives/narrow.h>

namespace plait::indexing {

std::string axis_text(std::string_view name, int axis, const Aval& aval) {
  return std::string(name) + ": along axis " + std::to_string(axis) + " of an array of shape " +
         text_of(aval.shape) + ", ";
}

void require_entries(std::string_view name, const Aval& aval, std::size_t entries,
                     std::string_view what) {
  if (int(entries) != aval.rank())
    throw ShapeError(std::string(name) + ": an array of shape " + text_of(aval.shape) + " has " +
                         std::to_string(aval.rank()) + " axes, and there are " +
                         std::to_string(entries) + " " + std::string(what),
                     "give one for each axis");
}

Dim dilated(Dim n, Dim interior) {
  return interior == Dim(0) ? n : maximum(0, n + (n - 1) * interior);
}

View part_of(View view, int axis, std::int64_t start, std::int64_t size) {
  if (size > 0) view.data = view.as<char>() + start * view.strides[axis] * size_of(view.dtype);
  view.shape[axis] = size;
  return view;
}

void require_same_dtype(std::string_view name, const Aval& x, const Aval& other,
                        std::string_view what) {
  if (x.dtype != other.dtype)
    throw DtypeError(std::string(name) + ": the operand has dtype " +
                         std::string(name_of(x.dtype)) + " and " + std::string(what) + " dtype " +
                         std::string(name_of(other.dtype)),
                     "convert one with astype");
}

void require_integer(std::string_view name, const Aval& aval) {
  if (!is_integer(aval.dtype))
    throw DtypeError(std::string(name) + ": indices have dtype " +
                         std::string(name_of(aval.dtype)) + ", and must be integers",
                     is_bool(aval.dtype) ? "select by a mask with where, or index with []"
                                         : "convert the indices with astype");
}

// --- Batching ------------------------------------------------------------------------------------

Shape inserted(const Shape& list, int to, Dim value) {
  Shape result = list;
  result.insert(to, value);
  return result;
}

Array transposed(const Array& array, std::span<const int> permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != int(i)) return lax::transpose(array, permutation);
  return array;
}

Array move_batch(const Batched& value, Dim size, int to) {
  const int rank = value.array.ndim();
  std::vector<int> dims;
  if (!value.dim) {
    for (int i = 0; i < rank; ++i) dims.push_back(i < to ? i : i + 1);
    return lax::broadcast_in_dim(value.array, inserted(value.array.shape(), to, size), dims);
  }
  for (int i = 0; i < rank; ++i)
    if (i != *value.dim) dims.push_back(i);
  dims.insert(dims.begin() + to, *value.dim);
  return transposed(value.array, dims);
}

// --- Scalars and indices -------------------------------------------------------------------------

Array in_dtype_of(const Array& number, const Array& like) {
  const Aval& to = like.aval();
  if (number.aval().type() == to.type()) return number;
  if (!number.aval().weak) return number;
  if (std::optional<Literal> literal = number.as_literal()) {
    require_fits(number, to.dtype, "");
    return Array::literal(cast(*literal, to.dtype, to.weak));
  }
  return narrowed(number, to.dtype, to.weak, "");
}

Array signed_indices(const Array& indices) {
  switch (indices.dtype()) {
    case DType::int32:
    case DType::int64:
      return indices;
    case DType::uint32:
      return lax::convert_element_type(indices, DType::int64);
    case DType::uint64: {
      const Literal largest{DType::uint64, false, std::numeric_limits<std::int64_t>::max(), 0, 0};
      const Array held = lax::min(indices, Array::literal(largest));
      return lax::convert_element_type(held, DType::int64);
    }
    default:
      return lax::convert_element_type(indices, DType::int32);
  }
}

Array literal_like(const Array& like, std::int64_t value) {
  return Array::literal(cast(Literal{DType::int64, false, value, 0, 0}, like.dtype(), false));
}

Array clamp_to(const Array& index, const Array& low, const Array& high) {
  const Array below = lax::min(index, high);
  return lax::max(below, low);
}

Array positions(const Shape& shape, int axis) { return lax::iota(DType::int32, shape, axis); }

// --- Masking -------------------------------------------------------------------------------------

Shape bounds_of(const Shape& shape, const SizeValues& sizes) {
  Shape bounds;
  for (Dim dim : shape) bounds.push_back(dim.is_constant() ? dim : sizes.bound(dim));
  return bounds;
}

Array resized(const Array& array, int axis, Dim size) {
  const Dim now = array.shape(axis);
  if (now == size) return array;
  if (less_equal(size, now).value_or(false)) return lax::slice_in_dim(array, Dim(0), size, 1, axis);
  std::vector<lax::Padding> padding(array.ndim());
  padding[axis].high = size - now;
  return lax::pad(array, Array::literal(0, array.dtype()), padding);
}

Array shifted(const Array& array, int axis, const Array& start, Dim size) {
  // Large enough that no start is clamped, which would shift real elements.
  const Array wide = resized(array, axis, array.shape(axis) + size);
  Arrays inputs{wide};
  for (int i = 0; i < array.ndim(); ++i)
    inputs.push_back(i == axis ? start : literal_like(start, 0));
  Shape window = wide.shape();
  window[axis] = size;
  return bind(dynamic_slice_p, inputs, {{"slice_sizes", window}});
}

Array taken(const Array& array, int axis, const Array& places) {
  Shape window = array.shape();
  window[axis] = 1;
  const Array rows = lax::reshape(places, Shape{places.shape(0), 1});
  const Array front =
      lax::gather(array, rows, {{axis}, {axis}, 0}, window, lax::GatherScatterMode::clip);
  std::vector<int> back;  // gather puts the indices' axes first
  for (int i = 1; i <= axis; ++i) back.push_back(i);
  back.push_back(0);
  for (int i = axis + 1; i < array.ndim(); ++i) back.push_back(i);
  return transposed(front, back);
}

}  // namespace plait::indexing
