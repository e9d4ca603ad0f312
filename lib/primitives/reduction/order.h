// Shared by the primitives of order, cumulation and windows: arrays as rows along an axis, the
// smallest and the largest value of a dtype, and selection of elements along an axis.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/sorting.h>

#include <vector>

namespace plait {

// A dense array viewed around one axis: outer * size * inner elements.
struct AxisLoops {
  std::int64_t outer = 1, size = 1, inner = 1;
  AxisLoops(const Sizes64& shape, int axis);
};

// The view with this axis last.
View with_axis_last(const View& view, int axis);

// The first index of a row at which test holds, end if none. test takes an element or, for floats,
// a pack.
template <class T, class Test>
std::int64_t find_first(const T* x, std::int64_t begin, std::int64_t end, const Test& test) {
  std::int64_t i = begin;
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    using P = Pack<T, detail::lanes<T>>;
    while (i + P::width <= end && !math::any(test(P::load(x + i)))) i += P::width;
  }
  while (i < end && !test(x[i])) ++i;
  return i;
}

// Scalars that bound all elements from below, or above; in both parts of complex numbers.
Array lowest_of(DType dtype);
Array highest_of(DType dtype);

// A scalar index: an int32, computed when the size is named.
Array index_of(Dim dim);

// Elements of operand at int32 indices along an axis; the other axes are equal. Every index is in
// bounds.
Array take_along(const Array& operand, const Array& indices, int axis);

// The position in the batched array of an axis of an example.
inline int batched_axis(int axis, int batch_dim) { return axis < batch_dim ? axis : axis + 1; }

// The parameter "axis"; IndexError, which names the function, when the operand has no such axis.
int checked_axis(const Params& params, const Aval& operand, std::string_view name);

}  // namespace plait
