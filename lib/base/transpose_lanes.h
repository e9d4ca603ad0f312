// Squares of numbers in registers, transposed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pack.h>

#include <utility>

namespace plait {

// a and b as rows of a square: what lies beside its diagonal, `by` lanes wide, changes places.
template <int by, class V, int... j>
[[gnu::always_inline]] inline void exchange_lanes(V& a, V& b, std::integer_sequence<int, j...>) {
  constexpr int width = sizeof...(j);
  const V low = __builtin_shufflevector(a, b, (j & by ? width + j - by : j)...);
  b = __builtin_shufflevector(a, b, (j & by ? width + j : j + by)...);
  a = low;
}

// rows[i][j] and rows[j][i] are exchanged.
template <int by = 1, class T, int N>
[[gnu::always_inline]] inline void transpose_lanes(Pack<T, N> (&rows)[N]) {
  if constexpr (by < N) {
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      if (!(i & by))
        exchange_lanes<by>(rows[i].v, rows[i + by].v, std::make_integer_sequence<int, N>());
    transpose_lanes<2 * by>(rows);
  }
}

}  // namespace plait
