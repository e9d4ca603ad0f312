// Factors of small matrices and triangular systems, written once over V: a scalar, a Pack with a
// matrix in each lane, or the registers of a generated loop (see NOTE: [emitted mathematics] in
// lib/backends/llvm/emit.h), so that eager and generated programs have the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math/blocks.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace plait::small {

// The largest side of matrices, and number of right-hand sides, that these take. The number of
// matrices does not matter, so that one matrix has the same bits alone and in a batch.
inline constexpr std::int64_t largest = 16;
// The same for lu, which searches every row for a pivot.
inline constexpr std::int64_t largest_lu = 8;

using math::fma;
using math::select;
using math::sqrt;

// Element (i, j) of a matrix.
template <class V>
struct Elements {
  V* first;
  std::int64_t row, column;
  V& operator()(std::int64_t i, std::int64_t j) const { return first[i * row + j * column]; }
  Elements transposed() const { return {first, column, row}; }
  // The rows from the last to the first.
  Elements rows_reversed(std::int64_t rows) const {
    return {first + (rows - 1) * row, -row, column};
  }
};

// L, row-major, from the lower triangle of a, column by column; NaN where a is not positive
// definite.
template <class T, class V>
void cholesky(const Elements<V>& a, V* l, std::int64_t n) {
  const V nan(std::numeric_limits<T>::quiet_NaN()), largest(std::numeric_limits<T>::max());
  V excess(T(0));  // NaN once a pivot was not positive and finite
  for (std::int64_t j = 0; j < n; ++j) {
    // Rows from i on, several at a time, so that their sums overlap.
    auto subtract = [&]<int rows>(std::int64_t i) {
      V sums[rows];
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) sums[r] = a(i + r, j);
      for (std::int64_t k = 0; k < j; ++k) {
        const V factor = -l[j * n + k];
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) sums[r] = fma(l[(i + r) * n + k], factor, sums[r]);
      }
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) l[(i + r) * n + j] = sums[r];
    };
    std::int64_t i = j;
    for (; i + 4 <= n; i += 4) subtract.template operator()<4>(i);
    for (; i < n; ++i) subtract.template operator()<1>(i);
    const V pivot = l[j * n + j];
    excess = select(pivot > V(T(0)), select(pivot <= largest, excess, nan), nan);
    const V root = sqrt(pivot);
    l[j * n + j] = root;
    for (i = j + 1; i < n; ++i) l[i * n + j] = l[i * n + j] / root;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j)
      l[i * n + j] = select(excess == excess, l[i * n + j], nan);
    for (std::int64_t j = i + 1; j < n; ++j) l[i * n + j] = V(T(0));
  }
}

// A system of n unknowns with m right-hand sides: l x = b.
template <class T, class V>
struct System {
  Elements<V> l, b, x;
  std::int64_t n, m;
  bool unit;

  // The right-hand sides from c on, `sides` of them, whose sums stay in registers.
  template <int sides>
  void solve(std::int64_t c, const V* inverses) const {
    for (std::int64_t i = 0; i < n; ++i) {
      V sums[sides];
#pragma GCC unroll 8
      for (int s = 0; s < sides; ++s) sums[s] = b(i, c + s);
      for (std::int64_t k = 0; k < i; ++k) {
        const V factor = -l(i, k);
#pragma GCC unroll 8
        for (int s = 0; s < sides; ++s) sums[s] = fma(factor, x(k, c + s), sums[s]);
      }
#pragma GCC unroll 8
      for (int s = 0; s < sides; ++s)
        x(i, c + s) = unit ? sums[s] : m == 1 ? sums[s] / l(i, i) : sums[s] * inverses[i];
    }
  }
  void solve() const {
    V inverses[largest];
    if (!unit && m > 1)
      for (std::int64_t i = 0; i < n; ++i) inverses[i] = V(T(1)) / l(i, i);
    std::int64_t c = 0;
    for (; c + 8 <= m; c += 8) solve<8>(c, inverses);
    for (; c + 2 <= m; c += 2) solve<2>(c, inverses);
    for (; c < m; ++c) solve<1>(c, inverses);
  }
};

// P A = L U of m rows and n columns, in place, by exchanging rows so that each pivot is the largest
// of its column. pivots: the row each came from; order: the original index of each row. Both are
// small integers, stored as floats.
template <class T, class V>
void lu(const Elements<V>& a, V* pivots, V* order, std::int64_t m, std::int64_t n) {
  const V zero(T(0));
  auto size_of = [&](const V& x) { return select(x < zero, -x, x); };
  auto exchange = [](auto here, V& x, V& y) {
    const V before = x;
    x = select(here, y, before);
    y = select(here, before, y);
  };
  for (std::int64_t i = 0; i < m; ++i) order[i] = V(T(i));
  for (std::int64_t j = 0; j < std::min(m, n); ++j) {
    V most = size_of(a(j, j)), pivot{T(j)};
    for (std::int64_t i = j + 1; i < m; ++i) {
      const V size = size_of(a(i, j));
      pivot = select(size > most, V(T(i)), pivot);
      most = select(size > most, size, most);
    }
    pivots[j] = pivot;
    for (std::int64_t i = j + 1; i < m; ++i) {
      const auto here = pivot == V(T(i));
      for (std::int64_t k = 0; k < n; ++k) exchange(here, a(j, k), a(i, k));
      exchange(here, order[j], order[i]);
    }
    for (std::int64_t i = j + 1; i < m; ++i) {
      // A column of zeros has nothing to eliminate.
      a(i, j) = select(most == zero, a(i, j), a(i, j) / a(j, j));
      const V factor = -a(i, j);
      for (std::int64_t k = j + 1; k < n; ++k) a(i, k) = fma(factor, a(j, k), a(i, k));
    }
  }
}

// The determinant of n rows and columns, which are overwritten.
template <class T, class V>
V det(const Elements<V>& a, std::int64_t n) {
  V pivots[largest_lu], order[largest_lu], product(T(1));
  lu<T>(a, pivots, order, n, n);
  for (std::int64_t j = 0; j < n; ++j)  // each exchange changes the sign
    product = select(pivots[j] == V(T(j)), product, -product);
  for (std::int64_t j = 0; j < n; ++j) product = product * a(j, j);
  return product;
}

}  // namespace plait::small
