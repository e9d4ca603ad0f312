// The axes of dot_general, as its parameters name them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/params.h>

#include <algorithm>
#include <vector>

namespace plait {

struct DotAxes {
  std::vector<int> lhs_contract, rhs_contract, lhs_batch, rhs_batch;
  explicit DotAxes(const Params& params)
      : lhs_contract(params.ints("lhs_contract")),
        rhs_contract(params.ints("rhs_contract")),
        lhs_batch(params.ints("lhs_batch")),
        rhs_batch(params.ints("rhs_batch")) {}
};

// The axes of an operand that are neither contracted nor batched, in order.
template <class List>
List free_axes(int rank, const List& contract, const List& batch) {
  auto contains = [](const List& list, int axis) {
    return std::find(list.begin(), list.end(), axis) != list.end();
  };
  List free;
  for (int axis = 0; axis < rank; ++axis)
    if (!contains(contract, axis) && !contains(batch, axis)) free.push_back(axis);
  return free;
}

// Whether lhs [m, k] @ rhs [k, n] is summed term by term, each by one fma, on every backend: small
// products, and those of a small matrix with many rows or columns. A backend that cannot keep this
// order does not claim small products.
inline bool is_small_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  return k <= 32 && (m <= 32 || n <= 32);
}
// A product of a vector and a matrix that is read once, or of two vectors: bound by memory, so
// plait's loops are as fast as any. Long sums for several columns are left to libraries.
inline bool is_vector_product(std::int64_t m, std::int64_t k, std::int64_t n) {
  constexpr std::int64_t fewest = 16, longest = 1 << 14;
  if (m == 1 && n == 1) return true;
  return (m == 1 || n == 1) && m * n >= fewest && k <= longest;
}
// Whether real numbers are summed in the order of a reduction by rows instead: larger products of
// vectors.
inline bool is_summed_by_parts(std::int64_t m, std::int64_t k, std::int64_t n) {
  return !is_small_product(m, k, n) && (m == 1 || n == 1);
}
inline bool is_summed_in_order(std::int64_t m, std::int64_t k, std::int64_t n) {
  constexpr std::int64_t small_sides = 20;  // n and k, together
  return !is_summed_by_parts(m, k, n) && (is_small_product(m, k, n) || n + k < small_sides);
}

}  // namespace plait
