// Shared by the primitives that slice, join and index arrays: order checks, moves of the batch
// axis, and shifts of padded arrays by dynamic amounts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>

namespace plait::indexing {

// --- Shapes --------------------------------------------------------------------------------------

// require_less_equal without the cost of a std::function where integers decide, which is the usual
// case.
template <class Describe>
void require_order(Dim left, Dim right, const Describe& describe) {
  if (left.is_constant() && right.is_constant() && left.constant() <= right.constant()) return;
  require_less_equal(left, right, [&describe]() -> ShapeError { return describe(); });
}

inline std::string text_of(const Shape& shape) { return "(" + shape.to_string() + ")"; }
// "slice: along axis 0 of an array of shape (3,n), "
std::string axis_text(std::string_view name, int axis, const Aval& aval);
// Requires as many entries as the array has axes.
void require_entries(std::string_view name, const Aval& aval, std::size_t entries,
                     std::string_view what);
void require_same_dtype(std::string_view name, const Aval& x, const Aval& other,
                        std::string_view what);
void require_integer(std::string_view name, const Aval& aval);

// The length of n elements with `interior` others between any two.
Dim dilated(Dim n, Dim interior);
// The part of a view with `size` elements along an axis from start on.
View part_of(View view, int axis, std::int64_t start, std::int64_t size);

// --- Batching ------------------------------------------------------------------------------------

// The array with its batch axis at `to`, by transpose, or by broadcast when it is unbatched.
Array move_batch(const Batched& value, Dim size, int to);
// list with a value at position `to`.
Shape inserted(const Shape& list, int to, Dim value);
Array transposed(const Array& array,
                 std::span<const int> permutation);  // itself when already in order

// --- Scalars and indices -------------------------------------------------------------------------

// A number that is a literal or weak, in the dtype of like; others unchanged.
Array in_dtype_of(const Array& number, const Array& like);
// Indices as int32 or int64 with the same values; unsigned values that exceed both become the
// largest.
Array signed_indices(const Array& indices);
Array literal_like(const Array& like, std::int64_t value);
Array clamp_to(const Array& index, const Array& low, const Array& high);
// 0, 1, 2, ... below size, along one axis of a shape.
Array positions(const Shape& shape, int axis);

// --- Masking -------------------------------------------------------------------------------------

Shape bounds_of(const Shape& shape, const SizeValues& sizes);
// The same array with `size` elements along an axis: truncated, or padded with zeros that are never
// read.
Array resized(const Array& array, int axis, Dim size);
// `size` elements along an axis from a dynamic start, 0 <= start <= the axis's size; zero beyond
// the end.
Array shifted(const Array& array, int axis, const Array& start, Dim size);
// array[..., places[i], ...] along an axis, for int32 places; clamped to the axis.
Array taken(const Array& array, int axis, const Array& places);

}  // namespace plait::indexing
