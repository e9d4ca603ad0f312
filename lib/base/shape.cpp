// Shapes of programs and of memory. See shape.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/base/hash.h>
#include <plait/base/shape.h>

namespace plait {

Dim Shape::num_elements() const {
  Dim product = 1;
  for (Dim dim : *this) product = product * dim;
  return product;
}

Sizes64 Shape::to_sizes() const {
  Sizes64 sizes;
  for (Dim dim : *this) sizes.push_back(dim.constant());
  return sizes;
}

std::string Shape::to_string() const {
  std::string text;
  for (Dim dim : *this) {
    if (!text.empty()) text += ',';
    text += dim.to_string();
  }
  return text;
}

std::size_t Shape::hash() const {
  std::size_t hash = size();
  for (Dim dim : *this) hash = hash_combine(hash, dim.hash());
  return hash;
}

std::int64_t num_elements(const Sizes64& sizes) {
  std::int64_t product = 1;
  for (std::int64_t size : sizes) product *= size;
  return product;
}

Sizes64 dense_strides(const Sizes64& sizes) {
  Sizes64 strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

std::vector<int> to_ints(const Shape& list) {
  std::vector<int> ints;
  ints.reserve(list.size());
  for (Dim dim : list) {
    const std::int64_t value = dim.constant();
    if (value != static_cast<int>(value))
      throw ValueError("the integer " + std::to_string(value) + " is too large here",
                       "give one that fits 32 bits");
    ints.push_back(static_cast<int>(value));
  }
  return ints;
}

Shape to_shape(std::span<const int> list) { return Shape(list.begin(), list.end()); }

int normalize_axis(std::int64_t axis, int rank, std::string_view function) {
  if (axis < -rank || axis >= rank)
    throw IndexError(std::string(function) + ": axis " + std::to_string(axis) +
                         " is out of bounds for an array of " + std::to_string(rank) +
                         " dimension" + (rank == 1 ? "" : "s"),
                     rank == 0 ? "a scalar has no axes"
                               : "use an axis from " + std::to_string(-rank) + " to " +
                                     std::to_string(rank - 1));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace plait
