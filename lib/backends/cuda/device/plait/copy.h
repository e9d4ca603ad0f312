// Copies between arrays with any strides, which are in elements.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plait/kernel.h"

constexpr int most_copied_dims = 8;

struct alignas(8) TwoWords {
  unsigned long low, high;
};

// Dimensions beyond rank count for nothing. sizes[0] is not read. Index: unsigned where count and a
// step over the grid fit, else long.
template <class T, class Index>
void copy_strided(In<T> from, Out<T> to, Index count, int rank,
                  const long (&sizes)[most_copied_dims],
                  const long (&from_strides)[most_copied_dims],
                  const long (&to_strides)[most_copied_dims]) {
  const Index step = Index(gridDim.x) * Index(blockDim.x);
  for (Index i = Index(blockIdx.x) * Index(blockDim.x) + Index(threadIdx.x); i < count; i += step) {
    Index rest = i;
    long source = 0, target = 0;
    for (int dim = most_copied_dims - 1; dim > 0; --dim) {
      if (dim >= rank) continue;
      const Index size = Index(sizes[dim]), outer = rest / size;
      const long at = long(rest - outer * size);
      source += at * from_strides[dim];
      target += at * to_strides[dim];
      rest = outer;
    }
    to[target + long(rest) * to_strides[0]] = from[source + long(rest) * from_strides[0]];
  }
}
