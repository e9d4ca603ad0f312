// Transposes square matrices held in registers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pack.h>

#include <utility>

namespace plait {

// For rows a and b of a square: swaps the off-diagonal blocks, which are `by` lanes wide.
template <int by, class V, int... j>
[[gnu::always_inline]] inline void exchange_lanes(V& a, V& b, std::integer_sequence<int, j...>) {
  constexpr int width = sizeof...(j);
  const V low = __builtin_shufflevector(a, b, (j & by ? width + j - by : j)...);
  b = __builtin_shufflevector(a, b, (j & by ? width + j : j + by)...);
  a = low;
}

// Exchanges rows[i][j] and rows[j][i].
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
