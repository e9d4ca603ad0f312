// Shapes: lists of sizes, with named sizes (Shape) where a program is described and with integers
// (Sizes64) where it runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dim.h>
#include <plait/base/inline_vector.h>

#include <string>

namespace plait {

using Sizes64 = InlineVector<std::int64_t, 5>;  // sizes or strides of memory

// The shape of an array in a program; its dims may be named. Also used for any list of sizes or
// integers among the parameters of an equation (axes, permutations, window sizes).
class Shape : public InlineVector<Dim, 5> {
 public:
  using InlineVector::InlineVector;
  Shape(InlineVector dims) : InlineVector(std::move(dims)) {}  // NOLINT
  static Shape of(const Sizes64& sizes) { return Shape(sizes.begin(), sizes.end()); }

  int rank() const { return static_cast<int>(size()); }
  bool is_constant() const {
    return std::all_of(begin(), end(), [](Dim dim) { return dim.is_constant(); });
  }
  Dim num_elements() const;       // ShapeError when the product leaves 62 bits
  Sizes64 to_sizes() const;       // InternalError when a size is named
  std::string to_string() const;  // "3,n"
  std::size_t hash() const;
};

std::int64_t num_elements(const Sizes64& sizes);
Sizes64 dense_strides(const Sizes64& sizes);  // row-major, in elements

// Axis lists as plain ints, the form that loops use.
std::vector<int> to_ints(const Shape& list);
Shape to_shape(std::span<const int> list);

// NumPy's rule for axes: -1 is the last; IndexError names axis, rank and the function otherwise.
int normalize_axis(std::int64_t axis, int rank, std::string_view function);

}  // namespace plait
