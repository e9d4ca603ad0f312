// Operations of factorizations, from Golub and Van Loan, "Matrix Computations".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "primitives/cost.h"

namespace plait::cost {

struct MatrixSizes {
  double count = 1, rows, columns, least;
  explicit MatrixSizes(const Aval& aval)
      : rows(value_of(aval.shape[std::size_t(aval.rank() - 2)])),
        columns(value_of(aval.shape[std::size_t(aval.rank() - 1)])),
        least(std::min(rows, columns)) {
    for (int i = 0; i < aval.rank() - 2; ++i) count *= value_of(aval.shape[std::size_t(i)]);
  }
};

// flops is a function of (sizes, params), of a real matrix.
template <class Flops>
Cost::Rule of_matrices(Flops flops) {
  return arithmetic([flops](Avals inputs, Avals, const Params& params) {
    const MatrixSizes sizes(inputs[0]);
    return multiply_add(inputs[0].dtype) / 2 * sizes.count * flops(sizes, params);
  });
}

inline double lu_flops(const MatrixSizes& x, const Params&) {
  const double k = x.least;
  return 2 * (x.rows * x.columns * k - (x.rows + x.columns) * k * k / 2 + k * k * k / 3);
}
inline double svd_flops(const MatrixSizes& x, bool vectors, bool full) {
  const double m = std::max(x.rows, x.columns), n = x.least;
  if (!vectors) return 4 * m * n * n - 4 * n * n * n / 3;
  return full ? 4 * m * m * n + 22 * n * n * n : 6 * m * n * n + 20 * n * n * n;
}

}  // namespace plait::cost
