// Sorting, cumulative reductions and positions of extremes in plait::lax. Included by primitives.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/indexing.h>

namespace plait {

// h_i = a_i h_(i-1) + b_i along an axis: the derivative of a cumulative product.
extern const Primitive recurrence_p;

namespace lax {

// The index of the largest or smallest element along an axis, in the default int unless a dtype is
// given: the first of equal ones; NaN wins.
Array argmax(Operand operand, int axis, std::optional<DType> index_dtype = {});
Array argmin(Operand operand, int axis, std::optional<DType> index_dtype = {});

// Cumulative sums, products and extremes (NaN wins) along an axis, from its end when reverse.
Array cumsum(Operand operand, int axis = 0, bool reverse = false);
Array cumprod(Operand operand, int axis = 0, bool reverse = false);
Array cummax(Operand operand, int axis = 0, bool reverse = false);
Array cummin(Operand operand, int axis = 0, bool reverse = false);
// h_i = a_i h_(i-1) + b_i with h_0 = b_0; from the end of the axis when reverse.
Array linear_recurrence(Operand a, Operand b, int axis = 0, bool reverse = false);

// Sorts along a dimension. NaN is greater than every number, -0.0 equals 0.0, complex numbers are
// ordered as pairs. Several operands move together, ordered by the first num_keys of them.
Array sort(Operand operand, int dimension = -1, bool is_stable = true, bool descending = false);
Arrays sort(Operands operands, int dimension = -1, bool is_stable = true, int num_keys = 1,
            bool descending = false);
// The k largest along an axis, largest first, and their indices (int32); of equal ones the first.
std::pair<Array, Array> top_k(Operand operand, Dim k, int axis = -1);

}  // namespace lax
}  // namespace plait
